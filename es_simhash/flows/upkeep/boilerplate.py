"""
Learns the template text of an index from a sample of its documents. Reads only; ``quality.boilerplate`` judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_count, check_field, check_fields, check_number
from es_simhash.dashboards.mapping_faults import find_field_faults
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.flows.context import Context, Index, check_index
from es_simhash.flows.protocol import Compute, Flow
from es_simhash.flows.resolve import agree, resolve_index
from es_simhash.flows.transfer.answers import sentences
from es_simhash.flows.upkeep.sampling import check_sample, check_seed, sample_documents
from es_simhash.index.documents import text_or_none

if TYPE_CHECKING:
    from es_simhash.quality.boilerplate.learned import Boilerplate

__all__ = ["learn_boilerplate"]


def learn_boilerplate(
    context: Context,
    index: Index,
    sample: int,
    *,
    text_field: str | Sequence[str],
    source_field: str | None,
    min_documents: int,
    min_share: float,
    seed: int,
) -> Flow[Boilerplate]:
    """
    Return the passages that many sampled documents of *index* share although their contents differ.

    The index does not need our fields; without them, the caller must name the text field.

    Raises:
        InvalidInputError: If an argument cannot be used, or the text field is unknown.
    """
    from es_simhash.quality.boilerplate import learn  # noqa: PLC0415 -- loads numpy

    check_sample(sample)
    check_seed(seed)
    check_count("min_documents", min_documents, 2)
    check_number("min_share", min_share, advice="a share of the documents from 0 to 1, such as 0.01")
    fields = check_fields("text_field", text_field, may_lack=True)
    if source_field is not None:
        check_field("source_field", source_field)
    resolved = yield from resolve_index(context, check_index(index))
    scheme = None
    try:
        settings = agree(resolved, context)
    except MappingError:
        pass  # no fingerprints yet
    else:
        fields = fields or settings.text_fields
        scheme = None if settings.scheme.name == "weighted" else settings.scheme
    if not fields:
        raise InvalidInputError(f"index {shorten(index)} does not record its text field: name the text field")
    for fault in find_field_faults(None, source_field, None, resolved.mappings):
        if fault.is_fatal:
            raise InvalidInputError(f"{fault}: give a field as it is mapped")
    query = {"bool": {"should": [{"exists": {"field": field}} for field in fields]}}
    sources = [source_field] if source_field else []
    hits, gaps = yield from sample_documents(
        index, sample, query=query, text_fields=fields, docvalue_fields=sources, seed=seed
    )

    def judge() -> Boilerplate:
        texts = [text_or_none(hit, fields) or "" for hit in hits]
        names = [_source_of(hit, source_field) for hit in hits]
        return learn.learn_boilerplate(
            texts, sources=names, scheme=scheme, min_documents=min_documents, min_share=min_share
        )

    found: Boilerplate = yield Compute(judge)
    return replace(found, reasons=tuple(sentences(gaps)))


def _source_of(hit: Mapping[str, Any], source_field: str | None) -> str | None:
    """Return the first value of the source field; ``None`` where there is none."""
    values = (hit.get("fields") or {}).get(source_field) if source_field else None
    return str(values[0]) if values else None
