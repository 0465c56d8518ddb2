"""
Looking up near-duplicates: by text, by document, many at once, as a stream. Reads only; nothing is grouped here.
"""
