"""
Real OpenSearch and Elasticsearch servers on this machine, with nothing but pip: the names meant for use elsewhere.

    server.py       one node, from start to clean-up
    process.py      the process around it: started, waited for, stopped, killed
    launch.py       options to folders, settings and JVM options
    artifacts.py    which files a release needs, and how they are fetched and checked (``locked/`` has their checksums)
    java.py         which Java runs them
    child.py        the program of the process

Importing this package is cheap: Java and Maven code is imported when a server is made.
"""

from __future__ import annotations

from es_simhash.servers.artifacts import releases
from es_simhash.servers.server import EmbeddedServer, embedded_server

__all__ = ["EmbeddedServer", "embedded_server", "releases"]
