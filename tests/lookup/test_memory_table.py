"""The table of fingerprinted documents: what its groups depend on, and what they do not."""

from itertools import permutations

from es_simhash.groups.table import Table
from es_simhash.mapping.rule import Grouping


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
