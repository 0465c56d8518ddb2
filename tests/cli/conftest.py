"""Commands that need no server, run as a shell would run them."""

import pytest

from tests.servers.command_line import invoke


@pytest.fixture
def local(monkeypatch):
    """Return a function that runs a command line and returns its result."""
    for name in ("URL", "PRODUCT", "API_KEY", "USER", "PASSWORD", "CA_FILE", "DEBUG"):
        monkeypatch.delenv(f"ES_SIMHASH_{name}", raising=False)
    return lambda *args, stdin=None: invoke([str(each) for each in args], stdin=stdin)
