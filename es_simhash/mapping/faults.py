"""Faults that prevent the use of an index, as data, and what finds them in a mapping. No code reads their sentences."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.errors import (
    ADD_FIELDS,
    LEAVE_SCHEME_OUT,
    OTHER_PREFIX,
    REGROUP,
    WRITE_RECORD,
    WRITE_WHOLE,
    Advice,
    MappingError,
    Said,
    shorten,
)
from es_simhash.mapping.fields import DEFAULT_PREFIX, GROUPED
from es_simhash.mapping.mapping import FIELD_TYPES, NEEDED_FIELDS
from es_simhash.mapping.meta import recorded_prefixes

# fmt: off
FaultKind = Literal[
    "not_parsed", "no_subobjects", "not_mapped", "wrong_type", "not_an_object", "not_indexed", "no_doc_values",
    "normalizer", "null_value", "values_dropped", "runtime_field", "no_scheme", "bad_record", "other_scheme",
    "not_searchable", "without_fingerprint", "no_source", "partial_source", "hidden_groups", "hidden_field",
    "template", "no_template", "not_verified", "regrouping", "no_marker", "several_markers", "pipeline_errors",
    "without_passages", "passages_partial", "no_fields", "own_field",
    "unreadable_fingerprint",
]
# fmt: on

# Groups are named by ids, which have at most so many bytes.
LONGEST_ID = 512

_OUR_FIELDS = frozenset(NEEDED_FIELDS)

_ANEW = Said("use ", OTHER_PREFIX, ", or create a new index")
_BACKFILL = Said("run ", Advice("backfill", command="backfill INDEX"))
USE_COMPONENT = Said(
    Advice(
        "store what build_component_template returns as a component template",
        typed="store what es-simhash export mapping --component-template prints as a component template",
    ),
    ", and name it in composed_of of the index template (docs/rollover.md)",
)

# Each kind's sentence, and what to do. The names in braces are attributes of the fault.
_SENTENCES: dict[FaultKind, tuple[str, str]] = {
    "not_parsed": (
        "the whole mapping is not enabled, so no search finds a document by a field",
        'create a new index without "enabled": false, and index the documents there',
    ),
    "no_subobjects": (
        "the mapping has no objects (subobjects: false), and our fields are in one",
        "create a new index without it, and index the documents there",
    ),
    "no_fields": (
        "there are no {field!r} fields",
        Said("{known}", "add and fill them with ", Advice("setup", command="setup INDEX --text-field FIELD --yes")),
    ),
    "own_field": (
        "field {field!r} is one of your own ({found}), and not that of fingerprints",
        Said("{known}", "choose ", OTHER_PREFIX),
    ),
    "not_mapped": (
        "field {field!r} is not mapped; it must be {wanted!r}",
        Said("add it with ", ADD_FIELDS, ", and ", _BACKFILL, ", or use a login that sees it"),
    ),
    "wrong_type": ("field {field!r} is mapped as {found!r}; it must be {wanted!r}", _ANEW),
    "not_an_object": ("field {field!r} is {found}; it must be a plain object", _ANEW),
    "not_indexed": ("field {field!r} is not indexed", _ANEW),
    "no_doc_values": ("field {field!r} has no doc values", _ANEW),
    "normalizer": ("field {field!r} has the normalizer {found!r}, which changes its values", _ANEW),
    "values_dropped": ("field {field!r} ignores values above {found} characters", _ANEW),
    "null_value": ("field {field!r} has {found!r} where a document has null", _ANEW),
    "runtime_field": (
        "field {field!r} is also a runtime field, whose values searches read in place of the indexed ones",
        "remove the runtime field from the mapping",
    ),
    "no_scheme": ("the mapping records no scheme", Said("add it with ", ADD_FIELDS)),
    "bad_record": ("{found}", Said("write the record again with ", WRITE_RECORD)),
    "other_scheme": (
        "the index uses scheme {found}, not {wanted}",
        Said(LEAVE_SCHEME_OUT, ", or use ", OTHER_PREFIX),
    ),
    "not_searchable": ("the index cannot be searched ({found})", "open it, or see the health of the cluster"),
    "without_fingerprint": (
        "documents with a text field and without fingerprint, which no lookup finds: {found} of {wanted}",
        Said(_BACKFILL, " (texts without features get none)"),
    ),
    "unreadable_fingerprint": (
        "documents with something else than 16 hex digits in {field!r}, which another program wrote: {found}",
        Said(_BACKFILL),
    ),
    "no_source": (
        "the index stores no _source, so no document can be updated",
        Said("send each document whole, ", WRITE_WHOLE),
    ),
    "hidden_groups": (
        "_source does not show field {field!r}, so the groups of documents cannot be read",
        Said(
            "ingest with ",
            Advice("on_duplicate=None", typed="--on-duplicate none"),
            ", or create a new index with a whole _source",
        ),
    ),
    "hidden_field": (
        "_source does not show field {field!r}, so documents cannot be read with it",
        "leave the field out, or create a new index with a whole _source",
    ),
    "template": (
        "a rollover of {wanted!r} creates an index without our fields, because {found}",
        USE_COMPONENT,
    ),
    "no_template": (
        "a rollover of {wanted!r} creates an index without our fields, because {found}",
        Said(
            "store a component template and an index template: ",
            Advice(
                "build_component_template and build_index_template return them",
                typed="es-simhash export mapping --component-template and --index-template print them",
            ),
            " (docs/rollover.md)",
        ),
    ),
    "not_verified": (
        "documents are grouped by distance alone, so texts of one group may have little in common",
        Said(
            "compare their texts with ",
            Advice("reconcile(regroup=True, verify=True)", command="reconcile INDEX --regroup --verify 0.8 --yes"),
        ),
    ),
    "regrouping": (
        "the grouping is being changed {found}",
        Said("finish that with ", REGROUP),
    ),
    "no_marker": (
        "the mapping has no marker of its settings, so lookups read the mapping again and again",
        Said("add it with ", WRITE_RECORD, ", which changes no document"),
    ),
    "several_markers": (
        "the mapping has {found} markers in use, so a client that knows other settings may find nothing",
        Said("keep one with ", WRITE_RECORD, ", which changes no document"),
    ),
    "pipeline_errors": (
        "an ingest pipeline could not fingerprint {found} documents; {field!r} says why",
        _BACKFILL,
    ),
    "without_passages": (
        "{found} of {wanted} documents with a fingerprint have no passages, so lookups of passages are refused",
        _BACKFILL,
    ),
    "passages_partial": (
        "passages were added to an index with documents, so lookups of passages are refused",
        Said(_BACKFILL, " once, without a filter"),
    ),
    "partial_source": (
        "_source leaves fields out ({found}), so an update would lose their postings",
        Said("send each document whole, ", WRITE_WHOLE, ", or create a new index with a whole _source"),
    ),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason why an index, or its *field*, cannot be used: what was *found* there, and what is *wanted*."""

    kind: FaultKind
    field: str = ""
    found: str = ""
    wanted: str = ""

    @property
    def advice(self) -> str:
        return self._say(1)

    def __str__(self) -> str:
        return self._say(0)

    def _say(self, part: int) -> str:
        found, wanted = self.found, self.wanted
        if self.kind in ("without_fingerprint", "unreadable_fingerprint", "without_passages", "pipeline_errors"):
            found, wanted = (f"{int(each):,}" if each.isdecimal() else each for each in (found, wanted))
        known = ""
        if self.kind in ("no_fields", "own_field") and wanted:
            known = Said(say_prefixes(wanted.split(",")), "; or ")
        return _SENTENCES[self.kind][part].format(field=self.field, found=found, wanted=wanted, known=known)


def say_prefixes(known: Sequence[str]) -> Said:
    """Return which prefixes an index has, and how to give the first, as the beginning of an advice."""
    has = f"has the prefix {known[0]!r}" if len(known) == 1 else f"has the prefixes {', '.join(map(repr, known))}"
    give = Advice(f"prefix={known[0]!r}", typed=f"--prefix {shlex.quote(known[0])}")
    return Said(f"this index {has} (", give, ")")


def mapping_error(index: str, faults: Iterable[Fault]) -> MappingError:
    """Return the error that names the first of *faults* (at least one) of *index* and carries all of them."""
    first, *others = faults
    more = f" (and {len(others)} more)" if others else ""
    return MappingError(
        Said(f"index {index!r}: {first}{more}: ", first.advice),
        problems=tuple(map(str, (first, *others))),
        kinds=tuple(each.kind for each in (first, *others)),
    )


def nothing_recorded(index: str, mappings: Mapping[str, Mapping[str, Any]], prefix: str) -> MappingError:
    """Return the error of fields to remove where no index records them."""
    known = sorted({name for each in mappings.values() for name in recorded_prefixes(each)})
    fault = Fault("no_fields", prefix, wanted=",".join(known))
    advice = say_prefixes(known) if known else "see what check says"
    return MappingError(
        Said(
            f"index {shorten(index)} does not record the prefix {prefix!r}, so nothing there is ours to remove: ",
            advice,
        ),
        problems=(str(fault),),
        kinds=(fault.kind,),
    )


def find_faults(mapping: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX) -> list[Fault]:
    """Return the faults that prevent exact lookups in an index with *mapping*; empty if there are none."""
    # The server keeps such documents whole, and indexes none of their fields: each search finds nothing, and says so.
    if is_disabled(mapping):
        return [Fault("not_parsed")]
    if mapping.get("subobjects") in (False, "false"):
        return [Fault("no_subobjects")]
    ours, known = (mapping.get("properties") or {}).get(prefix), recorded_prefixes(mapping)
    if ours is None:
        return [Fault("no_fields", prefix, wanted=",".join(known))]
    type_, properties = str(ours.get("type", "object")), ours.get("properties") or {}
    if prefix not in known and (
        type_ not in ("object", "nested") or (properties and properties.keys().isdisjoint(_OUR_FIELDS))
    ):
        found = ", ".join(sorted(properties)) or type_
        return [Fault("own_field", prefix, shorten(found), ",".join(known))]
    if type_ not in ("object", "nested") and not properties:
        return [Fault("wrong_type", prefix, type_, "object")]
    # The blocks of a nested object, or of one that is not parsed, match no query on the document.
    if is_disabled(ours):
        return [Fault("not_an_object", prefix, "not enabled")]
    if ours.get("type", "object") != "object":
        return [Fault("not_an_object", prefix, f"mapped as {ours['type']!r}")]
    faults = []
    for name in FIELD_TYPES:
        full = f"{prefix}.{name}"
        if name in properties:
            faults += _judge_field(name, full, properties[name])
        elif name in NEEDED_FIELDS:
            faults.append(Fault("not_mapped", full, wanted=FIELD_TYPES[name]["type"]))
        if full in (mapping.get("runtime") or {}):
            faults.append(Fault("runtime_field", full))
    return faults


def find_group_faults(mapping: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX) -> list[Fault]:
    """Return what prevents groups in an index whose *mapping* has no fault that prevents lookups."""
    properties = mapping["properties"][prefix]["properties"]
    faults = []
    for name in GROUPED:
        full, found = f"{prefix}.{name}", properties.get(name)
        longest = None if found is None else found.get("ignore_above")
        if found is None:
            faults.append(Fault("not_mapped", full, wanted=FIELD_TYPES[name]["type"]))
        elif found.get("doc_values") is False:
            faults.append(Fault("no_doc_values", full))
        elif found.get("index") is False:
            faults.append(Fault("not_indexed", full))
        elif longest is not None and int(longest) < LONGEST_ID:
            faults.append(Fault("values_dropped", full, str(longest)))
    return faults


def is_disabled(node: Mapping[str, Any]) -> bool:
    """Return whether a mapping, or an object in it, has ``enabled: false``: a server then indexes no field of it."""
    return node.get("enabled") in (False, "false")


def _judge_field(name: str, full: str, found: Mapping[str, Any]) -> list[Fault]:
    """Return the fault of our field *name*, which is mapped as *found*; at most one."""
    wanted = FIELD_TYPES[name]["type"]
    if found.get("type") != wanted:
        return [Fault("wrong_type", full, str(found.get("type", "object")), wanted)]
    if (name.startswith("block") or name == "passages") and found.get("index") is False:
        return [Fault("not_indexed", full)]
    if name == "fingerprint" and found.get("doc_values") is False:
        return [Fault("no_doc_values", full)]
    if found.get("normalizer") is not None:
        return [Fault("normalizer", full, str(found["normalizer"]))]
    # Our fields are null where they do not apply.
    if found.get("null_value") is not None:
        return [Fault("null_value", full, str(found["null_value"]))]
    # The length of these values is known; a server drops longer ones without a word.
    longest = found.get("ignore_above")
    lengths = {"fingerprint": 16, "passages": 6} | {f"block{number}": 4 for number in range(4)}
    if longest is not None and int(longest) < lengths.get(name, 0):
        return [Fault("values_dropped", full, str(longest))]
    return []


def find_source_faults(mapping: Mapping[str, Any]) -> list[Fault]:
    """
    Return why updates of documents in an index with *mapping* would lose data.
    For a partial update the server indexes the whole ``_source`` again: an indexed field that is not in it is lost.
    """
    source = mapping.get("_source") or {}
    if _is_off(source):
        return [Fault("no_source")]
    includes, excludes = _names(source, "includes"), _names(source, "excludes")
    only = [] if "*" in includes else [f"includes only {', '.join(includes)}"] if includes else []
    without = [f"excludes {', '.join(excludes)}"] if excludes else []
    return [Fault("partial_source", found="; ".join([*only, *without]))] if only or without else []


def _hidden(mapping: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return those of the fields *names* that the ``_source`` of an index with *mapping* leaves out."""
    source = mapping.get("_source") or {}
    if _is_off(source):
        return list(names)
    includes, excludes = _names(source, "includes") or ["*"], _names(source, "excludes")
    return [name for name in names if not _is_named(name, includes) or _is_named(name, excludes)]


def _is_off(source: Mapping[str, Any]) -> bool:
    return is_disabled(source) or str(source.get("mode")).lower() == "disabled"


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of *patterns*, in which ``*`` stands for anything, names the field or an object around it."""
    regexes = [".*".join(map(re.escape, each.split("*"))) for each in patterns]
    return any(re.fullmatch(rf"{each}(\..*)?", name) for each in regexes)


def _names(source: Mapping[str, Any], key: str) -> list[str]:
    found = source.get(key) or []
    return [found] if isinstance(found, str) else list(map(str, found))


def refuse_other_use(name: str, mapping: Mapping[str, Any], prefix: str) -> None:
    """Raise MappingError if the fields below *prefix* have a fault in *mapping* other than being absent."""
    faults = [fault for fault in find_faults(mapping, prefix=prefix) if fault.kind not in ("no_fields", "not_mapped")]
    if faults:
        raise mapping_error(name, faults)


def refuse_hidden_groups(mappings: Mapping[str, Mapping[str, Any]], *, prefix: str) -> None:
    names = [f"{prefix}.{each}" for each in ("group", "duplicate_of", "at")]
    refuse_hidden_fields(mappings, names, kind="hidden_groups")


def refuse_hidden_fields(
    mappings: Mapping[str, Mapping[str, Any]], names: Sequence[str], *, kind: FaultKind = "hidden_field"
) -> None:
    """Raise MappingError if the ``_source`` of an index leaves out one of the fields *names*."""
    for index, mapping in mappings.items():
        if hidden := _hidden(mapping, names):
            raise mapping_error(index, [Fault(kind, hidden[0])])


def refuse_partial_sources(mappings: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise MappingError if an index keeps no ``_source`` or only a part: an update would then lose data."""
    for name, mapping in mappings.items():
        if faults := find_source_faults(mapping):
            raise mapping_error(name, faults)
