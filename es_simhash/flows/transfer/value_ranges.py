"""
Cuts the values of a keyword field into ranges that have about equally many documents.

Where the cuts are decides only how much work a range is, never what is in it. No range is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Call, Flow
from es_simhash.flows.transfer.answers import is_window_refused, refusal_text
from es_simhash.flows.transfer.retry import ask

__all__ = ["cut_values", "is_expensive"]

# Documents whose values are read; a range of more documents can be cut again.
_DRAWN = 1_000


def cut_values(index: Index, clauses: Sequence[Mapping[str, Any]], field: str, *, part: int) -> Flow[list[str]]:
    """
    Return values of *field* in ascending order, between which lie about *part* documents each.

    They are values of documents drawn at random among those that match all *clauses*. Cost: one search, which looks at
    each of these documents.
    """
    drawn = _DRAWN
    while True:
        body = {
            "size": drawn,
            "track_total_hits": True,
            "_source": False,
            "docvalue_fields": [field],
            "query": {
                "function_score": {
                    "query": {"bool": {"filter": list(clauses)}},
                    "random_score": {"seed": 0, "field": "_seq_no"},
                    "boost_mode": "replace",
                }
            },
        }
        try:
            answer = yield from ask(Call("search", {"index": index, "body": body}))
        except Exception as error:
            if drawn == 1 or not is_window_refused(error):
                raise
            drawn //= 2
        else:
            break
    found = answer["hits"]
    # A shard that is missing here makes the ranges larger; whoever reads them notices that it is missing.
    values = sorted(value for hit in found["hits"] for value in hit.get("fields", {}).get(field, ()))
    step = max(1, round(part * len(values) / max(1, found["total"]["value"])))
    return sorted(set(values[step::step]))


def is_expensive(refusal: BaseException) -> bool:
    """
    Return whether the server refused a range of a keyword field because ``search.allow_expensive_queries`` is false.
    """
    return "allow_expensive_queries" in refusal_text(refusal)
