"""Files of decisions: what fits the plan exactly leaves documents out of it; anything else is refused in a sentence."""

import json
import os
import re

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.removal import apply, guard_rails
from es_simhash.removal.decisions import LONGEST_NAME, LONGEST_REASON
from es_simhash.removal.guard_rails import Excess, Guards, OneStays
from es_simhash.removal.present import Judged
from es_simhash.removal.records import PlannedRemoval
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.removal.take_decisions import Kept, take_in
from es_simhash.transport.protocol import Key
from tests.servers.removals import decide_file, document, take, write_plan
from tests.transport.by_hand import drive, scripted

IDS = ["plain", "ü \ud800 \x7f </script>", 'quote"\n', "\u202eevil"]


@pytest.fixture
def plan(tmp_path):
    """The file of a removal with four lines, of which the last is held back."""
    path, stays = tmp_path / "removal.db", document("stays")
    goes = [document(id_, routing=f"r{n}") for n, id_ in enumerate(IDS)]
    write_plan(path, [PlannedRemoval(row, stays, 1, 0.9, "few" if row is goes[3] else "same") for row in goes])
    return path


def sha256_of(plan):
    with RemovalFile(plan) as removal:
        return removal.sha256


@pytest.fixture
def write(plan, tmp_path):
    """Return a function that writes a file of decisions, changed as a hand would."""

    def made(*keep, **changed):
        path = tmp_path / "removal.decisions.json"
        keys = [("news", IDS[n], f"r{n}") for n in keep]
        plain = json.loads(decide_file(path, sha256_of(plan), keys, reason="other parties").read_text()) | changed
        path.write_text(json.dumps({name: value for name, value in plain.items() if value != "absent"}))
        return path

    return made


def decided(plan, path):
    """Take a file in, and return what is kept, and who approved."""
    take(plan, path)
    with RemovalFile(plan) as removal:
        return removal.kept, removal.approved


def test_what_is_kept_is_counted_no_more(plan, write, monkeypatch):
    """Nor where the server cannot read a document now; the lines stay."""

    async def judge(server, removal, lines, view):
        return Judged(dict.fromkeys(lines, "unreadable"), {}, {})

    monkeypatch.setattr(apply, "judge", judge)
    monkeypatch.setattr(guard_rails, "FEWEST_LARGE", 3)
    with RemovalFile(plan) as removal:
        assert removal.find_refusals(Guards(0.1, 20)) == (Excess(3, 20, 0.1), OneStays("stays", 3, 20))
    before = sha256_of(plan)
    kept, approved = decided(plan, write(0, 1))
    assert kept == {Key("news", IDS[0], "r0"), Key("news", IDS[1], "r1")}
    assert approved == (("Ann", "other parties"),)
    with RemovalFile(plan) as removal:
        assert (removal.count_lines("leaving"), len(list(removal.removals())), removal.sha256) == (1, 4, before)
        assert removal.find_refusals(Guards(0.1, 20)) == (None, None)
        assert drive(apply._count_left(scripted(), removal, ["news"]), [])[0] == 1


def test_what_is_held_back_is_decided(plan, write):
    """A person removes it, and one who keeps it goes before; nobody need have kept it."""
    key = {"index": "news", "id": IDS[3], "routing": "r3"}
    with RemovalFile(plan) as removal:
        assert (removal.count_lines("leaving"), removal.decided) == (3, frozenset())
    take(plan, write(remove=[key]))
    with RemovalFile(plan) as removal:
        assert (removal.count_lines("leaving"), removal.decided) == (4, {3})
        assert [line.document.id for line in removal.removals("going")] == IDS
    take(plan, write(3, by="Bob"))
    with RemovalFile(plan) as removal:
        assert (removal.count_lines("leaving"), removal.decided) == (3, frozenset())


def test_what_several_files_decide(plan, write):
    """What one of them keeps is kept; all are in the log, in the order of taking in, and none twice."""
    data = write(0, 1).read_bytes()
    take(plan, write(0, 1))
    take(plan, write(2, by="Bob"))
    kept, approved = decided(plan, write(1, reason=""))
    assert kept == {Key("news", IDS[n], f"r{n}") for n in (0, 1, 2)}
    assert approved == (("Ann", "other parties"), ("Bob", "other parties"), ("Ann", ""))
    again = plan.with_name("again")
    again.write_bytes(data)
    assert [(each.by, len(each.keep)) for each in take(plan, again)] == [("Ann", 2), ("Bob", 1), ("Ann", 1)]


def test_decisions_beside_a_removal_are_not_forgotten(plan, write):
    """Under the name that the page gives, whatever the file has: it may have been meant for this plan."""

    def is_forgotten():
        with RemovalFile(plan) as removal:
            try:
                take_in(removal, [])
            except InvalidInputError as error:
                return "lies beside" in str(error)

    beside = write(0)
    assert is_forgotten()
    take(plan, beside)
    assert not is_forgotten()
    write(1, plan_sha256="0" * 64)
    assert is_forgotten()
    beside.unlink()
    assert not is_forgotten()
    for make in (beside.mkdir, lambda: beside.symlink_to(plan.with_name("gone")), lambda: os.mkfifo(beside)):
        make()
        assert is_forgotten()
        beside.rmdir() if beside.is_dir() else beside.unlink()


def test_what_was_deleted_already_is_said(plan, write):
    with RemovalFile(plan, writes=True) as removal:
        removal.append([], [3], "2026-11-27T10:30:00Z")
    with pytest.warns(UserWarning, match="1 of what .* keeps was deleted already: restore.* puts it back"):
        take(plan, write(2, 3))


def test_nothing_need_be_kept(plan, write):
    """Whoever keeps nothing has approved the plan; no reason, blanks at a name and a byte order mark are no fault."""
    path = write(by="  Ann \n", reason=" ")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert decided(plan, path) == (frozenset(), (("Ann", ""),))


def test_what_was_kept_follows_a_reindex():
    """In an index that was not planned then, the id counts; in one that was, the whole key."""
    held = Kept(frozenset({Key("news-1", "a", None)}), frozenset("a"), frozenset({"news-1"}))
    keys = [("news-1", "a", None), ("news-1", "a", "r"), ("news-2", "a", "r"), ("news-2", "b", None)]
    assert [held.holds(Key(*key)) for key in keys] == [True, False, True, False]


KEY = {"index": "news", "id": IDS[0], "routing": "r0"}
OF_WRONG_TYPE = {
    "plan_sha256": [7],
    "format": ["es-simhash-plan", None],
    "version": [True, 1.0, "1"],
    "by": [None, ["Ann"]],
    "at": ["absent"],
    "reason": [None],
    "keep": [None, {}, ["plain"]],
    "remove": ["absent"],
}
CHANGES = [
    *(
        ({name: value}, f"'{name}' is missing or of a wrong type")
        for name, values in OF_WRONG_TYPE.items()
        for value in values
    ),
    *(({"by": blank}, "'by' is empty, and must say who decides") for blank in ("", " \n\u2003", "\u200b\u3164 .")),
    *(({"at": no_moment}, "'at' is no moment with") for no_moment in ("2026-11-27T10:00:00", "yesterday")),
    ({"plan_sha256": "0" * 64}, "decides about another plan"),
    ({"version": 2}, "has version 2"),
    ({"by": "x" * (LONGEST_NAME + 1)}, "'by' has more than"),
    ({"reason": "x" * (LONGEST_REASON + 1)}, "'reason' has more than"),
    ({"keep": [KEY], "remove": [KEY]}, "decides about 'news'/'plain' twice"),
    ({"keep": [KEY, KEY]}, "decides about 'news'/'plain' twice"),
    ({"keep": [{"index": "news", "id": "plain"}]}, "'routing' is missing, or"),
    ({"keep": [KEY | {"id": 7}]}, "'id' is missing or of a wrong type"),
    ({"keep": [KEY | {"routing": True}]}, "'routing' is missing or of a wrong type"),
    ({"keep": [KEY | {"why": "x"}]}, "'why' is missing, or not known"),
    ({"keeps": []}, "'keeps' is missing, or not known"),
    ({"keep": [KEY | {"id": "other"}]}, "decides about 'news'/'other', which"),
    ({"keep": [KEY | {"routing": None}]}, "decides about 'news'/'plain', which"),
    ({"keep": [KEY | {"index": "blogs"}]}, "decides about 'blogs'/'plain', which"),
    ({"keep": [{"index": "news", "id": "stays", "routing": None}]}, "decides about 'news'/'stays', which"),
]


def test_a_file_that_was_edited_into_something_else_is_refused(plan, write):
    """In one line that names the file and says what to do."""
    before = plan.read_bytes()
    for changed, said in CHANGES:
        path = write(1, **changed)
        with pytest.raises(InvalidInputError) as caught:
            take(plan, path)
        assert re.fullmatch(f"{path} .*(review page of its plan|\\(after=FILE\\))", str(caught.value)), changed
        assert said in str(caught.value)
    assert plan.read_bytes() == before


def test_what_is_no_json_of_ours_is_refused(plan, write, tmp_path):
    """Also what Python's parser gives up on, a name that stands twice, a folder, and a pipe."""
    path = write(0)
    twice = path.read_bytes()[:-1] + b', "keep": []}'
    long = b'{"format": "es-simhash-decisions", "version": ' + b"9" * 4_000 + b"}"
    for content in (b"", b"{", b"[]", b"null", b"\xff\xfe{", b"[" * 100_000, b"1" * 10_000, long, twice):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=f"{path} is not a file of decisions that can be used") as caught:
            take(plan, path)
        assert ("\n" in str(caught.value), "twice in one object" in str(caught.value)) == (False, content == twice)
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InvalidInputError, match="no regular file"):
            take(plan, name)
