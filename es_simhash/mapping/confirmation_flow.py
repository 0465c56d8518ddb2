"""
Confirmation that an index is still the one whose settings were read; no lookup or write is here.

Another program may create the index again or move an alias. If all indices have the marker, searches insist
on it. Else, and before a write, the mapping is read again and compared, unless that was done less than 25
milliseconds ago.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from es_simhash.errors import IncompleteSearchError, SchemeMismatchError, shorten
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.meta import META_KEY, IndexSettings, is_marker_refused, marker_sort
from es_simhash.mapping.resolve_flow import judge_mappings, read_index_settings
from es_simhash.transport.names import Index, local_names
from es_simhash.transport.protocol import Call, Flow, Together, error_text

_T = TypeVar("_T")

# Deleting an index, creating it again and filling it took a server on two idle cores 80 ms or more.
TRUSTED_SECONDS = 0.025
# An answer that came so long after the settings were confirmed is used only when they are confirmed again.
SLOW_SECONDS = 0.1
# A lookup starts again when settings have changed; an index that changes more often than this is an error.
ATTEMPTS = 5


class SettingsChanged(Exception):  # noqa: N818 -- caught here, never shown
    """An index is not the one whose settings were read before."""


def with_settings(context: Context, index: Index, work: Callable[[IndexSettings], Flow[_T]]) -> Flow[_T]:
    """Return what *work* returns with the settings of *index*; repeat it if they turn out to have changed."""
    for _ in range(ATTEMPTS):
        settings = yield from read_index_settings(context, index)
        try:
            return (yield from work(settings))
        except SettingsChanged:
            context.unlearn(index, settings)
    raise _always_changing(index)


def while_unchanged(context: Context, index: Index, settings: IndexSettings, work: Callable[[], Flow[_T]]) -> Flow[_T]:
    """Return what *work* returns; repeat it if settings other than the scheme changed or were unreadable."""
    for _ in range(ATTEMPTS):
        try:
            return (yield from work())
        except SettingsChanged:
            yield from check_unchanged(context, index, settings)
    raise _always_changing(index)


def _always_changing(index: Index) -> IncompleteSearchError:
    reason = f"the settings of {shorten(index)} changed during the lookup, {ATTEMPTS} times"
    return IncompleteSearchError(f"{reason}: run it again", reasons=(reason,))


def send_confirmed(context: Context, index: Index, call: Call, *, settings: IndexSettings) -> Flow[Any]:
    """
    Return the answer to *call*, a search or multi-search of *index* for which *settings* are right.

    Costs nothing if all indices have the marker. Else the mapping is requested at the same time, if that is due.
    Raises SettingsChanged if the settings have changed.
    """
    resolved = _known(context, index, settings)
    if resolved is None or resolved.marker is None:
        return (yield from _send_beside(context, index, call, settings=settings))
    asked = context.clock()
    failure: Exception | None = None
    answer: Any = None
    try:
        answer = yield _marked(call, resolved.marker)
    except Exception as error:  # noqa: BLE001 -- raised below, unless the marker is the cause
        failure = error
    refusal = _refusal(answer) if failure is None else error_text(failure)
    if is_marker_refused(refusal, resolved.marker, prefix=context.prefix):
        yield from confirm(context, index, settings=settings, after_seconds=0.0)
        # The indices with our fields are unchanged: one without them is there now, or the user may not see the marker.
        context.distrust_marker(index, resolved)
        return (yield from _send_beside(context, index, call, settings=settings))
    if failure is not None:
        raise failure
    if _has_skipped(answer):
        # Elasticsearch asks nothing of a shard that can have no hit, so nothing insisted on the marker there.
        yield from confirm(context, index, settings=settings)
    elif not refusal:
        context.confirm(index, resolved, at=asked)
    return answer


def _marked(call: Call, marker: str) -> Call:
    """Return *call* with each of its searches insisting on the *marker*."""
    body, order = call.arguments["body"], {"sort": marker_sort(marker)}
    if call.api == "search":
        body = {**body, **order}
    else:  # headers and bodies take turns
        body = [{**line, **order} if number % 2 else line for number, line in enumerate(body)]
    return replace(call, arguments={**call.arguments, "body": body})


def _has_skipped(answer: Mapping[str, Any]) -> bool:
    return any((each.get("_shards") or {}).get("skipped") for each in answer.get("responses", [answer]))


def _refusal(answer: Mapping[str, Any]) -> str:
    """Return what the server says of the searches or shards that failed in *answer*; empty if none did."""
    words = []
    for each in answer.get("responses", [answer]):
        shards = each.get("_shards") or {}
        if "error" in each or shards.get("failed"):
            words.append(str(each.get("error") or shards))
    return " ".join(words)


def _send_beside(context: Context, index: Index, call: Call, *, settings: IndexSettings) -> Flow[Any]:
    """Return the answer to *call*; read the mapping at the same time if that is due."""
    question, asked = _question(context, index, settings, TRUSTED_SECONDS), context.clock()
    if question is None:
        answer = yield call
    else:
        answer, mappings = yield Together([call, question], concurrency=2)
        _judge(context, index, mappings, settings=settings, asked=asked)
        if isinstance(answer, BaseException):
            raise answer
    if context.seconds_since_confirmed(index) >= SLOW_SECONDS:
        # The client may have sent the search again, long after the mapping was read.
        yield from confirm(context, index, settings=settings)
    return answer


def confirm(
    context: Context, index: Index, *, settings: IndexSettings, after_seconds: float = TRUSTED_SECONDS
) -> Flow[None]:
    """Raise SettingsChanged if *settings* changed; ask only if last confirmed *after_seconds* ago or more."""
    question, asked = _question(context, index, settings, after_seconds), context.clock()
    if question is not None:
        try:
            mappings = yield question
        except Exception as error:  # noqa: BLE001 -- judged like an answer
            mappings = error
        _judge(context, index, mappings, settings=settings, asked=asked)


def check_unchanged(context: Context, index: Index, settings: IndexSettings) -> Flow[None]:
    """Raise an error if *index* no longer has the scheme of *settings*, or usable fingerprint fields."""
    if context.recall(index) is None:
        fresh = yield from read_index_settings(context, index)
    else:
        fresh = yield from with_settings(context, index, lambda known: _confirmed(context, index, known))
    if fresh.scheme != settings.scheme:
        raise SchemeMismatchError(
            f"index {shorten(index)} was changed to scheme {fresh.scheme} while fingerprints of scheme "
            f"{settings.scheme} were written: start again",
            index_scheme=str(fresh.scheme),
            client_scheme=str(settings.scheme),
        )


def _confirmed(context: Context, index: Index, settings: IndexSettings) -> Flow[IndexSettings]:
    yield from confirm(context, index, settings=settings)
    return settings


def _known(context: Context, index: Index, settings: IndexSettings) -> Resolved | None:
    """Return what was learned of *index*, if that can be confirmed and its settings are still *settings*."""
    known = context.recall_any(index)
    if known is None and context.seconds_since_confirmed(index) < math.inf:
        raise SettingsChanged  # another thread has found that they changed
    if known is None or known[1].assumed is not None:
        return None
    if known[0].scheme != settings.scheme:  # another thread has learned others
        raise SettingsChanged
    return known[1]


def _question(context: Context, index: Index, settings: IndexSettings, after_seconds: float) -> Call | None:
    """Return the request for the part of the mappings that concerns us; ``None`` where there is nothing to confirm."""
    if _known(context, index, settings) is None or context.seconds_since_confirmed(index) < after_seconds:
        return None
    settings_and_fields = f"_meta.{META_KEY}", f"properties.{context.prefix}", "enabled", "runtime"
    parts = (f"*.mappings.{each}" for each in settings_and_fields)
    return Call("get_mapping", {"index": ",".join(local_names(index)), "filter_path": ",".join(parts)})


def _judge(context: Context, index: Index, mappings: Any, *, settings: IndexSettings, asked: float) -> None:
    known = context.recall_any(index)
    if known is None or known[0].scheme != settings.scheme:
        raise SettingsChanged
    if isinstance(mappings, BaseException):
        context.unlearn(index, known[0])
        raise SettingsChanged from mappings
    if not context.is_confirmed_by(index, known[1], mappings) and _differs(known[1], judge_mappings(mappings, context)):
        context.unlearn(index, known[0])
        raise SettingsChanged
    context.confirm(index, known[1], at=asked, answer=mappings)


def _differs(before: Resolved, now: Resolved) -> bool:
    has_lost_marker = before.marker is not None and now.marker != before.marker
    return has_lost_marker or now.each != before.each or now.faults != before.faults
