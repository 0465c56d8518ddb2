"""Reads the texts from which ``quality.learn`` learns template text: of an index, a hot block term or a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_count, check_field, check_fields, check_number
from es_simhash.dashboards.subject import find_field_faults
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.mapping.context import Context
from es_simhash.mapping.documents import text_or_none
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.resolve_flow import agree, resolve_index
from es_simhash.quality.sampling_flow import check_sample, check_seed, sample_documents
from es_simhash.transport.answers import sentences
from es_simhash.transport.names import Index, check_index, index_key
from es_simhash.transport.protocol import Compute, Flow

if TYPE_CHECKING:
    from es_simhash.quality.health import Finding, FindingKind, Severity, Values
    from es_simhash.quality.learn import Boilerplate


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
    from es_simhash.quality import learn  # noqa: PLC0415 -- loads numpy

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
            raise InvalidInputError(f"{fault}: give the full name of one field in the mapping")
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


SMALLEST_GROUP = 10
"""Documents of the smallest group whose texts are examined."""


# Documents of a block term or a group that are read.
_READ = 200


def find_hot_templates(
    index: Index, settings: IndexSettings, fields: Sequence[str], findings: Sequence[Finding]
) -> Flow[list[Finding]]:
    """Return for each of *findings* about hot block terms the passage that their documents share, if there is one."""
    found: list[Finding] = []
    shown: set[Any] = set()
    for each in findings:
        if each.kind not in ("hot", "hot_copies"):
            continue
        field, term = str(each.values["field"]), each.values["term"]
        values: Values = {"index": index_key(index), "field": field, "term": term}
        answer = yield from _examine(index, settings, fields, {field: term}, "hot_template", each.severity, values)
        # The documents of one template are in a hot term of each block.
        found += [finding for finding in answer if finding.values["text"] not in shown]
        shown |= {finding.values["text"] for finding in answer}
    return found


def find_group_template(
    index: Index, settings: IndexSettings, fields: Sequence[str], group_field: str, largest: tuple[str, int] | None
) -> Flow[list[Finding]]:
    """
    Return the passage that the members of the *largest* group share although their contents differ, if
    there is one.
    """
    if largest is None or largest[1] < SMALLEST_GROUP:
        return []
    group, documents = largest
    values: Values = {"index": index_key(index), "group": group, "documents": documents}
    return (yield from _examine(index, settings, fields, {group_field: group}, "group_template", "warning", values))


def _examine(
    index: Index,
    settings: IndexSettings,
    fields: Sequence[str],
    term: Mapping[str, Any],
    kind: FindingKind,
    severity: Severity,
    values: Values,
) -> Flow[list[Finding]]:
    if not fields:
        return []
    hits, _ = yield from sample_documents(index, _READ, query={"term": dict(term)}, text_fields=fields)

    def judge() -> list[Finding]:
        from es_simhash.quality.learn import judge_template  # noqa: PLC0415 -- loads numpy

        texts = [text for hit in hits if (text := text_or_none(hit, fields)) is not None]
        return judge_template(kind, texts, scheme=settings.scheme, severity=severity, values=values)

    found: list[Finding] = yield Compute(judge)
    return found
