"""
Confirms settings that were read before: is the index still the one whose mapping was read?

Another program may delete an index and create it again with another scheme. Nobody can do that and fill the new
index within 25 milliseconds, so settings are used without a request for that long. After it, the part of the mapping
that concerns us is read again, together with the search or before the write, and compared. No lookup and no write is
here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from es_simhash.errors import IncompleteSearchError, SchemeMismatchError, shorten
from es_simhash.flows.context import Context, Index, local_names
from es_simhash.flows.protocol import Call, Flow, Together
from es_simhash.flows.resolve import judge_mappings, read_index_settings
from es_simhash.index.meta import META_KEY, IndexSettings

__all__ = ["SettingsChanged", "check_unchanged", "confirm", "send_confirmed", "while_unchanged", "with_settings"]

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
    """
    Return what *work* returns with the settings of *index*; repeat it if they turn out to have changed.

    Raises:
        IncompleteSearchError: If they change again and again.
    """
    for _ in range(ATTEMPTS):
        settings = yield from read_index_settings(context, index)
        try:
            return (yield from work(settings))
        except SettingsChanged:
            context.unlearn(index, settings)
    raise _always_changing(index)


def while_unchanged(context: Context, index: Index, settings: IndexSettings, work: Callable[[], Flow[_T]]) -> Flow[_T]:
    """
    Return what *work* returns; repeat it if settings of *index* have changed, or could not be read, but not its scheme.

    Raises:
        SchemeMismatchError, MappingError: As :func:`check_unchanged`.
        IncompleteSearchError: If they change again and again.
    """
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
    Return the answer to *call*, a search of *index*; confirm the *settings* at the same time if that is due.

    Raises:
        SettingsChanged: If the settings have changed.
    """
    question, asked = _question(context, index, settings), context.clock()
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


def confirm(context: Context, index: Index, *, settings: IndexSettings) -> Flow[None]:
    """
    Confirm the *settings* of *index* if that is due.

    Raises:
        SettingsChanged: If the settings have changed.
    """
    question, asked = _question(context, index, settings), context.clock()
    if question is not None:
        try:
            mappings = yield question
        except Exception as error:  # noqa: BLE001 -- judged like an answer
            mappings = error
        _judge(context, index, mappings, settings=settings, asked=asked)


def check_unchanged(context: Context, index: Index, settings: IndexSettings) -> Flow[None]:
    """
    Refuse to go on writing to *index* if its scheme is not that of *settings* any more.

    Raises:
        SchemeMismatchError: If the index was created again with another scheme.
        MappingError: If it has no fields of ours any more, or wrong ones.
    """
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


def _question(context: Context, index: Index, settings: IndexSettings) -> Call | None:
    """Return the request for the part of the mappings that concerns us; ``None`` where there is nothing to confirm."""
    known, seconds = context.recall_any(index), context.seconds_since_confirmed(index)
    if known is None and seconds < math.inf:
        raise SettingsChanged  # another thread has found that they changed
    if known is None or known[1].assumed is not None:
        return None
    if known[0].scheme != settings.scheme:  # another thread has learned others
        raise SettingsChanged
    if seconds < TRUSTED_SECONDS:
        return None
    parts = f"*.mappings._meta.{META_KEY}", f"*.mappings.properties.{context.prefix}"
    return Call("get_mapping", {"index": ",".join(local_names(index)), "filter_path": ",".join(parts)})


def _judge(context: Context, index: Index, mappings: Any, *, settings: IndexSettings, asked: float) -> None:
    if isinstance(mappings, BaseException):
        raise SettingsChanged from mappings
    known = context.recall_any(index)
    if known is None or known[0].scheme != settings.scheme:
        raise SettingsChanged
    if not context.is_confirmed_by(index, known[1], mappings):
        resolved = judge_mappings(mappings, context)
        if resolved.each != known[1].each or resolved.faults != known[1].faults:
            raise SettingsChanged
    context.confirm(index, known[1], at=asked, answer=mappings)
