"""
The two client classes, over the caller's own search client. Both share every line of logic through the flows.
"""

from es_simhash.client.async_client import AsyncSimHashClient
from es_simhash.client.sync_client import SimHashClient

__all__ = ["AsyncSimHashClient", "SimHashClient"]
