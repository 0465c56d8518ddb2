"""``es-simhash follow``: a follower, and its numbers as JSON lines and in Prometheus' text format."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, get_args

import click

from es_simhash import FollowReport, InvalidInputError, MissingDependencyError
from es_simhash.cli import options
from es_simhash.cli.commands.backfill import last_of
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.failures import describe
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, dry_run_ending, error, note, print_failures, print_json, print_line, warn
from es_simhash.cli.stopping import stop_requests
from es_simhash.connection import split_url
from es_simhash.upkeep.follow_options import FollowOptions, FollowState, find_outage

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


def _peak_memory() -> int | None:
    """Return the most memory that this process has occupied, in bytes; ``None`` where the system does not say."""
    try:
        import resource  # noqa: PLC0415 -- not on Windows
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _to_dict(index: str, report: FollowReport) -> dict[str, Any]:
    numbers = {name: value for name, value in asdict(report).items() if name != "failures"}
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "index": index,
        **numbers,
        "peak_memory_bytes": _peak_memory(),
    }


@contextmanager
def _serve_prometheus(index: str, address: str, port: int, latest: Callable[[], FollowReport]) -> Iterator[None]:
    """Serve the numbers of the *latest* report at ``/metrics`` within the block."""
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server  # noqa: PLC0415 -- an extra
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(
            "--prometheus-port needs prometheus_client: pip install 'es-simhash[follow]'"
        ) from error

    class Collector:
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


# Until the server can be reached for the first time.
_CONNECT_SECONDS = 5.0


@options.manual(
    "es-simhash follow news",
    "es-simhash follow news --metrics json --prometheus-port 9108",
    "es-simhash follow news --once",
    common="--text-field --once --no-wait --interval --reconcile-every --metrics "
    "--prometheus-port --dry-run --url --json",
)
@click.argument("index")
@options.text_field
@click.option("--once", is_flag=True, help="End when everything is done that was written before.")
@click.option("--no-wait", is_flag=True, help="End with an error if another follower is active, instead of waiting.")
@options.takes(FollowOptions)
@click.option("--metrics", type=click.Choice(["json"]), help="Print the numbers on stdout, one JSON object a line.")
@options.seconds("--metrics-interval", default=60.0, help="Time between two of these lines.")
@options.number("--prometheus-port", most=65535, metavar="PORT", help="Serve the numbers for Prometheus here.")
@click.option(
    "--prometheus-address",
    metavar="ADDRESS",
    default="127.0.0.1",
    help="Address of this machine at which they are served.",
)
@click.option("--dry-run", is_flag=True, help="Count the documents whose fingerprint is missing or stale, and end.")
@options.scheme
@options.target
def command(
    index: str,
    text_field: tuple[str, ...],
    metrics: str | None,
    metrics_interval: float,
    prometheus_port: int | None,
    prometheus_address: str,
    target: Target,
    *,
    once: bool,
    no_wait: bool,
    dry_run: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """
    Give whatever other programs write to INDEX its fingerprint, and its group where one is recorded.

    It runs until Ctrl-C or SIGTERM: it then finishes its batch, records how far it came, and ends with exit code 0. A
    server that cannot be reached is waited for. Of several followers of one INDEX one is active; the others wait to
    take its place.
    """
    if dry_run:
        return _count(index, text_field, target, as_json=as_json)
    followed = _Followed(index, metrics_interval if metrics else None)
    with ExitStack() as stack:
        if prometheus_port is not None:
            stack.enter_context(_serve_prometheus(index, prometheus_address, prometheus_port, lambda: followed.last))
        try:
            with stop_requests(lambda: followed.last.is_idle) as request, _reach(target, index) as connection:
                reports = connection.simhash.follow(index, text_field=text_field, once=once, wait=not no_wait, **how)
                with closing(reports):
                    for report in reports:
                        followed.take(report)
                        if request.stop is not None:
                            break
        except KeyboardInterrupt:
            note("stopped")
    last = followed.last
    if as_json or metrics:
        print_json(_to_dict(index, last))
    else:
        print_line(f"{index}: {_sentence(last)}")
    return 1 if once and last.failed else 0


def _count(index: str, text_field: tuple[str, ...], target: Target, *, as_json: bool) -> int:
    with connect(target, index) as connection:
        reports = connection.simhash.backfill(index, text_field=text_field, dry_run=True)
        with closing(reports):
            last, failures = last_of(reports)
    print_failures(failures, total=last.failed, advice="mend these")
    if as_json:
        numbers = {"read": last.seen, "written": last.changed, "stale": last.stale, "failed": last.failed}
        print_json({"index": index, "dry_run": True, **numbers})
    else:
        compared = f"{index}: {count(last.seen, 'document')} compared"
        written = f"{count(last.changed, 'fingerprint')} would be written, {last.stale:,} of them stale"
        print_line(f"{compared}, {written}{dry_run_ending(is_dry=True)}")
    return 1 if last.failed else 0


class _Followed:
    """Says what goes wrong, once each, and prints the numbers of *index* at most once in *seconds*, if at all."""

    def __init__(self, index: str, seconds: float | None) -> None:
        self.last = FollowReport("standby")
        self._index = index
        self._seconds = seconds
        self._problem = ""
        self._printed_at = float("-inf")

    def take(self, report: FollowReport) -> None:
        self.last = report
        for failure in report.failures:
            error(str(failure), **failure.to_dict())
        if report.problem != self._problem:
            self._problem = report.problem
            if report.problem:
                warn(f"{report.problem}: waiting", kind=report.state)
        clock = time.monotonic()
        if self._seconds is not None and clock - self._printed_at >= self._seconds:
            self._printed_at = clock
            print_json(_to_dict(self._index, report))
            sys.stdout.flush()


@contextmanager
def _reach(target: Target, index: str) -> Iterator[Connection]:
    """Connect to the server; wait for one that cannot be reached."""
    with ExitStack() as stack:
        said = ""
        while True:
            try:
                connection = stack.enter_context(connect(target, index, is_quiet=True))
                break
            except Exception as failure:
                if find_outage(failure, has_begun=False) is None:
                    raise
                if (message := describe(failure, url=split_url(target.server.url)[0])) != said:
                    said = message
                    warn(f"{message}: waiting", kind="retrying")
                time.sleep(_CONNECT_SECONDS)
        yield connection


def _sentence(last: FollowReport) -> str:
    written = f"{count(last.written, 'fingerprint')} written, {last.stale:,} of them stale"
    failed = [f"{last.failed:,} failed"] if last.failed else []
    changed = count(last.read, "changed document")
    return ", ".join([f"{changed} read", written, f"{count(last.regrouped, 'group')} changed", *failed])
