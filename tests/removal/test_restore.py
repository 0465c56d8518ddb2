"""A restore with a failure, a lost answer or the end of its caller at every request: run again, it completes."""

import json

import pytest

from es_simhash import fingerprint_fields
from es_simhash.hashing import fingerprint, get_scheme
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import group_fields
from es_simhash.mapping.mapping import build_mapping
from es_simhash.mapping.rule import Grouping
from es_simhash.removal import fits, restore as module
from es_simhash.removal.fits import find_misfits
from tests.servers.archives import write_archive
from tests.transport.by_hand import CLOSES, Cancelled, ServerError, carry_out, scripted
from tests.transport.fake_server import INDEX, FakeServer

# A failure here leaves open what nobody can name, or could not close.
NAMELESS = (*CLOSES, "open_point_in_time")
TEXTS = {f"d{n}": f"one two three four five six seven {'copy' if n % 2 else n}" for n in range(7)}


class Store(FakeServer):
    """A server to which documents come back: it creates what is missing, from the text of ``_source``."""

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
    """A removal that has archived six of seven documents."""
    rows = [(INDEX, id_, None, json.dumps(source_of(id_)), "d0") for id_ in list(TEXTS)[1:]]
    return write_archive(tmp_path / "removed.db", rows)


@pytest.fixture(autouse=True)
def three_at_a_time(monkeypatch):
    monkeypatch.setattr(module, "BATCH_DOCUMENTS", 3)


def restore(context, archives, **options):
    return module.restore(scripted(context), archives, **options)


def make_store():
    """Return a server that has the seventh document, in its group, and records a grouping."""
    mapping = build_mapping(text_field="body")
    mapping["_meta"]["es_simhash"]["simhash"]["grouping"] = Grouping().to_dict()
    source = source_of("d0")
    source["simhash"] |= group_fields("d0", at="2026-01-01T00:00:00.000Z")
    return Store({"d0": source}, mapping=mapping)


def context():
    return Context("simhash", None, lambda: 0.0)


def groups(store):
    """Return each document's group and text."""
    return {id_: (held["source"]["simhash"]["group"], held["source"]["body"]) for id_, held in store.docs.items()}


@pytest.fixture
def wanted(archive):
    """What a restore that nothing disturbs leaves, and the number of its calls."""
    store = make_store()
    run = carry_out(restore(context(), [archive]), store)
    assert [each.action for each in run.emitted] == ["restored"] * 6
    assert {id_: text for id_, (_, text) in groups(store).items()} == TEXTS
    return groups(store), len(run.calls), run.steps


@pytest.mark.parametrize(("status", "is_late"), [(503, False), (None, True), (400, False)])
def test_a_failure_at_any_request(archive, wanted, status, is_late):
    """It is an error or is made good; a second run completes in any case, and nothing is written twice."""
    state, calls, _ = wanted
    for number in range(calls):
        store = make_store()
        run = carry_out(
            restore(context(), [archive]), store, fail_at=number, failure=ServerError(status), is_late=is_late
        )
        assert store.open == {} or run.hit in NAMELESS
        if run.error is None:
            assert [each.action for each in run.emitted] == ["restored"] * 6
            assert groups(store) == state
        elif run.emitted:
            assert run.error.__notes__[-1] == f"{len(run.emitted)} documents were put back"
        again = carry_out(restore(context(), [archive]), store)
        assert all(each.action in ("restored", "exists") for each in again.emitted)
        assert groups(store) == state


def test_a_caller_who_goes_away_at_any_step(archive, wanted):
    """After the work of that step was done: what was opened is closed, and the next run completes."""
    state, _, steps = wanted
    for step in range(steps):
        store = make_store()
        run = carry_out(restore(context(), [archive]), store, cancel_at=step, is_late=True, failure=Cancelled())
        assert store.open == {}
        assert run.error is None or isinstance(run.error, Cancelled)
        carry_out(restore(context(), [archive]), store)
        assert groups(store) == state


def test_a_document_that_others_write_meanwhile(archive, wanted):
    """Between any two requests: it is never replaced."""
    _, calls, _ = wanted
    came_first = []

    def meddle(store):
        came_first.append("d4" not in store.docs)
        if came_first[-1]:
            store.put("d4", {"body": "of another program"})

    for number in range(calls):
        store = make_store()
        run = carry_out(restore(context(), [archive]), store, meddle_at=number, meddle=meddle)
        found = store.docs["d4"]["source"]["body"], next(each for each in run.emitted if each.id == "d4").action
        assert found == (("of another program", "differs") if came_first[-1] else (TEXTS["d4"], "restored"))
    assert set(came_first) == {True, False}


def test_one_of_many_is_not_written(archive):
    """Where it is refused; and where it cannot be read, because nobody could say whether it was there."""
    for kind in ("refused", "unreadable"):
        store = make_store()
        if kind == "refused":
            store.refuse = lambda header: 400 if header["_id"] == "d3" else None
        else:
            store.broken.add("d3")
        run = carry_out(restore(context(), [archive]), store)
        assert {each.id: each.kind for each in run.emitted if not each.is_done} == {"d3": kind}
        assert set(store.docs) == set(TEXTS) - {"d3"}


@pytest.mark.parametrize("type_", ["dense_vector", "knn_vector"])
def test_a_vector_that_the_server_rounds_is_the_same(tmp_path, type_):
    """Both products keep some vectors as 32-bit numbers, and answer these; another vector is another document."""
    mapping = build_mapping(text_field="body")
    mapping["properties"]["o"] = {"properties": {"v": {"type": type_}}}
    row = INDEX, "d1", None, json.dumps({**source_of("d1"), "o": {"v": [0.123456789, 1]}}), "d0"
    path = write_archive(tmp_path / "removed.db", [row])
    for number, action in ((0.12345679, "exists"), (0.1235, "differs")):
        store = Store({"d1": {**source_of("d1"), "o": {"v": [number, 1.0]}}}, mapping=mapping)
        run = carry_out(restore(context(), [path], dry_run=True), store)
        assert [each.action for each in run.emitted] == [action]


TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
SHINGLES, KEYWORDS = get_scheme("shingles"), get_scheme("keywords")


def source(body=TEXT, *, of=TEXT, by=SHINGLES):
    """Return a document with *body* and the fingerprint that *by* gives the text *of*."""
    return json.dumps({"body": body, **({} if of is None else fingerprint_fields(fingerprint(of, scheme=by)))})


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_misfits(is_elsewhere, monkeypatch):
    """At home a stale fingerprint stays, unless another scheme made it; elsewhere only the scheme's own fits."""
    monkeypatch.setattr(fits, "schemes", lambda: ["shingles", "keywords"])
    cases = [
        (source(), False),
        (source(by=KEYWORDS), True),
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
    assert find_misfits({0: cases[0][0], 1: cases[1][0]}, {1}, KEYWORDS, ["body"], prefix="simhash") == {0}
