"""What voids a line of a plan, and what does not: a plan may wait for days, and others write meanwhile."""

import pytest

from es_simhash.errors import GuardRailError
from es_simhash.mapping.rule import LONGEST
from tests.servers.removals import (
    ALL,
    OTHER,
    TEXT,
    Killed,
    archived,
    change,
    copies,
    fill,
    meddle,
    outcomes,
    plan_again,
    read_plan,
    sources,
)
from tests.servers.support import ONE_SHARD, put

KEYWORD = {"type": "keyword"}
MAPPINGS = {
    "properties": {
        "lang": {**KEYWORD, "copy_to": "place"},
        "place": KEYWORD,
        "published": {"type": "date"},
        "agency": KEYWORD,
        "kind": KEYWORD,
        "views": {"type": "long"},
    }
}
COMMON = {
    "title": "bridge",
    "lang": "en",
    "published": "2026-01-01T00:00:00Z",
    "agency": "ab",
    "kind": "news",
    "views": 1,
}
DECIDES = {
    "canonical": ["agency:ab>*", "published"],
    "per": "place",
    "within": ("published", "7d"),
    "filter": {"term": {"kind": "news"}},
}
LONG = "This sentence is beyond the beginning that a plan shows. "


def fill_news(server, index, simhash, **more):
    """Two pairs of documents that all options of a plan allow to be duplicates; the texts differ late."""
    documents = {"a": LONG * 200 + TEXT, "b": LONG * 200 + TEXT.upper(), "c": OTHER, "d": OTHER + "!"}
    fill(
        server, index, simhash, {id_: {"body": body, **COMMON} for id_, body in documents.items()}, mappings=MAPPINGS,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize("id_", ["a", "b"])
@pytest.mark.parametrize(
    ("fields", "is_void"),
    [
        ({"body": LONG * 200 + TEXT + " And more."}, True),
        ({"lang": "de"}, True),
        ({"published": "2026-01-02T00:00:00Z"}, True),
        ({"title": "Another bridge"}, True),
        ({"kind": "sport"}, "b"),  # the filter says which duplicates go, not what they are duplicates of
        ({"views": 2, "new": {"field": [1.5]}}, False),
        ({"body": [LONG * 200 + TEXT.upper()], "lang": ["en", None]}, "a"),
        ({"simhash": {"group": "q", "duplicate_of": "q", "distance": 9, "fingerprint": "00000000000000ff"}}, False),
    ],
)
def test_what_decided_voids_a_line(server, index, simhash, plan, id_, fields, is_void):
    """A change of it, of either document, and of that line alone; not of a counter, and not of our own fields."""
    fill_news(server, index, simhash)
    made = simhash.plan_removal(index, plan, max_distance=12, **DECIDES, **ALL)
    assert made.count == 2
    change(server, index, id_, **fields)
    is_void = is_void is True or is_void == id_
    expected = {"b": ("kept", "changed" if id_ == "b" else "canonical_changed") if is_void else ("deleted", None)}
    dry = outcomes(simhash.apply_removal(plan, dry_run=True))
    assert dry["b"][1] == expected["b"][1]
    server.request("POST", f"/{index}/_refresh")
    before = sources(server, index)
    found = outcomes(simhash.apply_removal(plan))
    assert found == expected | {"d": ("deleted", None)}
    kept = {"a", "c"} | ({"b"} if is_void else set())
    assert sources(server, index).keys() == kept
    assert archived(plan) == {each: before[each] for each in before.keys() - kept}


def test_our_own_writes_void_nothing(server, index, simhash, plan):
    """A reconcile, a run of follow and the apply of another plan."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, passages=True)
    put(server, index, [{"_id": id_, "body": text} for id_, text in copies(2).items()])
    list(simhash.backfill(index))
    other = plan.with_name("other")
    assert simhash.plan_removal(index, plan, filter={"ids": {"values": ["b0000", "b0001"]}}, **ALL).count == 2
    assert simhash.plan_removal(index, other, **ALL).count == 4
    versions = {each.document.id: each.document.version for each in read_plan(plan).removals()}
    simhash.reconcile(index, canonical=LONGEST)
    put(server, index, [{"_id": "b0002", "body": TEXT}])
    *_, last = simhash.follow(index, once=True, state_index=f"{index}-state")
    assert (last.written, last.regrouped >= 1) == (1, True)
    hits = server.request("GET", f"/{index}/_search?seq_no_primary_term=true&size=50")["hits"]["hits"]
    now = {hit["_id"]: (hit["_seq_no"], hit["_primary_term"]) for hit in hits}
    assert all(now[id_] != version for id_, version in versions.items())
    found = outcomes(simhash.apply_removal(plan))
    assert found == dict.fromkeys(("b0000", "b0001"), ("deleted", None))
    found = outcomes(simhash.apply_removal(other))
    assert found == {
        **dict.fromkeys(("b0000", "b0001"), ("kept", "missing")),
        **dict.fromkeys(("s0000", "s0001"), ("deleted", None)),
    }
    assert sources(server, index).keys() == {"a", "r", "b0002"}


def test_a_canonical_that_is_written_at_the_last_moment(server, index, simhash, plan, monkeypatch):
    """Another counter is no reason to bring its duplicate back, and another text is."""
    for number, fields in enumerate(({"views": 9}, {"body": OTHER})):
        name = f"{index}-{number}"
        fill(server, name, simhash, copies(1))
        plan_again(simhash, name, plan, **ALL)
        with monkeypatch.context() as patch:
            meddle(patch, lambda name=name, fields=fields: change(server, name, "a", **fields))
            found = outcomes(simhash.apply_removal(plan))
        assert found["b0000"] == (("restored", "canonical_changed") if number else ("deleted", None))
        # What came back stays as long as its canonical is another one.
        again = outcomes(simhash.apply_removal(plan))
        assert again["b0000"] == (("kept", "canonical_changed") if number else ("deleted", None))
        assert ("b0000" in sources(server, name)) == bool(number)


COPIED = {"dynamic_templates": [{"cities": {"match": "city*", "mapping": {**KEYWORD, "copy_to": "place"}}}]}


@pytest.mark.parametrize("id_", ["a", "b"])
@pytest.mark.parametrize("is_dynamic", [True, False])
def test_a_field_that_was_mapped_after_the_plan(server, index, simhash, plan, id_, is_dynamic):
    """It is copied to a field that decides; one of another document, and one that is copied elsewhere, void nothing."""
    mappings = {**MAPPINGS, **COPIED} if is_dynamic else MAPPINGS
    documents = {each: {"body": text, "place": "x"} for each, text in copies(1).items()}
    documents = {("b" if each == "b0000" else each): source for each, source in documents.items()}
    fill(server, index, simhash, documents, mappings=mappings)
    simhash.plan_removal(index, plan, per="place", **ALL)
    if not is_dynamic:
        added = {"properties": {"city2": {**KEYWORD, "copy_to": ["agency", "place"]}}}
        server.request("PUT", f"/{index}/_mapping", added)
    change(server, index, id_, city2="Rome")
    change(server, index, "s0000", views=2, town="Rome")
    found = outcomes(simhash.apply_removal(plan))
    assert found == {"b": ("kept", "changed" if id_ == "b" else "canonical_changed"), "s0000": ("deleted", None)}


def test_an_alias_with_another_filter(server, index, simhash, plan):
    """It hides documents that nobody wrote, and they stay."""
    fill_news(server, index, simhash)
    alias = {"index": index, "alias": f"{index}-x"}
    set_filter = lambda *hidden: server.request(  # noqa: E731
        "POST",
        "/_aliases",
        {"actions": [{"add": {**alias, "filter": {"bool": {"must_not": {"ids": {"values": hidden}}}}}}]},
    )
    set_filter("none")
    assert simhash.plan_removal(f"{index}-x", plan, **ALL).count == 2
    set_filter("b", "c")
    void = {"b": ("kept", "changed"), "d": ("kept", "canonical_changed")}
    assert outcomes(simhash.apply_removal(plan, dry_run=True)) == void
    assert outcomes(simhash.apply_removal(plan)) == void
    set_filter("none")
    assert outcomes(simhash.apply_removal(plan)) == dict.fromkeys("bd", ("deleted", None))


@pytest.mark.parametrize("is_archived", [False, True])
def test_guard_rails_count_what_can_go(server, index, simhash, plan, monkeypatch, is_archived):
    """Not lines that are void: of a canonical that changed, hidden by an alias, or left out by the filter now."""
    documents = {
        f"{name}{n}": {"body": text, **COMMON, "views": n}
        for name, text in (("k", TEXT), ("r", OTHER))
        for n in range(4)
    }
    fill(server, index, simhash, documents, mappings=MAPPINGS)
    alias = {"index": index, "alias": f"{index}-x", "filter": {"range": {"views": {"lte": 3}}}}
    server.request("POST", "/_aliases", {"actions": [{"add": alias}]})
    options = {"filter": DECIDES["filter"], "max_share": 0.25}
    assert simhash.plan_removal(f"{index}-x", plan, **options).count == 6
    with pytest.raises(GuardRailError, match="6 of 8 documents would be removed"):
        list(simhash.apply_removal(plan))
    if is_archived:
        with monkeypatch.context() as patch:
            meddle(patch, lambda: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                list(simhash.apply_removal(plan, max_share=1))
    change(server, index, "r0", body="Another text, which no other document has, of quite other things.")
    change(server, index, "k1", views=9)
    with pytest.raises(GuardRailError, match="2 of 7 documents would be removed"):
        list(simhash.apply_removal(plan))
    change(server, index, "k2", kind="sport")
    found = outcomes(simhash.apply_removal(plan))
    assert found == {
        **dict.fromkeys(("r1", "r2", "r3"), ("kept", "canonical_changed")),
        **dict.fromkeys(("k1", "k2"), ("kept", "changed")),
        "k3": ("deleted", None),
    }
