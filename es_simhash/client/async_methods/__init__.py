"""The async client's methods, generated from ``methods`` by ``tools/generate_clients.py``."""
