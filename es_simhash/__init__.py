"""
Exact near-duplicate search for Elasticsearch and OpenSearch, without a server plugin.

Give each document a 64-bit SimHash fingerprint and four keyword block fields (``with_fingerprints``), then ask for
its near-duplicates (``SimHashClient.find_near_dups``). The public names are here; no search client is imported.

What is public stands in ``__init__.pyi``, and is imported when it is first asked for: numpy alone takes longer to
import than all the rest.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
