"""Decisions about documents as they are written, compared with slow and obvious rules."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from es_simhash import hamming_distance
from es_simhash.ingest.decide import Decider
from es_simhash.ingest.in_flight import Document, InFlight
from es_simhash.mapping.rule import Grouping
from tests.groups.strategies import related_fingerprints
from tests.reference import star


def decide_all(decider, values):
    """Return the decisions about documents with the fingerprints *values*, whose ids are their places."""
    return [decider.decide(Document(str(place), value, position=place), []) for place, value in enumerate(values)]


@given(related_fingerprints(30), st.integers(0, 20), st.lists(st.booleans(), min_size=30, max_size=30))
def test_tags_are_greedy_whenever_the_index_is_refreshed(values, max_distance, refreshes):
    """A document is found in flight or by the search, never lost between them."""
    decider = Decider(Grouping(max_distance), "tag")
    groups, visible = [], 0
    for place, (value, is_refreshed) in enumerate(zip(values, refreshes, strict=False)):
        shown = [
            Document(str(n), values[n], groups[n])
            for n in range(visible)
            if groups[n] == str(n) and hamming_distance(values[n], value) <= max_distance
        ]
        groups.append(decider.decide(Document(str(place), value, position=place), shown).group)
        decider.in_flight.settle([place])
        if is_refreshed:
            decider.in_flight.forget_settled()
            visible = len(groups)
    assert list(map(int, groups)) == star(values, max_distance)


@given(related_fingerprints(30), st.integers(0, 20), st.data())
def test_the_order_of_moments_says_what_was_decided(values, max_distance, data):
    """Whatever the ids: for batches of one moment, two writers whose clocks differ, and refreshes in between."""
    ids = data.draw(st.permutations([f"{place:02d}" for place in range(len(values))]))
    writers, clocks, shown = [Decider(Grouping(max_distance), "tag") for _ in range(2)], [0, 5], []
    writer, batch = 0, []
    for place, (value, id_) in enumerate(zip(values, ids, strict=True)):
        if data.draw(st.booleans()):  # a batch begins, perhaps of the other writer, who sees what is refreshed
            shown += batch
            writers[writer].in_flight.settle([each.position for each in batch])
            writers[writer].in_flight.forget_settled()
            writer, batch = data.draw(st.sampled_from([0, 1])), []
            clocks[writer] += data.draw(st.integers(0, 3))
            writers[writer].begin(1 + clocks[writer])
            writers[writer].in_flight.foresee(values[place : place + data.draw(st.integers(0, 9))])
        near = [
            replace(each, position=None) for each in shown if hamming_distance(each.fingerprint, value) <= max_distance
        ]
        batch.append(Document(id_, value, position=place))
        writers[writer].decide(batch[-1], sorted(near, key=lambda each: (each.at, each.id)))
    documents = sorted(shown + batch, key=lambda each: (each.at, each.id))
    canonicals = star([each.fingerprint for each in documents], max_distance)
    assert [each.group for each in documents] == [documents[place].id for place in canonicals]


@given(related_fingerprints(20), st.integers(0, 20))
def test_what_is_skipped_attracts_nothing(values, max_distance):
    """Only what was written counts, so the written ones are the canonicals of the rule."""
    decisions = decide_all(Decider(Grouping(max_distance), "skip"), values)
    written = [place for place, decision in enumerate(decisions) if decision.verdict != "skip"]
    assert written == sorted(set(star(values, max_distance)))


def test_a_refused_version_leaves_the_earlier_one_standing():
    """Written once, written again and refused: the first is still found."""
    decider = Decider(Grouping(3), "tag")
    decider.decide(Document("a", 0, position=0), [])
    decider.decide(Document("a", 255, position=1), [])
    decider.in_flight.withdraw(1)
    decision = decider.decide(Document("b", 1, position=2), [])
    assert (decision.group, decision.distance) == ("a", 1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_refused_versions_none_stands(order):
    """Whichever refusal is seen first."""
    decider = Decider(Grouping(3), "tag")
    decider.decide(Document("a", 0, position=0), [])
    decider.decide(Document("a", 0, position=1), [])
    for position in order:
        decider.in_flight.withdraw(position)
    assert decider.decide(Document("b", 0, position=2), []).verdict == "write"


@given(related_fingerprints(30), st.integers(0, 64), st.data())
def test_what_is_in_flight_is_found_whatever_was_foreseen(values, max_distance, data):
    """In the order of ids, as an index shows what was grouped in one moment."""
    memory = InFlight(max_distance)
    for place, value in enumerate(values):
        if data.draw(st.booleans()):
            memory.foresee(data.draw(st.lists(st.sampled_from(values))))
        before = [(hamming_distance(other, value), f"{n:02d}") for n, other in enumerate(values[:place])]
        found = [(distance, each.id) for distance, each in memory.find(value)]
        assert found == [each for each in before if each[0] <= max_distance]
        memory.add(Document(f"{place:02d}", value, str(place), position=place))


def test_a_visible_version_is_found_by_searches_when_the_next_one_is_refused():
    """After a refresh forgot it, this memory neither shows nor hides it."""
    memory = InFlight(64)
    memory.add(Document("a", 0, "a", position=0))
    memory.settle([0])
    memory.add(Document("a", 255, "a", position=1))
    memory.forget_settled()
    memory.withdraw(1)
    assert not memory.hides("a")
    assert list(memory.find(0)) == []
