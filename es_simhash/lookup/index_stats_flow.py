"""
Reads what the choice of a plan needs: the size and skew of an index, and the limits of the server.

The server supplies them, and the context remembers them. No answer depends on them: with a wrong estimate a
lookup is slower, not less exact.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_simhash.hashing import BLOCK_BITS
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.limits import IndexStats, Limits
from es_simhash.transport.answers import Gap, refusal_text
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Call, Flow, status_of

SAMPLE = 40
# Up to this distance the plan for a large and skewed index costs little more in a small one.
STATS_FROM_DISTANCE = 2

_EXPENSIVE = "allow_expensive_queries"
_ALLOWED = re.compile(r"(?:maximum of|is set to|limit of) \[?(\d+)")


def index_stats(
    context: Context, index: Index, max_distance: int | None = None, *, again: bool = False
) -> Flow[IndexStats | None]:
    """
    Return the size and skew of *index*, or ``None`` where a lookup does not need them.

    Costs two requests, once in ten minutes; with *again*, whatever is remembered. A single lookup within a small
    *max_distance* costs none, since the size of the index then decides little. If the server refuses, a million
    random fingerprints are assumed.
    """
    if max_distance is not None and max_distance <= STATS_FROM_DISTANCE:
        return None
    known = None if again else context.recall_stats(index)
    if known is None:
        try:
            known = yield from _sample(context, index)
        except Exception as error:
            if status_of(error) is None:
                raise
            known = IndexStats()
        context.learn_stats(index, known)
    return known


def _sample(context: Context, index: Index) -> Flow[IndexStats]:
    fields = Fields(context.prefix)
    body = {
        "size": SAMPLE,
        "query": {"exists": {"field": fields.fingerprint}},
        "docvalue_fields": list(fields.blocks),
        "_source": False,
        "track_total_hits": True,
    }
    answer = yield Call("search", {"index": index, "body": body})
    hits = answer["hits"]["hits"]
    documents = answer["hits"]["total"]["value"]
    sampled = {
        field: [hit["fields"][field][0] for hit in hits if field in hit.get("fields", ())] for field in fields.blocks
    }
    asked = {field: [sorted(set(terms)), *([each] for each in _repeated(terms))] for field, terms in sampled.items()}
    lines: list[Any] = []
    for field, parts in asked.items():
        for part in parts:
            lines += [{"index": index}, {"size": 0, "query": {"terms": {field: part}}, "track_total_hits": True}]
    answers = iter((yield Call("msearch", {"body": lines}))["responses"])
    lengths = []
    for field, terms in sampled.items():
        own = [next(answers) for _ in asked[field]]
        if terms and not any("error" in each for each in own):
            together, *alone = (each["hits"]["total"]["value"] for each in own)
            lengths.append(mean_length(terms, together, dict(zip(_repeated(terms), alone, strict=True))))
    # A posting list has the document's own entry, or as many entries as chance would put there.
    chance = max(documents / 2**BLOCK_BITS, 1.0)
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    return IndexStats(max(1, documents), max(1.0, mean / chance))


def _repeated(terms: Sequence[str]) -> list[str]:
    """Return the terms that several of the sampled documents have, each once."""
    return [term for term, count in Counter(terms).items() if count > 1]


def mean_length(terms: Sequence[str], together: int, alone: Mapping[str, int]) -> float:
    """
    Return the mean length of the posting lists of *terms*, one for each sampled document.

    Args:
        terms:
            A block term of each sampled document.
        together:
            Number of documents with any of the terms.
        alone:
            Number of documents with each term that is repeated among *terms*. It cannot be told from the sample: a
            term of two documents out of 40 may be that of a twentieth of the index, or of these two alone.

    The other terms share what is left.
    """
    rest = len(set(terms)) - len(alone)
    ordinary = max(1.0, (together - sum(alone.values())) / rest) if rest else 0.0
    return sum(alone.get(term, ordinary) for term in terms) / len(terms)


def limits_after_refusal(
    limits: Limits, refusal: BaseException | Mapping[str, Any] | Iterable[Gap], *, scripted: bool
) -> Limits | None:
    """
    Return smaller limits, learnt from a refused search; ``None`` if the search was refused for another reason.

    Args:
        limits:
            The limits that the refused search was planned by.
        refusal:
            The client's exception, the ``error`` of one search of a batch, or the gaps of an answer.
        scripted:
            Whether the refused search had a script.
    """
    text = refusal_text(refusal)
    if scripted and limits.scripts and ("script" in text or _EXPENSIVE in text or "painless" in text):
        return replace(limits, scripts=False)
    if limits.skims and "Cannot search on field" in text:  # of our fields, only the fingerprint may be mapped so
        return replace(limits, skims=False)
    if "max_terms_count" in text:
        return replace(limits, max_terms=_smaller(text, limits.max_terms)) if limits.max_terms > 1 else None
    if re.search("too_many_(nested_)?clauses|max_?clause_?count", text, re.IGNORECASE):
        return replace(limits, max_clauses=_smaller(text, limits.max_clauses)) if limits.max_clauses > 0 else None
    return None


def _smaller(text: str, current: int) -> int:
    """Return the maximum that the message names, if it is below *current*, else half of *current*."""
    named = [int(number) for number in _ALLOWED.findall(text) if int(number) < current]
    return min(named, default=current // 2)
