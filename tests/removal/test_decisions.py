"""Files of decisions: what fits the plan exactly leaves documents out of it; anything else is refused in a sentence."""

import json
import os
import shutil

import pytest

from es_simhash.errors import InvalidInputError, WrongTypeError
from es_simhash.removal.decisions import LONGEST_NAME, LONGEST_REASON, decide, find_decisions, read_approved
from es_simhash.removal.may_delete import Guards, Share
from es_simhash.removal.plan_file import PlanHeader, PlanWriter, read_plan
from es_simhash.removal.records import PlannedDocument, PlannedRemoval
from es_simhash.transport.protocol import Key

IDS = ["plain", "ü \ud800 \x7f </script>", 'quote"\n', "\u202eevil"]


def document(id_, routing=None):
    """Return a document of a plan."""
    return PlannedDocument(id_, "news", routing, 1, 1, "", {"body": "one two"})


@pytest.fixture
def plan(tmp_path):
    """A plan of four removals, each of one of two sources."""
    path = tmp_path / "removal.jsonl"
    values = {"x": Share(3, 10), "y": Share(1, 1)}
    with PlanWriter(path) as writer:
        for n, id_ in enumerate(IDS):
            protected = ("y",) if n == 0 else ("x",)
            writer.add(PlannedRemoval(document(id_, f"r{n}"), document("stays"), 1, 0.9, protected=protected))
        guards = Guards(0.2, "source", 20, values)
        writer.finish(
            PlanHeader({"news": "uuid"}, "simhash", {}, guards=guards, decided_by={"news": ("body",)}), writer.order()
        )
    return read_plan(path)


@pytest.fixture
def write(plan, tmp_path):
    """Return a function that writes a file of decisions, changed as a hand would."""

    def made(*keep, **changed):
        keys = [{"index": "news", "id": IDS[n], "routing": f"r{n}"} for n in keep]
        head = {"format": "es-simhash-decisions", "version": 1, "plan_sha256": plan.sha256}
        path = tmp_path / "removal.decisions.json"
        path.write_text(json.dumps(head | {"by": "Ann", "reason": "other parties", "keep": keys} | changed))
        return path

    return made


def test_what_is_kept_is_counted_no_more(plan, write):
    """The length of the plan and the shares of protected values are those of what still goes; the lines stay."""
    decided = decide(plan, write(0, 1))
    assert decided.kept == {Key("news", IDS[0], "r0"), Key("news", IDS[1], "r1")}
    assert decided.approved == ("Ann", "other parties")
    assert (len(plan), len(decided), len(list(decided.removals()))) == (4, 2, 4)
    assert decided.header.guards.values == {"x": Share(2, 10)}
    assert decided.sha256 == plan.sha256


def test_the_newest_decisions_beside_a_plan_are_found(plan, write):
    """Those of other plans are passed over; what cannot be read may be about this one."""
    assert find_decisions(plan) is None
    first = write(0)
    second = first.with_name("removal.decisions (1).json")
    shutil.copy(first, second)
    for newest, older in ((first, second), (second, first)):
        os.utime(older, (1, 1))
        os.utime(newest, (2, 2))
        assert find_decisions(plan) == newest
    write(0, plan_sha256="0" * 64)
    assert find_decisions(plan) == second
    second.write_text("{")
    assert find_decisions(plan) == second
    second.unlink()
    assert find_decisions(plan) is None


def test_newer_decisions_than_those_given_are_found(plan, write):
    """If they keep more, or cannot be read; older ones, wherever the given file lies, were replaced by it."""
    given, newer = write(0), plan.path.with_name("removal.decisions (1).json")
    moved = given.rename(given.with_name("mine.json"))
    for keep, since, found in (
        ((0, 1), 3, newer),
        ((0, 1), 2, newer),
        ((0, 1), 1, None),
        ((0,), 3, None),
        ((), 3, None),
    ):
        write(*keep).rename(newer)
        os.utime(moved, (2, 2))
        os.utime(newer, (since, since))
        assert find_decisions(plan, [moved]) == found
    newer.write_text("{")
    assert find_decisions(plan, [moved]) == newer
    os.utime(newer, (1, 1))
    assert find_decisions(plan, [moved]) is None
    write(1, plan_sha256="0" * 64)
    assert find_decisions(plan, [moved]) is None


def test_what_lies_beside_and_is_no_file(plan, write):
    """A folder is passed over; a link to nothing may have been decisions."""
    first = write(0)
    (folder := first.with_name("removal.decisions (1).json")).mkdir()
    assert find_decisions(plan) == first
    folder.rmdir()
    folder.symlink_to(first.with_name("gone"))
    assert find_decisions(plan) == folder


def test_nothing_need_be_kept(plan, write):
    """Whoever keeps nothing has approved the plan as it is; a reason may be empty; a name has no blanks around it."""
    decided = decide(plan, write(by="  Ann \n", reason=" "))
    assert (len(decided), decided.kept, decided.approved) == (4, frozenset(), ("Ann", ""))


def test_a_byte_order_mark_is_no_reason(plan, write):
    """Some editors leave one."""
    path = write(2)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(decide(plan, path)) == 3


KEY = {"index": "news", "id": IDS[0], "routing": "r0"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"plan_sha256": "0" * 64}, "decides about another plan"),
        ({"plan_sha256": 7}, "'plan_sha256' is missing or of a wrong type"),
        ({"format": "es-simhash-plan"}, "'format' is not"),
        ({"format": None}, "'format' is not"),
        ({"version": 2}, "has version 2"),
        ({"version": True}, "'version' is missing or of a wrong type"),
        ({"version": 1.0}, "'version' is missing or of a wrong type"),
        ({"version": "1"}, "'version' is missing or of a wrong type"),
        ({"by": ""}, "'by' is empty, and must say who decides"),
        ({"by": " \n\u2003"}, "'by' is empty, and must say who decides"),
        ({"by": "\u200b\u3164 ."}, "'by' is empty, and must say who decides"),
        ({"by": None}, "'by' is missing or of a wrong type"),
        ({"by": ["Ann"]}, "'by' is missing or of a wrong type"),
        ({"by": "x" * (LONGEST_NAME + 1)}, "'by' has more than"),
        ({"reason": None}, "'reason' is missing or of a wrong type"),
        ({"reason": "x" * (LONGEST_REASON + 1)}, "'reason' has more than"),
        ({"keep": None}, "'keep' is missing or of a wrong type"),
        ({"keep": {}}, "'keep' is missing or of a wrong type"),
        ({"keep": ["plain"]}, "no object"),
        ({"keep": [KEY, KEY]}, "keeps 'news'/'plain' twice"),
        ({"keep": [{"index": "news", "id": "plain"}]}, "'routing' is missing"),
        ({"keep": [KEY | {"id": 7}]}, "'id' is missing or of a wrong type"),
        ({"keep": [KEY | {"routing": True}]}, "'routing' is missing or of a wrong type"),
        ({"keep": [KEY | {"why": "x"}]}, "'why' is not known"),
        ({"keeps": []}, "'keeps' is not known"),
        ({"keep": [KEY | {"id": "other"}]}, "keeps 'news'/'other', which"),
        ({"keep": [KEY | {"routing": None}]}, "keeps 'news'/'plain', which"),
        ({"keep": [KEY | {"index": "blogs"}]}, "keeps 'blogs'/'plain', which"),
        ({"keep": [{"index": "news", "id": "stays", "routing": None}]}, "keeps 'news'/'stays', which"),
    ],
)
def test_a_file_that_was_edited_into_something_else_is_refused(plan, write, changed, said):
    """In one line that names the file and says what to do."""
    path = write(1, **changed)
    with pytest.raises(InvalidInputError) as caught:
        decide(plan, path)
    sentence = str(caught.value)
    assert said in sentence
    assert sentence.startswith(str(path))
    assert sentence.endswith(("review page of its plan", "review page of this one"))
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe{",
        b"[" * 100_000,
        b'{"keep": [], "keep": []}',
        b"1" * 10_000,
        b'{"format": "es-simhash-decisions", "version": ' + b"9" * 4_000 + b"}",
    ],
)
def test_what_is_no_json_of_ours_is_refused(plan, tmp_path, content):
    """Also what Python's parser gives up on."""
    path = tmp_path / "decisions.json"
    path.write_bytes(content)
    with pytest.raises(
        InvalidInputError, match=r"decisions.json is not a file of decisions that can be used"
    ) as caught:
        decide(plan, path)
    assert "\n" not in str(caught.value)


def test_a_name_that_stands_twice_is_refused(plan, write):
    """Nothing says which of the two was meant."""
    path = write(0)
    path.write_text(path.read_text()[:-1] + ', "keep": []}')
    with pytest.raises(InvalidInputError, match="a name stands twice in one object"):
        decide(plan, path)


def test_what_is_no_file(plan, tmp_path):
    """A folder, nothing, a pipe, no path."""
    with pytest.raises(InvalidInputError, match="is a folder"):
        read_approved(plan.path, decisions=tmp_path, sha256=None)
    with pytest.raises(InvalidInputError, match="does not exist"):
        read_approved(plan.path, decisions=tmp_path / "nothing", sha256=None)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match="no regular file"):
        decide(plan, tmp_path / "pipe")
    with pytest.raises(WrongTypeError):
        read_approved(plan.path, decisions=7, sha256=None)


def test_only_the_plan_that_was_approved(plan):
    """By its digest, in letters of any size."""
    assert read_approved(plan.path, decisions=None, sha256=plan.sha256.upper()) == plan
    for other in ("0" * 64, plan.sha256[:-1], "xyz"):
        with pytest.raises(InvalidInputError, match=f"its sha256 is {plan.sha256}, and not '{other}'"):
            read_approved(plan.path, decisions=None, sha256=other)
    with pytest.raises(InvalidInputError, match="sha256 '' is empty"):
        read_approved(plan.path, decisions=None, sha256="")
    with pytest.raises(WrongTypeError):
        read_approved(plan.path, decisions=None, sha256=7)
