"""Reads the texts of two documents, and explains why they are near-duplicates, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from es_simhash.arguments import check_count, check_name
from es_simhash.hashing import Scheme
from es_simhash.lookup.options import Verification
from es_simhash.lookup.verify_flow import fetch_text
from es_simhash.mapping.context import Context
from es_simhash.mapping.resolve_flow import read_index_settings
from es_simhash.transport.names import Index, check_index
from es_simhash.transport.protocol import Compute, Flow

if TYPE_CHECKING:
    from es_simhash.quality.explain_texts import Explanation


def explain_documents(
    context: Context, index: Index, first: str, second: str, text_field: str | Sequence[str], max_changes: int
) -> Flow[Explanation]:
    """Return how the documents with the ids *first* and *second* differ; costs two searches."""
    check_index(index)
    check_name("first", first, wanted="the id of a document")
    check_name("second", second, wanted="the id of a document")
    check_count("max_changes", max_changes, 0)
    verification = Verification(text_field=text_field)
    settings = yield from read_index_settings(context, index)
    texts = []
    for each in (first, second):
        texts.append((yield from fetch_text(index, each, settings=settings, verification=verification)))
    found: Explanation = yield Compute(_explain, (*texts, settings.scheme, max_changes))
    return found


def _explain(first: str, second: str, scheme: Scheme, max_changes: int) -> Explanation:
    from es_simhash.quality.explain_texts import explain  # noqa: PLC0415 - loads numpy

    return explain(first, second, scheme=scheme, max_changes=max_changes)
