"""
Results as tables: for the eye in a notebook, and for pandas and polars. Pure; no result is defined here.
"""
