"""Groups by distance alone, groups by texts, keywords and dates, and distinct hits, held to slow and obvious code."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from es_simhash.groups import all_pairs, assign
from es_simhash.groups.assign import Documents, group_documents, group_pairs
from es_simhash.groups.table import Ids, Table, Texts
from es_simhash.lookup.content import TextStore
from es_simhash.mapping.rule import Grouping, Within
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from tests.groups.strategies import neighbours, oracle, related_fingerprints
from tests.reference import distance

THINNINGS = st.sampled_from([(8, 1 << 18, 64, 8), (0, 0, 2, 1), (0, 3, 3, 2), (1, 0, 5, 1)])
"""How many pairs are held, and which groups are large: few documents are thinned out as millions are."""


def thinning(patch, limits):
    for name, limit in zip(("PAIRS_OF_NODE", "PAIRS", "HEAD", "LARGE"), limits, strict=True):
        patch.setattr(assign, name, limit)
    patch.setattr(assign, "ASKED", 5)


WORDS = ["the", "cat", "sat", "on", "a", "mat", "today", "and", "yesterday"]
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(
        ["...", "The cat sat on a mat.", "the cat sat on a mat today and", "The cat sat on a mat today. And yesterday"]
    ),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
)
ORDERS = st.sampled_from(
    [("id",), ("views",), ("-views",), ("source:x>y",), ("source:y>*>x", "-views"), ("-at", "source:z"), ("longest",)]
)
SIMILARITIES = st.sampled_from([None, 0.0, 0.3, 0.8, 1.0])


@st.composite
def documents(draw):
    found = []
    for number, value in enumerate(draw(related_fingerprints(14))):
        found.append(
            {
                "id": str(draw(st.integers(0, 9))),
                "index": draw(st.sampled_from("ab")),
                "routing": str(number),
                "fingerprint": value,
                "text": draw(TEXTS),
                "source": draw(st.lists(st.sampled_from("xyz"), max_size=2)),
                "views": draw(st.lists(st.integers(-3, 3), max_size=2)),
                "at": draw(st.lists(st.integers(-5, 5), max_size=2)),
            }
        )
    return found


@st.composite
def groupings(draw):
    return Grouping(
        draw(st.integers(0, 64)),
        draw(SIMILARITIES),
        draw(st.sampled_from([WORD_SHINGLES, TextMeasure("edit", "characters")])),
        draw(st.sampled_from([None, "source"])),
        draw(st.sampled_from([None, Within("at", 0), Within("at", 2), Within("at", 10**30)])),
        draw(ORDERS),
    )


def hit(document):
    fields = {name: document[name] for name in ("source", "views", "at") if document[name]}
    fields["simhash.fingerprint"] = [f"{document['fingerprint']:016x}"]
    return {
        "_index": document["index"],
        "_id": document["id"],
        "_routing": document["routing"],
        "_source": {} if document["text"] is None else {"body": document["text"]},
        "fields": fields,
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(("x", "x\0", "b/x", "b?r/x", "c/b/x")), st.sampled_from((None, "r"))
        ),
        min_size=1,
        unique=True,
    )
)
def test_names_of_groups(keys):
    """No two canonicals have one name, whatever ids look like names; the first of an id has it as its name."""
    table = Table("simhash", Grouping(0))
    for number, (index, id_, routing) in enumerate(keys):
        fields = {"simhash.fingerprint": [f"{number:016x}"]}
        table.add([{"_index": index, "_id": id_, "fields": fields} | ({"_routing": routing} if routing else {})])
    names = table.group().names(np.arange(len(keys)))
    assert len(set(names)) == len(keys)
    first = {id_: min((index, routing or "") for index, own, routing in keys if own == id_) for _, id_, _ in keys}
    for name, (index, id_, routing) in zip(names, keys, strict=True):
        assert (name == id_) == (first[id_] == (index, routing or ""))


def filled(items, grouping):
    table = Table("simhash", grouping, dates=["at"], text_fields={"a": ["body"], "b": ["body"]})
    table.add([hit(document) for document in items])
    return table


def grouped(items, grouping, *, memory_bytes=1 << 20):
    """Return the groups of *items* as reconcile makes them, and the documents in the order of the table."""
    table = filled(items, grouping)
    texts = None
    if grouping.similarity is not None:
        store, numbers = TextStore(grouping.measure, memory_bytes=memory_bytes), np.full(len(items), -1, np.int64)
        for place in table.with_candidates().tolist():
            if items[place]["text"] is not None:
                [numbers[place]] = store.add([items[place]["text"]])
        texts = Texts(store, numbers, np.full((len(numbers), 2), -1))
    return table.group(texts)


@pytest.mark.parametrize("limits", [(8, 1 << 18, 64, 8), (0, 0, 2, 1), (0, 3, 3, 2)])
@pytest.mark.parametrize(
    "grouping",
    [Grouping(0, within=Within("at", 2)), Grouping(1, 0.7, within=Within("at", 3)), Grouping(1, 0.7)],
    ids=str,
)
def test_two_fingerprints_of_many_texts_and_dates(limits, grouping, monkeypatch):
    """Texts and dates alone say which documents are neighbours, in small groups and in large ones."""
    thinning(monkeypatch, limits)
    chance, ends = random.Random(3), ("", " it", " it again")
    texts = [
        "Nobody saw the second tram of the day",
        "The cat sat on a mat until the rain was over",
        "A new bridge opens",
    ]
    items = [
        {"id": f"{number:02}", "index": "a", "routing": "", "fingerprint": 6 + number % 2, "source": [], "views": []}
        | {
            "text": f"{chance.choice(texts)} and the mayor came to see{chance.choice(ends)}",
            "at": [chance.randrange(12)],
        }
        for number in range(40)
    ]
    assert dict(enumerate(grouped(items, grouping).canonical.tolist())) == oracle(items, grouping)


@given(
    documents(),
    groupings(),
    st.sampled_from([0, 100, 1 << 20]),
    st.sampled_from([1, 7, 1 << 20]),
    THINNINGS,
    st.randoms(),
)
def test_groups_are_those_of_the_rule(items, grouping, memory_bytes, chunk, limits, chance):
    """For all conditions, every canonical order, any order of arrival, texts in memory or in a file."""
    chance.shuffle(items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_pairs, "CHUNK", chunk)
        patch.setattr(assign, "CHUNK", chunk)
        thinning(patch, limits)
        groups = grouped(items, grouping, memory_bytes=memory_bytes)
    assert dict(enumerate(groups.canonical.tolist())) == oracle(items, grouping)
    duplicates = groups.duplicates
    for place in duplicates.tolist():
        canonical = items[int(groups.canonical[place])]
        assert groups.distance[place] == distance(items[place]["fingerprint"], canonical["fingerprint"])


@given(documents(), groupings(), st.sampled_from([1, 7, 1 << 20]), st.integers(0, 14) | st.none())
def test_pairs_are_those_of_the_rule(items, grouping, chunk, split):
    """By all but texts, each once, with the distance; between two indices, those from one to the other."""
    grouping = replace(grouping, similarity=None)
    table = filled(items, grouping)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_pairs, "CHUNK", chunk)
        patch.setattr(assign, "CHUNK", chunk)
        found = [each for part in table.pairs(split=split) for each in zip(*map(np.ndarray.tolist, part), strict=True)]
    near = neighbours(items, grouping)
    assert sorted(found) == [
        (a, b, distance(items[a]["fingerprint"], items[b]["fingerprint"]))
        for a in range(len(items))
        for b in range(a + 1, len(items))
        if near(items[a], items[b]) and (split is None or a < split <= b)
    ]


@given(related_fingerprints(30), st.integers(0, 20), st.sampled_from([(0, 0, 2, 1), (0, 3, 3, 2)]))
def test_what_has_a_neighbour_is_a_candidate(values, max_distance, limits):
    """Also where large groups are thinned out: the texts of all others are never read."""
    with pytest.MonkeyPatch.context() as patch:
        thinning(patch, limits)
        found = assign.with_candidates(Documents(np.array(values, np.uint64)), max_distance).tolist()
    has_neighbour = [sum(distance(one, other) <= max_distance for other in values) > 1 for one in values]
    assert {place for place, has in enumerate(has_neighbour) if has} <= {*found}


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8))))
def test_pairs_that_are_given_make_groups(pairs):
    """Each place belongs to the first canonical before it that a pair names with it, whichever comes first."""
    expected = []
    for place in range(9):
        near = [other for other in range(place) if {(place, other), (other, place)} & pairs]
        expected.append(next((other for other in near if expected[other] == other), place))
    left, right = np.array([pair for pair in pairs if pair[0] != pair[1]], np.int64).reshape(-1, 2).T
    assert group_pairs(9, left, right).tolist() == expected


def test_a_large_group_takes_time_by_its_members():
    """Its pairs are a hundred million: they would take a gigabyte."""
    chance = np.random.default_rng(2)
    values = np.full(16_000, 7, np.uint64)
    for _ in range(5):
        values ^= np.uint64(1) << chance.integers(0, 64, len(values), dtype=np.uint64)
    compared = 0
    distinct_pairs = assign.distinct_pairs

    def note(*args):
        nonlocal compared
        for found in distinct_pairs(*args):
            compared += len(found[0])
            assert compared < 100 * len(values)
            yield found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assign, "distinct_pairs", note)
        canonical = group_documents(Documents(values), 12)
        assert len(assign.with_candidates(assign.Documents(values), 12)) == len(values)
    assert (all_pairs.distances_between(values, values[canonical]) <= 12).all()
    assert compared


def test_copies_cost_nothing():
    """Half a million copies of one text, with two dates, are two nodes."""
    grouping = Grouping(similarity=0.8, within=Within("at", 5))
    table = Table("simhash", grouping, dates=["at"])
    count = 500_000
    columns = {
        "fingerprint": np.full(count, 7, np.uint64),
        "index": np.zeros(count, np.int32),
        "state": np.zeros(count, np.int64),
        "date": np.arange(count) % 2 * 100,
    }
    table._names["a"] = 0
    table._ids.extend(["x"] * count)
    table._parts, table._count = [columns], count
    store = TextStore()
    texts = Texts(store, np.full(count, store.add(["the cat sat on a mat"])[0], np.int64), np.full((count, 2), -1))
    assert len(table.with_candidates()) == count
    groups = table.group(texts)
    assert np.unique(groups.canonical).tolist() == [0, 1]


# Ends in NUL, common beginnings of eight bytes and more, and any text that UTF-8 knows.
PARTS = st.sampled_from(["", "\0", "a", "a\0", "\x7f", "é", "\uffff", "\U0001f600", "https://", "12345678"])
IDS = st.lists(PARTS, max_size=5).map("".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(IDS, max_size=40), st.data())
def test_ranks_are_those_of_whole_strings(ids, data):
    """Also of some of the ids only, and of equal ones."""
    some = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=40)) if ids else []
    found = Ids(ids)
    assert [found[place] for place in range(len(ids))] == ids
    assert found.ranks(np.array(some, np.int64)).tolist() == [
        sum(ids[other] < ids[place] for other in some) for place in some
    ]
