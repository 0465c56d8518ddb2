"""
Real OpenSearch and Elasticsearch servers on this machine, with nothing but pip: the names for use elsewhere.

Importing this package is cheap: Java and Maven code is imported when a server is made.
"""

from __future__ import annotations

from es_simhash.servers.artifacts import releases
from es_simhash.servers.server import EmbeddedServer, embedded_server

__all__ = ["EmbeddedServer", "embedded_server", "releases"]
