"""
Reads texts of documents that share a hot block term or are one large group, to see whether a template is the cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from es_simhash.flows.context import Index, index_key
from es_simhash.flows.protocol import Compute, Flow
from es_simhash.flows.upkeep.sampling import sample_documents
from es_simhash.index.documents import text_or_none
from es_simhash.index.meta import IndexSettings

if TYPE_CHECKING:
    from es_simhash.quality.health import Finding, Severity, Values
    from es_simhash.quality.health_words import FindingKind

__all__ = ["SMALLEST_GROUP", "find_group_template", "find_hot_templates"]

SMALLEST_GROUP = 10
"""Documents of the smallest group whose texts are examined."""

# Documents of a block term or a group that are read.
_READ = 200


def find_hot_templates(
    index: Index, settings: IndexSettings, fields: Sequence[str], findings: Sequence[Finding]
) -> Flow[list[Finding]]:
    """
    Return for each of *findings* about hot block terms the passage that their documents share, if there is one.
    """
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
    Return the passage that the members of the *largest* group share although their contents differ, if there is one.
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
        from es_simhash.quality.boilerplate.finding import judge_template  # noqa: PLC0415 -- loads numpy

        texts = [text for hit in hits if (text := text_or_none(hit, fields)) is not None]
        return judge_template(kind, texts, scheme=settings.scheme, severity=severity, values=values)

    found: list[Finding] = yield Compute(judge)
    return found
