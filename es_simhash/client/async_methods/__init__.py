"""The async client's methods, generated from ``sync_methods`` by ``tools/generate_async_client.py``."""
