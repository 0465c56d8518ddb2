"""``es-simhash follow``: a follower, and its numbers as JSON lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from es_simhash import FollowReport
from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.failures import describe
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, error, note, print_json, print_line, warn
from es_simhash.cli.stopping import stop_requests
from es_simhash.connection import split_url
from es_simhash.upkeep.follow_options import FollowOptions, find_outage


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


# Until the server can be reached for the first time.
_CONNECT_SECONDS = 5.0


@options.manual(
    "es-simhash follow news",
    "es-simhash follow news --metrics json",
    "es-simhash follow news --once",
    common="--text-field --once --interval --state-index --workers --metrics --url --json",
)
@click.argument("index")
@options.text_field
@click.option("--once", is_flag=True, help="End when everything is done that was written before.")
@options.takes(FollowOptions)
@click.option("--metrics", type=click.Choice(["json"]), help="Print the numbers on stdout, one JSON object a line.")
@options.seconds("--metrics-interval", default=60.0, help="Time between two of these lines.")
@options.scheme_files
@options.target
def command(
    index: str,
    metrics: str | None,
    metrics_interval: float,
    target: Target,
    *,
    once: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """
    Give whatever other programs write to INDEX its fingerprint, and its group where one is recorded.

    It runs until Ctrl-C or SIGTERM: it then finishes its batch, records how far it came, and ends with exit code 0. A
    server that cannot be reached is waited for. Run one for each INDEX: a second one only
    does the same work again. What it would do first says es-simhash backfill INDEX --dry-run.
    """
    followed = _Followed(index, metrics_interval if metrics else None)
    try:
        with stop_requests(lambda: followed.last.is_idle) as request, _reach(target, index) as connection:
            reports = connection.simhash.follow(index, once=once, **how)
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


class _Followed:
    """Says what goes wrong, once each, and prints the numbers of *index* at most once in *seconds*, if at all."""

    def __init__(self, index: str, seconds: float | None) -> None:
        self.last = FollowReport("waiting")
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
