"""
The methods of the async client: generated from ``sync_methods`` by ``tools/generate_async_client.py``.
"""
