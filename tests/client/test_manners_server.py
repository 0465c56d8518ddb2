"""What callers get wrong: one clear error of the right kind for each, before anything is sent; sync and async."""

import os
import subprocess
import sys

import pytest

from es_simhash import InvalidInputError, with_fingerprints
from es_simhash.cli.input_records import Record, to_action
from tests.servers.support import ONE_SHARD

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


@pytest.fixture
def made(index, simhash):
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    return index


@pytest.mark.parametrize(
    ("method", "arguments", "options", "error", "word"),
    [
        ("ingest", [[]], {"text_field": 5}, TypeError, "text_field"),
        ("ingest", [[]], {"text_field": {"body": 1}}, TypeError, "text_field"),
        ("ingest", [[]], {"text_field": ["body", 5]}, TypeError, "text_field"),
        ("find_near_dups", [TEXT], {"routing": 5}, TypeError, "routing"),
        ("find_near_dups", [TEXT], {"routing": ["a"]}, TypeError, "routing"),
        ("find_near_dups", [TEXT], {"routing": ""}, InvalidInputError, "routing"),
        ("find_near_dups_of", [""], {}, InvalidInputError, "empty"),
        ("find_near_dups_of", ["\ud800"], {}, InvalidInputError, "surrogate"),
        ("find_near_dups_of", [5], {}, TypeError, "id"),
        ("find_near_dups_many", [], {"fingerprints": 5}, TypeError, "fingerprints"),
        ("find_near_dups_many", [], {"fingerprints": "abc"}, TypeError, "fingerprints"),
        ("find_near_dups_many", [], {"fingerprints": {1: 2}}, TypeError, "fingerprints"),
        ("find_near_dups_many", [5], {}, TypeError, "texts"),
    ],
)
def test_arguments_of_a_wrong_kind(made, simhash, method, arguments, options, error, word):
    with pytest.raises(error, match=word):
        list(getattr(simhash, method)(made, *arguments, **options))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("find_near_dups", [TEXT]),
        ("find_near_dups_of", ["a"]),
        ("ingest", [[{"body": TEXT}]]),
        ("check", []),
        ("reconcile", []),
        ("groups", []),
        ("backfill", []),
        ("remove_fields", []),
        ("create_index", []),
    ],
)
def test_names_of_an_index_that_cannot_be_sent(server, simhash, method, arguments):
    """Not the encoder's error, nor the server's."""
    names = {"news\ud800": "surrogate", "": "names no index|is empty", "news::data": "has a selector"}
    for name, said in names.items():
        with pytest.raises(InvalidInputError, match=said):
            list(getattr(simhash, method)(name, *arguments))


@pytest.mark.parametrize("text_field", [5, {"body"}, b"body", iter(["body"]), None])
def test_text_fields_that_are_none(text_field):
    with pytest.raises(TypeError, match="text_field"):
        with_fingerprints([], text_field=text_field)


def test_a_problem_is_told_to_a_function():
    with pytest.raises(TypeError, match="on_problem"):
        with_fingerprints([], text_field="body", on_problem="print")


@pytest.mark.parametrize(
    ("value", "id_field", "said"),
    [
        (None, None, "null is not a document"),
        (True, None, "true is not a document"),
        ("a", None, '"a" is not a document'),
        ({"id": None}, "id", "missing or null"),
        ({"body": TEXT}, "id", "missing or null"),
    ],
)
def test_lines_that_are_no_documents(value, id_field, said):
    """In the words of the file, not of Python."""
    with pytest.raises(InvalidInputError, match=said):
        to_action(Record("f", 1, value), id_field)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://host", "must begin with http"),
        ("http://host:99999", "port must be"),
        ("http://host:0", "port must be"),
        ("http://host:port", "port must be"),
        ("http://", "names no host"),
    ],
)
def test_urls_that_cannot_be(run, index, url, said):
    result = run("check", index, "--url", url)
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert said in line


# A process that uses a client, or does not, and then forks one that uses it: it exits with what became of that.
FORKS = """
import os, sys
from es_simhash import InvalidInputError, SimHashClient
from tests.servers.fixtures import make_client
from tests.servers.servers import detect
simhash = SimHashClient(make_client(detect(sys.argv[1])))
if sys.argv[3] == "used":
    simhash.find_near_dups(sys.argv[2], "text")
if os.fork() == 0:
    try:
        simhash.find_near_dups(sys.argv[2], "text")
    except InvalidInputError as error:
        os._exit(7 * ("forked" in str(error)))
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_client_that_a_fork_has_copied(server, index, sync_simhash):
    """It shares the connections of the other process: both would read each other's answers."""
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    codes = [
        subprocess.run([sys.executable, "-c", FORKS, server.url, index, each], check=False).returncode
        for each in ("used", "unused")
    ]
    assert codes == [7, 0]
