"""Several embedded servers that form one cluster, so that nodes can be killed out of it."""

import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from es_simhash.errors import EmbeddedServerError
from es_simhash.servers.embedded import POLL_SECONDS, EmbeddedServer


class ClusterNode(EmbeddedServer):
    """A node that looks for others, by the settings in *discovery*."""

    discovery = None

    def configuration(self):
        """Return the configuration of a node of its own, with the settings of the cluster."""
        config = super().configuration()
        config["settings"] |= self.discovery
        return config


class EmbeddedCluster:
    """Three nodes of one cluster, each in a process and a folder of its own; a context manager that removes them."""

    def __init__(self, product):
        self.data = Path(tempfile.mkdtemp(prefix="es-simhash-"))
        names = [f"node-{number}" for number in range(1, 4)]
        self.nodes = [ClusterNode(product, data=self.data / name, name=name) for name in names]

    @property
    def urls(self):
        """The URL of every node, running or not."""
        return [node.url for node in self.nodes]

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
        """Start the nodes that are not running, and return when all have found each other."""
        first, *others = self.nodes
        if first.transport_port == 0:
            # The first founds the cluster alone, on ports that it finds itself; the others need them.
            first.discovery = _discovery(first.product, founders=[first.name])
            first.start()
            for node in others:
                node.discovery = _discovery(first.product, seeds=[first])
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(EmbeddedServer.start, self.nodes))
        for node in self.nodes:
            # From now on any node may come back after the others.
            node.discovery = _discovery(node.product, seeds=[other for other in self.nodes if other is not node])
        self.await_health()

    def await_health(self, status="yellow", *, timeout_seconds=60.0):
        """Return when every running node sees all running nodes, in a cluster that is green or, by default, yellow."""
        accepted = ("green",) if status == "green" else ("green", "yellow")
        running = [node for node in self.nodes if node.is_running()]
        deadline = time.monotonic() + timeout_seconds
        while not all(node.health(nodes=len(running)) in accepted for node in running):
            if time.monotonic() > deadline:
                states = ", ".join(f"{node.name} {node.health(nodes=len(running)) or 'apart'}" for node in running)
                raise EmbeddedServerError(
                    f"the cluster was not {status} within {timeout_seconds:g} seconds ({states}):"
                    f" see the logs in {self.data}"
                )
            time.sleep(POLL_SECONDS)

    def close(self):
        """Stop all nodes and remove their folder."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(EmbeddedServer.close, self.nodes))
        shutil.rmtree(self.data, ignore_errors=True)


def _discovery(product, *, founders=None, seeds=None):
    settings = {
        "discovery.type": "zen" if product == "opensearch" else "multi-node",
        "discovery.seed_hosts": [f"127.0.0.1:{node.transport_port}" for node in seeds or []],
    }
    if founders:
        leaders = "cluster_manager" if product == "opensearch" else "master"
        settings[f"cluster.initial_{leaders}_nodes"] = founders
    return settings
