"""
``es-simhash follow``: a service that gives fingerprints and groups to whatever other programs write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.failures import describe
from es_simhash.cli.manual import Manual
from es_simhash.cli.metrics import JsonLines, report_as_json, serve_prometheus
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, error, note, print_json, print_line, warn
from es_simhash.cli.quantities import BYTES
from es_simhash.cli.stopping import stop_requests
from es_simhash.connection import split_url
from es_simhash.upkeep.follow_options import STATE_INDEX, find_outage
from es_simhash.upkeep.follow_report import FollowReport

EXAMPLES = [
    "es-simhash follow news",
    "es-simhash follow news --metrics json --prometheus-port 9108",
    "es-simhash follow news --once",
]
# Until the server can be reached for the first time.
_CONNECT_SECONDS = 5.0
_SECONDS = click.FloatRange(min=0, min_open=True)


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@options.text_fields
@click.option("--once", is_flag=True, help="End when everything is done that was written before.")
@click.option("--no-wait", is_flag=True, help="End with an error if another follower is active, instead of waiting.")
@click.option(
    "--interval",
    type=_SECONDS,
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="Time between two looks while nothing changes.",
)
@click.option(
    "--lease",
    "lease_seconds",
    type=_SECONDS,
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="Time without a sign of life, after which another follower takes over; at most 3,600.",
)
@click.option(
    "--reconcile-every",
    "reconcile_seconds",
    type=_SECONDS,
    metavar="SECONDS",
    default=3600.0,
    show_default=True,
    help="Time after which, if anything changed, all groups are decided again.",
)
@click.option(
    "--verify-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    default=0.0,
    show_default=True,
    help="Share of INDEX that is read again in a day although nothing changed: with 0.1, all of it in ten days.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes that compute fingerprints.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 10_000),
    default=500,
    show_default=True,
    metavar="N",
    help="Most documents that are read at once.",
)
@click.option(
    "--memory",
    "memory_bytes",
    type=BYTES,
    default="256MiB",
    show_default=True,
    metavar="SIZE",
    help="About how much the texts that are read at once may need.",
)
@click.option(
    "--state-index",
    metavar="NAME",
    default=STATE_INDEX,
    show_default=True,
    help="Index that holds the lease and the position; it is created if it is missing.",
)
@click.option("--metrics", type=click.Choice(["json"]), help="Print the numbers on stdout, one JSON object a line.")
@click.option(
    "--metrics-interval",
    type=_SECONDS,
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="Time between two of these lines.",
)
@click.option(
    "--prometheus-port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve the numbers for Prometheus here."
)
@click.option(
    "--prometheus-address",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address of this machine at which they are served.",
)
@options.scheme
@options.target
@options.as_json
def command(
    index: str,
    text_fields: tuple[str, ...],
    metrics: str | None,
    metrics_interval: float,
    prometheus_port: int | None,
    prometheus_address: str,
    target: Target,
    *,
    once: bool,
    no_wait: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """
    Give whatever other programs write to INDEX its fingerprint, and its group where one is recorded.

    It runs until Ctrl-C or SIGTERM: it then finishes its batch, records how far it came, and ends with exit code 0. A
    server that cannot be reached is waited for. Of several followers of one INDEX one is active; the others wait to
    take its place.
    """
    followed = _Followed(JsonLines(index, metrics_interval) if metrics else None)
    with ExitStack() as stack:
        if prometheus_port is not None:
            stack.enter_context(serve_prometheus(index, prometheus_address, prometheus_port, lambda: followed.last))
        try:
            with stop_requests(lambda: followed.last.is_idle) as request, _reach(target, index) as connection:
                reports = connection.simhash.follow(
                    index, text_field=text_fields or None, once=once, wait=not no_wait, **how
                )
                with closing(reports):
                    for report in reports:
                        followed.take(report)
                        if request.stop is not None:
                            break
        except KeyboardInterrupt:
            note("stopped")
    last = followed.last
    if as_json or metrics:
        print_json(report_as_json(index, last))
    else:
        print_line(f"{index}: {_sentence(last)}")
    return 1 if once and last.failed else 0


class _Followed:
    """Follows the reports: says what goes wrong, once each, and passes the numbers on."""

    def __init__(self, lines: JsonLines | None) -> None:
        self.last = FollowReport("standby")
        self._lines = lines
        self._problem = ""

    def take(self, report: FollowReport) -> None:
        """Note the next report."""
        self.last = report
        for failure in report.failures:
            error(str(failure), **failure.to_dict())
        if report.problem != self._problem:
            self._problem = report.problem
            if report.problem:
                warn(f"{report.problem}: waiting", kind=report.state)
        if self._lines is not None:
            self._lines.take(report)


@contextmanager
def _reach(target: Target, index: str) -> Iterator[Connection]:
    """Connect to the server; wait for one that cannot be reached."""
    with ExitStack() as stack:
        said = ""
        while True:
            try:
                connection = stack.enter_context(connect(target, index))
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
    written = f"{last.written:,} fingerprints written, {last.stale:,} of them stale"
    failed = [f"{last.failed:,} failed"] if last.failed else []
    changed = count(last.read, "changed document")
    return ", ".join([f"{changed} read", written, f"{last.regrouped:,} groups changed", *failed])
