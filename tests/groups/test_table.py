"""The table of an index: ids are whole strings, of any length, in the order of their code points."""

import random

import numpy as np
from hypothesis import given, strategies as st

from es_simhash.groups.table import Ids, Table
from es_simhash.mapping.rule import Grouping

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


def test_an_id_that_ends_in_nul_is_another_one():
    """The duplicate names its canonical, not itself."""
    table = Table("simhash", Grouping())
    fields = {"simhash.fingerprint": ["0" * 16]}
    table.add([{"_id": id_, "_index": "news", "fields": fields} for id_ in ("a\0", "a", "b" * 512)])
    groups = table.group()
    assert table.ids(groups.duplicates) == ["a\0", "b" * 512]
    assert set(table.ids(groups.canonical)) == {"a"}
    assert groups.names(groups.canonical) == ["a"] * 3


def test_the_order_of_hits_decides_nothing():
    """Also of documents that share an id in several indices: the first index by name has the canonical."""
    hits = [
        {"_index": index, "_id": id_, "fields": {"simhash.fingerprint": [digits]}}
        for index in ("b", "a", "c")
        for id_, digits in (("1", "0" * 16), ("2", "f" * 16))
    ]
    for number in range(24):
        table = Table("simhash", Grouping())
        for hit in random.Random(number).sample(hits, len(hits)):
            table.add([hit])
        groups = table.group()
        assert {(table.row(int(place)).index, table.row(int(place)).id) for place in groups.canonical} == {
            ("a", "1"),
            ("a", "2"),
        }
