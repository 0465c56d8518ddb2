"""Where documents have gone, as archives tell it."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from es_simhash.cli import app
from es_simhash.errors import InvalidInputError
from es_simhash.removal.archive_writer import ArchiveWriter
from es_simhash.removal.history import find_history
from es_simhash.removal.records import Archived
from es_simhash.transport.protocol import Key


def removed(id_, canonical, day, *, index="news", other="news", distance=None, approved=None):
    """Return the line of a removal."""
    own = {} if distance is None else {"simhash": {"duplicate_of": canonical, "distance": distance}}
    source = json.dumps({"n": 1.10, **own})
    at = f"2026-01-{day:02d}T00:00:00.000Z"
    return Archived(index, id_, None, source, Key(other, canonical), "0" * 64, at, approved=approved)


@pytest.fixture
def archive(tmp_path):
    """Return a function that writes an archive."""

    def write(name, *lines):
        path = tmp_path / name
        with ArchiveWriter(path, "0" * 64) as writer:
            writer.append(lines)
        return path

    return write


def steps(history):
    """Return ids of each chain, with what the last one was removed for."""
    return [[*(each.id for each in chain), chain[-1].canonical] for chain in history.removals]


def test_a_chain_goes_on_over_archives(archive):
    """The canonical was removed later, and its canonical too."""
    files = [archive("b", removed("b", "c", 2), removed("x", "y", 2)), archive("a", removed("a", "b", 1, distance=3))]
    files.append(archive("c", removed("c", "d", 3)))
    found = find_history("a", files)
    assert steps(found) == [["a", "b", "c", "d"]]
    assert (found.removals[0][0].distance, found.removals[0][0].archive) == (3, str(files[1]))
    assert [each.id for each in find_history("d", files).stands_for] == ["c"]
    assert [each.id for each in find_history("b", files).stands_for] == ["a"]
    assert steps(find_history("b", files)) == [["b", "c", "d"]]
    assert not find_history("d", files).removals
    assert not find_history("z", files)


def test_all_indices_that_held_the_id_are_told(archive):
    """And the chain follows the document, not another with its id."""
    path = archive(
        "a",
        removed("a", "b", 1),
        removed("a", "b", 2, index="blogs", other="news"),
        removed("b", "c", 3, index="blogs", other="blogs"),
    )
    assert steps(find_history("a", [path])) == [["a", "b"], ["a", "b"]]
    assert {chain[0].index for chain in find_history("a", [path]).removals} == {"news", "blogs"}


def test_a_document_that_was_removed_twice(archive):
    """It was restored between; a removal before it says nothing of what came after."""
    path = archive("a", removed("b", "c", 1), removed("a", "b", 2), removed("a", "d", 4))
    assert steps(find_history("a", [path])) == [["a", "b"], ["a", "d"]]


def test_two_that_were_removed_for_each_other_end(archive):
    """Archives of any content give an answer."""
    path = archive("a", removed("a", "b", 1), removed("b", "a", 1), removed("c", "c", 1))
    assert steps(find_history("a", [path])) == [["a", "b", "a"]]
    assert steps(find_history("c", [path])) == [["c", "c"]]


def test_who_approved_a_removal(archive):
    """Each line says it; lines of a run without decisions do not."""
    lines = [
        removed("a", "b", 1, approved=("Ann", "old\n")),
        removed("b", "c", 2),
        removed("c", "d", 3, approved=("B", "")),
    ]
    path = archive("a", *lines)
    [chain] = find_history("a", [path]).removals
    assert [(each.by, each.reason) for each in chain] == [("Ann", "old\n"), (None, None), ("B", "")]
    assert [each.to_dict().get("by", "absent") for each in chain] == ["Ann", "absent", "B"]
    said = CliRunner().invoke(app, ["history", "a", "--archive", str(path)]).stdout
    assert " ".join(said.split()).count("approved by") == 2


def test_an_archive_that_was_cut(archive):
    """Whole lines of its end are told; where others may be missing, the command says so."""
    path = archive("a", removed("a", "b", 1))
    path.write_bytes(path.read_bytes()[:-4])
    found = find_history("a", [path])
    assert (steps(found), list(found.cut), found.is_incomplete) == ([["a", "b"]], [str(path)], False)
    assert CliRunner().invoke(app, ["history", "a", "--archive", str(path)]).exit_code == 0
    path.write_bytes(path.read_bytes()[:-40])
    found = find_history("a", [path])
    assert (steps(found), list(found.cut), found.is_incomplete) == ([], [str(path)], True)
    result = CliRunner().invoke(app, ["history", "a", "--archive", str(path)])
    assert result.exit_code == 1
    assert str(path) in result.stderr


def test_archives_are_given_as_to_a_restore(archive, tmp_path):
    """As arguments or with --archive; without one, or without the id, the message has the whole command."""
    one, two = archive("one", removed("a", "b", 1)), archive("two", removed("b", "c", 2))

    def run(*arguments):
        return CliRunner().invoke(app, ["history", *map(str, arguments)])

    wanted = run("a", "--archive", one, "--archive", two).stdout
    assert "for c; it is in" in " ".join(wanted.split())
    assert run("a", one, two).stdout == run("a", "--archive", one, two).stdout == wanted
    for argument, words in ((one, f"es-simhash history ID {one}"), ("a", "es-simhash history a ARCHIVE")):
        found = run(argument)
        assert found.exit_code == 2
        assert f"give an ID and an archive: {words}" in found.stderr
    kept = run("z", one)
    assert (kept.exit_code, "is in the files of decisions" in kept.stderr) == (1, True)


def test_a_note_that_a_document_goes_again(tmp_path):
    """It is a removal of its own, for the document with this routing; a note that it stayed is none."""
    path, day = tmp_path / "a", "2026-01-0{}T00:00:00.000Z".format
    with ArchiveWriter(path, "0" * 64) as writer:
        writer.append([removed("a", "b", 1), replace(removed("a", "x", 2), routing="r")])
        writer.note("kept", [Key("news", "a", None)], day(3))
        writer.note("archived", [Key("news", "a", None)], day(4))
    for files in ([path], [path, path]):
        found = {(each.canonical, each.at, each.again) for [each] in find_history("a", files).removals}
        assert found == {("b", day(1), False), ("b", day(4), True), ("x", day(2), False)}


def test_each_line_of_a_document_is_told(tmp_path):
    """Of each person who approved it, in order of time; of a run that kept it after all, too, and that it was there."""
    path, day = tmp_path / "a", "2026-01-0{}T00:00:00.000Z".format
    first, key = removed("a", "b", 1, approved=("Ann", "")), Key("news", "a", None)
    with ArchiveWriter(path, "0" * 64) as writer:
        writer.append([first, replace(removed("a", "b", 1), routing="r")])
        writer.append([replace(removed("a", "b", 2, approved=("Bob", "late")), again=True)])
        writer.note("kept", [key], day(3))
        writer.note("archived", [key], day(4))
    found = [each for [each] in find_history("a", [path]).removals if each.routing is None]
    assert [(each.at, each.by, each.again, each.kept) for each in found] == [
        (day(1), "Ann", False, False),
        (day(2), "Bob", True, True),
        (day(4), "Bob", True, False),
    ]
    said = " ".join(CliRunner().invoke(app, ["history", "a", str(path)]).stdout.split())
    assert said.count("for b, and was there afterwards; it is in") == 1
    assert (said.count("approved by Ann"), said.count("approved by Bob: late")) == (1, 2)
    with ArchiveWriter(tmp_path / "end", "0" * 64) as writer:
        writer.note("archived", [key], day(5))
    assert len(find_history("a", [path, tmp_path / "end"]).removals) == 4


def test_the_command(archive, tmp_path):
    """Lines for people, JSON, and exit code 1 for an id that nobody knows."""
    one, two = archive("one", removed("a\x1b", "b", 1, distance=1)), archive("two", removed("b", "c", 2))
    result = CliRunner().invoke(app, ["history", "a\x1b", "--archive", str(one), str(two)])
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert result.stdout.count("2026-01-0") == 2  # a record may take several lines
    result = CliRunner().invoke(app, ["history", "b", "--archive", str(one), "--archive", str(two), "--json"])
    found = json.loads(result.stdout)
    assert [[each["canonical"] for each in chain] for chain in found["removals"]] == [["c"]]
    assert [each["id"] for each in found["stands_for"]] == ["a\x1b"]
    many = archive("many", *(removed(f"a{n}", "b", 1) for n in range(102)))
    shown = CliRunner().invoke(app, ["history", "b", str(many)]).stdout
    assert shown.endswith("  and 2 more documents: --json has all\n")
    assert len(json.loads(CliRunner().invoke(app, ["history", "b", str(many), "--json"]).stdout)["stands_for"]) == 102
    assert CliRunner().invoke(app, ["history", "z", "--archive", str(one)]).exit_code == 1
    (tmp_path / "no").write_text("{}")
    with pytest.raises(InvalidInputError):
        find_history("a", [tmp_path / "no"])
