"""Where documents have gone, as removals tell it."""

import json
import re

import pytest

from es_simhash.removal.history import removal_history
from es_simhash.removal.removal_file import RemovalFile
from tests.servers.archives import write_archive
from tests.servers.command_line import invoke
from tests.servers.removals import decide_file, take

DAY = "2026-01-{:02d}T00:00:00.000Z".format


@pytest.fixture
def removed(tmp_path):
    """Return a function that makes a removal of *pairs* of an id and its canonical, archived on a day, and deleted."""

    def write(name, day, *pairs, index="news"):
        rows = [(index, id_, None, '{"n": 1.10}', canonical) for id_, canonical in pairs]
        path = write_archive(tmp_path / name, rows, at=DAY(day))
        with RemovalFile(path, writes=True) as found:
            found.note("deleted", range(len(rows)), DAY(day + 10))
        return path

    return write


def test_all_removals_of_an_id_are_told(removed):
    """Over files and indices, and those of other documents for which it stands."""
    files = [removed("b", 2, "bc", "xy"), removed("a", 1, "ab"), removed("c", 3, "ad", index="blogs")]
    found = removal_history("a", files)
    assert [(each.canonical, each.index) for each in found.removals] == [("b", "news"), ("d", "blogs")]
    first = found.removals[0]
    assert (first.distance, first.path, first.at, first.deleted) == (3, str(files[1]), DAY(1), DAY(11))
    assert [each.id for each in removal_history("b", files).stands_for] == ["a"]
    assert not removal_history("c", files).removals
    assert not removal_history("z", files)
    assert not removal_history(" ", files)  # an id as servers take it


def test_what_happened_to_a_document_later(removed, tmp_path):
    """It came back, was removed again, stayed; a run that goes on after a kill is one removal. With who had decided."""
    path = removed("a", 1, "ab", "sb")
    with RemovalFile(path, writes=True) as found:
        sha256 = found.sha256
        found.note("restored", [0], DAY(12))
    with pytest.warns(UserWarning, match="was deleted already"):
        take(path, decide_file(tmp_path / "d", sha256, [("news", "s", None)], by="Ann\x1b", reason="late"))
    with RemovalFile(path, writes=True) as found:
        for day in (13, 14):
            found.append([], [0], DAY(day))
        found.note("kept", [0], DAY(15))
        found.append([], [0], DAY(16))
    told = removal_history("a", [path]).removals
    assert [(each.at, each.deleted, each.kept, each.restored) for each in told] == [
        (DAY(1), DAY(11), False, DAY(12)),
        (DAY(13), None, True, None),
        (DAY(16), None, False, None),
    ]
    assert [each.approved for each in told] == [(), *[(("Ann\x1b", "late"),)] * 2]
    said = invoke(["history", "a", str(path)]).stdout
    assert said.count("Ann\\x1b: late") == 2
    rows = [block.split() for block in re.split(r"\n\s*\n", said)]
    assert [("kept" in row, "archived" in row) for row in rows] == [(False, False), (True, False), (False, True)]


def test_the_command(removed):
    """Lines for people, JSON, exit code 1 for an id that nobody knows; without a file the message has the command."""
    one, many = removed("one", 1, ("a\x1b", "b")), removed("many", 1, *((f"a{n}", "b") for n in range(102)))
    result = invoke(["history", "a\x1b", one])
    assert (result.exit_code, "\x1b" in result.stdout, result.stdout.count("2026-01-1")) == (0, False, 1)
    found = json.loads(invoke(["history", "a0", one, many, "--json"]).stdout)
    assert [each["canonical"] for each in found["removals"]] == ["b"]
    assert invoke(["history", "b", many]).stdout.endswith("\nand 2 more\n")
    missing = invoke(["history", "z", one])
    assert (missing.exit_code, "archived in none of these removals" in missing.stderr) == (1, True)
    for argument, words in ((one, f"es-simhash history ID {one}"), ("a", "es-simhash history a REMOVAL")):
        refused = invoke(["history", argument])
        assert (refused.exit_code, f"give an ID and a removal: {words}" in refused.stderr) == (2, True)
