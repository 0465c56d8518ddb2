"""Real OpenSearch and Elasticsearch servers on this machine, with nothing but pip. Java code is imported late."""

from __future__ import annotations

from es_simhash.servers.artifacts import releases
from es_simhash.servers.embedded import EmbeddedServer, embedded_server

__all__ = ["EmbeddedServer", "embedded_server", "releases"]
