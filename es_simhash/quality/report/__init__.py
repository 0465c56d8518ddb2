"""The report about an index: its numbers, charts and groups as one HTML page that loads and sends nothing."""
