"""Which concrete indices a name stands for, and with which settings; no lookup and no write is here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError, NoIndexError, SchemeMismatchError, shorten
from es_simhash.hashing import Scheme
from es_simhash.mapping.context import Context, IndexFault, Resolved
from es_simhash.mapping.faults import Fault, find_faults
from es_simhash.mapping.meta import IndexSettings, PassageState, is_marked, marker_name, read_settings
from es_simhash.transport.names import Index, check_index, index_key, local_names
from es_simhash.transport.protocol import Call, Flow, status_of


def read_index_settings(context: Context, index: Index) -> Flow[IndexSettings]:
    """
    Return the settings on which all indices behind *index* agree; lookups use these.

    Costs one request (get mapping) unless the answer is remembered. Indices without the fields have no
    fingerprints and are left out; the others must agree on the scheme. A caller that may not read mappings, or
    searches other clusters, passes the scheme, and it is used unchecked. NoIndexError is raised if a pattern
    matches no index.
    """
    agreed, _ = yield from _read_settings(context, index)
    return agreed


def read_settings_by_index(context: Context, index: Index) -> Flow[Mapping[str, IndexSettings]]:
    """
    Return the settings of each concrete index behind *index* that has the fields, by name.

    Costs and raises as :func:`read_index_settings`. Empty if the mappings may not be read.
    """
    _, resolved = yield from _read_settings(context, index)
    return resolved.each


def _read_settings(context: Context, index: Index) -> Flow[tuple[IndexSettings, Resolved]]:
    known = context.recall(check_index(index))
    if known is None:
        resolved = yield from resolve_index(context, index)
        known = agree(resolved, context), resolved
        if _check_remote(context, index, known[0]):
            known = known[0], replace(resolved, marker=None)
        context.learn(index, *known)
    return known


def _check_remote(context: Context, index: Index, settings: IndexSettings) -> bool:
    """Return whether *index* names other clusters; raise if the caller names no scheme, or another one."""
    local = local_names(index)
    remote = [name for name in index_key(index).split(",") if name not in local]
    if not remote:
        return False
    assumed = context.assumed_settings()
    if assumed is None:
        raise InvalidInputError(
            f"the mapping of {shorten(remote[0])} is on another cluster and cannot be read: name the scheme of "
            f"its fingerprints (the other indices have {settings.scheme})"
        )
    if assumed.scheme != settings.scheme:
        raise _mismatch(index_key(index), settings.scheme, f"{shorten(remote[0])} on another cluster", assumed.scheme)
    return True


def resolve_index(context: Context, index: Index) -> Flow[Resolved]:
    """Return the concrete indices behind *index* as they are now, not compared; always one get mapping."""
    local = local_names(index)
    assumed = context.assumed_settings()
    if not local:
        if assumed is None:
            raise InvalidInputError(
                f"the mapping of {shorten(index_key(index))} is on another cluster and cannot be read: name the scheme"
            )
        return Resolved(assumed=assumed)
    try:
        answer = yield Call("get_mapping", {"index": ",".join(local)})
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        if assumed is None:
            if status_of(error) == 403:
                error.add_note("The mapping could not be read: name the scheme to search without reading it.")
            raise
        return Resolved(assumed=assumed)
    if not answer:
        raise no_index(index)
    return judge_mappings(answer, context)


def no_index(index: Index) -> NoIndexError:
    """Return the error of a pattern that matches nothing; a server passes over closed indices."""
    reason = f"no index matches {shorten(index_key(index))}, or only closed ones"
    return NoIndexError(f"{reason}: check the name", reasons=(reason,))


def narrowed(index: Index) -> Flow[list[str]]:
    """
    Return the concrete indices of which *index* may show only a part, by alias filter or routing.

    A search by the name of such an index, in place of *index*, sees more than is meant. Costs one request; empty
    if aliases may not be read.
    """
    names = [name for name in local_names(index) if not name.startswith("-")]

    def is_named(name: str) -> bool:
        return any(fnmatchcase(name, each) for each in names)

    try:
        answer = yield Call("get_alias", {"index": ",".join(local_names(index))})
    except Exception as error:
        if status_of(error) not in (401, 403, 404):  # OpenSearch finds no data stream here
            raise
        return []
    found = []
    for name, each in sorted(answer.items()):
        used = [own for alias, own in (each.get("aliases") or {}).items() if is_named(alias)]
        if used and not is_named(name) and all("filter" in own or "search_routing" in own for own in used):
            found.append(name)
    return found


def judge_mappings(answer: Mapping[str, Any], context: Context) -> Resolved:
    """Return the indices of a get-mapping *answer* with their settings, and why some of them cannot be used."""
    mappings = {name: each.get("mappings") or {} for name, each in sorted(answer.items())}
    each: dict[str, IndexSettings] = {}
    faults: list[IndexFault] = []
    for name, mapping in mappings.items():
        settings = read_settings(mapping, prefix=context.prefix)
        has_prefix = context.prefix in (mapping.get("properties") or {})
        if settings is None and not has_prefix:
            continue
        if found := find_faults(mapping, prefix=context.prefix):
            faults += [IndexFault(name, fault) for fault in found]
        elif (known := settings or context.assumed_settings()) is not None:
            # The mapping names the user's own files by digest; the caller's equal scheme knows where they are.
            wanted = context.wanted if isinstance(context.wanted, Scheme) else None
            each[name] = replace(known, scheme=wanted) if wanted and wanted == known.scheme else known
        else:
            faults.append(IndexFault(name, Fault("no_scheme")))
    return Resolved(mappings, each, tuple(faults), marker=_common_marker(mappings, each, context.prefix))


def _common_marker(
    mappings: Mapping[str, Mapping[str, Any]], each: Mapping[str, IndexSettings], prefix: str
) -> str | None:
    """Return the full name of the one marker of all indices with *mappings*; ``None`` if there is none."""
    markers = {
        marker_name(each[name]) if name in each and is_marked(mapping, each[name], prefix=prefix) else None
        for name, mapping in mappings.items()
    }
    name = markers.pop() if len(markers) == 1 else None
    return None if name is None else f"{prefix}.{name}"


def agree(resolved: Resolved, context: Context) -> IndexSettings:
    """Return the settings on which *resolved* and the caller agree; no text fields if they differ."""
    if resolved.assumed is not None:
        return resolved.assumed
    if resolved.faults:
        more = f" (and {len(resolved.faults) - 1} more)" if len(resolved.faults) > 1 else ""
        raise MappingError(
            f"{resolved.faults[0]}{more}: create the index with create_index, or see what check reports",
            problems=tuple(map(str, resolved.faults)),
        )
    if not resolved.each:
        raise MappingError(
            f"index {shorten(next(iter(resolved.mappings)))} has no {context.prefix!r} fields: create it with "
            "create_index, or backfill it and name its text field",
            problems=(f"no index has {context.prefix!r} fields",),
        )
    first, settings = next(iter(resolved.each.items()))
    for name, each in resolved.each.items():
        if each.scheme != settings.scheme:
            raise _mismatch(name, each.scheme, f"index {first!r}", settings.scheme)
        if not context.accepts(each.scheme):
            raise _mismatch(name, each.scheme, "this client", context.wanted)
    every = list(resolved.each.values())
    text_fields = {each.text_fields for each in every if each.text_fields}
    return replace(
        settings,
        text_fields=text_fields.pop() if len(text_fields) == 1 else (),
        # The largest default finds what any of them promises.
        max_distance=max((each.max_distance for each in every if each.max_distance is not None), default=None),
        # A script fails on a shard whose index does not map the copy it reads.
        value=all(each.value for each in every),
        value_type="string" if all(each.value_type == "string" for each in every) else "number",
        passages=_agree_on_passages(every),
    )


def _agree_on_passages(every: Sequence[IndexSettings]) -> PassageState:
    """Return the state of all indices together; where only some have passages, they are not complete."""
    states = {each.passages for each in every}
    if states == {None}:
        return None
    return "complete" if states == {"complete"} else "partial"


def _mismatch(index: str, scheme: Scheme, there: str, other: str | Scheme | None) -> SchemeMismatchError:
    return SchemeMismatchError(
        f"index {index!r} holds fingerprints of scheme {scheme}, but {there} uses {other}: their bits cannot be "
        "compared; leave scheme out to adopt the index's own, or search the other prefix",
        index_scheme=str(scheme),
        client_scheme=str(other),
    )
