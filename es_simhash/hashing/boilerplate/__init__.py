"""
Template text, such as footers and disclaimers, that is left out of texts: the mask that lists it, and its use.

Nothing is learned here (``es_simhash.quality.boilerplate``), and no file is opened.
"""
