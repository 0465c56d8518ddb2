"""
Confirms settings that were read before: is the index still the one whose mapping was read?

Another program may delete an index and create it again with another scheme. Nobody can do that and fill the new
index within 25 milliseconds, so settings are used without a request for that long. After it, the part of the mapping
that concerns us is read again, together with the search or before the write, and compared. No lookup and no write is
here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from es_simhash.errors import IncompleteSearchError, SchemeMismatchError, shorten
from es_simhash.flows.context import Context, Index, judge_mappings, read_index_settings
from es_simhash.flows.protocol import Call, Flow, Together
from es_simhash.index.meta import META_KEY, IndexSettings

__all__ = ["SettingsChanged", "check_unchanged", "confirm", "send_confirmed", "with_settings"]

_T = TypeVar("_T")

# Deleting an index, creating it again and filling it takes a server longer: 200 ms at least, where it was measured.
TRUSTED_SECONDS = 0.025
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
            context.unlearn(index)
    reason = f"the settings of {shorten(index)} changed during the lookup, {ATTEMPTS} times"
    raise IncompleteSearchError(f"{reason}: run it again", reasons=(reason,))


def send_confirmed(context: Context, index: Index, call: Call) -> Flow[Any]:
    """
    Return the answer to *call*, a search of *index*; confirm the settings at the same time if that is due.

    Raises:
        SettingsChanged: If the settings have changed.
    """
    question = _question(context, index)
    if question is None:
        return (yield call)
    answer, mappings = yield Together([call, question], concurrency=2)
    _judge(context, index, mappings)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def confirm(context: Context, index: Index) -> Flow[None]:
    """
    Confirm the settings of *index* if that is due.

    Raises:
        SettingsChanged: If the settings have changed.
    """
    question = _question(context, index)
    if question is not None:
        try:
            mappings = yield question
        except Exception as error:  # noqa: BLE001 -- judged like an answer
            mappings = error
        _judge(context, index, mappings)


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
    yield from confirm(context, index)
    return settings


def _question(context: Context, index: Index) -> Call | None:
    """Return the request for the part of the mappings that concerns us; ``None`` where there is nothing to confirm."""
    if context.seconds_since_confirmed(index) < TRUSTED_SECONDS:
        return None
    known = context.recall(index)
    if known is None or known[1].assumed is not None:
        return None
    names = index.split(",") if isinstance(index, str) else [part for name in index for part in name.split(",")]
    local = [name for name in names if ":" not in name or name.startswith("<")]  # <...> is date math
    parts = f"*.mappings._meta.{META_KEY}", f"*.mappings.properties.{context.prefix}"
    return Call("get_mapping", {"index": ",".join(local), "filter_path": ",".join(parts)})


def _judge(context: Context, index: Index, mappings: Any) -> None:
    known = context.recall(index)
    if isinstance(mappings, BaseException) or known is None:
        raise SettingsChanged from mappings if isinstance(mappings, BaseException) else None
    resolved = judge_mappings(mappings, context)
    if resolved.each != known[1].each or resolved.faults != known[1].faults:
        raise SettingsChanged
    context.confirm(index)
