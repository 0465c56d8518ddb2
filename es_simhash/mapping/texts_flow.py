"""Searches that return the texts of documents, from ``_source`` or, without it, from stored fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.mapping.documents import read_text
from es_simhash.transport.answers import find_gaps, is_source_refused
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Call, Flow


def _send(call: Call) -> Flow[Any]:
    return (yield call)


def search_texts(
    index: Index,
    body: Mapping[str, Any],
    fields: Sequence[str],
    *,
    source: Sequence[str] = (),
    routing: str | None = None,
    send: Callable[[Call], Flow[Any]] = _send,
) -> Flow[dict[str, Any]]:
    """
    Return the answer to *body*, whose hits have *fields* in ``_source`` or among their stored fields.

    Costs a second search if an index keeps no ``_source``: asked for parts of it, a server refuses; asked for all
    of it, it returns none. *body* has no ``_source`` and no ``stored_fields``; *source* names more parts to
    return.
    """
    request = text_body(body, fields, source=source)
    arguments = {"index": index} | ({} if routing is None else {"routing": routing})
    try:
        answer: dict[str, Any] = yield from send(Call("search", {**arguments, "body": request}))
    except Exception as error:
        if not is_source_refused(error):
            raise
    else:
        if not is_source_refused(find_gaps(answer)):
            return answer
    whole: dict[str, Any] = yield from send(Call("search", {**arguments, "body": {**request, "_source": True}}))
    return whole


def text_body(body: Mapping[str, Any], fields: Sequence[str], *, source: Sequence[str] = ()) -> dict[str, Any]:
    """Return the search *body* of hits that carry *fields*, as :func:`search_texts` sends it first."""
    return {**body, "_source": [*fields, *source], "stored_fields": list(fields)}


def read_hit(hit: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return the text of a hit of :func:`search_texts`; if it has none, raise one line that says why."""
    text = read_text(hit.get("_source") or hit.get("fields") or {}, fields)
    if text is not None:
        return text
    ignored = sorted(set(hit.get("_ignored", ())) & set(fields))
    if ignored:
        raise InvalidInputError(f"field {ignored[0]} was not kept: it is longer than ignore_above, or malformed")
    raise InvalidInputError(
        f"it has no text in {', '.join(fields)}: not in _source, not stored (ignore_above leaves long ones out), or "
        "not for this user"
    )
