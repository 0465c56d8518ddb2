"""The journal: what was written is there after a kill; whatever is no whole journal is refused and left as it is."""

import contextlib
import errno
import gzip
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from es_simhash import InvalidInputError
from es_simhash.journal import VERSION, Journal

# Writes for as long as it lives; what it prints is in the file.
WRITER = """
import sys
from pathlib import Path
from es_simhash.journal import Journal

journal = Journal(Path(sys.argv[1]), "kind", {"place": 0}, refusal="no")
for number in range(journal.values["place"] + 1, 1_000_000):
    journal.add(number.to_bytes(8, "little"))
    journal.put("place", number)
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


def open_it(path, kind="kind"):
    return Journal(path, kind, {"place": [0]}, refusal="name another file")


def read(path):
    """Return what is in the journal at *path*."""
    journal = open_it(path)
    journal.close()
    return journal.values


def test_what_is_written_is_there(path):
    journal = open_it(path)
    assert journal.is_new
    journal.put("place", {"line": 7})
    journal.add(b"ab")
    journal.add(b"c")
    journal.close()
    assert list(path.parent.iterdir()) == [path]
    again = open_it(path)
    assert (again.is_new, again.values, again.read_added()) == (False, {"place": {"line": 7}}, b"abc")
    again.close()


def test_a_kill_takes_nothing_back(path):
    """Killed at any moment, also while the file is made: all that it said is there, and at most one change more."""
    said = 0
    for number in range(6):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as writer:
            for _ in range(40 * number):
                said = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            said = max([said, *(int(line) for line in writer.stdout.read().split()[:-1])])
        if not path.exists():
            continue
        journal = Journal(path, "kind", {"place": 0}, refusal="no")
        place, added = journal.values["place"], journal.read_added()
        journal.close()
        assert said <= place
        numbers = [int.from_bytes(added[at : at + 8], "little") for at in range(0, len(added), 8)]
        assert set(numbers) in (set(range(1, place + 1)), set(range(1, place + 2)))


def test_every_state_between_two_writes_can_be_resumed(path, tmp_path):
    """What a kill leaves is a copy of the files as they are between two writes."""
    journal = open_it(path)
    for number in range(20):
        journal.put("place", number)
        folder = tmp_path / str(number)
        folder.mkdir()
        for each in tmp_path.glob("journal*"):
            shutil.copy(each, folder)
        assert read(folder / "journal") == {"place": number}
    journal.close()


def test_two_runs_at_once_are_refused(path):
    journal = open_it(path)
    with pytest.raises(InvalidInputError, match="used by another run"):
        open_it(path)
    journal.put("place", 1)
    journal.close()
    assert read(path) == {"place": 1}


def test_an_empty_file_is_a_new_journal(path):
    """A kill may leave it before anything is written."""
    path.touch()
    assert read(path) == {"place": [0]}


@pytest.mark.parametrize("kind", ["pipe", "zip", "broken link"])
def test_what_is_no_file_of_ours_is_refused(path, tmp_path, kind):
    """A pipe would wait for ever, or fail where it is read; a link to a file that is not there makes that."""
    if kind == "broken link":
        path.symlink_to(tmp_path / "made")
        assert read(path) == {"place": [0]}
        assert (tmp_path / "made").exists()
        return
    path.write_bytes(gzip.compress(b"x")) if kind == "zip" else os.mkfifo(path)
    with pytest.raises(InvalidInputError, match="name another file"):
        open_it(path)


def changed(path, statement):
    open_it(path).close()
    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


def test_another_version_is_refused(path):
    changed(path, "PRAGMA user_version=3")
    with pytest.raises(InvalidInputError, match=f"has version 3, and this program reads {VERSION}: continue"):
        open_it(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET value = 'other' WHERE name = 'kind'",
        "UPDATE entries SET value = '{' WHERE name = 'place'",
        "DELETE FROM entries",
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
        "PRAGMA application_id=7",
    ],
)
def test_what_is_no_such_journal_is_refused(path, statement):
    changed(path, statement)
    with pytest.raises(InvalidInputError, match="name another file"):
        open_it(path)


def test_a_file_of_another_program_stays_as_it_is(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE notes (text)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match="name another file"):
        open_it(path)
    assert path.read_bytes() == before


def test_a_full_disk_is_an_error_of_the_file(path):
    journal = open_it(path)
    journal._database.execute("PRAGMA max_page_count=4")
    with pytest.raises(OSError, match="full") as error:
        journal.add(bytes(1_000_000))
    assert error.value.filename == str(path)
    journal.put("place", 5)
    journal.close()
    assert read(path) == {"place": 5}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_works(path, data):
    for each in path.parent.glob("journal*"):
        each.unlink()
    journal = open_it(path)
    journal.add(bytes(range(256)) * 40)
    journal.close()
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))])
    try:
        journal = open_it(path)
    except InvalidInputError:
        return
    journal.add(b"more")
    journal.put("place", 3)
    assert journal.read_added().endswith(b"more")
    journal.close()
    assert read(path)["place"] == 3


def fill_up(path):
    with contextlib.closing(open_it(path)) as journal:
        for _ in range(1_000):
            journal.add(bytes(1024))


@pytest.mark.parametrize("free", [0, 4096, 8192, 16384])
def test_a_full_disk_is_named_and_nothing_stays_of_a_new_journal(small_disk, free):
    """The file is not blamed; one that was there keeps what it held, and goes on when there is room."""
    folder, fill = small_disk
    open_it(folder / "old").close()
    fill(free)
    before = sorted(folder.iterdir())
    with pytest.raises(OSError, match="No space left on device") as failure:
        fill_up(folder / "new")
    assert (failure.value.errno, failure.value.filename) == (errno.ENOSPC, str(folder / "new"))
    assert free or sorted(folder.iterdir()) == before
    (folder / "rest").unlink()
    assert read(folder / "old") == {"place": [0]}


def test_a_file_of_a_later_format_is_no_file_of_ours(path):
    """Sqlite3 would read it and write nothing: that is no fault of the disk."""
    open_it(path).close()
    content = bytearray(path.read_bytes())
    content[18] = 3
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="name another file"):
        open_it(path)
