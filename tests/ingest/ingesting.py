"""
An ingest with grouping by hand: an index with one group, documents of four texts, and what must be true
afterwards.
"""

from functools import cache

from es_simhash import fingerprint, fingerprint_fields
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.ingest_options import IngestOptions
from es_simhash.mapping.fields import group_fields
from tests.transport.by_hand import CLOSES, carry_out, scripted
from tests.transport.fake_server import INDEX, FakeServer

A = "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood"
B = "parliament passed the budget on tuesday after a debate that had lasted for three weeks"
C = "heavy rain is expected in the northern valleys until the end of the coming week"
D = "the museum of modern art opens its new wing to the public on the first of october"
NEW = {"a2": A, "b0": B, "b1": B, "c0": C, "b2": B, "c1": C, "a3": A, "d0": D}
# What is asked again while the server is busy.
PATIENT = ("bulk", "get_settings", "index_stats", "mget", "msearch", "refresh", "open_point_in_time", "search", *CLOSES)


fingerprint_of = cache(fingerprint)


def grouped(body, group, **rest):
    groups = group_fields(group, at="2026-01-01T00:00:00Z", **rest)
    own = {**fingerprint_fields(fingerprint_of(body))["simhash"], **groups}
    return {"body": body, "simhash": own}


def filled():
    """Return an index with one group of two."""
    return FakeServer({"a0": grouped(A, "a0"), "a1": grouped(A, "a0", canonical="a0", distance=0)})


def run_ingest(store, way, documents=None, **trouble):
    given = documents or [{"_id": id_, "body": body} for id_, body in NEW.items()]
    grouping = {name: way[name] for name in way if name in ("rule", "verify", "max_distance")}
    rest = {name: way[name] for name in way if name not in grouping}
    options = IngestOptions(**{"batch": 2, **rest}, grouping=GroupingRequest(**grouping))
    return carry_out(ingest(scripted(), INDEX, given, options), store, **trouble)


def is_writing(call):
    """Return whether *call* writes documents: the first bulk only asks whether this login sees all fields."""
    return call.api == "bulk" and call.arguments["body"][1] != {"doc": {}}


def assert_told_truly(run, store):
    """Every report says what became of its document, in order."""
    assert [each.position for each in run.emitted] == list(range(len(run.emitted)))
    for each, (id_, body) in zip(run.emitted, NEW.items(), strict=False):
        assert (each.id == id_) or (each.action == "skipped")
        if each.action in ("written", "tagged"):
            assert store.source(id_)["body"] == body
        else:
            assert each.action == "skipped" or each.reason
        if each.action == "skipped":
            assert id_ not in store.docs
            assert each.canonical in store.docs
        if each.action == "tagged":
            assert store.source(id_)["simhash"]["group"] == each.canonical


def assert_grouped(store, way):
    """Each text has one canonical, which is there, and all others with that text name it."""
    for body in (A, B, C, D):
        family = {id_: each["source"]["simhash"] for id_, each in store.docs.items() if each["source"]["body"] == body}
        canonicals = [id_ for id_, own in family.items() if own["group"] == id_]
        assert len(canonicals) == bool(family), family
        assert {own["group"] for own in family.values()} == set(canonicals)
        assert {own.get("duplicate_of") for own in family.values()} <= {None, *canonicals}
        assert all((own.get("duplicate_of") is None) == (id_ in canonicals) for id_, own in family.items())
        if way["on_duplicate"] == "skip" and body != A:
            assert len(family) <= 1
