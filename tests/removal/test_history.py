"""Where documents have gone, as removals tell it; and all that they have, in other formats."""

import csv
import gzip
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from es_simhash.cli import app
from es_simhash.errors import InvalidInputError
from es_simhash.removal.history import removal_history
from es_simhash.removal.plan_header import PlanHeader
from es_simhash.removal.records import Archived, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from es_simhash.removal.take_decisions import decide_removal
from tests.servers.removals import decide_file

DAY = "2026-01-{:02d}T00:00:00.000Z".format


def removed(id_, canonical, day, *, index="news", other="news", routing=None):
    """Return a line of a plan, and when its document is archived."""
    document = PlannedDocument(id_, index, routing, 1, 1, "", {"title": f"title {id_}"})
    return PlannedRemoval(document, PlannedDocument(canonical, other, None, 1, 1, ""), 3, 0.9), day


@pytest.fixture
def archive(tmp_path):
    """Return a function that makes a removal, whose documents are archived in order of time, and deleted."""

    def write(name, *lines, is_deleted=True):
        path = tmp_path / name
        with PlanWriter(path) as writer:
            numbers = [writer.add(line) for line, _ in lines]
            header = PlanHeader({"news": "u", "blogs": "u"}, "simhash", {}, len(lines))
            writer.finish(replace(header, decided_by={"news": (), "blogs": ()}))
        with RemovalFile(path, writes=True) as found:
            for number, (line, day) in sorted(zip(numbers, lines, strict=True), key=lambda each: each[1][1]):
                archived = Archived(*line.document.key, '{"n": 1.10}', line.canonical.key, number, line.distance)
                found.append([archived], [number], DAY(day))
                found.note("deleted" if is_deleted else "kept", [number], DAY(day + 10))
        return path

    return write


def steps(history):
    """Return ids of each chain, with what the last one was removed for."""
    return [[*(each.id for each in chain), chain[-1].canonical] for chain in history.removals]


def test_a_chain_goes_on_over_files(archive):
    """The canonical was removed later, and its canonical too."""
    files = [archive("b", removed("b", "c", 2), removed("x", "y", 2)), archive("a", removed("a", "b", 1))]
    files.append(archive("c", removed("c", "d", 3)))
    found = removal_history("a", files)
    assert steps(found) == [["a", "b", "c", "d"]]
    first = found.removals[0][0]
    assert (first.distance, first.path, first.at, first.deleted) == (3, str(files[1]), DAY(1), DAY(11))
    assert [each.id for each in removal_history("d", files).stands_for] == ["c"]
    assert [each.id for each in removal_history("b", files).stands_for] == ["a"]
    assert steps(removal_history("b", files)) == [["b", "c", "d"]]
    assert not removal_history("d", files).removals
    assert not removal_history("z", files)


def test_all_indices_that_held_the_id_are_told(archive):
    """And the chain follows the document, not another with its id."""
    path = archive(
        "a",
        removed("a", "b", 1),
        removed("a", "b", 2, index="blogs", other="news"),
        removed("b", "c", 3, index="blogs", other="blogs"),
    )
    assert steps(removal_history("a", [path])) == [["a", "b"], ["a", "b"]]
    assert {chain[0].index for chain in removal_history("a", [path]).removals} == {"news", "blogs"}


def test_two_that_were_removed_for_each_other_end(archive):
    """Files of any content give an answer; a removal before it says nothing of what came after."""
    path = archive("a", removed("a", "b", 1), removed("b", "a", 1), removed("d", "e", 1), removed("x", "d", 2))
    assert steps(removal_history("a", [path])) == [["a", "b", "a"]]
    assert steps(removal_history("x", [path])) == [["x", "d"]]


def test_what_happened_to_a_document_later(archive, tmp_path):
    """It came back, was removed again, stayed; a run that goes on after a kill is one removal. With who had decided."""
    path = archive("a", removed("a", "b", 1), removed("s", "b", 1))
    with RemovalFile(path, writes=True) as found:
        sha256 = found.sha256
        found.note("restored", [0], DAY(12))
    with pytest.warns(UserWarning, match="was deleted already"):
        decide_removal(path, decide_file(tmp_path / "d", sha256, [("news", "s", None)], by="Ann\x1b", reason="late"))
    with RemovalFile(path, writes=True) as found:
        for day in (13, 14):
            found.append([], [0], DAY(day))
        found.note("kept", [0], DAY(15))
        found.append([], [0], DAY(16))
    told = [each for [each] in removal_history("a", [path]).removals]
    assert [(each.at, each.deleted, each.kept, each.restored) for each in told] == [
        (DAY(1), DAY(11), False, DAY(12)),
        (DAY(13), None, True, None),
        (DAY(16), None, False, None),
    ]
    assert [each.approved for each in told] == [(), *[(("Ann\x1b", "late"),)] * 2]
    said = CliRunner().invoke(app, ["history", "a", str(path)]).stdout
    assert said.count("Ann\\x1b: late") == 2
    rows = [line.split() for line in said.splitlines() if line.startswith("a   b")]
    assert [("kept" in row, "archived" in row) for row in rows] == [(False, False), (True, False), (False, True)]


def test_all_that_a_removal_has(archive, tmp_path):
    """A line for each document of its plan, in both formats; the text of each that was archived, as it was sent."""
    path = archive("a", removed("a", "b", 1), removed("c", "=1+1", 2, routing="@r"))
    with RemovalFile(path) as found:
        sha256 = found.sha256
    with pytest.warns(UserWarning, match="was deleted already"):
        decide_removal(path, decide_file(tmp_path / "d", sha256, [("news", "a", None)]))
    files = [tmp_path / "x.jsonl.gz", tmp_path / "x.csv"]
    result = CliRunner().invoke(app, ["history", str(path), "--export", str(files[0]), "--csv", str(files[1])])
    assert (result.exit_code, [each.stat().st_mode & 0o777 for each in files]) == (0, [0o600] * 2), result.output
    lines = gzip.decompress(files[0].read_bytes()).decode().splitlines()
    assert all(line.endswith('"_source": {"n": 1.10}}') for line in lines)
    plain = [json.loads(line) for line in lines]
    assert [(each["id"], each["routing"], each["canonical"]["id"], each["kept_by"]) for each in plain] == [
        ("a", None, "b", ["Ann"]),
        ("c", "@r", "=1+1", None),
    ]
    assert [each["kind"] for each in plain[0]["events"]] == ["archived", "deleted"]
    with files[1].open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert (rows[1]["routing"], rows[1]["canonical_id"]) == ("'@r", "'=1+1")  # no formula for a spreadsheet
    assert [(each["id"], each["deleted"], each["kept_by"], each["fields"]) for each in rows] == [
        ("a", DAY(11), "Ann", '{"title": "title a"}'),
        ("c", DAY(12), "", '{"title": "title c"}'),
    ]


def test_the_command(archive, tmp_path):
    """Lines for people, JSON, exit code 1 for an id that nobody knows; without a file the message has the command."""
    one, two = archive("one", removed("a\x1b", "b", 1)), archive("two", removed("b", "c", 2))

    def run(*arguments):
        return CliRunner().invoke(app, ["history", *map(str, arguments)])

    result = run("a\x1b", one, two)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert result.stdout.count("2026-01-1") == 2  # a record may take several lines
    found = json.loads(run("b", one, two, "--json").stdout)
    assert [[each["canonical"] for each in chain] for chain in found["removals"]] == [["c"]]
    assert [each["id"] for each in found["stands_for"]] == ["a\x1b"]
    many = archive("many", *(removed(f"a{n}", "b", 1) for n in range(102)))
    shown = run("b", many).stdout
    assert shown.endswith("\nand 2 more\n")
    assert len(json.loads(run("b", many, "--json").stdout)["stands_for"]) == 102
    missing = run("z", one)
    assert (missing.exit_code, "archived in none of these removals" in missing.stderr) == (1, True)
    for argument, words in ((one, f"es-simhash history ID {one}"), ("a", "es-simhash history a REMOVAL")):
        refused = run(argument)
        assert refused.exit_code == 2
        assert f"give an ID and a removal: {words}" in refused.stderr
    (tmp_path / "no").write_text("{}")
    with pytest.raises(InvalidInputError):
        removal_history("a", [tmp_path / "no"])
