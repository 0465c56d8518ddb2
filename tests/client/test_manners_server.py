"""What callers get wrong: one clear error of the right kind for each, before anything is sent; sync and async."""

import os
import subprocess
import sys

import pytest

from es_simhash import InvalidInputError
from es_simhash.cli.lines import Record, to_action
from tests.servers.support import ONE_SHARD

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


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
