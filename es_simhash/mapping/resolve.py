"""
Which concrete indices a name stands for, with which settings, and whether these are still the settings.

Another program may create the index again or move an alias. If all indices have the marker, searches insist
on it. Else the mapping is read again and compared: after the answer, and before a write, unless that was done less
than 25 milliseconds ago. No lookup and no write is here.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from es_simhash.errors import (
    IncompleteSearchError,
    MappingError,
    NoIndexError,
    SchemeMismatchError,
    shorten,
)
from es_simhash.hashing import Scheme
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.faults import Fault, find_faults, mappings_error, no_fields
from es_simhash.mapping.meta import (
    META_KEY,
    IndexSettings,
    is_marked,
    marker_name,
    marker_sort,
)
from es_simhash.mapping.port import Port
from es_simhash.transport.conversation import attempt, unless_refused
from es_simhash.transport.protocol import Call, Index, check_index, in_parts, index_key, names_in, status_of
from es_simhash.transport.refusals import CLOSED, NOT_MARKED, Refusal
from es_simhash.transport.server import Answer

_UNREAD = "The mapping, which records the scheme, could not be read: give scheme to search without reading it."

_T = TypeVar("_T")


async def read_index_settings(server: Port, index: Index) -> IndexSettings:
    """
    Return the settings on which all indices behind *index* agree; lookups use these.
    Costs one request (get mapping) unless the answer is remembered. Indices without the fields are left out; the others
    must agree on the scheme. A caller that may not read mappings passes the scheme, and it is used unchecked.
    NoIndexError is raised if a pattern matches no index.
    """
    return (await read_known(server, index))[0]


async def read_recorded(server: Port, index: Index) -> Mapping[str, IndexSettings]:
    """Return the settings of each index behind *index* that has the fields, also where they do not agree."""
    try:
        return (await read_known(server, index))[1].settings_of
    except (MappingError, SchemeMismatchError):
        return (await resolve_index(server, index)).settings_of


async def read_known(server: Port, index: Index) -> tuple[IndexSettings, Resolved]:
    """Return what :func:`read_index_settings` returns, and the settings of each index; these may be remembered."""
    known = server.context.known.recall(check_index(index))
    if known is None:
        resolved = await resolve_index(server, index)
        known = agree(resolved, server.context), resolved
        server.context.learn(index, *known)
    return known


async def resolve_index(server: Port, index: Index) -> Resolved:
    """
    Return the concrete indices behind *index* as they are now, not compared; always one get mapping.
    Where they cannot be used together, a closed one is refused: one search more.
    """
    assumed = server.context.assumed_settings()
    try:
        answer = await server.get_mapping(index=index_key(check_index(index)))
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        if assumed is None:
            if status_of(error) == 403:
                error.add_note(_UNREAD)
            raise
        return Resolved(assumed=assumed)
    if not answer:
        raise no_index(index)
    resolved = judge_mappings(answer, server.context)
    try:
        agree(resolved, server.context)
    except (MappingError, SchemeMismatchError):  # raised by the caller, if that needs them to agree
        await refuse_closed(server, index)
    return resolved


async def refuse_closed(server: Port, index: Index) -> None:
    """Raise the error of the server if an index is closed: its mapping then explains nothing. Cost: one search."""
    answer = await attempt(server.search(index=index, body={"size": 0}))
    if isinstance(answer, Exception) and CLOSED.meets(answer):
        raise answer


def no_index(index: Index) -> NoIndexError:
    """Return the error of a pattern that matches nothing; a server passes over closed indices."""
    reason = f"no index matches {shorten(index_key(index))}, or only closed ones"
    return NoIndexError(f"{reason}: check the name", reasons=(reason,))


async def narrowed(server: Port, index: Index) -> list[str]:
    """
    Return the concrete indices of which *index* may show only a part, by alias filter or routing.
    A search by the name of such an index sees more than is meant. Costs one request; empty if aliases may not be read.
    """
    names = [name for name in names_in(index) if not name.startswith("-")]

    def is_named(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in names)

    answer: Answer = {}
    for part in in_parts(index):  # OpenSearch finds no data stream here
        answer |= await unless_refused(server.get_alias(index=index_key(part)), 401, 403, 404) or {}
    found = []
    for name, held in sorted(answer.items()):
        used = [alias for alias_name, alias in held.get("aliases", {}).items() if is_named(alias_name)]
        if used and not is_named(name) and all("filter" in alias or "search_routing" in alias for alias in used):
            found.append(name)
    return found


def judge_mappings(answer: Mapping[str, Any], context: Context) -> Resolved:
    """Return the indices of a get-mapping *answer* with their settings, and why some of them cannot be used."""
    prefix = context.prefix
    mappings = {name: held.get("mappings", {}) for name, held in sorted(answer.items())}
    settings_of: dict[str, IndexSettings] = {}
    faults: list[tuple[str, Fault]] = []
    for name, mapping in mappings.items():
        settings = context.settings_in(mapping)
        if settings is None and prefix not in mapping.get("properties", {}):
            continue
        found = find_faults(mapping, prefix=prefix)
        # With this name the user has something else: no document there can have a fingerprint that a search finds.
        if found and found[0].kind == "users_field":
            continue
        known = settings or context.assumed_settings()
        if known is None and not found:
            found = [Fault("no_scheme")]
        faults += [(name, fault) for fault in found]
        if known is not None and not found:
            settings_of[name] = known
    markers = {
        marker_name(settings) if is_marked(mappings[name], settings, prefix=prefix) else None
        for name, settings in settings_of.items()
    }
    marker = markers.pop() if len(markers) == 1 and len(settings_of) == len(mappings) else None
    return Resolved(mappings, settings_of, tuple(faults), marker=None if marker is None else f"{prefix}.{marker}")


def agree(resolved: Resolved, context: Context) -> IndexSettings:
    """Return the settings on which *resolved* and the caller agree; no text fields if they differ."""
    if resolved.assumed is not None:
        return resolved.assumed
    if resolved.faults:
        raise mappings_error(resolved.faults)
    if not resolved.settings_of:
        raise no_fields(resolved.mappings, context.prefix)
    first, settings = next(iter(resolved.settings_of.items()))
    for name, other in resolved.settings_of.items():
        if other.scheme != settings.scheme:
            raise _mismatch(name, other.scheme, f"index {first!r}", settings.scheme)
        if not context.accepts(other.scheme):
            raise _mismatch(name, other.scheme, "this client", context.wanted)
    every = list(resolved.settings_of.values())
    text_fields = {of_index.text_fields for of_index in every if of_index.text_fields}
    return replace(
        settings,
        text_fields=text_fields.pop() if len(text_fields) == 1 else (),
        # The largest default finds what any of them promises.
        max_distance=max(
            (of_index.max_distance for of_index in every if of_index.max_distance is not None), default=None
        ),
        # A script fails on a shard whose index does not map the copy it reads.
        value=all(of_index.value for of_index in every),
        is_assumed=any(of_index.is_assumed for of_index in every),
        passages=next((of_index.passages for of_index in every if of_index.passages), None),
    )


def _mismatch(index: str, scheme: Scheme, there: str, other: str | Scheme | None) -> SchemeMismatchError:
    return SchemeMismatchError(
        f"index {index!r} holds fingerprints of scheme {scheme}, but {there} uses {other}: their bits cannot be "
        "compared; leave scheme out to adopt the index's own, or use another prefix",
        index_scheme=str(scheme),
        client_scheme=str(other),
    )


# Before a write, settings count as right so long after they were read. Deleting an index, creating it again and filling
# it took a server on two idle cores 80 ms or more.
TRUSTED_SECONDS = 0.025
# A lookup starts again when settings have changed; an index that changes more often than this is an error.
SETTINGS_ATTEMPTS = 5


class SettingsChanged(Exception):  # noqa: N818 -- the work begins anew
    """An index is not the one whose settings were read before."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self.index = index

    def at_last(self) -> IncompleteSearchError:
        """Return the error of work that began anew too often."""
        name, times = shorten(self.index), f"{SETTINGS_ATTEMPTS} times"
        reason = f"the settings of {name} changed during the lookup, or could not be read, {times}"
        return IncompleteSearchError(f"{reason}: run it again", reasons=(reason,))


async def begin_anew(work: Callable[[], Awaitable[_T]]) -> _T:
    """Return what *work* returns; it begins anew where settings turn out to have changed, four times at most."""
    for left in reversed(range(SETTINGS_ATTEMPTS)):
        try:
            return await work()
        except SettingsChanged as change:
            if not left:
                raise change.at_last() from change.__cause__
    raise AssertionError


async def send_confirmed(server: Port, index: Index, call: Call, *, settings: IndexSettings) -> Answer:
    """
    Return the answer to *call*, a search or multi-search of *index*; raise SettingsChanged if *settings* have changed.
    Costs nothing if all indices have the marker. Else the mapping is read after the answer.
    """
    context, resolved = server.context, _known(server.context, index, settings)
    if resolved is not None and resolved.marker is not None:
        asked = context.clock()
        try:
            answer: Answer | Exception = await server.send(_marked(call, resolved.marker))
        except Exception as error:
            if not NOT_MARKED.meets(error):
                raise
            answer = error
        if not isinstance(answer, Exception) and not NOT_MARKED.meets(refusal := _refusal(answer)):
            if any(part.get("_shards", {}).get("skipped") for part in _parts(answer)):
                # Elasticsearch asks nothing of a shard that can have no hit, so nothing insisted on the marker there.
                await confirm(server, index, settings=settings)
            elif not refusal:
                context.confirmed.learn(index, resolved, at=asked)
            return answer
        # If they are unchanged, an index without our fields is there now, or the user may not see the marker.
        await confirm(server, index, settings=settings)
    answer = await attempt(server.send(call))
    await confirm(server, index, settings=settings)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _marked(call: Call, marker: str) -> Call:
    body, order = call.arguments["body"], {"sort": marker_sort(marker)}
    if call.api == "search":
        body = {**body, **order}
    else:  # headers and bodies take turns
        body = [{**line, **order} if number % 2 else line for number, line in enumerate(body)]
    return replace(call, arguments={**call.arguments, "body": body})


def _parts(answer: Answer) -> Sequence[Answer]:
    parts: Sequence[Answer] = answer.get("responses", [answer])
    return parts


def _refusal(answer: Answer) -> Refusal:
    """Return what the server refused of the searches or shards of *answer*; empty if nothing."""
    failed = [part for part in _parts(answer) if "error" in part or part.get("_shards", {}).get("failed")]
    return {"failed": failed} if failed else {}


async def confirm(server: Port, index: Index, *, settings: IndexSettings, since: float = math.inf) -> None:
    """
    Raise SettingsChanged if *settings* changed; ask only if they were not confirmed *since* that time of the clock.
    Of pages: what a view shows stays as it was when it was opened.
    """
    context, asked = server.context, server.context.clock()
    if _known(context, index, settings) is None or context.confirmed.find(index)[0] > since:
        return
    settings_and_fields = f"_meta.{META_KEY}", f"properties.{context.prefix}", "enabled", "runtime"
    parts = (f"*.mappings.{part}" for part in settings_and_fields)
    answer = await attempt(server.get_mapping(index=index, filter_path=",".join(parts)))
    known = _known(context, index, settings)
    if isinstance(answer, Exception):
        context.unlearn(index, known)
        raise SettingsChanged(index) from answer
    if known is None or not _are_same(known, judge_mappings(answer, context)):
        context.unlearn(index, known)
        raise SettingsChanged(index)
    context.confirmed.learn(index, known, at=asked)


def _are_same(before: Resolved, now: Resolved) -> bool:
    has_lost_marker = before.marker is not None and now.marker != before.marker
    return not has_lost_marker and now.settings_of == before.settings_of and now.faults == before.faults


async def check_unchanged(
    server: Port, index: Index, settings: IndexSettings, *, after_seconds: float = TRUSTED_SECONDS
) -> None:
    """
    Raise an error if *index* no longer has the scheme of *settings*, or usable fingerprint fields.
    Asks only if that was last confirmed *after_seconds* ago or more.
    """
    fresh = await read_present_settings(server, index, after_seconds=after_seconds)
    if fresh.scheme != settings.scheme:
        raise SchemeMismatchError(
            f"index {shorten(index)} was changed to scheme {fresh.scheme} while fingerprints of scheme "
            f"{settings.scheme} were written: start again",
            index_scheme=str(fresh.scheme),
            client_scheme=str(settings.scheme),
        )


async def read_present_settings(server: Port, index: Index, *, after_seconds: float = TRUSTED_SECONDS) -> IndexSettings:
    """Return the settings of *index* as they are now, where remembered ones could be wrong for up to a minute."""

    async def read() -> IndexSettings:
        settings = await read_index_settings(server, index)
        await confirm(server, index, settings=settings, since=server.context.clock() - after_seconds)
        return settings

    return await begin_anew(read)


def _known(context: Context, index: Index, settings: IndexSettings) -> Resolved | None:
    """Return what was learned of *index*, if that can be confirmed and its settings are still *settings*."""
    known = context.known.find(index)[1]
    if known is None and context.confirmed.recall(index) is not None:
        raise SettingsChanged(index)  # another thread has found that they changed
    if known is None or known[1].assumed is not None:
        return None
    if known[0].scheme != settings.scheme:  # another thread has learned others
        raise SettingsChanged(index)
    return known[1]
