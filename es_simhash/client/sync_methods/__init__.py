"""
The methods of the sync client, one module for each subject, such as lookup, grouping and removal.

A method decides nothing: it packs its arguments and hands a flow to the base class. ``async_methods`` is
generated from these modules by ``tools/generate_async_client.py``.
"""
