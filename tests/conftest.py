"""
What every test shares: Hypothesis profiles, the guard against network use, and the data sets beside the checkout.
"""

from __future__ import annotations

import functools
import gzip
import inspect
import json
import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings

from tests.server.servers import PRODUCTS, SERVERS, Servers

settings.register_profile("laptop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("laptop"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "laptop")

# Servers of tests live for minutes at most: the JVM's second compiler would cost more time than it saves. Every child
# process reads this variable, also a server that a command of ours starts.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

if "mix_stderr" in inspect.signature(CliRunner).parameters:  # click 8.1; later ones always keep them apart
    CliRunner.__init__ = functools.partialmethod(CliRunner.__init__, mix_stderr=False)

NETWORKED = {"server", "docs", "estates"}
SHARED = Path(__file__).parents[2] / "shared" / "data"


def pytest_configure(config):
    """Keep the servers with the session, so that each is started once, when a test first asks for it."""
    config.stash[SERVERS] = Servers()


def pytest_unconfigure(config):
    """Stop what was started."""
    config.stash[SERVERS].close()


def pytest_report_header(config):
    """Say which servers the tests run on."""
    return [f"{product}: {config.stash[SERVERS].describe(product)}" for product in PRODUCTS]


@pytest.fixture(autouse=True)
def no_network(request, monkeypatch):
    """
    Fail a test that opens a connection, except where tests are about servers.
    """
    folder = Path(request.path).relative_to(Path(__file__).parent).parts[0]
    if folder in NETWORKED:
        return

    def refuse(self, address):
        if self.family == socket.AF_UNIX:
            return original(self, address)
        raise AssertionError(f"a test outside tests/server connects to {address}")

    original = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="session")
def shared_texts():
    """
    Return a function that reads the first *count* texts of a data set, or skips the test where it is missing.
    """

    def read(name: str, count: int) -> list[str]:
        path = SHARED / name / "docs.jsonl.gz"
        if not path.exists():
            pytest.skip(f"the data set {name} is not beside the checkout")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line)["text"] for _, line in zip(range(count), lines)]

    return read
