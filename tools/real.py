"""
Start docker-compose.yml, one profile after another, check what only the real products show, and write the results into
COMPATIBILITY.md: ``make real``. The checks are in ``tests/servers/real.py``.

It needs Docker with Compose, the ports of the compose file (those of .env.example in the environment choose others),
8 GB of memory, and the wheel in dist/ for the service `follow`. Its project has a name of its own, and is removed at
the end, or by the next run after one that was killed.
"""

# ruff: noqa: INP001, T201 - a script
from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from es_simhash import SimHashClient, __version__
from tests.servers.fixtures import make_client
from tests.servers.real import CHECKS, XSRF, Place
from tests.servers.servers import detect, send

DOCUMENT = ROOT / "COMPATIBILITY.md"
TABLE = re.compile("(?<=<!-- make real -->\\n).*(?=<!-- end of make real -->)", re.DOTALL)
# Profile: scheme, user, and the services that listen.
PROFILES = {
    "elasticsearch": ("http", "elastic", "elasticsearch", "kibana"),
    "opensearch": ("https", "admin", "opensearch", "opensearch-dashboards"),
}
STARTS = "The profile starts, and every container becomes healthy."
# OpenSearch wants letters of both cases, a digit and a sign.
PASSWORD = f"Aa1-{secrets.token_urlsafe(16)}"
# The follower installs the wheel of this checkout, not that of PyPI.
OVERRIDE, CONSTRAINT = ROOT / "dist/follow.json", ROOT / "dist/constraint.txt"
FOLLOW = {"volumes": ["./dist:/dist:ro"], "environment": {"PIP_CONSTRAINT": "/dist/constraint.txt"}}


def compose(*words: str) -> str:
    """Run ``docker compose`` with *words*, and return what it prints."""
    files = ["--file", "docker-compose.yml", "--file", str(OVERRIDE), "--project-name", "es-simhash-real"]
    return subprocess.run(  # noqa: S603 - our own arguments
        ["docker", "compose", *files, *words],  # noqa: S607 - that of the PATH
        cwd=ROOT,
        env=os.environ | {"ES_SIMHASH_PASSWORD": PASSWORD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()


def up(*profiles: str) -> None:
    """Start *profiles*, and wait until what has a check is healthy."""
    compose(*(word for name in profiles for word in ("--profile", name)), "up", "--wait", "--wait-timeout", "900")


def outcomes_of(profile: str) -> Iterator[tuple[str, str, str]]:
    """Start a profile and check it, then on OpenSearch the follower beside it; yield what was shown."""
    scheme, user, name, board = PROFILES[profile]
    up(profile)
    places = compose("--profile", profile, "port", name, "9200"), compose("--profile", profile, "port", board, "5601")
    url, address = (f"{s}://{user}:{PASSWORD}@{place}" for s, place in zip((scheme, "http"), places, strict=True))
    server = detect(url)
    _, status, _ = send(address, "GET", "/api/status", headers=XSRF[profile])
    product = f"{name} {server.version}, {board} {status['version']['number']}"
    yield product, STARTS, "shown"
    unverified = {"verify_certs": False, "ssl_show_warn": False} if scheme == "https" else {}
    with contextlib.closing(make_client(server, **unverified)) as client:
        for beside in (profile, "follow") if profile == "opensearch" else (profile,):
            if beside != profile:
                up(profile, beside)
            for check in CHECKS[beside]:
                try:
                    outcome = f"shown: {check(Place(server, SimHashClient(client), board=address))}"
                except Exception as error:  # noqa: BLE001 - whatever happens is the outcome
                    outcome = f"**failed**: {' '.join(str(error).split())[:200] or type(error).__name__}"
                print(f"{product}: {check.__name__}: {outcome}", flush=True)
                yield product, check.__doc__ or "", outcome.replace("|", "\\|")


def write(rows: list[tuple[str, str, str]], engine: str) -> None:
    """Put the rows between the two comments of COMPATIBILITY.md."""
    head = f"Run on {datetime.now(UTC):%Y-%m-%d} with es_simhash {__version__}, by {engine}."
    lines = [head, "", "| containers | statement | outcome |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    text = "\n".join(["", *lines, "", ""])
    DOCUMENT.write_text(TABLE.sub(lambda _: text, DOCUMENT.read_text("utf-8")), "utf-8")


def main() -> int:
    """Check both profiles; return 1 if something could not be shown."""
    OVERRIDE.parent.mkdir(exist_ok=True)
    OVERRIDE.write_text(json.dumps({"services": {"follow": FOLLOW}}), "utf-8")
    CONSTRAINT.write_text(f"es-simhash @ file:///dist/es_simhash-{__version__}-py3-none-any.whl\n", "utf-8")
    engine = compose("version")  # without Compose there is nothing to write
    rows: list[tuple[str, str, str]] = []
    for profile in PROFILES:
        try:
            compose("--profile", "*", "down", "--volumes")
            rows += outcomes_of(profile)
        except Exception as error:  # noqa: BLE001 - the other profile is checked all the same
            print(f"error: {profile}: {error}", file=sys.stderr)
            rows.append((profile, STARTS, "**failed**"))
        finally:
            compose("--profile", "*", "down", "--volumes")
    write(rows, engine)
    return int(any("**failed**" in row[2] for row in rows))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
