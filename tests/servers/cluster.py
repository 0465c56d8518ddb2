"""Several embedded servers that form one cluster, so that nodes can be killed out of it."""

from __future__ import annotations

import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_simhash.errors import EmbeddedServerError, InvalidInputError
from es_simhash.servers.server import POLL_SECONDS, EmbeddedServer

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

__all__ = ["EmbeddedCluster", "embedded_cluster"]

MOST_NODES = 9


class ClusterNode(EmbeddedServer):
    """
    A node that looks for others.

    Attributes:
        discovery:
            The settings that say which nodes form the cluster.
    """

    discovery: dict[str, str | list[str]]

    def configuration(self) -> dict[str, Any]:
        """Return the configuration of a node of its own, with the settings of the cluster."""
        config = super().configuration()
        config["settings"] |= self.discovery
        return config


class EmbeddedCluster:
    """
    Nodes of one cluster, each in a process of its own. Made by :func:`embedded_cluster`; a context manager.

    Attributes:
        nodes:
            The servers, each with its own ``stop``, ``kill`` and ``start``.
        data:
            The folder that holds a folder for each node.
    """

    def __init__(self, nodes: list[ClusterNode], *, data: Path, temporary: bool) -> None:
        self.nodes = tuple(nodes)
        self.data = data
        self._temporary = temporary

    @property
    def urls(self) -> list[str]:
        """The URL of every node, running or not."""
        return [node.url for node in self.nodes]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """
        Start the nodes that are not running, and return when all have found each other.

        Raises:
            EmbeddedServerError: If a node does not start or does not join.
        """
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

    def await_health(self, status: str = "yellow", *, timeout_seconds: float = 60.0) -> None:
        """
        Return when every running node sees all running nodes, in a cluster that is green or, by default, yellow.

        Raises:
            EmbeddedServerError: If that does not happen in time.
        """
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

    def close(self) -> None:
        """Stop all nodes and, if their folder was a temporary one, remove it."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(EmbeddedServer.close, self.nodes))
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)


def _discovery(
    product: str, *, founders: list[str] | None = None, seeds: list[ClusterNode] | None = None
) -> dict[str, str | list[str]]:
    settings: dict[str, str | list[str]] = {
        "discovery.type": "zen" if product == "opensearch" else "multi-node",
        "discovery.seed_hosts": [f"127.0.0.1:{node.transport_port}" for node in seeds or []],
    }
    if founders:
        leaders = "cluster_manager" if product == "opensearch" else "master"
        settings[f"cluster.initial_{leaders}_nodes"] = founders
    return settings


def embedded_cluster(
    product: str = "opensearch",
    *,
    nodes: int = 3,
    version: str | None = None,
    data: str | os.PathLike[str] | None = None,
    heap: str = "512m",
    settings: Mapping[str, Any] | None = None,
    jvm: str | None = None,
    timeout_seconds: float = 180.0,
) -> EmbeddedCluster:
    """
    Start a cluster of real servers and return it, ready; as a context manager it is closed at the end.

    Takes some 15 seconds for three nodes on two cores.

    Args:
        product:
            ``"opensearch"`` or ``"elasticsearch"``.
        nodes:
            How many, 2 to 9; the cluster outlives a kill if more than half of them stay.
        version:
            As for :func:`~es_simhash.servers.embedded_server`.
        data:
            Folder to keep the nodes' folders in; by default a temporary one that goes with the cluster.
        heap:
            Heap of each node.
        settings:
            More settings, the same for each node.
        jvm:
            As for :func:`~es_simhash.servers.embedded_server`.
        timeout_seconds:
            How long each node may take to start.

    Raises:
        InvalidInputError: If an argument cannot be used.
        MissingDependencyError: If the extra ``embedded`` is not installed.
        EmbeddedServerError: If the cluster does not form.
    """
    if isinstance(nodes, bool) or not isinstance(nodes, int):
        raise TypeError(f"nodes must be an int, not {type(nodes).__name__}")
    if not 2 <= nodes <= MOST_NODES:
        raise InvalidInputError(f"nodes must be 2 to {MOST_NODES}, not {nodes}: use embedded_server for one")
    folder = Path(tempfile.mkdtemp(prefix="es-simhash-") if data is None else data).absolute()
    try:
        servers = [
            ClusterNode(
                product,
                version=version,
                data=folder / f"node-{number}",
                heap=heap,
                settings=settings,
                jvm=jvm,
                name=f"node-{number}",
                timeout_seconds=timeout_seconds,
            )
            for number in range(1, nodes + 1)
        ]
    except BaseException:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    cluster = EmbeddedCluster(servers, data=folder, temporary=data is None)
    try:
        cluster.start()
    except BaseException:
        cluster.close()
        raise
    return cluster
