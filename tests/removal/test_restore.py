"""A restore with a failure, a lost answer or the end of its caller at every request: run again, it completes."""

import json
from contextlib import nullcontext

import pytest

from es_simhash import fingerprint_fields
from es_simhash.hashing import fingerprint, get_scheme
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import group_fields
from es_simhash.mapping.mapping import build_mapping
from es_simhash.mapping.rule import Grouping
from es_simhash.removal import fits, regroup, restore as module
from es_simhash.removal.fits import find_misfits, is_same_source
from tests.servers.archives import write_archive
from tests.transport.by_hand import CLOSES, Cancelled, ServerError, carry_out, drive, scripted
from tests.transport.fake_server import INDEX, FakeServer

# A failure here leaves open what nobody can name, or could not close.
NAMELESS = (*CLOSES, "open_point_in_time")
TEXTS = {f"d{n}": f"one two three four five six seven {'copy' if n % 2 else n}" for n in range(5)}


class Store(FakeServer):
    """A server to which documents come back; it has the first one, in its group, and records a grouping."""

    def __init__(self, documents=None, *vectors):
        mapping = build_mapping(text_field="body")
        mapping["properties"]["o"] = {"properties": {type_: {"type": type_} for type_ in vectors}}
        mapping["_meta"]["es_simhash"]["simhash"]["grouping"] = Grouping().to_dict()
        first = source_of("d0")
        first["simhash"] |= group_fields("d0", at="2026-01-01T00:00:00.000Z")
        super().__init__({"d0": first} | (documents or {}), mapping=mapping)

    def mget(self, body):
        answer = super().mget(body)
        for asked, item in zip(body["docs"], answer["docs"], strict=True):
            if "_source" not in asked and "_source" in item:  # read as text
                item["_source"] = json.dumps(item["_source"])
        return answer

    def _write(self, kind, header, body):
        if kind != "create":
            return super()._write(kind, header, body)
        if self.refuse(header) is None and header["_id"] in self.docs:
            return {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "exists"}}
        return super()._write(kind, header, body)


def source_of(id_):
    """Return a source with its fingerprint."""
    return {"body": TEXTS[id_], **fingerprint_fields(fingerprint(TEXTS[id_]))}


@pytest.fixture
def archive(tmp_path):
    """A removal that has archived all documents but the first."""
    rows = [(INDEX, id_, None, json.dumps(source_of(id_)), "d0") for id_ in list(TEXTS)[1:]]
    return write_archive(tmp_path / "removed.db", rows)


@pytest.fixture
def restore(archive, monkeypatch):
    """Return a function that restores it, two documents at a time, with the trouble that ``carry_out`` describes."""
    monkeypatch.setattr(module, "BATCH_DOCUMENTS", 2)
    context = Context("simhash", None, lambda: 0.0)
    return lambda store, **trouble: carry_out(module.restore(scripted(context), [archive]), store, **trouble)


def groups(store):
    """Return each document's group and text."""
    return {id_: (held["source"]["simhash"]["group"], held["source"]["body"]) for id_, held in store.docs.items()}


@pytest.fixture
def wanted(restore):
    """What a restore that nothing disturbs leaves, and the number of its calls."""
    store = Store()
    run = restore(store)
    assert [each.action for each in run.emitted] == ["restored"] * 4
    assert {id_: text for id_, (_, text) in groups(store).items()} == TEXTS
    return groups(store), len(run.calls), run.steps


@pytest.mark.parametrize(("status", "is_late"), [(503, False), (None, True), (400, False)])
def test_a_failure_at_any_request(restore, wanted, status, is_late):
    """It is an error or is made good; a second run completes in any case, and nothing is written twice."""
    state, calls, _ = wanted
    for number in range(calls):
        store = Store()
        run = restore(store, fail_at=number, failure=ServerError(status), is_late=is_late)
        assert store.open == {} or run.hit in NAMELESS
        if run.error is None:
            assert [each.action for each in run.emitted] == ["restored"] * 4
            assert groups(store) == state
            continue
        if run.emitted:
            assert run.error.__notes__[-1] == f"{len(run.emitted)} documents were put back"
        assert all(each.action in ("restored", "exists") for each in restore(store).emitted)
        assert groups(store) == state


def test_a_caller_who_goes_away_at_any_step(restore, wanted):
    """After the work of that step was done: what was opened is closed, and the next run completes."""
    state, _, steps = wanted
    for step in range(steps):
        store = Store()
        run = restore(store, cancel_at=step, is_late=True, failure=Cancelled())
        assert store.open == {}
        assert run.error is None or isinstance(run.error, Cancelled)
        restore(store)
        assert groups(store) == state


def test_a_document_that_others_write_meanwhile(restore, wanted):
    """Between any two requests: it is never replaced."""
    _, calls, _ = wanted
    came_first = []

    def meddle(store):
        came_first.append("d4" not in store.docs)
        if came_first[-1]:
            store.put("d4", {"body": "of another program"})

    for number in range(calls):
        store = Store()
        run = restore(store, meddle_at=number, meddle=meddle)
        found = store.docs["d4"]["source"]["body"], next(each for each in run.emitted if each.id == "d4").action
        assert found == (("of another program", "differs") if came_first[-1] else (TEXTS["d4"], "restored"))
    assert set(came_first) == {True, False}


@pytest.mark.parametrize("kind", ["refused", "unreadable"])
def test_one_of_many_is_not_written(restore, kind):
    """Where it is refused; and where it cannot be read, because nobody could say whether it was there."""
    store = Store()
    if kind == "refused":
        store.refuse = lambda header: 400 if header["_id"] == "d3" else None
    else:
        store.broken.add("d3")
    assert {each.id: each.kind for each in restore(store).emitted if not each.is_done} == {"d3": kind}
    assert set(store.docs) == set(TEXTS) - {"d3"}


@pytest.mark.parametrize(
    ("archived", "present", "is_same"),
    [
        ('{"n": 1, "body": "x"}', '{"body": "x", "n": 1}', True),
        ('{"n": 1, "simhash": {"group": "a"}, "simhash.at": 1}', '{"n": 1, "simhash": {"group": "b"}}', True),
        ('{"n": 1}', '{"n": 2}', False),
        ('{"n": 1.10}', '{"n": 1.1}', False),
        ('{"n": 1}', '{"n": 1, "simhashes": 2}', False),
    ],
)
def test_a_document_that_is_there(archived, present, is_same):
    """It is the one of the archive if it has the same fields, whatever our own fields say."""
    assert is_same_source(archived, present, prefix="simhash") == is_same


@pytest.mark.parametrize("type_", ["dense_vector", "knn_vector"])
@pytest.mark.parametrize(("number", "action"), [(0.12345679, "exists"), (0.1235, "differs")])
def test_a_vector_that_the_server_rounds_is_the_same(tmp_path, type_, number, action):
    """Both products keep some vectors as 32-bit numbers, and answer these; another vector is another document."""
    row = INDEX, "d1", None, json.dumps({**source_of("d1"), "o": {type_: [0.123456789, 1]}}), "d0"
    path = write_archive(tmp_path / "removed.db", [row])
    store = Store({"d1": {**source_of("d1"), "o": {type_: [number, 1.0]}}}, type_)
    assert [each.action for each in carry_out(module.restore(scripted(), [path], dry_run=True), store).emitted] == [
        action
    ]


TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
SHINGLES, OTHER = get_scheme("shingles"), get_scheme("shingles", hash="md5")


def source(body=TEXT, *, of=TEXT, by=SHINGLES):
    """Return a document with *body* and the fingerprint that *by* gives the text *of*."""
    return json.dumps({"body": body, **({} if of is None else fingerprint_fields(fingerprint(of, scheme=by)))})


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_misfits(is_elsewhere, monkeypatch):
    """At home a stale fingerprint stays, unless another scheme made it; elsewhere only the scheme's own fits."""
    monkeypatch.setattr(fits, "schemes", lambda: [SHINGLES, OTHER])
    cases = [
        (source(), False),
        (source(by=OTHER), True),
        (source(of="an older text of it"), is_elsewhere),
        (source(of=None), False),
        (source(5), is_elsewhere),
        (source("?!"), is_elsewhere),
        (source(None), is_elsewhere),
        # Python refuses to read so many digits as a whole number; the document is none the worse for it.
        (source()[:-1] + ', "n": ' + "1" * 5_000 + "}", False),
    ]
    sources = {place: text for place, (text, _) in enumerate(cases)}
    wanted = {place for place, (_, is_misfit) in enumerate(cases) if is_misfit}
    elsewhere = set(sources) if is_elsewhere else set()
    assert find_misfits(sources, elsewhere, SHINGLES, ["body"], prefix="simhash") == wanted
    assert find_misfits({0: cases[0][0], 1: cases[1][0]}, {1}, OTHER, ["body"], prefix="simhash") == {0}


@pytest.mark.parametrize(
    ("view", "present", "hidden", "names"),
    [
        (["all"], "ab", "", ("all",)),
        ([], "ab", "", ("a", "b")),
        (["a", "b"], "a", "", ("a",)),
        (["all"], "", "", None),
        # It shows other indices, too: since a rollover, because one was made anew, or because an enemy wrote it.
        (["all"], "abx", "", ("a", "b")),
        (["a", "x"], "ax", "", ("a",)),
        (["all"], "abx", "ab", None),  # of which it hides documents
    ],
)
def test_the_names_under_which_is_grouped(view, present, hidden, names):
    """Nothing outside of what the plan was made for."""

    def server(call):
        is_alias = call.api == "get_alias"
        return {
            name: {"aliases": {"all": {"filter": {}}}} if is_alias else {} for name in (hidden if is_alias else present)
        }

    with pytest.warns(UserWarning, match="left as they are") if names is None else nullcontext():
        found = drive(regroup.names_within(scripted(), view, {"a", "b"}), server)[0]
    assert found == (names or ())
