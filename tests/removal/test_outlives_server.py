"""What voids a line of a plan, and what does not: a plan may wait for days, and others write meanwhile."""

import pytest

from es_simhash.errors import GuardRailError
from tests.servers.removals import (
    ALL,
    DELETED,
    OTHER,
    TEXT,
    Killed,
    archived,
    change,
    copies,
    fill,
    meddle,
    outcomes,
    sources,
)
from tests.servers.support import ON_BOTH

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


def words(n, size=25):
    """Return a text that is like no other."""
    return " ".join(f"word{n}of{k}" for k in range(size))


def fill_pairs(server, index, simhash, pairs, **more):
    """Make an index of *pairs* of documents, a00 and b00, a01 and b01 ..., that all options of a plan allow."""
    documents = {
        f"{name}{n:02d}": {"body": text, **COMMON} for n, pair in enumerate(pairs) for name, text in pair.items()
    }
    fill(server, index, simhash, documents, **more)


# Which of the two documents may not be changed so, where the text is beyond the beginning that a plan shows.
CHANGES = [
    ("ab", lambda text: {"body": f"{text} And more."}),
    ("ab", lambda _: {"lang": "de"}),
    ("ab", lambda _: {"published": "2026-01-02T00:00:00Z"}),
    ("ab", lambda _: {"title": "Another bridge"}),
    ("b", lambda _: {"kind": "sport"}),  # the filter says which duplicates go, not what they are duplicates of
    ("", lambda _: {"views": 2, "new": {"field": [1.5]}}),
    ("a", lambda text: {"body": [text.upper()], "lang": ["en", None]}),
    ("", lambda _: {"simhash": {"group": "q", "duplicate_of": "q", "distance": 9, "fingerprint": "00000000000000ff"}}),
]


@ON_BOTH
def test_what_decided_voids_a_line(server, index, simhash, plan):
    """A change of it, of either document, and of that line alone; not of a counter, and not of our own fields."""
    cases = [(id_, *change) for id_ in "ab" for change in CHANGES]
    texts = [words(n, 25 if n % len(CHANGES) else 1_200) for n in range(len(cases) + 1)]
    fill_pairs(server, index, simhash, [{"a": text, "b": text.upper()} for text in texts], mappings=MAPPINGS)
    assert simhash.plan_removal(index, plan, max_distance=12, **DECIDES, **ALL).count == len(texts)
    expected = {f"b{n:02d}": DELETED for n in range(len(texts))}
    for n, (id_, void, make) in enumerate(cases):
        change(server, index, f"{id_}{n:02d}", **make(texts[n]))
        if id_ in void:
            expected[f"b{n:02d}"] = "kept", "changed" if id_ == "b" else "canonical_changed"
    dry = outcomes(simhash.apply_removal(plan, dry_run=True))
    assert {id_: kind for id_, (_, kind) in dry.items()} == {id_: kind for id_, (_, kind) in expected.items()}
    server.request("POST", f"/{index}/_refresh")
    before = sources(server, index)
    assert outcomes(simhash.apply_removal(plan)) == expected
    after = sources(server, index)
    assert before.keys() - after.keys() == {id_ for id_, (action, _) in expected.items() if action == "deleted"}
    assert archived(plan) == {each: before[each] for each in before.keys() - after.keys()}


@pytest.mark.parametrize(
    ("fields", "fate"), [({"views": 9}, DELETED), ({"body": OTHER}, ("restored", "canonical_changed"))]
)
def test_a_canonical_that_is_written_at_the_last_moment(server, index, simhash, plan, monkeypatch, fields, fate):
    """Another counter is no reason to bring its duplicate back, and another text is."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)
    with monkeypatch.context() as patch:
        meddle(patch, lambda: change(server, index, "a", **fields))
        assert outcomes(simhash.apply_removal(plan))["b0000"] == fate
    # What came back stays as long as its canonical is another one.
    kept = ("kept", "canonical_changed")
    assert outcomes(simhash.apply_removal(plan))["b0000"] == (DELETED if fate == DELETED else kept)
    assert ("b0000" in sources(server, index)) == (fate != DELETED)


def test_a_field_that_was_mapped_after_the_plan(server, index, simhash, plan):
    """It is copied to a field that decides; one of another document, and one that is copied elsewhere, void nothing."""
    copied = {"dynamic_templates": [{"cities": {"match": "city*", "mapping": {**KEYWORD, "copy_to": "place"}}}]}
    pairs = [{"a": words(n), "b": words(n).upper()} for n in range(5)]
    fill_pairs(server, index, simhash, pairs, mappings={**MAPPINGS, **copied})
    simhash.plan_removal(index, plan, per="place", **ALL)
    town = {**KEYWORD, "copy_to": ["agency", "place"]}
    server.request("PUT", f"/{index}/_mapping", {"properties": {"town": town}})
    for id_, name in (("a00", "city2"), ("b01", "city2"), ("a02", "town"), ("b03", "town"), ("b04", "village")):
        change(server, index, id_, **{name: "Rome"})
    changed, canonical_changed = ("kept", "changed"), ("kept", "canonical_changed")
    found = outcomes(simhash.apply_removal(plan))
    assert [found[f"b{n:02d}"] for n in range(5)] == [canonical_changed, changed] * 2 + [DELETED]


def test_an_alias_with_another_filter(server, index, simhash, plan):
    """It hides documents that nobody wrote, and they stay."""
    fill_pairs(server, index, simhash, [{"a": words(n), "b": words(n).upper()} for n in range(2)])
    alias = f"{index}-x"

    def hide(*ids):
        server.request("PUT", f"/{index}/_alias/{alias}", {"filter": {"bool": {"must_not": {"ids": {"values": ids}}}}})

    hide("none")
    assert simhash.plan_removal(alias, plan, **ALL).count == 2
    hide("b00", "a01")
    void = {"b00": ("kept", "changed"), "b01": ("kept", "canonical_changed")}
    assert outcomes(simhash.apply_removal(plan, dry_run=True)) == void
    assert outcomes(simhash.apply_removal(plan)) == void
    hide("none")
    assert outcomes(simhash.apply_removal(plan)) == dict.fromkeys(void, DELETED)


def test_guard_rails_count_what_can_go(server, index, simhash, plan, monkeypatch):
    """Not lines that are void: of a canonical that changed, hidden by an alias, or left out by the filter now."""
    texts = {"k": TEXT, "r": OTHER}
    documents = {f"{name}{n}": {"body": texts[name], **COMMON, "views": n} for name in texts for n in range(4)}
    fill(server, index, simhash, documents, mappings=MAPPINGS)
    server.request("PUT", f"/{index}/_alias/{index}-x", {"filter": {"range": {"views": {"lte": 3}}}})
    assert simhash.plan_removal(f"{index}-x", plan, filter=DECIDES["filter"], max_share=0.25).count == 6
    with pytest.raises(GuardRailError, match="6 of 8 documents would be removed"):
        list(simhash.apply_removal(plan))
    with monkeypatch.context() as patch:
        meddle(patch, lambda: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            list(simhash.apply_removal(plan, max_share=1))
    change(server, index, "r0", body="Another text, which no other document has, of quite other things.")
    change(server, index, "k1", views=9)
    with pytest.raises(GuardRailError, match="2 of 7 documents would be removed"):
        list(simhash.apply_removal(plan))
    change(server, index, "k2", kind="sport")
    kept = dict.fromkeys(("k1", "k2"), ("kept", "changed"))
    kept |= dict.fromkeys(("r1", "r2", "r3"), ("kept", "canonical_changed"))
    assert outcomes(simhash.apply_removal(plan)) == kept | {"k3": DELETED}
