"""The archive: its lines, and files written in whole members, cut, changed, damaged, and of another plan."""

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

from es_simhash.errors import InvalidInputError
from es_simhash.removal import archive as archive_module
from es_simhash.removal.archive import check_archive, parse_archive_line, read_archive, to_archive_line
from es_simhash.removal.archive_writer import ArchivedKeys, ArchiveWriter
from es_simhash.removal.records import Archived
from es_simhash.transport.protocol import Key

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


def test_a_document_that_was_archived_again(tmp_path):
    """The last line counts, once, also after a cut; what a first line says for its batch is not lost with it."""
    path, later = tmp_path / "a", '{"n":\n2}'
    first = replace(archived(0), together=("news", "old"), view=("latest",))
    again = replace(archived(0, later), again=True)
    with ArchiveWriter(path, PLAN) as writer:
        writer.append([first, archived(1)])
        assert (writer.holds(first.key, first), writer.holds(first.key, again)) == (True, False)
        size = path.stat().st_size
        writer.append([again])
        assert (writer.holds(first.key, first), writer.holds(first.key, again), len(writer)) == (False, True, 2)
    with ArchiveWriter(path, PLAN) as writer:
        assert writer.holds(first.key, again)
        assert not writer.holds(first.key, replace(again, approved=("Ann", "")))
        assert writer.find([first.key])[first.key].again
    found = check_archive(path)
    assert (found.lines, dict(found.again)) == (3, {first.key: 1})
    one, two = read_archive(path, again=found.again)
    assert (one.id, one.together, one.view) == ("d1", first.together, first.view)
    assert (two.id, two.source) == ("d0", '{"n": 2}')
    os.truncate(path, size + 12)
    with pytest.warns(UserWarning, match="cut off"), ArchiveWriter(path, PLAN) as writer:
        assert (writer.holds(first.key, first), writer.holds(first.key, again)) == (True, False)


def test_what_is_noted_of_documents(tmp_path):
    """A document that was kept was not deleted, until it is archived again, by a line or by a note; readers skip it."""
    path = tmp_path / "a"
    one, other = archived(0), archived(1)

    def check(writer, *expected):
        for held in (writer, ArchivedKeys(path, PLAN)):
            assert (*map(held.may_have_deleted, (one.key, other.key)), len(held)) == expected

    with ArchiveWriter(path, PLAN) as writer:
        check(writer, False, False, 0)
        writer.append([one, other])
        check(writer, True, True, 2)
        writer.note("kept", [one.key, other.key], "2026-01-02")
        check(writer, False, False, 2)
        writer.note("archived", [one.key], "2026-01-03")
        check(writer, True, False, 2)
        size = path.stat().st_size
        writer.append([replace(archived(1, "{}"), again=True)])
        check(writer, True, True, 2)
        writer.note("kept", [], "2026-01-04")
        assert writer.find([one.key, other.key]).keys() == {one.key, other.key}
    assert [each.id for each in read_archive(path)] == ["d0", "d1", "d1"]
    assert json.loads(gzip.decompress(path.read_bytes()).splitlines()[3]) == {
        "state": "archived", "keys": [{"index": "news", "id": "d0", "routing": None}], "plan": PLAN, "at": "2026-01-03",
    }  # fmt: skip
    os.truncate(path, size)
    with ArchiveWriter(path, PLAN) as writer:
        check(writer, True, False, 2)
        writer._file.write(gzip.compress(b'{"state": "kept", "keys": ["d0"], "plan": "p", "at": "x"}\n'))
    with pytest.raises(InvalidInputError, match="line 5: is not a line of an archive"):
        check_archive(path)


def test_the_end_of_an_archive_has_lines_of_its_own(tmp_path):
    """Of a document whose earlier line is in another file, the line counts that is there."""
    path = tmp_path / "a"
    later = [replace(archived(0, f'{{"n": {n}}}'), again=True) for n in (1, 2)]
    with ArchiveWriter(path, PLAN) as writer:
        writer.append([later[0], archived(1), later[1]])
    assert list(read_archive(path, again=check_archive(path).again)) == [archived(1), later[1]]


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
        "from tests.removal.test_archive import *\n"
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


# What looks like a part of a line, inside a value.
ODD = [', "_source": {', '", "_source": {"a": 1}, "', "_source", '{"_source"', "\\", "\ud800", "\u2028", ""]
TEXTS = st.sampled_from(ODD) | st.text(max_size=5)
SOURCES = st.dictionaries(TEXTS, TEXTS | st.integers() | st.dictionaries(TEXTS, TEXTS, max_size=2), max_size=3)


@settings(max_examples=60)
@given(
    st.tuples(TEXTS, TEXTS, TEXTS), st.none() | TEXTS, SOURCES, st.sampled_from([None, 1]), st.lists(TEXTS, max_size=2)
)
def test_a_line_is_read_as_it_was_written(texts, routing, source, indent, together):
    """Also if values look like parts of a line, and if another program has written it anew."""
    index, id_, canonical = texts
    source = json.dumps(source, indent=indent)
    archived = Archived(
        index, id_, routing, source, Key(index, canonical, routing), "0" * 64, "2026-01-01", tuple(together)
    )
    line = to_archive_line(archived)
    found = parse_archive_line(line)
    assert (found, json.loads(found.source)) == (replace(archived, source=found.source), json.loads(source))
    plain = json.loads(line)
    for other in (json.dumps(plain, separators=(",", ":")), json.dumps(plain, sort_keys=True), json.dumps(plain)):
        again = parse_archive_line(other)
        assert again == replace(archived, source=again.source)
        assert json.loads(again.source) == json.loads(source)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"_source": {', '"_source": ['),
        ('"n": 1}', '"n": 1'),
        ('"n": 1}', '"n": 1}, "_source": 2'),
        ('"n": 1}', '"n": 1} x'),
        ('{"_index"', '["_index"'),
        ('"plan"', '"plot"'),
        ('"canonical": {', '"canonical": {"_source": {}, '),
    ],
)
def test_a_line_that_is_broken(old, new):
    """A ValueError, and no other document; a member that is not known is no fault."""
    archived = Archived("news", "a", None, '{"n": 1}', Key("news", "b"), "0" * 64, "2026-01-01")
    line = to_archive_line(archived).replace(old, new, 1)
    if old.startswith('"canonical"'):
        assert parse_archive_line(line) == archived
        return
    with pytest.raises(ValueError, match=r".*"):
        parse_archive_line(line)
