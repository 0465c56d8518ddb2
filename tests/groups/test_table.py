"""The table of an index: ids are whole strings, of any length, in the order of their code points."""

from itertools import permutations

import numpy as np
from hypothesis import given, strategies as st

from es_simhash.groups.table import Table
from es_simhash.mapping.rule import Grouping

# Ends in NUL, common beginnings of eight bytes and more, and any text that UTF-8 knows.
PARTS = st.sampled_from(["", "\0", "a", "a\0", "\1", "\2", "\x7f", "é", "\uffff", "\U0001f600", "https://", "12345678"])
IDS = st.lists(PARTS, max_size=5).map("".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(IDS, max_size=40))
def test_ids_are_whole_strings_in_order(ids):
    """The smallest stays, by code points, and names its group."""
    table = Table("simhash", Grouping())
    table.add([{"_id": id_, "_index": "news", "fields": {"simhash.fingerprint": ["0" * 16]}} for id_ in ids])
    assert table.ids(np.arange(len(ids))) == ids
    assert table.ids(table.order()) == sorted(ids)
    groups = table.group()
    assert groups.names(groups.canonical) == [min(ids, default="")] * len(ids)
    assert len(groups.duplicates) == max(0, len(ids) - 1)


def test_the_order_of_hits_decides_nothing():
    """Also of documents that share an id in several indices: the first index by name has the canonical."""
    hits = [
        {"_index": index, "_id": id_, "fields": {"simhash.fingerprint": [digits]}}
        for index in ("b", "a", "c")
        for id_, digits in (("1", "0" * 16), ("2", "f" * 16))
    ]
    for order in permutations(hits):
        table = Table("simhash", Grouping())
        for hit in order:
            table.add([hit])
        groups = table.group()
        assert {(table.row(int(place)).index, table.row(int(place)).id) for place in groups.canonical} == {
            ("a", "1"),
            ("a", "2"),
        }
