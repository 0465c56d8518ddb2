"""
Reads from an index what its documents are compared by: present text, value of ``per``, date of ``within``.

How two documents are compared is in ``index.grouping.content``; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.flows.context import Index
from es_simhash.flows.lookup.fetch import fetch_hits
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.retry import Patience, retry
from es_simhash.flows.transfer.texts import read_hit
from es_simhash.index.grouping.content import Content, Unread, moment_of, per_of
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.keys import Key, document_key

__all__ = ["TextFields", "docvalue_fields_of", "fetch_contents", "read_content"]


@dataclass(frozen=True, slots=True)
class TextFields:
    """
    The text fields of each concrete index.

    Attributes:
        each:
            By name of the index.
        others:
            Those of an index that is not named, such as one that a rollover made meanwhile.
    """

    each: Mapping[str, Sequence[str]]
    others: Sequence[str] = ()

    def of(self, index: str) -> Sequence[str]:
        """Return the text fields of the concrete *index*."""
        return self.each.get(index) or self.others

    @property
    def all(self) -> list[str]:
        """The text fields of all indices."""
        return sorted({name for fields in (*self.each.values(), self.others) for name in fields})


def docvalue_fields_of(grouping: Grouping) -> list[Any]:
    """
    Return the ``docvalue_fields`` that a search needs so that :func:`read_content` can read its hits.
    """
    names: list[Any] = [] if grouping.per is None else [grouping.per]
    return names if grouping.within is None else [*names, {"field": grouping.within.field, "format": "epoch_millis"}]


def read_content(hit: Mapping[str, Any], grouping: Grouping, text_fields: TextFields) -> Content:
    """
    Return what the document of *hit* is compared by.

    The server shows keywords and dates as it indexed them, whatever the format of a date.
    """
    values = hit.get("fields") or {}
    per = () if grouping.per is None else per_of(values.get(grouping.per, ()))
    moment = None if grouping.within is None else moment_of(values.get(grouping.within.field, ()))
    if grouping.similarity is None:
        return Content(per=per, moment=moment)
    try:
        return Content(read_hit(hit, text_fields.of(hit["_index"])), per=per, moment=moment)
    except InvalidInputError as error:
        return Content(per=per, moment=moment, unread=Unread("text", str(error)))


def fetch_contents(
    index: Index,
    wanted: Sequence[Key],
    *,
    grouping: Grouping,
    text_fields: TextFields,
    patience: Patience,
) -> Flow[dict[Key, Content]]:
    """
    Return what each document *wanted* is compared by; without those that are not there any more.

    Cost: one search for every 500 of them. It is repeated while the server is busy or shards do not answer.
    """
    found: dict[Key, Content] = {}

    def take(hit: Mapping[str, Any]) -> None:
        found[document_key(hit)] = read_content(hit, grouping, text_fields)

    unanswered = yield from retry(
        lambda: fetch_hits(
            index,
            wanted,
            take,
            text_fields=text_fields.all if grouping.similarity is not None else (),
            docvalue_fields=docvalue_fields_of(grouping),
        ),
        is_done=lambda missing: not any(missing.values()),
        patience=patience,
    )
    gaps = {key: gap for key, gap in unanswered.items() if gap is not None}
    return found | {key: Content(unread=Unread("not_read", str(gap))) for key, gap in gaps.items()}
