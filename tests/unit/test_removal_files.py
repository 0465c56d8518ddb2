"""The plan of removal and the archive: written whole, checked whole, cut, changed, and of others."""

import gzip
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.errors import GuardRailError, InvalidInputError
from es_simhash.index.keys import Key
from es_simhash.removal import archive as archive_module
from es_simhash.removal.archive import check_archive, read_archive
from es_simhash.removal.archive_writer import ArchiveWriter
from es_simhash.removal.guards import Guards, Share, refuse_excess
from es_simhash.removal.outputs import refuse_archive_name, refuse_output
from es_simhash.removal.plan_file import PlanWriter, read_plan
from es_simhash.removal.raw_json import join_members, split_items, split_members
from es_simhash.removal.records import Archived, PlanHeader, PlannedDocument, PlannedRemoval

HEADER = PlanHeader({"news": "u1"}, "simhash", {"rule": "star"}, guards=Guards(0.2, "source", 9, {"x": Share(1, 7)}))


def removal(number, similarity=0.9, distance=3, text="text"):
    """Return a line of a plan."""
    document = PlannedDocument(f"d{number}", "news", None, number, 1, {"body": text}, ("body",))
    canonical = PlannedDocument("c", "news", "r", 1, 2, {"body": text})
    return PlannedRemoval(document, canonical, distance, similarity)


def write(path, removals, *, limit=None):
    """Write a plan, and return its digest."""
    with PlanWriter(path) as writer:
        for each in removals:
            writer.add(each)
        return writer.finish(HEADER, writer.order(limit))


@pytest.fixture
def plan(tmp_path):
    """A plan of three lines."""
    path = tmp_path / "plan.jsonl"
    write(path, [removal(n, similarity) for n, similarity in enumerate([0.9, 0.85, 1.0])])
    return path


def test_a_plan_is_read_as_it_was_written(tmp_path):
    """In order of similarity, with header and digest; nothing else is left in the folder."""
    removals = [removal(1, 0.9), removal(2, 0.8, text="\ud800 “x”\n"), removal(3, 0.9, 5), removal(4, None)]
    path = tmp_path / "plan.jsonl"
    digest = write(path, removals)
    plan = read_plan(path)
    assert (plan.sha256, plan.header, len(plan)) == (digest, replace(HEADER, count=4), 4)
    found = list(plan.removals())
    assert found == [removals[3], removals[1], removals[2], removals[0]]
    assert [each.document.fields for each in found[:2]] == [{"body": "text"}, {"body": "\ud800 “x”\n"}]
    assert found[0].document.cut == ("body",)
    assert [each.name for each in tmp_path.iterdir()] == ["plan.jsonl"]
    first = json.loads(path.read_bytes().splitlines()[0])
    assert (first["format"], first["version"], first["count"]) == ("es-simhash-plan", 1, 4)


@pytest.mark.parametrize("limit", [0, 1, 2, 9])
def test_a_limit_keeps_the_most_similar(tmp_path, limit):
    """The lines that are left out are those one would look at first."""
    similarities = [0.9, 0.8, 1.0]
    write(tmp_path / "p", [removal(n, each) for n, each in enumerate(similarities)], limit=limit)
    kept = [each.similarity for each in read_plan(tmp_path / "p").removals()]
    assert kept == sorted(similarities)[max(0, 3 - limit) :]


def test_an_empty_plan(tmp_path):
    """A plan without lines is a plan."""
    write(tmp_path / "p", [])
    assert list(read_plan(tmp_path / "p").removals()) == []


def test_a_plan_that_is_not_finished_leaves_no_file(tmp_path):
    """And an older plan of that name stays."""
    path = tmp_path / "plan.jsonl"
    path.write_text("older", encoding="utf-8")
    with PlanWriter(path) as writer:
        writer.add(removal(1))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("plan.jsonl", "older")]


def test_a_plan_that_was_cut_is_refused_at_every_byte(plan):
    """Nothing is read from it, wherever it ends."""
    whole = plan.read_bytes()
    for length in range(len(whole)):
        plan.write_bytes(whole[:length])
        with pytest.raises(InvalidInputError) as caught:
            read_plan(plan)
        assert str(plan) in str(caught.value)
        assert "\n" not in str(caught.value)
    plan.write_bytes(whole)
    assert len(read_plan(plan)) == 3


def test_a_plan_that_was_changed_is_refused_at_every_byte(plan):
    """Whatever was changed, also to something that still is JSON; so are lines left out, moved or added."""
    whole = plan.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        plan.write_bytes(bytes(changed))
        with pytest.raises(InvalidInputError):
            read_plan(plan)
    lines = whole.splitlines(keepends=True)
    for others in (lines[:2] + lines[3:], [lines[0], lines[2], lines[1], *lines[3:]], [*lines, lines[-1]], lines[:1]):
        plan.write_bytes(b"".join(others))
        with pytest.raises(InvalidInputError):
            read_plan(plan)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "is empty"),
        (b"hello\n", "not a plan"),
        (b"[1]\n" * 3, "not a plan"),
        (b'{"format": "es-simhash-plan", "version": 2}\n{"sha256": ""}\n', "version 2"),
        (b'{"format": "es-simhash-plan", "version": 1}\n{"sha256": ""}\n', "line 1"),
        (gzip.compress(b"x", mtime=0), "not a plan"),
        (b"[" * 100_000, "not a plan"),
    ],
)
def test_what_is_no_plan(tmp_path, data, word):
    """One line that says which file, and what it is."""
    path = tmp_path / "p"
    path.write_bytes(data)
    with pytest.raises(InvalidInputError, match=word):
        read_plan(path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda whole: whole + b"\n", "line 6: the plan goes on"),
        (lambda whole: whole + whole, "line 6: the plan goes on"),
        (lambda whole: whole.replace(b"\n", b"\r\n"), "line ends"),
    ],
)
def test_a_plan_with_something_added(plan, change, word):
    """The message says what was added, not that something is missing."""
    plan.write_bytes(change(plan.read_bytes()))
    with pytest.raises(InvalidInputError, match=word):
        read_plan(plan)


def test_a_plan_that_is_replaced_while_it_is_read(tmp_path, plan):
    """Only lines that were checked are used, whatever has the name of the plan by then."""
    checked = read_plan(plan)
    write(plan, [removal(n, similarity) for n, similarity in enumerate([0.9, 0.87, 1.0])])
    with pytest.raises(InvalidInputError, match="line 2"):
        list(checked.removals())
    write(plan, [removal(n, similarity) for n, similarity in enumerate([0.9, 0.85, 1.0])])
    found = checked.removals()
    assert next(found).similarity == 0.85
    plan.write_bytes(b"".join(plan.read_bytes().splitlines(keepends=True)[:2]))
    again = checked.removals()
    assert next(again).similarity == 0.85
    with pytest.raises(InvalidInputError, match="line 3"):
        next(again)


def test_a_plan_in_a_pipe_is_refused(tmp_path):
    """It could be read once only, and then has no lines."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match="no regular file"):
        read_plan(tmp_path / "pipe")


def test_a_document_is_not_its_own_canonical(tmp_path):
    """A plan that says so is refused, though its digest fits: nothing would stay."""
    one = removal(1)
    write(tmp_path / "p", [one, replace(one, canonical=one.document)])
    with pytest.raises(InvalidInputError, match="line 3: .* its own canonical"):
        read_plan(tmp_path / "p")


@pytest.mark.parametrize("protected", [None, (), ("a", "b")])
def test_protected_values_are_in_the_plan(tmp_path, protected):
    """As the guard rails count them, which may not be what the document has."""
    write(tmp_path / "p", [replace(removal(1), protected=protected)])
    assert [each.protected for each in read_plan(tmp_path / "p").removals()] == [protected]


@pytest.mark.parametrize("kind", ["plan", "page", "report"])
def test_archives_and_inputs_are_not_written_over(tmp_path, plan, kind):
    """Other files are; a plan may replace a plan."""
    archive, other = tmp_path / "a.gz", tmp_path / "other"
    with ArchiveWriter(archive, PLAN):
        pass
    other.write_text("x", encoding="utf-8")
    refuse_output(tmp_path / "new", kind=kind)
    refuse_output(other, kind=kind)
    with pytest.raises(InvalidInputError, match="gzip"):
        refuse_output(archive, kind=kind)
    (tmp_path / "link").symlink_to(other)
    with pytest.raises(InvalidInputError, match="same command"):
        refuse_output(tmp_path / "link", inputs=[other], kind=kind)
    if kind == "plan":
        refuse_output(plan, kind=kind)
    else:
        with pytest.raises(InvalidInputError, match="plan"):
            refuse_output(plan, kind=kind)
    if kind == "report":
        refuse_output("/dev/null", kind=kind)
    else:
        with pytest.raises(InvalidInputError, match="regular"):
            refuse_output("/dev/null", kind=kind)


def test_a_plan_does_not_replace_an_archive(tmp_path):
    """The archive stays as it was."""
    with ArchiveWriter(tmp_path / "a.gz", PLAN):
        pass
    before = (tmp_path / "a.gz").read_bytes()
    with pytest.raises(InvalidInputError):
        write(tmp_path / "a.gz", [removal(1)])
    assert (tmp_path / "a.gz").read_bytes() == before


def test_names_that_are_no_archive(tmp_path, plan):
    """The plan itself, and what keeps nothing."""
    refuse_archive_name(tmp_path / "new", plan)
    with pytest.raises(InvalidInputError, match="is the plan"):
        refuse_archive_name(plan, plan)
    with pytest.raises(InvalidInputError, match="/dev/null"):
        refuse_archive_name("/dev/null", plan)


@given(st.integers(1, 1000), st.integers(0, 100))
def test_a_share_that_is_exact_is_allowed(hundreds, percent):
    """Also where floating point has another opinion, as for 29 of 100."""
    share = Share(hundreds * percent, hundreds * 100)
    assert not share.exceeds(percent / 100)
    assert replace(share, removals=share.removals + 1).exceeds(percent / 100)


def test_guards():
    """A share of exactly the largest is allowed; of a value too."""
    guards = Guards(0.2, "source", 10, {"a": Share(1, 4), "b": Share(1, 5)})
    assert [(each.field, each.value) for each in guards.find_excess(2)] == [("source", "a")]
    assert [(each.field, each.value) for each in guards.find_excess(3)] == [(None, None), ("source", "a")]
    assert Guards(1.0, None, 3).find_excess(3) == []
    with pytest.raises(GuardRailError) as caught:
        refuse_excess(guards.find_excess(3))
    assert len(caught.value.excess) == 2


SOURCE = '{"n": 1.10, "big": 123456789012345678901234567890, "e": 1E400, "body": "a\\u00e9\u2028"}'
PLAN = "f" * 64


def archived(number, source=SOURCE, plan=PLAN):
    """Return a line of an archive."""
    return Archived("news", f"d{number}", "r" if number % 2 else None, source, Key("news", "c"), plan, "2026-01-01")


@pytest.fixture
def archive(tmp_path):
    """An archive of five lines in three members."""
    path = tmp_path / "removed.jsonl.gz"
    with ArchiveWriter(path, PLAN) as writer:
        for numbers in ([0, 1], [2], [3, 4]):
            writer.append([archived(number) for number in numbers])
    return path


def test_an_archive_is_read_as_it_was_written(archive):
    """By us and by gzip; numbers keep their text."""
    assert list(read_archive(archive)) == [archived(number) for number in range(5)]
    lines = gzip.decompress(archive.read_bytes()).decode().split("\n")
    assert lines.pop() == ""
    assert [json.loads(line)["_id"] for line in lines] == [f"d{n}" for n in range(5)]
    assert all(SOURCE in line for line in lines)
    summary = check_archive(archive)
    assert (summary.lines, summary.is_cut, summary.plans) == (5, False, {PLAN})
    assert summary.size == archive.stat().st_size


def test_a_source_with_line_feeds_stays_on_one_line(tmp_path):
    """They stand between values only, where a space means the same."""
    with ArchiveWriter(tmp_path / "a", PLAN) as writer:
        writer.append([archived(0, '{\r\n  "a": 1.0\n}')])
    [found] = read_archive(tmp_path / "a")
    assert found.source == '{    "a": 1.0 }'


def test_an_archive_is_written_on(archive):
    """It knows what it holds, also after it was opened again, and finds it."""
    with ArchiveWriter(archive, PLAN) as writer:
        assert len(writer) == 5
        assert writer.holds(Key("news", "d1", "r"))
        assert not writer.holds(Key("news", "d1"))
        writer.append([archived(5)])
        writer.append([])
        found = writer.find([Key("news", "d5", "r"), Key("news", "d0"), Key("news", "no")])
        assert found == {each.key: each for each in (archived(0), archived(5))}
    assert check_archive(archive).lines == 6


def ends(path):
    """Return the lengths that an archive has after each of its members."""
    data, found = path.read_bytes(), [0]
    for place in range(1, len(data) + 1):
        try:
            gzip.decompress(data[:place])
        except (EOFError, gzip.BadGzipFile):
            continue
        found.append(place)
    return found


def test_an_archive_cut_at_every_byte(archive):
    """Whole lines of the end are read; a writer moves the end to a file beside, and goes on after the whole members."""
    whole = archive.read_bytes()
    members = ends(archive)
    lines = [0, 0, 2, 3, 5]
    assert len(members) == len(lines)
    for length in range(1, len(whole)):
        before = max(n for n, end in enumerate(members) if end <= length)
        archive.write_bytes(whole[:length])
        if length < members[1]:
            with pytest.raises(InvalidInputError, match="is not an archive"):
                check_archive(archive, allow_cut=True)
            with ArchiveWriter(archive, PLAN) as writer:
                writer.append([archived(9)])
            continue
        if length not in members:
            with pytest.raises(InvalidInputError, match=f"cut short after line {lines[before]}"):
                check_archive(archive)
        found = list(read_archive(archive, allow_cut=True))
        assert found == [archived(n) for n in range(len(found))]
        summary = check_archive(archive, allow_cut=True)
        following = lines[min(before + 1, len(lines) - 1)]
        assert lines[before] <= len(found) == summary.lines + summary.cut_lines <= following
        assert summary.lacks_lines == (length not in members and length < members[before + 1] - 8)
        if not summary.lacks_lines:
            assert len(found) == (lines[before] if length in members else following)
        with pytest.warns(UserWarning, match="cut off") if summary.is_cut else nullcontext():
            writer = ArchiveWriter(archive, PLAN)
        with writer:
            assert len(writer) == lines[before]
            writer.append([archived(9)])
        kept = archive.with_name(f"{archive.name}.cut")
        assert kept.exists() == summary.is_cut
        if summary.is_cut:
            assert list(read_archive(kept, allow_cut=True)) == found[lines[before] :]
            kept.unlink()
        assert [each.id for each in read_archive(archive)] == [*(f"d{n}" for n in range(lines[before])), "d9"]


def test_an_end_that_was_kept_is_not_lost(archive):
    """A second one gets another name."""
    whole = archive.read_bytes()
    for _ in range(2):
        archive.write_bytes(whole[:-4])
        with pytest.warns(UserWarning, match="cut off"), ArchiveWriter(archive, PLAN) as writer:
            assert len(writer) == 3
    ends_kept = sorted(archive.parent.glob("*.cut*"))
    assert [each.name for each in ends_kept] == [f"{archive.name}.cut", f"{archive.name}.cut2"]
    for each in ends_kept:
        assert list(read_archive(each, allow_cut=True)) == [archived(3), archived(4)]


def test_a_pipe_is_no_archive(tmp_path):
    """It can be read once only; that is said, and nothing waits."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for use in (check_archive, lambda path: list(read_archive(path, allow_cut=True))):
        with pytest.raises(InvalidInputError, match="regular file"):
            use(path)


def test_zeros_at_the_end_are_a_cut(archive):
    """Some file systems leave them after a crash."""
    size = archive.stat().st_size
    with archive.open("ab") as file:
        file.write(bytes(3_000_000))
    assert check_archive(archive, allow_cut=True).is_cut
    with ArchiveWriter(archive, PLAN) as writer:
        assert len(writer) == 5
    assert archive.stat().st_size == size
    assert list(archive.parent.glob("*.cut*")) == []


@pytest.mark.parametrize(
    "data", [b"hello\n", b"hello, this is a text of more than twenty bytes\n" * 9, b"\x1f\x8b hello" * 9, b"\x01"]
)
def test_what_is_no_archive(tmp_path, data):
    """It is refused and stays as it is."""
    path = tmp_path / "a"
    path.write_bytes(data)
    for use in (
        check_archive,
        lambda path: ArchiveWriter(path, PLAN),
        lambda path: check_archive(path, allow_cut=True),
    ):
        with pytest.raises(InvalidInputError, match=str(path)):
            use(path)
    assert path.read_bytes() == data


def test_another_gzip_is_no_archive(tmp_path):
    """Its first line that does not fit is named."""
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b'{"_id": "a"}\n'))
    for use in (check_archive, lambda path: ArchiveWriter(path, PLAN)):
        with pytest.raises(InvalidInputError, match="line 1"):
            use(path)
    path.write_bytes(b"")
    with pytest.raises(InvalidInputError, match="is empty"):
        check_archive(path)


def test_an_archive_that_was_changed(archive):
    """A byte that is another is noticed, or changes nothing that is read; the file stays as it is."""
    whole = archive.read_bytes()
    expected = list(read_archive(archive))
    noticed = 0
    members = ends(archive)
    for place in range(len(whole) - 30):
        changed = bytearray(whole)
        changed[place] ^= 255
        archive.write_bytes(bytes(changed))
        try:
            assert list(read_archive(archive)) == expected
        except InvalidInputError:
            noticed += 1
            if place < members[-2]:
                with pytest.raises(InvalidInputError):
                    ArchiveWriter(archive, PLAN)
                assert archive.read_bytes() == bytes(changed)
    assert noticed > len(whole) / 2


def test_an_archive_belongs_to_one_plan(archive):
    """And to one process at a time."""
    with pytest.raises(InvalidInputError, match="another plan"):
        ArchiveWriter(archive, "0" * 64)
    with ArchiveWriter(archive, PLAN), pytest.raises(InvalidInputError, match="in use"):
        ArchiveWriter(archive, PLAN)
    with ArchiveWriter(archive, PLAN) as writer:
        assert len(writer) == 5


def test_a_full_disk_leaves_the_archive_as_it_was(archive):
    """The error names the file; afterwards it can be written on."""
    size = archive.stat().st_size
    code = (
        "import resource, sys\n"
        "from tests.unit.test_removal_files import *\n"
        f"writer = ArchiveWriter({str(archive)!r}, PLAN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 50}, -1))\n"
        "try: writer.append([archived(n, json.dumps({'n': str(n) * 50})) for n in range(100, 200)])\n"
        "except InvalidInputError as error: sys.exit(str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert str(archive) in done.stderr
    assert archive.stat().st_size == size
    assert check_archive(archive).lines == 5


def test_a_device_that_is_full():
    """A file that cannot even begin."""
    with pytest.raises(InvalidInputError, match="/dev/full"):
        ArchiveWriter("/dev/full", PLAN)


def test_lines_longer_than_a_chunk(tmp_path, monkeypatch):
    """Lines and members may end anywhere in what is read at once."""
    sources = [json.dumps({"t": "x" * n}) for n in (0, 1, 5_000, 3, 70_000)]
    for chunk in (1, 7, 64, 1_000, 1 << 20):
        monkeypatch.setattr(archive_module, "CHUNK", chunk)
        path = tmp_path / f"a{chunk}"
        with ArchiveWriter(path, PLAN) as writer:
            for one, two in pairwise(sources):
                writer.append([archived(1, one), archived(2, two)])
        assert [each.source for each in read_archive(path)] == [each for pair in pairwise(sources) for each in pair]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.lists(JSON, max_size=4), st.sampled_from([None, 1]))
def test_json_is_split_and_joined(members, items, indent):
    """The parts mean what the whole means."""
    text = json.dumps(members, indent=indent)
    parts = split_members(text)
    assert {key: json.loads(value) for key, value in parts.items()} == members
    assert json.loads(join_members(parts)) == members
    assert "\n" not in join_members(parts)
    assert [json.loads(each) for each in split_items(json.dumps(items, indent=indent))] == items


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a"}', '{"a": 1', '{"a": 1,}', '{"a": 01x}', "1", "{a: 1}"])
def test_json_that_is_broken(text):
    """A ValueError, wherever it breaks."""
    with pytest.raises(ValueError, match=r".*"):
        split_members(text)
    with pytest.raises(ValueError, match=r".*"):
        list(split_items(text[:1] + text[1:].replace("]", "")))
