"""
The two client classes, over the caller's own search client: ``sync_client.py`` and ``async_client.py``.

Each is imported on its own, so that a program loads the one it uses.
"""
