"""The requests, and their order, that examine an index without writing; ``quality.health`` judges the figures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.groups.read import unfilled_query
from es_simhash.mapping.fields import Fields, read_values
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings, resolve_index
from es_simhash.quality.health import (
    Diagnosis,
    Finding,
    Values,
    judge_blocks,
    judge_groups,
    judge_missing,
    judge_sample,
)
from es_simhash.quality.read_stats import count_groups
from es_simhash.quality.sampling import SampleOptions, sample_documents
from es_simhash.removal.find_shown import find_shown
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, check_index, index_key
from es_simhash.upkeep.check import check_indices

# Documents without fingerprint that are read, to tell those without features from those forgotten.
_MISSING = 200
# Faults of an index whose documents cannot be updated: lookups work, but what is missing cannot be filled in.
_HELPLESS = ("no_source", "partial_source")
# Of a short text that says nothing, such as "No description available.", in UTF-8; more documents than these have it,
# and their titles differ in more than this share.
SHORT_BYTES, FEWEST_SAME, MOST_TITLES = 100, 2, 0.5
# Frequent texts that are looked at, and documents read of each.
_FREQUENT, _READ = 10, 20


async def diagnose(server: Port, index: Index, options: SampleOptions) -> Diagnosis:
    """
    Return the faults of the fingerprints of *index*, and notes about them; write nothing.
    Cost: a request for each 1,000 documents sampled, about two for every 10,000 groups that have a duplicate, and
    about ten more.
    """
    shown = index_key(check_index(index))
    checks = await check_indices(server, index)
    documents = sum(check.documents for check in checks)
    fingerprinted = sum(check.fingerprinted for check in checks)
    mapping = [
        Finding(
            "warning" if checked.ready else "error",
            "mapping",
            {"index": checked.index, "fault": str(fault), "advice": fault.advice},
        )
        for checked in checks
        for fault in checked.faults
        if not checked.ready or fault.kind in _HELPLESS
    ]
    if not checks or any(finding.severity == "error" for finding in mapping):
        return Diagnosis(shown, documents, fingerprinted, findings=tuple(mapping))
    settings = await read_present_settings(server, index)
    fields = options.fields(settings)
    hits, gaps, findings, unread = await _examine(server, index, settings, options, fields)
    missing = await _find_missing(server, index, settings, documents - fingerprinted, fields)
    frequent, uncounted = await _count_terms(server, index, fingerprinted)
    lost, uncounted_groups = await _find_lost(server, index)
    ranks = {"error": 0, "warning": 1, "note": 2}
    return Diagnosis(
        shown,
        documents,
        fingerprinted,
        len(hits),
        tuple(sorted([*mapping, *findings, *missing, *frequent, *lost], key=lambda finding: ranks[finding.severity])),
        (*sentences([*gaps, *uncounted]), *unread, *uncounted_groups),
    )


async def find_large_group(server: Port, index: Index) -> list[Finding]:
    """Return the finding about the largest group, if it is so large that its documents may be no copies."""
    documents, _ = await count_documents(server, index, {"exists": {"field": Fields(server.prefix).fingerprint}})
    findings, _ = await _count_terms(server, index, documents)
    return [finding for finding in findings if finding.kind == "large_group"]


async def find_short_texts(server: Port, index: Index) -> list[Finding]:
    """Return the frequent texts that are so short that only their titles tell documents apart; costs 13 requests."""
    resolved = await resolve_index(server, index)
    shown = await find_shown(server, index, resolved, ())
    title = next((name for name, kind in shown.items() if kind == "title"), None)
    if title is None:
        return []
    fingerprint, texts = Fields(server.prefix).fingerprint, resolved.text_fields.all
    aggs = {"texts": {"terms": {"field": fingerprint, "size": _FREQUENT, "min_doc_count": FEWEST_SAME + 1}}}
    answer = await server.patient.search(index=index, body={"size": 0, "aggs": aggs})
    found: list[Finding] = []
    for bucket in answer["aggregations"]["texts"]["buckets"]:
        body = {"query": {"term": {fingerprint: bucket["key"]}}, "size": _READ, "_source": [title, *texts]}
        hits = (await server.patient.search(index=index, body=body))["hits"]["hits"]
        read = [hit.get("_source") or {} for hit in hits]
        text = " ".join(str(value) for name in texts for value in read_values(read[0], name)) if read else ""
        titles = [str(value).casefold() for source in read for value in read_values(source, title)[:1]]
        different = len({*titles})
        has_many = len(titles) > FEWEST_SAME and different > MOST_TITLES * len(titles)
        if has_many and 0 < len(text.encode("utf-8", "replace")) <= SHORT_BYTES:
            options = " ".join(f"--text-field {shlex.quote(name)}" for name in (title, *texts))
            values = {"documents": bucket["doc_count"], "text": text, "titles": different, "whole": len(titles)}
            values |= {"field": title, "options": options, "index": index_key(index)}
            found.append(Finding("warning", "short_text", values))
    return found


async def _examine(
    server: Port, index: Index, settings: IndexSettings, options: SampleOptions, fields: Sequence[str]
) -> tuple[Hits, list[Gap | str], list[Finding], list[str]]:
    ours = Fields(server.prefix)
    hits, gaps, _ = await sample_documents(
        server,
        index,
        options.sample,
        query={"exists": {"field": ours.fingerprint}},
        text_fields=fields,
        source=[server.prefix],
        docvalue_fields=[ours.fingerprint, *ours.blocks],
        seed=options.seed,
    )
    shown = index_key(index)
    judge = partial(judge_sample, index=shown, scheme=settings.scheme, text_fields=fields, prefix=server.prefix)
    findings, unread = await server.compute(judge, hits)
    return hits, gaps, findings, unread


async def _find_missing(
    server: Port, index: Index, settings: IndexSettings, missing: int, fields: Sequence[str]
) -> list[Finding]:
    if missing <= 0:
        return []
    hits: Hits = []
    # Those with a text before those without: only these can have been forgotten.
    for texts in (fields, ()) if fields else ((),):
        query = unfilled_query(texts, server.prefix)
        hits, _, _ = await sample_documents(server, index, _MISSING, query=query, text_fields=fields)
        if hits:
            missing, _ = await count_documents(server, index, query)
            break
    judge = partial(judge_missing, index=index_key(index), scheme=settings.scheme, text_fields=fields)
    findings: list[Finding] = await server.compute(judge, hits, missing)
    return findings


async def _find_lost(server: Port, index: Index) -> tuple[list[Finding], tuple[str, ...]]:
    """Return whether documents name a canonical that is not there, and why not all were counted."""
    try:
        groups = await count_groups(server, index)
    except IncompleteSearchError as error:
        return [], error.reasons
    if not groups.without_canonical:
        return [], ()
    values: Values = {"index": index_key(index), "documents": groups.lost, "groups": groups.without_canonical}
    return [Finding("error", "lost_canonicals", values)], ()


async def _count_terms(server: Port, index: Index, fingerprinted: int) -> tuple[list[Finding], list[Gap]]:
    """Return the findings about block terms and the largest group, and why not all were counted."""
    ours = Fields(server.prefix)
    queries: dict[str, dict[str, Any]] = {name: {"match_all": {}} for name in ours.blocks}
    queries[ours.group] = {"exists": {"field": ours.duplicate_of}}
    aggs = {
        name: {"filter": query, "aggs": {"most": {"terms": {"field": name, "size": 1}}}}
        for name, query in queries.items()
    }
    answer = await server.patient.search(index=index, body={"size": 0, "aggs": aggs})
    found = answer.get("aggregations") or {}
    counts = {
        name: [(bucket["key"], bucket["doc_count"]) for bucket in counted["most"]["buckets"]]
        for name, counted in found.items()
    }
    largest = judge_groups(counts.pop(ours.group, ()), fingerprinted, index=index_key(index))
    # OpenSearch calls it an early end when it counts terms without looking at documents.
    blocks = judge_blocks(counts, fingerprinted, index=index_key(index))
    return blocks + largest, find_gaps(answer, ignore=["terminated_early"])
