"""Commands that need no server, run as a shell would run them."""

import pytest
from click.testing import CliRunner

from es_simhash.cli import app


@pytest.fixture
def local(monkeypatch):
    """Return a function that runs a command line and returns its result."""
    for name in ("URL", "PRODUCT", "API_KEY", "USER", "PASSWORD", "CA_FILE", "DEBUG"):
        monkeypatch.delenv(f"ES_SIMHASH_{name}", raising=False)
    return lambda *args, stdin=None: CliRunner().invoke(app, [str(each) for each in args], input=stdin)
