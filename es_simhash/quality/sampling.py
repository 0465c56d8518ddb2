"""Reads samples of an index: documents with texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.arguments import Count, check_options, option
from es_simhash.lookup.documents import fetch_hits
from es_simhash.mapping.fields import text_or_none
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Progress, document_key

LARGEST_SAMPLE = 10_000
MOST_LETTERS = 10_000_000
"""A sample ends once its texts have so many letters; to measure presets takes some 4 seconds for each million."""

# Documents fetched at once: texts may be long.
_PAGE = 100


def sample_option(default: int) -> Any:
    """Return the option for how many documents are drawn."""
    return option(default, Count(1, LARGEST_SAMPLE))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """
    Which documents are drawn, checked.

    Args:
        sample:
            Documents drawn at random, 1 to 10,000; all if there are fewer.
        seed:
            Chooses what is drawn at random.
    """

    sample: int = sample_option(1_000)
    seed: int = option(0, Count(0))  # to 2**31 - 1, which servers take

    def __post_init__(self) -> None:
        check_options(self)


async def sample_documents(
    server: Port,
    index: Index,
    size: int,
    *,
    query: Mapping[str, Any],
    text_fields: Sequence[str],
    source: Sequence[str] = (),
    docvalue_fields: Sequence[str] = (),
    seed: int = 0,
    with_text: bool = False,
) -> tuple[Hits, list[Gap | str], int]:
    """
    Return up to *size* random documents that match *query*, why there are not more, and how many were drawn.
    The same seed returns the same documents while the index does not change. Fewer are returned if fewer match, or once
    they have :data:`MOST_LETTERS`. *with_text*: documents are drawn until so many have a text: no query knows an empty
    text, or the texts that a mapping hides.
    All are drawn by one search: copies of a shard may order equal scores otherwise from page to page.
    """
    number = LARGEST_SAMPLE if with_text else size
    drawing = {"query": dict(query), "random_score": {"seed": seed, "field": "_seq_no"}, "boost_mode": "replace"}
    body = {"size": number, "query": {"function_score": drawing}, "_source": False}
    answer = await server.patient.search(index=index, body=body)
    keys = [document_key(hit) for hit in answer["hits"]["hits"]]
    reasons: list[Gap | str] = [*find_gaps(answer)]
    hits: list[Mapping[str, Any]] = []
    drawn = letters = 0
    for start in range(0, len(keys), _PAGE):
        server.tell(Progress(len(hits), min(size, len(keys)), "sampling texts"))
        part = keys[start : start + _PAGE]
        found, missing = await fetch_hits(
            server.patient, index, part, text_fields=text_fields, source=source, docvalue_fields=docvalue_fields
        )
        reasons += [gap for gap in dict.fromkeys(missing.values()) if gap is not None and gap not in reasons]
        for drawn, key in enumerate(part, start + 1):
            hit = found.get(key)
            text = None if hit is None else text_or_none(hit, text_fields)
            letters += len(text or "")
            if hit is not None and (text or not with_text):
                hits.append(hit)
            if len(hits) == size:
                return hits, reasons, drawn
        if letters >= MOST_LETTERS and drawn < len(keys):
            reasons.append(f"the sample ends at {len(hits):,} documents: they have {letters:,} letters")
            break
    return hits, reasons, drawn
