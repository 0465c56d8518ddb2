"""The file of the fingerprints in memory: what was written is read; what cannot be believed is not, and says why."""

import fcntl
import json
import logging
import os

import numpy as np
import pytest

from es_simhash import InvalidInputError, build_mapping
from es_simhash.lookup.lookup_options import LookupRequest
from es_simhash.lookup.memory_file import ALIGNED, Kept, MemoryFile, check_memory_file
from es_simhash.lookup.memory_table import FingerprintTable
from es_simhash.mapping.shards import Shard

SCHEME = build_mapping()["_meta"]["es_simhash"]["simhash"]["scheme"]
VALUES = np.sort(np.random.default_rng(1).integers(0, 1 << 64, 5_000, np.uint64, endpoint=False))
CERTAIN = {Shard("news", "u-1", 0, "h-1"): 41, Shard("news", "u-1", 1, "h-2"): -1}


@pytest.fixture
def file(tmp_path):
    """Return a file that was written."""
    made = MemoryFile(tmp_path / "news.fingerprints", "simhash", SCHEME)
    made.write(Kept(VALUES, CERTAIN))
    return made


def assert_refused(file, caplog, words):
    """Check that *file* is not believed, and that one warning says why."""
    caplog.clear()
    assert file.read() is None
    [warning] = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert words in warning
    assert "\n" not in warning


def test_what_is_written_is_read(file):
    """It can be mapped into memory at a place that begins a line of the cache, and nobody else may read it."""
    kept = file.read()
    assert np.array_equal(kept.fingerprints, VALUES)
    assert kept.certain == CERTAIN
    assert file.path.stat().st_mode & 0o777 == 0o600
    begin = file.path.stat().st_size - 8 * len(VALUES)
    assert begin % ALIGNED == 0
    assert np.array_equal(np.memmap(file.path, "<u8", mode="r", offset=begin), VALUES)


@pytest.mark.parametrize("count", [0, 1])
def test_few_fingerprints(file, count):
    """None, or one."""
    file.write(Kept(VALUES[:count], {}))
    assert file.read().fingerprints.tolist() == VALUES[:count].tolist()


def test_no_file_is_no_warning(file, caplog):
    """The first run has none."""
    file.path.unlink()
    assert file.read() is None
    assert not caplog.records


def test_every_changed_byte_is_noticed(file, caplog):
    """Wherever it is: in the line, in its padding, in the fingerprints."""
    whole = file.path.read_bytes()
    places = [*range(400), *range(400, len(whole), 997), len(whole) - 1]
    for place in places:
        file.path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = file.read()
        # Spaces that pad the line may become another blank: the numbers are the same.
        assert found is None or (np.array_equal(found.fingerprints, VALUES) and found.certain == CERTAIN), place
    file.path.write_bytes(whole)
    assert file.read() is not None


def test_a_cut_file(file, caplog):
    """At any length; nor is one with something added."""
    whole = file.path.read_bytes()
    for length in (0, 1, 63, 200, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        file.path.write_bytes(whole[:length])
        assert file.read() is None
    file.path.write_bytes(whole + bytes(8))
    assert_refused(file, caplog, "was cut, or something was added")


def test_a_locked_file(file, caplog):
    """It is neither read nor replaced while another process has it."""
    before = file.path.read_bytes()
    with file.path.open("rb+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert_refused(file, caplog, "another process has locked it")
        file.write(Kept(VALUES[:3], {}))
        assert "was not written: another process has locked it" in caplog.text
    assert file.path.read_bytes() == before
    assert file.read() is not None


def rewritten(file, **changes):
    """Write the file again with another header, whose digest is right."""
    line, rest = file.path.read_bytes().split(b"\n", 1)
    header = json.loads(line) | changes
    file.path.write_bytes(json.dumps(header).encode().ljust(len(line)) + b"\n" + rest)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "other"}, "it is no file of fingerprints"),
        ({"version": 2}, "format of another version, 2"),
        ({"count": 4_999}, "was cut"),
        ({"count": "many"}, "it is damaged"),
        ({"count": float("inf")}, "it is damaged"),
        ({"prefix": [[]] * 9}, "another scheme"),
        ({"shards": [[1]]}, "was changed"),
        ({"digest": "0" * 32}, "was changed"),
    ],
)
def test_other_headers(file, caplog, changes, words):
    """A newer version of this package may write another format."""
    rewritten(file, **changes)
    assert_refused(file, caplog, words)


@pytest.mark.parametrize("other", [{"prefix": "s"}, {"scheme": {**SCHEME, "version": 3}}])
def test_other_fields_or_another_scheme(file, caplog, other):
    """Their fingerprints are other numbers."""
    assert_refused(
        MemoryFile(**{"path": file.path, "prefix": "simhash", "scheme": SCHEME} | other), caplog, "another scheme"
    )


def test_what_others_may_write(file, caplog, monkeypatch):
    """Who writes to it could hide duplicates: a file of another user, or one that all may write."""
    file.path.chmod(0o622)
    assert_refused(file, caplog, "others own it, or may write to it")
    file.path.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: file.path.stat().st_uid + 1)
    assert_refused(file, caplog, "others own it")


def test_a_disk_that_is_full(file, caplog, monkeypatch):
    """The old file stays, and nothing else does."""

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    file.write(Kept(VALUES[:3], {}))
    assert "was not written" in caplog.text
    assert "No space left" in caplog.text
    assert [each.name for each in file.path.parent.iterdir()] == [file.path.name]
    assert len(file.read().fingerprints) == len(VALUES)


def test_who_has_read_the_file_keeps_what_it_read(file):
    """Another run may replace the file meanwhile."""
    kept = file.read()
    file.write(Kept(VALUES[:3], CERTAIN))
    assert np.array_equal(kept.fingerprints, VALUES)


def test_what_was_read_does_not_follow_the_file(file):
    """As where a file is copied over it in place."""
    kept = file.read()
    file.path.write_bytes(bytes(file.path.stat().st_size))
    assert np.array_equal(kept.fingerprints, VALUES)


def test_paths_where_no_file_can_stand(tmp_path):
    """They are refused before anything is read, and a file of something else is never replaced."""
    with pytest.raises(InvalidInputError, match="there is no folder"):
        check_memory_file(tmp_path / "nosuch" / "file")
    with pytest.raises(InvalidInputError, match="is a folder: give the path of a file"):
        LookupRequest(memory_file=tmp_path)
    with pytest.raises(InvalidInputError, match="is no file"):
        check_memory_file("/dev/null")
    other = tmp_path / "plan.jsonl"
    other.write_text('{"format": "es-simhash-plan"}\n')
    with pytest.raises(InvalidInputError, match="which would be lost: give another path"):
        check_memory_file(other)
    with pytest.raises(InvalidInputError, match="does not go with lookups 'server': leave one of them out"):
        LookupRequest("server", memory_file=tmp_path / "new")
    other.write_text('{"format": "es-simhash-fingerprints-of-mine"}')
    with pytest.raises(InvalidInputError, match="which would be lost"):
        check_memory_file(other)
    with pytest.raises(InvalidInputError, match="cannot be used: File name too long"):
        check_memory_file(tmp_path / ("n" * 300))
    (tmp_path / "empty").touch()  # an output that somebody has just begun
    with pytest.raises(InvalidInputError, match="which would be lost"):
        check_memory_file(tmp_path / "empty")
    assert LookupRequest(memory_file=str(tmp_path / "new")).memory_file == tmp_path / "new"


def test_damage_is_said_in_plain_words(file, caplog):
    """Not in Python's, whatever the damage is."""
    for begin in (b"[" * 200_000, b"\xff\xfe", b"{}", b'{"format": "es-simhash-fingerprints"}', b"\n"):
        file.path.write_bytes(begin + b"\n" + bytes(64))
        caplog.clear()
        assert file.read() is None
        assert any(words in caplog.text for words in ("it is damaged", "no file of fingerprints"))


def test_a_link_stays_a_link(file, tmp_path):
    """The file that it leads to is written."""
    link = tmp_path / "link"
    link.symlink_to(file.path)
    found = LookupRequest(memory_file=link).memory_file
    MemoryFile(found, "simhash", SCHEME).write(Kept(VALUES[:7], CERTAIN))
    assert link.is_symlink()
    assert len(file.read().fingerprints) == 7


def test_nothing_is_left_of_a_write_that_is_stopped(file, monkeypatch):
    """As by Ctrl-C."""

    def stop(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        file.write(Kept(VALUES[:3], {}))
    assert [each.name for each in file.path.parent.iterdir()] == [file.path.name]


def test_a_table_takes_a_file_and_gives_it_back():
    """What was added since is in order with the rest; lookups are the same as of a table filled at once."""
    old, new = VALUES[::2], VALUES[1::2]
    table, whole = FingerprintTable(3), FingerprintTable(3)
    table.take_ordered(old)
    for some in np.array_split(np.random.default_rng(2).permutation(np.concatenate((new, old[:40]))), 7):
        table.add(some)
    whole.add(VALUES)
    assert np.array_equal(table.ordered(), VALUES)
    asked = VALUES[:400] ^ np.uint64(0b101)
    assert table.near(asked) == whole.near(asked)
    empty = FingerprintTable(3)
    empty.take_ordered(VALUES[:0])
    assert len(empty) == len(empty.ordered()) == 0
