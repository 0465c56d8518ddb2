"""Where documents have gone, as removals tell it."""

import json
import re
from dataclasses import replace

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.removal.history import removal_history
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from tests.servers.command_line import invoke
from tests.servers.removals import decide_file, take

DAY = "2026-01-{:02d}T00:00:00.000Z".format


def removed(id_, canonical, day, *, index="news", other="news", routing=None):
    """Return a line of a plan, and when its document is archived."""
    document = PlannedDocument(id_, index, routing, 1, 1, "", {"title": f"title {id_}"})
    return PlannedRemoval(document, PlannedDocument(canonical, other, None, 1, 1, ""), 3, 0.9, "same"), day


@pytest.fixture
def archive(tmp_path):
    """Return a function that makes a removal, whose documents are archived in order of time, and deleted."""

    def write(name, *lines):
        path = tmp_path / name
        with PlanWriter(path) as writer:
            for line, _ in lines:
                writer.add(line)
            header = PlanHeader({"news": "u", "blogs": "u"}, "simhash", {}, len(lines))
            writer.finish(replace(header, decided_by={"news": (), "blogs": ()}))
        with RemovalFile(path, writes=True) as found:
            for number, (line, day) in sorted(enumerate(lines), key=lambda each: each[1][1]):
                archived = Archived(*line.document.key, '{"n": 1.10}', line.canonical.key, number, line.distance)
                found.append([archived], [number], DAY(day))
                found.note("deleted", [number], DAY(day + 10))
        return path

    return write


def steps(history):
    """Return what the document was removed for, each time."""
    return [removed.canonical for removed in history.removals]


def test_all_removals_of_an_id_are_told(archive):
    """Over files and indices, and those of other documents for which it stands."""
    files = [archive("b", removed("b", "c", 2), removed("x", "y", 2)), archive("a", removed("a", "b", 1))]
    files.append(archive("c", removed("a", "d", 3, index="blogs", other="news")))
    found = removal_history("a", files)
    assert (steps(found), [each.index for each in found.removals]) == (["b", "d"], ["news", "blogs"])
    first = found.removals[0]
    assert (first.distance, first.path, first.at, first.deleted) == (3, str(files[1]), DAY(1), DAY(11))
    assert [each.id for each in removal_history("b", files).stands_for] == ["a"]
    assert not removal_history("c", files).removals
    assert not removal_history("z", files)
    assert not removal_history(" ", files)  # an id as servers take it


def test_what_happened_to_a_document_later(archive, tmp_path):
    """It came back, was removed again, stayed; a run that goes on after a kill is one removal. With who had decided."""
    path = archive("a", removed("a", "b", 1), removed("s", "b", 1))
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


def test_the_command(archive, tmp_path):
    """Lines for people, JSON, exit code 1 for an id that nobody knows; without a file the message has the command."""
    one, two = archive("one", removed("a\x1b", "b", 1)), archive("two", removed("b", "c", 2))

    def run(*arguments):
        return invoke(["history", *map(str, arguments)])

    result = run("a\x1b", one, two)
    assert (result.exit_code, "\x1b" in result.stdout, result.stdout.count("2026-01-1")) == (0, False, 1)
    found = json.loads(run("b", one, two, "--json").stdout)
    assert [each["canonical"] for each in found["removals"]] == ["c"]
    many = archive("many", *(removed(f"a{n}", "b", 1) for n in range(102)))
    assert run("b", many).stdout.endswith("\nand 2 more\n")
    missing = run("z", one)
    assert (missing.exit_code, "archived in none of these removals" in missing.stderr) == (1, True)
    for argument, words in ((one, f"es-simhash history ID {one}"), ("a", "es-simhash history a REMOVAL")):
        refused = run(argument)
        assert (refused.exit_code, f"give an ID and a removal: {words}" in refused.stderr) == (2, True)
    (tmp_path / "no").write_text("{}")
    with pytest.raises(InvalidInputError):
        removal_history("a", [tmp_path / "no"])
