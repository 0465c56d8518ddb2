"""Decisions about documents as they are written, held to comparing each with all before it."""

from hypothesis import given, strategies as st

from es_simhash import hamming_distance
from es_simhash.index.grouping.decide import Decider, Draft, ExistingDocument
from es_simhash.index.grouping.rule import Grouping
from tests.property.test_grouping import connected, related_fingerprints, star


def shown(visible, fingerprint, max_distance, *, canonicals_only):
    """Return what a search shows of the drafts in *visible*, in the order of their writing."""
    return [
        ExistingDocument(each.id, each.fingerprint, each.group)
        for each in visible
        if hamming_distance(each.fingerprint, fingerprint) <= max_distance
        if each.group == each.id or not canonicals_only
    ]


@given(related_fingerprints(30), st.integers(0, 20), st.lists(st.booleans(), min_size=30, max_size=30))
def test_tags_are_greedy_whenever_the_index_is_refreshed(values, max_distance, refreshes):
    """A document is found in flight or by the search, never lost between them."""
    decider = Decider(Grouping("star", max_distance), "tag")
    drafts, visible = [], []
    for place, (value, is_refreshed) in enumerate(zip(values, refreshes, strict=False)):
        draft = Draft(str(place), value, str(place))
        decider.decide(draft, shown(visible, value, max_distance, canonicals_only=True))
        draft.is_settled = True
        drafts.append(draft)
        if is_refreshed:
            decider.forget_settled()
            visible = list(drafts)
    assert [int(draft.group) for draft in drafts] == star(values, max_distance)


@given(related_fingerprints(20), st.integers(0, 12))
def test_joined_groups_are_parts_of_components(values, max_distance):
    """``connected`` never joins what chains do not; ``reconcile`` joins what came too late."""
    decider = Decider(Grouping("connected", max_distance), "tag")
    drafts = []
    for place, value in enumerate(values):
        drafts.append(Draft(str(place), value, str(place)))
        decider.decide(drafts[-1], [])
    components = connected(values, max_distance)
    assert all(components[int(draft.group)] == components[n] for n, draft in enumerate(drafts))


@given(related_fingerprints(20), st.integers(0, 20))
def test_what_is_skipped_attracts_nothing(values, max_distance):
    """Only what was written counts, so the written ones are the canonicals of the rule."""
    decider = Decider(Grouping("star", max_distance), "skip")
    written = []
    for place, value in enumerate(values):
        draft = Draft(str(place), value, str(place))
        decider.decide(draft, [])
        if draft.verdict != "skip":
            written.append(place)
    assert written == sorted(set(star(values, max_distance)))


def test_a_refused_version_leaves_the_earlier_one_standing():
    """Written once, written again and refused: the first is still there to be found."""
    decider = Decider(Grouping("star", 3), "tag")
    first, again, other = Draft("a", 0, "a"), Draft("a", 255, "a"), Draft("b", 1, "b")
    decider.decide(first, [])
    decider.decide(again, [])
    decider.refuse(again)
    decider.decide(other, [])
    assert (other.group, other.distance) == ("a", 1)


def test_what_was_replaced_stands_again_when_the_replacement_is_refused():
    """And is hidden while the replacement stands."""
    decider = Decider(Grouping("star", 3), "replace")
    drafts = [Draft(name, 0, name) for name in "abc"]
    decider.decide(drafts[0], [])
    decider.decide(drafts[1], [])
    assert [each.id for each in drafts[1].replaced] == ["a"]
    decider.refuse(drafts[1])
    decider.decide(drafts[2], [ExistingDocument("a", 0, "a")])
    assert [each.id for each in drafts[2].replaced] == ["a"]
