"""Two embedded servers that form one cluster, so that the one that holds data can be killed."""

import shutil
import tempfile
import time
from pathlib import Path

from es_simhash.errors import EmbeddedServerError
from es_simhash.servers.embedded import POLL_SECONDS, EmbeddedServer


class ClusterNode(EmbeddedServer):
    """A node that founds a cluster, or that looks for its *leader*."""

    leader = None

    def configuration(self):
        """Return the configuration of a node of its own, with the settings of the cluster."""
        config = super().configuration()
        is_opensearch = self.product == "opensearch"
        config["settings"]["discovery.type"] = "zen" if is_opensearch else "multi-node"
        seeds = [f"127.0.0.1:{self.leader.transport_port}"] if self.leader else []
        config["settings"]["discovery.seed_hosts"] = seeds
        if self.leader is None:
            leaders = "cluster_manager" if is_opensearch else "master"
            config["settings"][f"cluster.initial_{leaders}_nodes"] = [self.name]
        return config


class EmbeddedCluster:
    """
    A node that leads and one with data alone, each in a process and a folder of its own; a context manager that
    removes them.
    """

    def __init__(self, product):
        self.data = Path(tempfile.mkdtemp(prefix="es-simhash-"))
        self.leader = ClusterNode(product, data=self.data / "node-1", name="node-1")
        self.other = ClusterNode(product, data=self.data / "node-2", name="node-2", settings={"node.roles": ["data"]})
        self.other.leader = self.leader

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Start the nodes that are not running, and return when they have found each other."""
        self.leader.start()
        self.other.start()
        self.await_health("green", "yellow")

    def await_health(self, *accepted, timeout_seconds=60.0):
        """Return when each node sees both, in a cluster whose health is one of *accepted*, by default ``"green"``."""
        deadline = time.monotonic() + timeout_seconds
        while not all(node.health(nodes=2) in (accepted or ("green",)) for node in (self.leader, self.other)):
            if time.monotonic() > deadline:
                raise EmbeddedServerError(f"the cluster was not healthy in time: see the logs in {self.data}")
            time.sleep(POLL_SECONDS)

    def close(self):
        """Stop both nodes and remove their folder."""
        for node in (self.other, self.leader):
            node.close()
        shutil.rmtree(self.data, ignore_errors=True)
