"""
Reads a random sample of the documents of an index, so that not all of them have to be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.arguments import check_count
from es_simhash.mapping.texts_flow import search_texts
from es_simhash.transport.answers import Gap, find_gaps, is_window_refused
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Flow
from es_simhash.transport.view import Hits

LARGEST_SAMPLE = 10_000
# Documents fetched at once; with texts of a few thousand characters, a few megabytes.
_PAGE = 1_000


def check_sample(sample: Any) -> int:
    """
    Return *sample*, a number of documents, if a sample can have that size.

    Raises:
        TypeError: If it is not an int.
        InvalidInputError: If it is not 1 to 10,000.
    """
    return check_count("sample", sample, 1, LARGEST_SAMPLE)


def check_seed(seed: Any) -> int:
    """
    Return *seed*, which chooses a sample, if servers take it.

    Raises:
        TypeError: If it is not an int.
        InvalidInputError: If it is not 0 to 2**31 - 1.
    """
    return check_count("seed", seed, 0)


def sample_documents(
    index: Index,
    size: int,
    *,
    query: Mapping[str, Any],
    text_fields: Sequence[str],
    source: Sequence[str] = (),
    docvalue_fields: Sequence[str] = (),
    seed: int = 0,
) -> Flow[tuple[Hits, list[Gap]]]:
    """
    Return a random sample of up to *size* documents that match *query*, and why some could not be sampled.

    The same seed returns the same documents while the index does not change. Fewer documents are returned if fewer
    match, or if the ``max_result_window`` of the index is smaller than *size*.
    """
    hits: list[Mapping[str, Any]] = []
    gaps: dict[Gap, None] = {}
    page = min(size, _PAGE)
    while len(hits) < size:
        wanted = min(page, size - len(hits))
        body = {
            "from": len(hits),
            "size": wanted,
            "query": {
                "function_score": {
                    "query": dict(query),
                    "random_score": {"seed": seed, "field": "_seq_no"},
                    "boost_mode": "replace",
                }
            },
            "docvalue_fields": list(docvalue_fields),
        }
        try:
            answer = yield from search_texts(index, body, text_fields, source=source)
        except Exception as error:
            if not is_window_refused(error):
                raise
            if page == 1 or hits:
                break
            page //= 2
            continue
        gaps |= dict.fromkeys(find_gaps(answer))
        found = answer["hits"]["hits"]
        hits += found
        if len(found) < wanted:
            break
    return hits, list(gaps)
