"""
Queries as text that people paste: ES|QL, the query bars of Kibana and Dashboards, fields that show a distance. Pure.
"""
