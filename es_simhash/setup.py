"""
Makes an index that exists ready: fields, preset, grouping, fingerprints, groups, in this order.

Every step is a flow of ``upkeep``, ``quality`` or ``groups``, and is left out where it is done already, so that a run
that was interrupted goes on. What is recorded decides: a recorded grouping or distance is never changed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from es_simhash.arguments import check_field, check_fields
from es_simhash.errors import InvalidInputError, MappingError, count, shorten
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.read import unfilled_by_index
from es_simhash.groups.reconcile import Reconciled, reconcile
from es_simhash.groups.recorded import field_kinds, settle_grouping
from es_simhash.hashing import get_scheme
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.faults import find_group_faults
from es_simhash.mapping.meta import IndexSettings, is_marked
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.user_fields import may_hold
from es_simhash.quality.check_sample import find_large_group, find_short_texts
from es_simhash.quality.health import Finding
from es_simhash.quality.read_stats import count_groups
from es_simhash.quality.tune import PresetFigures, TuneOptions, Tuning, tune
from es_simhash.texts.measures import DEFAULT_PRESET, PRESETS
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.conversation import refresh
from es_simhash.transport.protocol import Index, check_index, index_key, noting
from es_simhash.upkeep.backfill import BackfillOptions, finish_backfill
from es_simhash.upkeep.needed import BackfillProgress
from es_simhash.upkeep.put_fields import put_mapping, refuse_impossible, with_our_fields
from es_simhash.writes.targets import prepare_targets, refuse_updates

SAMPLE = 500
"""Texts that are drawn to choose a preset."""

FEW = 50
"""With fewer texts than these nothing is measured well enough to choose a stricter preset than the widest."""

WIDEST = DEFAULT_PRESET.name
"""The preset where nothing is measured: that of an index without a record."""

# Features other than those of the presets, such as keywords, find texts that were edited much.
_OTHER_FEATURES = replace(PRESETS["edited"], scheme="", max_distance=DEFAULT_PRESET.max_distance)

Part = Literal["fields", "grouping", "max_distance"]


@dataclass(frozen=True, slots=True)
class Setup:
    """
    What :meth:`SimHashClient.setup` recorded, found and did.

    Attributes:
        index:
            The name that was given.
        indices:
            The concrete indices behind it.
        text_fields:
            Fields that the text comes from.
        scheme:
            Identifier of the scheme.
        max_distance:
            Distance in bits of lookups that give none.
        grouping:
            How documents are grouped, as the mapping records it.
        preset:
            The preset whose distance and comparison of texts the grouping has; ``None`` where it has those of none.
        recorded:
            What this run recorded, or in a dry run would: ``"fields"``, ``"grouping"``, ``"max_distance"``.
        documents:
            Number of documents at the beginning.
        missing:
            How many of these had a text, perhaps an empty one, and no fingerprint.
        sampled:
            Number of texts that were drawn to measure presets; 0 where the recorded grouping is that of a preset, or
            the index is empty. Fewer than 50 are too few.
        measured:
            What *preset*, or where that is ``None`` the recommended one, finds of edited copies of these texts.
        presets:
            The same of every preset; empty where nothing was measured.
        notes:
            Why some documents could not be drawn or counted, when the texts were measured; how many were too short to
            compare; steps before features that find more copies. ``html`` is chosen where no scheme is recorded or
            asked for; ``links`` is for you to choose: posts that differ in their links alone are then one.
        findings:
            A group of very many documents, as :meth:`SimHashClient.check_sample` finds it, and a short text of many
            titles: what speaks against removing duplicates before somebody has looked.
        filled:
            The last report of the backfill, with the first 100 failures of all, or what it would report; ``None`` in a
            dry run of an index without fingerprints, unless documents may have a field of their own there.
        groups:
            What grouping found and rewrote; ``None`` in a dry run that would change fingerprints or the record first.
        outside:
            How many documents said, at the beginning, that they are duplicates of one that is not behind *index*: it is
            deleted, or in an index that was grouped together with these. They are grouped anew without it.
        rollover:
            What the next rollover of an alias or data stream needs so that its index has the fields; empty if nothing.
    """

    index: str
    indices: tuple[str, ...]
    text_fields: tuple[str, ...]
    scheme: str
    max_distance: int
    grouping: Mapping[str, Any]
    preset: str | None
    recorded: tuple[Part, ...]
    documents: int
    missing: int
    sampled: int = 0
    measured: PresetFigures | None = None
    presets: tuple[PresetFigures, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    filled: BackfillProgress | None = None
    groups: Reconciled | None = None
    outside: int = 0
    rollover: str = ""

    @property
    def changed(self) -> int:
        """How many writes gave documents another fingerprint or another group, or in a dry run would."""
        return (self.filled.changed if self.filled else 0) + (self.groups.changed if self.groups else 0)

    @property
    def rule(self) -> str:
        """The rule that is recorded, in words."""
        return str(Grouping.from_dict(self.grouping))

    @property
    def misses(self) -> str:
        """What the rule leaves apart that the default finds; else nothing."""
        return Grouping.from_dict(self.grouping).misses

    @property
    def unmeasured(self) -> str:
        """Why the texts did not choose the preset, if they were too few; else nothing."""
        if self.sampled >= FEW or (self.documents and not self.presets):
            return ""
        return f"{count(self.sampled, 'text')}, and {FEW} are needed; {WIDEST} is the preset for few texts"

    @property
    def is_already(self) -> bool:
        """Whether there was nothing to do: everything was recorded, filled and grouped."""
        return self.filled is not None and not self.recorded and not self.changed and self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether every document with a text has its fingerprint and its group; a second run does what is left."""
        return bool(self.groups and self.filled and self.is_settled and not self.filled.failed)

    @property
    def is_settled(self) -> bool:
        """Whether others changed documents so seldom that each step saw the end of it."""
        return all(report is None or report.is_settled for report in (self.filled, self.groups))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        findings = [finding.to_dict() for finding in self.findings]
        return asdict(self) | {
            "findings": findings,
            "is_already": self.is_already,
            "is_complete": self.is_complete,
        }


@dataclass(frozen=True, slots=True)
class _Wanted:
    """
    What is to be recorded: the indices as they will be, their *grouping* and how it is asked for, the indices that lack
    each part, and the measurement.
    """

    resolved: Resolved
    request: GroupingRequest
    grouping: Grouping
    lacking: Mapping[Part, list[str]]
    tuning: Tuning | None
    measured: PresetFigures | None


async def setup(
    server: Port,
    index: Index,
    text_field: str | Sequence[str],
    time_field: str | None,
    request: GroupingRequest,
    *,
    dry_run: bool,
) -> Setup:
    """
    Record fields, grouping and distance of *index*, fill and group its documents; in a dry run, say what that would be.
    All that can be refused is refused before the first write. The grouping is recorded before the distance, and both
    before a document is written: so a run that goes on has the settings of the one that was interrupted.
    """
    named = check_fields("text_field", text_field, may_lack=True)
    if time_field is not None:
        if request.canonical is not None:
            raise InvalidInputError("time_field is a canonical order: give time_field or canonical, not both")
        request = replace(request, canonical=check_field("time_field", time_field))
    resolved = await resolve_index(server, check_index(index))
    await refresh(server, index)
    documents = await count_whole(server.patient, index)
    wanted = await _decide(server, index, resolved, named, request, documents=documents)
    agreed = agree(wanted.resolved, server.context)
    with_fingerprint = 0
    if resolved.settings_of:
        has_fingerprint = {"exists": {"field": f"{server.prefix}.fingerprint"}}
        with_fingerprint = await count_whole(server.patient, index, has_fingerprint)
    texts = {name: own.text_fields for name, own in wanted.resolved.settings_of.items()}
    unfilled = unfilled_by_index(texts, server.prefix, resolved.mappings)
    missing = await count_whole(server.patient, index, unfilled)
    found = Setup(
        index_key(index),
        tuple(resolved.mappings),
        tuple(dict.fromkeys(field for fields in texts.values() for field in fields)),
        str(agreed.scheme),
        wanted.grouping.max_distance if agreed.max_distance is None else agreed.max_distance,
        wanted.grouping.to_dict(),
        preset_of(wanted.grouping, agreed),
        tuple(part for part, names in wanted.lacking.items() if names),
        documents,
        missing,
        measured=wanted.measured,
    )
    if (tuning := wanted.tuning) is not None:
        found = replace(found, sampled=tuning.sampled, presets=tuning.presets)
        found = replace(found, notes=(*tuning.reasons, *tuning.remarks(agreed.scheme.preprocess)))
    if with_fingerprint:
        found = replace(found, outside=(await count_groups(server, index)).lost)
    if not dry_run:
        found = await _carry_out(server, index, wanted, found)
    elif (
        with_fingerprint
        or not found.recorded
        # A document may have something of its own where our fields would go; no query finds it.
        or any(may_hold(resolved.mappings[name], server.prefix) for name in resolved.unmapped)
    ):
        found = await _foresee(server, index, found, named)
    return replace(found, rollover=await _read_rollover(server, index, wanted.resolved))


async def _decide(
    server: Port, index: Index, resolved: Resolved, named: tuple[str, ...], request: GroupingRequest, *, documents: int
) -> _Wanted:
    """Return what is to be recorded; raise where that, or a later step, would be refused."""
    if resolved.assumed is not None:
        raise MappingError(
            f"the mapping of {shorten(index_key(index))} cannot be read, and setup needs it: use the cluster that "
            "holds the index, and a login that may read mappings"
        )
    await refuse_updates(server, index, resolved.mappings)
    future = with_our_fields(server.context, resolved, named)
    await refuse_impossible(server, resolved, future)
    grouped = [name for name, settings in resolved.settings_of.items() if settings.is_grouped]
    settings = agree(future, server.context)
    is_free = not grouped and settings.max_distance is None
    is_open = is_free and (request.preset, request.verify, request.max_distance) == (None, None, None)
    has_presets = settings.scheme.has_features_of(get_scheme(PRESETS[WIDEST].scheme))
    # Refuses a time field that cannot order documents, or another rule than is recorded, before texts are read.
    if request.canonical is not None:
        field_kinds(future, request.put_on(Grouping()))
    if is_open:
        request = replace(request, preset=WIDEST if has_presets else _OTHER_FEATURES)
    grouping = await settle_grouping(server, future, request, record=False)
    tuning, measured = None, None
    if documents and (is_free or preset_of(grouping, settings) is None):
        options = TuneOptions(sample=SAMPLE, text_field=future.text_fields.all)
        tuning = await tune(server, index, options, scheme=settings.scheme)
        if resolved.settings_of:  # another scheme is for another prefix
            tuning = replace(tuning, steps=())
        is_asked = server.context.wanted is not None
        if not is_asked and (html := next((step for step in tuning.steps if step.step == "html"), None)) is not None:
            scheme = replace(settings.scheme, preprocess=html.preprocess)
            future = with_our_fields(server.context, resolved, named, scheme=scheme)
            settings = agree(future, server.context)
            others = await tune(server, index, options, scheme=scheme)
            tuning = replace(others, steps=(html, *others.steps))
        chosen = tuning.recommended if is_open and tuning.sampled >= FEW else None
        if is_open and not has_presets and tuning.sampled >= FEW:
            request = replace(request, max_distance=tuning.enough_distance)
        elif is_open and has_presets:
            request = replace(request, preset=chosen or WIDEST)
        grouping = await settle_grouping(server, future, request, record=False)
        if has_presets:
            named_one = preset_of(grouping, settings) or tuning.recommended or WIDEST
            measured = next(figures for figures in tuning.presets if figures.preset == named_one)
    lacking: dict[Part, list[str]] = {
        "fields": [name for name in resolved.mappings if _lacks(server.context, name, resolved)],
        "grouping": [name for name in future.settings_of if name not in grouped],
        "max_distance": [name for name, settings in future.settings_of.items() if settings.max_distance is None],
    }
    return _Wanted(future, request, grouping, lacking, tuning, measured)


def _lacks(context: Context, name: str, resolved: Resolved) -> bool:
    """Return whether our fields, or the record of the text fields, are to be added to index *name*."""
    own, mapping = resolved.settings_of.get(name), resolved.mappings[name]
    return (
        own is None
        or not own.text_fields
        or not is_marked(mapping, own, prefix=context.prefix)
        or bool(find_group_faults(mapping, prefix=context.prefix))
    )


def preset_of(grouping: Grouping, settings: IndexSettings) -> str | None:
    """Return the preset whose distance and comparison of texts *grouping* has in an index with *settings*."""
    for preset in PRESETS.values():
        is_same = GroupingRequest(preset=preset).put_on(grouping) == grouping
        if is_same and settings.scheme.has_features_of(get_scheme(preset.scheme)):
            return preset.name
    return None


async def _foresee(server: Port, index: Index, found: Setup, named: tuple[str, ...]) -> Setup:
    """Return *found* with what a run would write; all documents are read, as far as their present state decides it."""
    options = BackfillOptions(text_field=named or None, dry_run=True)
    found = replace(found, filled=await finish_backfill(server, index, options))
    if found.recorded or found.changed:
        return found
    return replace(found, groups=await reconcile(server, index, GroupingRequest(), dry_run=True))


async def _carry_out(server: Port, index: Index, wanted: _Wanted, found: Setup) -> Setup:
    at = "its fields were recorded"

    def said() -> str:
        return f"setup ended before {at}: run it again, and it goes on"

    lacking = wanted.lacking
    with noting(said):
        for name in lacking["fields"]:
            settings = wanted.resolved.settings_of[name]
            await put_mapping(
                server,
                name,
                settings.scheme,
                settings.text_fields,
                settings.max_distance,
                value=None,
                passages=settings.passages is not None,
            )
        at = "its grouping was recorded"
        if lacking["grouping"]:
            # Another program may have recorded one meanwhile: then this refuses, and a second run takes it.
            resolved = await resolve_index(server, index)
            await settle_grouping(server, resolved, wanted.request)
        at = "its distance was recorded"
        if lacking["max_distance"]:
            await put_mapping(server, lacking["max_distance"], None, (), found.max_distance, value=None)
        at = "all documents had their fingerprints"
        filled = await finish_backfill(server, index, BackfillOptions())
        at = "all documents were grouped"
        grouped = await reconcile(server, index, GroupingRequest())
    findings = []
    if grouped.duplicates:
        findings = find_large_group(await count_groups(server, index), index, grouped.documents)
    findings += await find_short_texts(server, index)
    return replace(found, filled=filled, groups=grouped, findings=tuple(findings))


async def _read_rollover(server: Port, index: Index, resolved: Resolved) -> str:
    """Return what a rollover of *index*, if it is an alias or data stream, needs for an index with our fields."""
    try:
        await prepare_targets(server, index_key(index), resolved)
    except MappingError as error:
        return str(error)
    return ""
