"""
Tags documents that add nothing with the id of the document that contains them (``contained_in``).

A tag rests on a plan of removal; tags of an earlier run that the present plan does not confirm are removed. A
tag is right until one of the two texts changes; ``ingest``, backfill and follow remove it when they change a
text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from es_simhash.groups.reconcile import read_tags, untag
from es_simhash.groups.recorded import refuse_untaggable
from es_simhash.mapping.fields import CONTAINED_IN
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import resolve_index
from es_simhash.mapping.shards import reading_primaries
from es_simhash.removal.delete import read_planned
from es_simhash.removal.make_plan import make_plan
from es_simhash.removal.may_delete import state_of
from es_simhash.removal.plan_header import PlanHeader
from es_simhash.removal.plan_options import PlanOptions
from es_simhash.removal.present import read_decisive
from es_simhash.removal.records import DuplicateKind, DuplicateResult, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter
from es_simhash.transport.protocol import Index, Key, Progress, noting, were
from es_simhash.transport.retry import refresh
from es_simhash.writes.bulk import CONFLICT, MISSING, rewrite
from es_simhash.writes.operations import Outcome, refuse_hindered
from es_simhash.writes.targets import refuse_updates

BATCH = 200


async def tag_contained(
    server: Port, index: Index, options: PlanOptions, *, dry_run: bool
) -> AsyncGenerator[Sequence[DuplicateResult], None]:
    """
    Tag the documents of *index* that add nothing, and emit a :class:`DuplicateResult` each; in a dry run, only emit.
    A tag is written only if both documents are as they were when they were compared. Documents that were tagged before
    and are not in the plan any more are emitted last, as ``"untagged"``. Raises MappingError if an index does not map
    the tag.
    """
    server = await reading_primaries(server, index)
    resolved = await resolve_index(server, index)
    if not dry_run:
        await refuse_updates(server, index, resolved.mappings)
        refuse_untaggable(resolved, prefix=server.prefix)
    tagged: set[Key] = set()
    with await server.compute(PlanWriter, None) as writer:
        made, header = await make_plan(server, index, writer, options)
        batches = writer.batches(BATCH)
        done = 0
        with noting(lambda: were(0 if dry_run else len(tagged), "tagged")):
            while batch := await server.compute(next, batches, None):
                lines = list(batch.values())
                records = [DuplicateResult.of(line, "would tag") for line in lines] if dry_run else None
                if records is None:
                    records = await _tag(server, lines, header)
                tagged |= {Key(each.index, each.id, each.routing) for each in records if each.is_done}
                for record in records:
                    yield [record]
                done += len(lines)
                server.tell(Progress(done, made.count, "tagging documents"))
    found = await read_tags(server, index)
    wrong = {key: tag for key, tag in found.items() if key not in tagged}
    for begin in range(0, len(wrong), BATCH):
        part = dict(list(wrong.items())[begin : begin + BATCH])
        for record in await _untag(server, part, dry_run=dry_run):
            yield [record]
    if not dry_run:
        await refresh(server, index)


async def _tag(server: Port, lines: Sequence[PlannedRemoval], header: PlanHeader) -> list[DuplicateResult]:
    """Tag the documents of *lines*, if they and those that contain them are as they were; return what was done."""
    prefix = header.prefix
    decided_by = await read_decisive(
        server, header, [each for line in lines for each in (line.document, line.canonical)]
    )
    items = await read_planned(server, [each.canonical for each in lines])
    wanted = {each.document.key: each for each in lines}
    kept: dict[Key, DuplicateKind] = {}
    for each in lines:
        state = state_of(each.canonical, items[each.canonical.key], decided_by)
        if state != "same":
            kept[each.document.key] = _KINDS[state]

    def change(key: Key, found: Mapping[str, Any]) -> tuple[str, Any] | None:
        line = wanted[key]
        if state_of(line.document, found, decided_by) != "same":
            kept[key] = "changed"
            return None
        own = found.get("_source", {}).get(prefix) or {}
        container = line.canonical.id
        return None if own.get(CONTAINED_IN) == container else ("update", {"doc": {prefix: {CONTAINED_IN: container}}})

    places = [key for key in wanted if key not in kept]
    fields = {name for each in decided_by.values() for name in each}
    outcomes = await rewrite(server, places, change, source=sorted({prefix, *fields}))
    refuse_hindered(outcomes)
    done = dict(zip(places, outcomes, strict=True))
    records = []
    for each in lines:
        kind, outcome, detail = kept.get(each.document.key), done.get(each.document.key), ""
        if kind is None and outcome is not None and not outcome.is_done:
            kind, detail = _kind_of(outcome), str(outcome.error)
        records.append(DuplicateResult.of(each, "tagged" if kind is None else "kept", kind, detail))
    return records


_KINDS: dict[str, DuplicateKind] = {
    "changed": "canonical_changed",
    "missing": "canonical_missing",
    "no_index": "index_replaced",
    "unreadable": "unreadable",
}


def _kind_of(outcome: Outcome) -> DuplicateKind:
    if outcome.status == MISSING:
        return "missing"
    return "conflict" if outcome.status == CONFLICT else "refused"


async def untag_removed(server: Port, index: Index, names: Sequence[str], ids: Sequence[str]) -> list[DuplicateResult]:
    """Remove tags that name one of the removed *ids*: what stood in these documents must be found again."""
    records: list[DuplicateResult] = []
    for begin in range(0, len(ids), BATCH):
        found = await read_tags(server, index, ids=ids[begin : begin + BATCH], names=names)
        records += await _untag(server, found, dry_run=False)
    return records


async def _untag(server: Port, tags: Mapping[Key, str], *, dry_run: bool) -> list[DuplicateResult]:
    """Remove *tags*, and return what was done; a document that is gone, or tagged otherwise, is left alone."""
    if dry_run:
        return [_untagged(key, tag, "would untag") for key, tag in tags.items()]

    records = []
    outcomes = await untag(server, tags)
    refuse_hindered(outcomes.values())
    for key, outcome in outcomes.items():
        if outcome.is_done:
            records.append(_untagged(key, tags[key], "untagged"))
        elif outcome.status != MISSING:
            records.append(_untagged(key, tags[key], "kept", _kind_of(outcome), str(outcome.error)))
    return records


def _untagged(key: Key, tag: str, action: Any, kind: DuplicateKind | None = None, detail: str = "") -> DuplicateResult:
    return DuplicateResult(key.id, key.index, tag, "", None, action, kind, detail, routing=key.routing)
