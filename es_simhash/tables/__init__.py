"""Results as tables: for a notebook, for pandas and for polars. Pure; no result is defined here."""
