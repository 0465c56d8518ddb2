"""The file of a removal: what is in it, who may read it, and what is refused, or whole, of a file from elsewhere."""

import hashlib
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from dataclasses import replace

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.removal import removal_file as module, sqlite_file
from es_simhash.removal.guard_rails import Guards
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile, open_archived
from es_simhash.removal.review import removal_summary
from es_simhash.transport.protocol import Key
from tests.servers.removals import damage, decide_file, file_size_limit, leave_unfinished

HEADER = PlanHeader(
    {"news": "u1"},
    "simhash",
    {"rule": "star"},
    guards=Guards(0.2, 9),
    at="2026-11-27T00:00:00.000Z",
    view=("latest",),
    decided_by={"news": ("body", "source")},
    filter=({"term": {"lang": "en"}},),
    shown={"title": "title"},
    asked={"index": "latest"},
)
AT = "2026-11-27T10:00:00.045Z"


def removal(number, similarity=0.9, distance=3, text="text"):
    """Return a line of a plan."""
    document = PlannedDocument(f"d{number}", "news", None, number, 1, f"digest {number}", {"body": text}, ("body",))
    canonical = PlannedDocument("c", "news", "r", 1, 2, "digest", {"body": text})
    return PlannedRemoval(document, canonical, distance, similarity, "same")


def write(path, removals, **header):
    """Write a plan, and return its digest."""
    with PlanWriter(path) as writer:
        for each in removals:
            writer.add(each)
        return writer.finish(replace(HEADER, count=len(removals), **header))


def refused(path, said=".", **options):
    """Check that the file is refused in one line that names it."""
    with pytest.raises(InvalidInputError, match=said) as caught:
        RemovalFile(path, **options)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def archived(number, text="some text"):
    """Return a document of the line *number*."""
    return Archived("news", f"d{number}", None, json.dumps({"body": text, "n": 1.10}), Key("news", "c"), number, 3, "7")


@pytest.fixture
def path(tmp_path):
    """A removal of three lines, of which two are archived, one after the other."""
    name = tmp_path / "removal.db"
    write(name, [removal(n, similarity) for n, similarity in enumerate([0.9, 0.85, 1.0])])
    with RemovalFile(name, writes=True) as found:
        for number in (1, 2):
            found.append([archived(number)], [number], AT)
    return name


def test_a_plan_is_read_as_it_was_written(tmp_path):
    """In order of similarity, with its header; nothing else is in the folder, and only its owner reads it."""
    removals = [removal(1, 0.9), removal(2, 0.8, text="\ud800 “x”\n"), removal(3, 0.9, 5), removal(4, 0.95)]
    path = tmp_path / "removal.db"
    before = os.umask(0)
    try:
        digest = write(path, removals)
    finally:
        os.umask(before)
    with RemovalFile(path) as found:
        assert (found.sha256, found.header, found.count_lines("leaving")) == (digest, replace(HEADER, count=4), 4)
        lines = list(found.removals())
    assert lines == [removals[1], removals[2], removals[0], removals[3]]
    assert [each.document.fields for each in lines[:2]] == [{"body": "\ud800 “x”\n"}, {"body": "text"}]
    assert lines[0].document.cut == ("body",)
    assert [each.name for each in tmp_path.iterdir()] == ["removal.db"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_digest_can_be_computed_by_anybody(path):
    """Of the header and of each line, with line feeds; what is decided or archived later does not count."""
    with closing(sqlite3.connect(path)) as database:
        [(header, sha256)] = database.execute("SELECT header, sha256 FROM removal")
        lines = database.execute("SELECT line FROM lines ORDER BY similarity, distance DESC, number")
        text = "".join(f"{each}\n" for each in (header, *(line for (line,) in lines)))
    assert hashlib.sha256(text.encode()).hexdigest() == sha256 == removal_summary(path)["plan"]


def test_a_plan_that_is_not_finished_leaves_no_file(tmp_path):
    """Whatever ends it; and a file of that name, a link too, is not touched."""
    path = tmp_path / "removal.db"
    with PlanWriter(path) as writer:
        writer.add(removal(1))
    with file_size_limit(40_000), pytest.raises(OSError, match=r"removal\.db"):
        write(path, [removal(n, text="x" * 5_000) for n in range(20)])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "other").write_bytes(b"kept")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(InvalidInputError, match="exists already"):
        PlanWriter(path)
    assert (tmp_path / "other").read_bytes() == b"kept"
    with pytest.raises(FileNotFoundError, match="no such folder"):
        PlanWriter(tmp_path / "nowhere" / "removal.db")


def test_what_an_ended_plan_leaves_is_no_removal(tmp_path):
    """The message says what to do with it."""
    left = tmp_path / "left.db"
    writer = PlanWriter(left)
    writer._db.execute("ROLLBACK")  # as whoever opens it next does
    writer.close()
    refused(left, "delete the file, and plan again")


def test_what_was_archived_is_read_as_it_was_sent(path):
    """By line, the last one of a document, and only if it is whole."""
    text = '{"body": "\ud83d x", "n": 1.10, "big": 123456789012345678901234567890}'
    last = replace(archived(1), source=text)
    with RemovalFile(path, writes=True) as found:
        assert found.find([0, 1]) == {1: archived(1)}
        assert found.archive([last, archived(0, "x" * module.TOGETHER)], AT) == {0, 1}
        found.note("deleted", [0], AT)
        assert [found.may_have_deleted(number) for number in (0, 1, 2)] == [True] * 3
        found.note("kept", [1], AT)
        assert [found.may_have_deleted(number) for number in (0, 1, 2)] == [True, False, True]
    with RemovalFile(path) as found:
        assert [each.line for each in found.archived()] == [2, 1, 0]
        assert found.find([1]) == {1: last}
        assert {n: [each.kind for each in found.events(n)] for n in (0, 1, 2)} == {
            0: ["archived", "deleted"],
            1: ["archived", "archived", "kept"],
            2: ["archived"],
        }
        assert {each.at for each in found.events(1)} == {AT}


def test_a_file_that_is_replaced_while_it_is_written_keeps_nothing(path, tmp_path):
    """What is archived goes to the file that was opened, which has no name any more."""
    with RemovalFile(path, writes=True) as found:
        path.rename(tmp_path / "moved.db")
        for replace_it in (lambda: None, lambda: path.write_bytes((tmp_path / "moved.db").read_bytes())):
            replace_it()
            with pytest.raises(InvalidInputError, match="moved, deleted or replaced"):
                found.archive([archived(1)], AT)


def test_one_run_at_a_time(path):
    """Another one is refused, in this process and beside it; so is a reader, which would see what is not whole."""
    with RemovalFile(path, writes=True):
        for writes in (True, False):
            refused(path, "is used by this program", writes=writes)
        command = [sys.executable, "-m", "es_simhash", "review", str(path)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, "is used by another run" in found.stderr) == (1, True)
    RemovalFile(path, writes=True).close()


def test_a_full_disk_leaves_the_file_as_it_was(path):
    """The error names it; the next change, with room, is whole."""
    with RemovalFile(path, writes=True) as found:
        with file_size_limit(path.stat().st_size + 4_096):
            for _ in range(2):
                with pytest.raises(InvalidInputError, match=f"{path} cannot be written .*nothing more was deleted"):
                    found.append([archived(0, os.urandom(20_000).hex())], [0], AT)
                assert not found.find([0])
        found.append([archived(0)], [0], AT)
    with RemovalFile(path) as found:
        assert [each.line for each in found.archived()] == [1, 2, 0]
    assert not path.with_name("removal.db-journal").exists()


def test_a_kill_while_it_is_written(path, tmp_path):
    """The side file belongs to it: whoever opens it next, to read or to write, takes the change back, and says so."""
    whole = path.read_bytes()
    leave_unfinished(path)
    journal = path.with_name("removal.db-journal")
    before, torn = journal.read_bytes(), path.read_bytes()
    assert torn != whole
    link = tmp_path / "link.db"
    link.symlink_to(path)
    for writes in (False, True):
        path.write_bytes(torn)
        journal.write_bytes(before)
        with pytest.warns(UserWarning, match=f"{journal} belongs to {link}"):
            found = RemovalFile(link, writes=writes)
        with found:
            assert ([each.line for each in found.archived()], found.count_lines("leaving")) == ([1, 2], 3)
        assert not journal.exists()


def test_a_journal_of_another_program_is_refused(path):
    """It could make sqlite3 delete a file that it names."""
    path.with_name("removal.db-journal").write_bytes(b"\xd9" * 600 + sqlite_file._SUPER)
    link = path.with_name("link.db")
    link.symlink_to(path)
    for name, writes in itertools.product((path, link), (True, False)):
        with pytest.raises(InvalidInputError, match="was made by another program"):
            RemovalFile(name, writes=writes)


CHANGES = [
    ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM lines; END", "has other tables"),
    ("CREATE VIEW v AS SELECT load_extension('x')", "has other tables"),
    ("CREATE TABLE more (a)", "has other tables"),
    ("DROP INDEX in_order", "has other tables"),
    ("PRAGMA user_version(2)", "version 2, and this program reads 1"),
    ("PRAGMA application_id(7)", "is not a file of a removal"),
    ("PRAGMA journal_mode(WAL)", "is not a file of a removal"),
    ("DELETE FROM removal", "has no header .*0 rows"),
    ("INSERT INTO removal SELECT * FROM removal", "has no header .*2 rows"),
    ("UPDATE removal SET header = '[]'", "has no header"),
    ("UPDATE removal SET header = replace(header, '0.2', '7')", "has no header .*max_share 7"),
    ("UPDATE removal SET header = replace(header, '0.2', 'true')", "has no header .*'max_share' is missing"),
    (
        "UPDATE removal SET header = replace(header, '\"news\": [', '\"n\": [')",
        "has no header .*'decided_by' lacks",
    ),
    ("UPDATE removal SET header = replace(header, 'u1', 'u2')", "was changed after it was made"),
    ("UPDATE removal SET sha256 = upper(sha256)", "was changed after it was made"),
    ("DELETE FROM lines WHERE number = 1", "was changed after it was made"),
    ("UPDATE lines SET line = replace(line, 'd1', 'd9')", "was changed after it was made"),
    ("UPDATE lines SET similarity = 0.5 WHERE number = 2", "was changed after it was made"),
    (r"""UPDATE removal SET header = replace(header, '"news"', '"n\ud800"')""", "has no header .*half a character"),
    (
        r"""UPDATE removal SET header = replace(header, '"latest"', '"\udc00"')""",
        "has no header .*half a character",
    ),
    (r"""UPDATE lines SET line = replace(line, '"news"', '"\ud800"')""", "is not a line of a plan .*half a charac"),
    ("UPDATE lines SET line = '{}'", "is not a line of a plan"),
    ("UPDATE lines SET line = '7'", "is not a line of a plan"),
    ("UPDATE lines SET line = replace(line, '0.85', '9' || printf('%0400d', 0))", "'similarity' is missing"),
    ("UPDATE lines SET line = replace(line, ': \"same\"', ': \"love\"')", "'loss' is missing"),
    ("UPDATE lines SET loss = 'few' WHERE number = 1", "was changed after it was made"),
    ("UPDATE lines SET line = replace(line, '\"distance\": 3', '\"distance\": true')", "'distance' is missing"),
    ("INSERT INTO lines VALUES (9, 0.9, 3, 'same', '{}')", "is not a line of a plan"),
    ("INSERT INTO decisions VALUES (1, 'x', x'00', 'y')", "a file of decisions is not as it was"),
]


def test_a_file_of_others_is_data(path):
    """Whatever was changed, it is refused in one line that names it, for reading and for writing."""
    whole = path.read_bytes()
    for statement, said in CHANGES:
        path.write_bytes(whole)
        damage(path, statement)
        for writes in (False, True):
            refused(path, said, writes=writes)


def named(number, name, **values):
    """Return a line whose *name* (document or canonical) has other values."""
    line = removal(number)
    return replace(line, **{name: replace(getattr(line, name), **values)})


def stays(number, id_):
    """Return a line for which a document stays that another line may remove."""
    return named(number, "canonical", id=id_, routing=None)


LONGEST = "é" * 256


LINES = [
    ([removal(1), removal(1, 0.8)], "a document goes twice"),
    ([removal(1), named(1, "canonical", id="other")], "a document goes twice"),
    ([removal(1), stays(2, "d1")], "for one that goes itself"),
    ([stays(1, "d2"), stays(2, "d1")], "for one that goes itself"),
    ([stays(1, "d1")], "its own canonical"),
    ([named(1, "document", id="")], "an id is empty"),
    ([named(1, "canonical", id="")], "an id is empty"),
    ([named(1, "document", id=f"{LONGEST}x")], "more than 512 bytes"),
    ([named(1, "document", index="other")], "none of the plan"),
    ([named(1, "canonical", index="*")], "none of the plan"),
]
NO_NAMES = ("", "*", "news*", "a,b", "-news", "<news-{now}>", "..", "_all", "a/_doc/1", "other:news", "A")


def test_a_plan_that_others_wrote_names_what_a_plan_may(path):
    """Also where its digest is right: each document once, for one that stays, in an index of that very name."""
    names = [{"index_uuids": {name: "u"}, "decided_by": {name: ()}} for name in NO_NAMES]
    cases = [(lines, {}, said) for lines, said in LINES] + [([], each, "no index has the name") for each in names]
    for lines, header, said in cases:
        path.unlink()
        write(path, lines, **header)
        refused(path, said)
    path.unlink()
    write(path, [named(1, "document", id=LONGEST), named(2, "document", id="a\0b")])
    RemovalFile(path).close()


def test_decisions_about_what_the_plan_does_not_name_decide_nothing(path):
    """Whoever put them into the file."""
    with RemovalFile(path, writes=True) as found:
        keep = [("news", "d1", None), ("news", "nobody", None)]
        found.add_decisions(decide_file(path.with_name("d.json"), found.sha256, keep).read_bytes(), AT)
    with RemovalFile(path) as found:
        assert (found.count_lines("leaving"), found.decided) == (2, frozenset())


def test_damaged_bytes_are_one_sentence_and_what_is_whole_is_restored(path):
    """Also where sqlite3 cannot decode what it says of them, and where a value has another type than its column."""
    whole = path.read_bytes()
    with RemovalFile(path) as found:
        line = len(found._one("SELECT line FROM lines WHERE number = 2")[0])
    size = bytes([0x80 | (2 * line + 13) >> 7, (2 * line + 13) & 0x7F])  # as sqlite writes it
    for before, after in (
        (b"in_order ON lines", b"in_order ON \xa7ines"),
        (b"\x15" + size, b"\x15" + bytes(2)),  # no line
    ):
        assert before in whole
        path.write_bytes(whole.replace(before, after))
        refused(path)
        with open_archived(path, writes=False) as found:
            assert [each.line for each in found.archived() if each is not None] == [1, 2]


def test_a_page_that_is_lost_takes_no_other_with_it(tmp_path):
    """Each document that stands on another page comes back, and that some are lost is said."""
    path = tmp_path / "removal.db"
    write(path, [removal(number) for number in range(300)])
    with RemovalFile(path, writes=True) as found:
        found.append([archived(number) for number in range(300)], [], AT)
    whole = path.read_bytes()
    begin = whole.index(b"newsd150") // 4_096 * 4_096
    path.write_bytes(whole[:begin] + b"\xff" * 4_096 + whole[begin + 4_096 :])
    with open_archived(path, writes=False) as found:
        first, *others = found.archived()
    lines = {each.line for each in others if each is not None}
    assert (first, 200 < len(lines) < 300, 150 in lines, {0, 299} <= lines) == (None, True, False, True)


def test_what_another_program_lays_beside_it_is_not_read(path):
    """A removal has no WAL."""
    for name in ("removal.db-wal", "removal.db-shm"):
        path.with_name(name).write_bytes(bytes.fromhex("377f0682") + os.urandom(8_188))
    for writes in (False, True):
        with RemovalFile(path, writes=writes) as found:
            assert ([document.line for document in found.archived()], found.count_lines("leaving")) == ([1, 2], 3)


def test_what_is_no_removal(tmp_path):
    """Also what is no file."""
    for name, data in (("empty", b""), ("text", b"hello\n" * 40), ("short", b"SQLite format 3\0")):
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/null", tmp_path, tmp_path / "pipe"):
        refused(name, "no regular file")
    with pytest.raises(FileNotFoundError):
        RemovalFile(tmp_path / "none")


def test_a_text_that_is_not_what_was_archived_is_not_restored(path):
    """Another text, another document, a text that claims to be very long."""
    bomb = zlib.compress(bytes(1 << 20), 9)
    for statement, value in (
        ("UPDATE texts SET data = :value WHERE number = 1", zlib.compress(b'{"body": "other", "n": 1.10}')),
        ("UPDATE texts SET data = :value WHERE number = 1", bomb + b"x"),
        ("UPDATE archived SET length = :value WHERE line = 1", 10 << 30),
        ("UPDATE archived SET id = :value WHERE line = 1", "d0"),
        ("DELETE FROM texts WHERE number = :value", 1),
    ):
        damage(path, statement, value=value)
        with open_archived(path, writes=False) as found:
            assert [each and each.line for each in found.archived()] == [None, 2], statement
            assert found.find([1]) == {}


def test_a_file_that_was_cut_at_any_page(tmp_path):
    """A sentence; and what is whole can be read, more of it the later it was cut."""
    path = tmp_path / "removal.db"
    write(path, [removal(n) for n in range(60)])
    with RemovalFile(path, writes=True) as found:
        for begin in range(0, 60, 12):
            lines = range(begin, begin + 12)
            found.append([archived(n, os.urandom(300).hex()) for n in lines], list(lines), AT)
    whole, numbers = path.read_bytes(), []
    for size in range(0, len(whole), 4_096):
        path.write_bytes(whole[:size] if size % 8_192 else whole[: size + 99])
        refused(path)
        if size > 4_096 * 12:
            with open_archived(path, writes=False) as found:
                assert found.is_damaged
                documents = [each for each in found.archived() if each is not None]
            assert all(each.id == f"d{each.line}" for each in documents)
            numbers.append(len(documents))
    assert numbers[-1] > 40
    assert numbers[-1] > numbers[0]
