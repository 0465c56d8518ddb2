"""
Real OpenSearch and Elasticsearch servers on this machine, with nothing but pip: the names meant for use elsewhere.

    embedded_server      one node; embedded_server.py, which has the life of the process
    embedded_cluster     several nodes; embedded_cluster.py
    embedded_launch.py   options to folders, settings and JVM options
    embedded_artifacts.py, embedded_java.py   what is run, and on which Java
    embedded_child.py    the program of the process itself

Importing this is cheap: nothing of Java, and no Maven code, is imported before a server is made.
"""

from __future__ import annotations

from es_simhash.engine.embedded_artifacts import releases
from es_simhash.engine.embedded_cluster import EmbeddedCluster, embedded_cluster
from es_simhash.engine.embedded_server import EmbeddedServer, embedded_server

__all__ = ["EmbeddedCluster", "EmbeddedServer", "embedded_cluster", "embedded_server", "releases"]
