"""
The report about an index: its numbers, charts and groups as one HTML page that loads nothing. Nothing is sent.
"""
