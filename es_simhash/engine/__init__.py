"""
The only room that touches a search server: dialects, drivers, and real local servers for the demo and the tests.
"""
