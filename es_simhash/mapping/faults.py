"""Faults that prevent the use of an index, as data, and what finds them in a mapping. No code reads their sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.errors import MappingError, shorten
from es_simhash.mapping.fields import DEFAULT_PREFIX, GROUPED
from es_simhash.mapping.mapping import FIELD_TYPES, NEEDED_FIELDS
from es_simhash.mapping.meta import recorded_prefixes
from es_simhash.mapping.user_fields import is_off

# fmt: off
FaultKind = Literal[
    "not_parsed", "no_subobjects", "not_mapped", "wrong_type", "not_an_object", "null_value", "runtime_field",
    "no_scheme", "bad_record", "other_scheme", "not_searchable", "without_fingerprint", "no_source", "partial_source",
    "hidden_groups", "hidden_field", "template", "no_template", "not_verified", "no_marker", "several_markers",
    "pipeline_errors", "without_passages", "no_fields", "users_field", "unreadable_fingerprint", "other_parameter",
    "regrouping",
]
# fmt: on

_ANEW = "use another prefix, or create a new index"
_FILL = "run setup(index)"
USE_COMPONENT = (
    "store what build_component_template() returns as a component template, and name it in composed_of of the index "
    "template (docs/your-index.md)"
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
        "{known}add and fill them with setup(index, text_field=FIELD)",
    ),
    "users_field": (
        "field {field!r} is one of your own ({found}), and not that of fingerprints",
        "{known}choose another prefix",
    ),
    "not_mapped": (
        "field {field!r} is not mapped; it must be {wanted!r}",
        "add and fill it with setup(index, text_field=FIELD), or use a login that sees it",
    ),
    "wrong_type": ("field {field!r} is mapped as {found!r}; it must be {wanted!r}", _ANEW),
    "not_an_object": ("field {field!r} is {found}; it must be a plain object", _ANEW),
    "null_value": ("field {field!r} has {found!r} where a document has null", _ANEW),
    "other_parameter": ("field {field!r} is mapped with {found}; it must have {wanted}", _ANEW),
    "runtime_field": (
        "field {field!r} is also a runtime field, whose values searches read in place of the indexed ones",
        "remove the runtime field from the mapping",
    ),
    "no_scheme": ("the mapping records no scheme", "add it with setup(index, text_field=FIELD)"),
    "bad_record": ("{found}", "then check again"),
    "other_scheme": (
        "the index uses scheme {found}, not {wanted}",
        "leave scheme out to adopt the index's own, or use another prefix",
    ),
    "not_searchable": ("the index cannot be searched ({found})", "open it, or see the health of the cluster"),
    "without_fingerprint": (
        "documents with a text field and without fingerprint, which no lookup finds: {found} of {wanted}",
        f"{_FILL} (texts without features get none)",
    ),
    "unreadable_fingerprint": (
        "documents without 16 hex digits in {field!r}, or without its blocks, as another program wrote them: {found}",
        _FILL,
    ),
    "no_source": (
        "the index stores no _source, so no document can be updated",
        "send each document whole, through ingest or with_fingerprints",
    ),
    "hidden_groups": (
        "_source does not show field {field!r}, so the groups of documents cannot be read",
        "ingest with on_duplicate=None, or create a new index with a whole _source",
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
        "store what build_component_template() and build_index_template() return (docs/your-index.md)",
    ),
    "not_verified": (
        "documents are grouped by distance alone, so texts of one group may have little in common",
        "compare their texts with reconcile(index, regroup=True, preset=PRESET)",
    ),
    "regrouping": (
        "the grouping was changed, and documents may still have groups of the one before",
        "wait for the reconcile that runs now, or finish what it left with reconcile(index)",
    ),
    "no_marker": (
        "the mapping has no marker of its settings, so each lookup reads the mapping",
        "add it with setup(index), or put_mapping(index), which changes no document",
    ),
    "several_markers": (
        "the mapping has {found} markers in use, so a client that knows other settings may find nothing",
        "keep one with setup(index), or put_mapping(index), which changes no document",
    ),
    "pipeline_errors": (
        "an ingest pipeline could not fingerprint {found} documents; {field!r} says why",
        _FILL,
    ),
    "without_passages": (
        "{found} of {wanted} documents with a fingerprint have no passages, so lookups of passages are refused",
        _FILL,
    ),
    "partial_source": (
        "_source leaves fields out ({found}), so an update would lose their postings",
        "send each document whole, through ingest or with_fingerprints, or create a new index with a whole _source",
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
            found, wanted = (f"{int(text):,}" if text.isdecimal() else text for text in (found, wanted))
        known = ""
        if self.kind in ("no_fields", "users_field") and wanted:
            known = f"{say_prefixes(wanted.split(','))}; or "
        return _SENTENCES[self.kind][part].format(field=self.field, found=found, wanted=wanted, known=known)


def say_prefixes(known: Sequence[str]) -> str:
    """Return which prefixes an index has, and how to give the first, as the beginning of an advice."""
    has = f"has the prefix {known[0]!r}" if len(known) == 1 else f"has the prefixes {', '.join(map(repr, known))}"
    return f"this index {has}: give prefix={known[0]!r}"


def mapping_error(index: str, faults: Iterable[Fault]) -> MappingError:
    """Return the error that names the first of *faults* (at least one) of *index* and carries all of them."""
    return mappings_error([(index, fault) for fault in faults])


def mappings_error(faults: Sequence[tuple[str, Fault]], said: str = "", advice: str = "") -> MappingError:
    """Return the error that carries all *faults* (at least one), each with its index; by default it says the first."""
    (index, first), *others = faults
    more = f" (and {len(others)} more)" if others else ""
    return MappingError(
        f"{said or f'index {index!r}: {first}{more}'}: {advice or first.advice}",
        problems=tuple(f"index {name!r}: {fault}" for name, fault in faults),
        kinds=tuple(fault.kind for _, fault in faults),
    )


def nothing_recorded(index: str, mappings: Mapping[str, Mapping[str, Any]], prefix: str) -> MappingError:
    """Return the error of fields to remove where no index records them."""
    known = prefixes_of(mappings)
    said = f"index {shorten(index)} does not record the prefix {prefix!r}, so nothing there is ours to remove"
    fault = Fault("no_fields", prefix, wanted=",".join(known))
    return mappings_error([(index, fault)], said, say_prefixes(known) if known else "see what check says")


def no_fields(mappings: Mapping[str, Mapping[str, Any]], prefix: str) -> MappingError:
    """Return the error of indices that all lack our fields; where one has a field of the user's, it says so."""
    for index, mapping in mappings.items():
        if (faults := find_faults(mapping, prefix=prefix)) and faults[0].kind == "users_field":
            return mapping_error(index, faults)
    index, fault = next(iter(mappings)), Fault("no_fields", prefix, wanted=",".join(prefixes_of(mappings)))
    return mappings_error([(index, fault)], f"index {shorten(index)} has no {prefix!r} fields")


def prefixes_of(mappings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the prefixes that any of *mappings* records, sorted."""
    return sorted({name for mapping in mappings.values() for name in recorded_prefixes(mapping)})


# What a parameter is where a mapping does not name it.
_USUAL: dict[str, Any] = {"index": True, "doc_values": True, "enabled": True, "coerce": True}
_BLOCKS = ("block0", "block1", "block2", "block3")
# The allow list: what may be otherwise than we map it, as it changes nothing for us. By parameter, in which fields.
_MAY_DIFFER: dict[str, Collection[str]] = {
    "type": ("value", "passages", "error"),  # where it is not mapped at all: not every index has them
    "index": ("fingerprint", "value", "error"),
    "doc_values": (*_BLOCKS, "passages", "error"),
}
# How values are stored, kept in memory, described, copied and scored, in all fields. No lookup goes by any of it.
_HARMLESS = {
    *("boost", "copy_to", "eager_global_ordinals", "fields", "ignore_malformed", "index_options", "locale", "meta"),
    *("norms", "similarity", "skip_list", "split_queries_on_whitespace", "store", "synthetic_source_keep"),
    *("time_series_dimension", "time_series_metric", "use_similarity"),
}
# How long our values are. A server drops longer ones than ignore_above without a word. Groups are named by ids.
_LONGEST_CHARACTERS = {**dict.fromkeys(_BLOCKS, 4), "fingerprint": 16, "passages": 6, "group": 512, "duplicate_of": 512}
# What is wrong with a field of groups in these ways prevents groups, and no lookup.
_OF_GROUPS = ("not_mapped", "other_parameter")


def find_faults(mapping: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX) -> list[Fault]:
    """Return the faults that prevent exact lookups in an index with *mapping*; empty if there are none."""
    return [fault for fault in _compare(mapping, prefix) if not _is_of_groups(fault, prefix)]


def find_group_faults(mapping: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX) -> list[Fault]:
    """Return what prevents groups in an index whose *mapping* has no fault that prevents lookups."""
    return [fault for fault in _compare(mapping, prefix) if _is_of_groups(fault, prefix)]


def _is_of_groups(fault: Fault, prefix: str) -> bool:
    return fault.kind in _OF_GROUPS and fault.field.removeprefix(f"{prefix}.") in GROUPED


def _compare(mapping: Mapping[str, Any], prefix: str) -> list[Fault]:
    """Return where *mapping* differs from what we would map, but for what may differ."""
    # The server keeps such documents whole, and indexes none of their fields: each search finds nothing, and says so.
    if is_off(mapping, "enabled"):
        return [Fault("not_parsed")]
    if is_off(mapping, "subobjects"):
        return [Fault("no_subobjects")]
    ours, known = mapping.get("properties", {}).get(prefix), recorded_prefixes(mapping)
    if ours is None and prefix in known:  # a login may not see them
        return [Fault("not_mapped", prefix, wanted="object")]
    if ours is None:
        return [Fault("no_fields", prefix, wanted=",".join(known))]
    type_, properties = str(ours.get("type", "object")), ours.get("properties", {})
    is_object = type_ in ("object", "nested")
    if prefix not in known and (not is_object or (properties and properties.keys().isdisjoint(NEEDED_FIELDS))):
        found = ", ".join(sorted(properties)) or type_
        return [Fault("users_field", prefix, shorten(found), ",".join(known))]
    if not is_object and not properties:
        return [Fault("wrong_type", prefix, type_, "object")]
    # The blocks of a nested object, or of one that is not parsed, match no query on the document.
    if is_off(ours, "enabled"):
        return [Fault("not_an_object", prefix, "not enabled")]
    if type_ != "object":
        return [Fault("not_an_object", prefix, f"mapped as {type_!r}")]
    faults: list[Fault] = []
    for name, wanted in FIELD_TYPES.items():
        full = f"{prefix}.{name}"
        faults += _compare_field(name, full, properties.get(name), wanted)
        if full in mapping.get("runtime", {}):
            faults.append(Fault("runtime_field", full))
    return faults


def _compare_field(name: str, full: str, found: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> list[Fault]:
    """Return where our field *name* is mapped otherwise than *wanted*, and may not be."""
    if found is None:
        return [] if name in _MAY_DIFFER["type"] else [Fault("not_mapped", full, wanted=wanted["type"])]
    if (type_ := found.get("type", "object")) != wanted["type"]:
        return [Fault("wrong_type", full, str(type_), wanted["type"])]
    faults = []
    for parameter in sorted((found.keys() | wanted.keys()) - _HARMLESS):
        right = wanted.get(parameter, _USUAL.get(parameter))
        held = found.get(parameter, _USUAL.get(parameter))
        held = held == "true" if held in ("true", "false") else held  # as templates may have it
        is_long = parameter == "ignore_above" and held is not None and int(held) >= _LONGEST_CHARACTERS.get(name, 0)
        if held in (right, None) or is_long or name in _MAY_DIFFER.get(parameter, ()):
            continue
        if parameter == "null_value":
            faults.append(Fault("null_value", full, str(held)))
        else:
            must = f"no {parameter}" if right is None else f"{parameter} {right}"
            faults.append(Fault("other_parameter", full, f"{parameter} {shorten(held)}", must))
    return faults


def find_source_faults(mapping: Mapping[str, Any]) -> list[Fault]:
    """
    Return why updates of documents in an index with *mapping* would lose data.
    For a partial update the server indexes the whole ``_source`` again: an indexed field that is not in it is lost.
    """
    if (filters := _source_filters(mapping)) is None:
        return [Fault("no_source")]
    includes, excludes = filters
    said = [f"includes only {', '.join(includes)}"] if includes and "*" not in includes else []
    said += [f"excludes {', '.join(excludes)}"] if excludes else []
    return [Fault("partial_source", found="; ".join(said))] if said else []


def _hidden(mapping: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return those of the fields *names* that the ``_source`` of an index with *mapping* leaves out."""
    if (filters := _source_filters(mapping)) is None:
        return list(names)
    includes, excludes = filters
    return [name for name in names if not _is_named(name, includes or ["*"]) or _is_named(name, excludes)]


def _source_filters(mapping: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return the patterns of what ``_source`` includes, and of what it leaves out; ``None`` where it is off."""
    source = mapping.get("_source", {})
    if is_off(source, "enabled") or str(source.get("mode")).lower() == "disabled":
        return None
    given = (source.get(key) or [] for key in ("includes", "excludes"))
    includes, excludes = ([some] if isinstance(some, str) else some for some in given)
    return includes, excludes


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of *patterns*, in which ``*`` stands for anything, names the field or an object around it."""
    regexes = [".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns]
    return any(re.fullmatch(rf"{regex}(\..*)?", name) for regex in regexes)


def refuse_other_use(name: str, mapping: Mapping[str, Any], prefix: str) -> None:
    """Raise MappingError if the fields below *prefix* have a fault in *mapping* other than being absent."""
    faults = [fault for fault in find_faults(mapping, prefix=prefix) if fault.kind not in ("no_fields", "not_mapped")]
    if faults:
        raise mapping_error(name, faults)


def refuse_hidden_groups(mappings: Mapping[str, Mapping[str, Any]], *, prefix: str) -> None:
    names = [f"{prefix}.{name}" for name in ("group", "duplicate_of", "at")]
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
