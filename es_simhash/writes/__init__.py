"""
Writing documents: bulk requests, conditional writes, and which indices a write reaches. Nothing is grouped here.
"""
