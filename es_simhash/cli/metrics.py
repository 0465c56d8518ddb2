"""
The numbers of a follower for other programs: as JSON lines, and in Prometheus' text format over HTTP.

``flows.follow.report`` says what the numbers mean. The Prometheus client is an extra, imported when it is needed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, get_args

from es_simhash.cli.output import print_json
from es_simhash.errors import InvalidInputError, MissingDependencyError
from es_simhash.transport.refresh_flow import now
from es_simhash.upkeep.follow_report import FollowReport, FollowState

_COUNTERS = {
    "read": "Changed documents that were read.",
    "verified": "Documents that were read again although nothing changed.",
    "written": "Documents whose fingerprint was written or removed.",
    "stale": "Documents whose fingerprint was that of another text.",
    "conflicts": "Documents that others changed before our write.",
    "regrouped": "Documents whose group fields were rewritten.",
    "failed": "Documents that could not be read or written.",
}
_GAUGES = {
    "lag_operations": "Operations on the index that are not read yet, as of the last look.",
    "lag_seconds": "How long ago everything was done that was in the index then.",
    "has_lease": "1 if this follower may write, 0 if it waits to take over.",
}


def peak_memory() -> int | None:
    """
    Return the most memory that this process has occupied, in bytes; ``None`` where the system does not say.
    """
    try:
        import resource  # noqa: PLC0415 -- not on Windows
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def report_as_json(index: str, report: FollowReport) -> dict[str, Any]:
    """
    Return the numbers of a *report*, with the time and the memory of this process; failures are printed elsewhere.
    """
    numbers = {name: value for name, value in asdict(report).items() if name != "failures"}
    return {"time": now(), "index": index, **numbers, "peak_memory_bytes": peak_memory()}


class JsonLines:
    """
    Prints the numbers of a follower on stdout, at most once in *seconds*.
    """

    def __init__(self, index: str, seconds: float) -> None:
        self._index = index
        self._seconds = seconds
        self._printed_at: float | None = None

    def take(self, report: FollowReport) -> None:
        """Print *report* if it is time."""
        clock = time.monotonic()
        if self._printed_at is None or clock - self._printed_at >= self._seconds:
            self._printed_at = clock
            print_json(report_as_json(self._index, report))
            sys.stdout.flush()


@contextmanager
def serve_prometheus(index: str, address: str, port: int, latest: Callable[[], FollowReport]) -> Iterator[None]:
    """
    Serve the numbers of the *latest* report at ``/metrics`` within the block.

    Raises:
        MissingDependencyError: If the client library of Prometheus is not installed.
        InvalidInputError: If the port cannot be used.
    """
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server  # noqa: PLC0415 -- an extra
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(
            "--prometheus-port needs prometheus_client: pip install 'es-simhash[follow]'"
        ) from error

    class Collector:
        """Makes the metrics of the latest report."""

        def collect(self) -> Iterator[Any]:
            report = latest()
            for kind, names in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
                for name, help_ in names.items():
                    metric = kind(f"es_simhash_follow_{name}", help_, labels=["index"])
                    metric.add_metric([index], float(getattr(report, name)))
                    yield metric
            errors = CounterMetricFamily("es_simhash_follow_errors", "Requests that failed.", labels=["index", "kind"])
            for kind_of_error, number in report.errors.items():
                errors.add_metric([index, kind_of_error], number)
            yield errors
            state = GaugeMetricFamily("es_simhash_follow_state", "1 for the present state.", labels=["index", "state"])
            for name in get_args(FollowState):
                state.add_metric([index, name], float(report.state == name))
            yield state

    registry = CollectorRegistry()
    registry.register(Collector())
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        raise InvalidInputError(
            f"--prometheus-port {port} of {address} cannot be used ({error.strerror}): stop the program that uses it, "
            "or pass another port"
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
