"""Fixtures for other people's programs, which ``make strangers`` installs; without them the tests are skipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from es_simhash import SimHashClient
from tests.servers.fixtures import get_server, make_client
from tests.servers.support import ONE_SHARD, numbered, texts

HERE = Path(__file__).parent
# The folder of the programs.
FOLDER = "ES_SIMHASH_STRANGERS"
SECONDS = 120


@pytest.fixture(scope="session")
def strangers():
    """The folder in which the programs are."""
    if not os.environ.get(FOLDER):
        pytest.skip("needs other people's programs: run make strangers")
    return Path(os.environ[FOLDER]).absolute()


@pytest.fixture(scope="session")
def node(strangers):
    """Return a function that runs a script of this folder with Node, and returns the JSON lines that it prints."""
    command = shutil.which("node")
    if command is None or not (strangers / "node_modules").exists():
        pytest.skip("Node or its packages are missing")
    # Node looks for packages beside the script.
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, strangers)

    def run(script, *arguments, lines=(), **variables):
        done = subprocess.run(
            [command, strangers / script, *arguments],
            input="".join(json.dumps(line) + "\n" for line in lines),
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.fixture(scope="session")
def documents():
    """Documents of which many are edited copies of one before them."""
    return numbered(texts(300))


@pytest.fixture
def index(strangers):
    """A name of the test's own."""
    return f"test-{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def opensearch(request):
    """A running OpenSearch."""
    return get_server(request, "opensearch")


@pytest.fixture(scope="session")
def elasticsearch(request):
    """A running Elasticsearch."""
    return get_server(request, "elasticsearch")


@pytest.fixture
def simhash(opensearch, index):
    """A client of an OpenSearch on which *index* has the final pipeline *index*."""
    with make_client(opensearch) as client:
        simhash = SimHashClient(client)
        simhash.create_index(index, text_field="body", settings=ONE_SHARD)
        simhash.put_pipeline(index, name=index, use_as="final")
        yield simhash
    opensearch.remove(index)
    opensearch.request("DELETE", f"/_ingest/pipeline/{index}")
