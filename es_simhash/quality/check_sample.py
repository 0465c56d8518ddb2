"""The requests, and their order, that examine an index without writing; ``quality.health`` judges the figures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import get_args

from es_simhash.errors import IncompleteSearchError
from es_simhash.groups.read import unfilled_query
from es_simhash.hashing import Scheme, fingerprints
from es_simhash.mapping.faults import Fault
from es_simhash.mapping.fields import Fields, read_values, text_or_none
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings, resolve_index
from es_simhash.quality.health import Diagnosis, Finding, Severity, Values, judge_sample
from es_simhash.quality.read_stats import count_groups
from es_simhash.quality.sampling import SampleOptions, sample_documents
from es_simhash.quality.stats import GroupCounts
from es_simhash.removal.find_shown import find_shown
from es_simhash.removal.guard_rails import OneStays
from es_simhash.transport.answers import sentences
from es_simhash.transport.buckets import aggregate
from es_simhash.transport.protocol import Index, check_index, index_key
from es_simhash.upkeep.check import IndexCheck, check_indices

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
    Cost: a request for each 100 documents sampled, about two for every 10,000 groups that have a duplicate, and about
    ten more.
    """
    shown = index_key(check_index(index))
    checks = await check_indices(server, index)
    counts = sum(check.documents for check in checks), sum(check.fingerprinted for check in checks)
    severities: dict[str, Severity] = dict.fromkeys(_HELPLESS, "warning")
    if not all(checked.ready for checked in checks):
        mapping = [_of_mapping(checked, fault, "error") for checked in checks for fault in checked.faults]
        return Diagnosis(shown, *counts, findings=tuple(mapping))
    settings = await read_present_settings(server, index)
    ours, fields = Fields(server.prefix), settings.text_fields
    if await _are_forgotten(server, index, settings.scheme, fields):
        severities["without_fingerprint"] = "error"
    mapping = [
        _of_mapping(checked, fault, severities[fault.kind])
        for checked in checks
        for fault in checked.faults
        if fault.kind in severities
    ]
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
    judge = partial(judge_sample, index=shown, scheme=settings.scheme, text_fields=fields, prefix=server.prefix)
    findings, unread = await server.compute(judge, hits)
    in_groups, uncounted = await _judge_groups(server, index, counts[1])
    ranks = get_args(Severity)
    found = sorted([*mapping, *findings, *in_groups], key=lambda finding: ranks.index(finding.severity))
    return Diagnosis(shown, *counts, len(hits), tuple(found), (*sentences(gaps), *unread, *uncounted))


def _of_mapping(checked: IndexCheck, fault: Fault, severity: Severity) -> Finding:
    return Finding(severity, "mapping", {"index": checked.index, "fault": str(fault), "advice": fault.advice})


async def _are_forgotten(server: Port, index: Index, scheme: Scheme, fields: Sequence[str]) -> bool:
    """Return whether some of the documents without a fingerprint have text for one, as far as their text is known."""
    query = unfilled_query(fields, server.prefix)
    hits, _, _ = await sample_documents(server, index, _MISSING, query=query, text_fields=fields)
    texts = [text for hit in hits if (text := text_or_none(hit, fields)) is not None]
    return not texts or any(value is not None for value in await server.compute(fingerprints, texts, scheme=scheme))


async def _judge_groups(server: Port, index: Index, fingerprinted: int) -> tuple[list[Finding], tuple[str, ...]]:
    """Return whether groups lost their canonical or are very large, and why not all were counted."""
    try:
        groups = await count_groups(server, index)
    except IncompleteSearchError as error:
        return [], error.reasons
    found = find_large_group(groups, index, fingerprinted)
    if groups.without_canonical:
        values: Values = {"index": index_key(index), "documents": groups.lost, "groups": groups.without_canonical}
        found.append(Finding("error", "lost_canonicals", values))
    return found, ()


def find_large_group(groups: GroupCounts, index: Index, fingerprinted: int) -> list[Finding]:
    """Return the finding about the largest group, if it is so large that its documents may be no copies."""
    largest = [OneStays(group.id, group.documents - 1, fingerprinted) for group in groups.largest[:1]]
    return [
        Finding("warning", "large_group", {"index": index_key(index), "group": one.id, "documents": one.removals})
        for one in largest
        if one.is_suspicious
    ]


async def find_short_texts(server: Port, index: Index) -> list[Finding]:
    """Return the frequent texts that are so short that only their titles tell documents apart; costs three requests."""
    resolved = await resolve_index(server, index)
    shown = await find_shown(server, index, resolved, ())
    title = next((name for name, kind in shown.items() if kind == "title"), None)
    if title is None:
        return []
    texts = resolved.text_fields.all
    read = {"top_hits": {"size": _READ, "_source": [title, *texts]}}
    frequent = {"field": Fields(server.prefix).fingerprint, "size": _FREQUENT, "min_doc_count": FEWEST_SAME + 1}
    found_texts = await aggregate(server, index, (), {"texts": {"terms": frequent, "aggs": {"read": read}}})
    found: list[Finding] = []
    for bucket in found_texts["texts"]["buckets"]:
        sources = [hit.get("_source") or {} for hit in bucket["read"]["hits"]["hits"]]
        text = " ".join(str(value) for name in texts for value in read_values(sources[0], name))
        titles = [str(value).casefold() for source in sources for value in read_values(source, title)[:1]]
        different = len({*titles})
        has_many = len(titles) > FEWEST_SAME and different > MOST_TITLES * len(titles)
        if has_many and 0 < len(text.encode("utf-8", "replace")) <= SHORT_BYTES:
            options = " ".join(f"--text-field {shlex.quote(name)}" for name in (title, *texts))
            values = {"documents": bucket["doc_count"], "text": text, "titles": different, "whole": len(titles)}
            values |= {"field": title, "options": options, "index": index_key(index)}
            found.append(Finding("warning", "short_text", values))
    return found
