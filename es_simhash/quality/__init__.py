"""
Match quality: measured against pairs whose similarity is known, and explained for two texts; what methods return.

What is public stands in ``__init__.pyi``, and is imported when it is first asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
