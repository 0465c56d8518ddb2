"""
The methods of the sync client, one module for each room of ``flows``: lookup, grouping, removal, upkeep.

A method checks nothing and decides nothing: it packs its arguments and hands a flow to the base class. The modules of
``async_methods`` are generated from these by ``tools/generate_async_client.py``.
"""
