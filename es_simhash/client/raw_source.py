"""
Multi-gets that return each ``_source`` as the text that the server sent, through the caller's own client.

The client is not changed: a copy of it, with a copy of its transport, shares its connections, and reads answers with
another deserialiser. A number that is read as a double and written again may change; its text does not. The names
here are those of the transports of both client libraries; neither library is imported.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from es_simhash.errors import WrongTypeError
from es_simhash.removal.raw_json import split_items, split_members

__all__ = ["with_raw_source"]

# elastic_transport keeps what reads answers here, opensearch-py there.
_READERS = ("serializers", "deserializer")


def with_raw_source(client: Any) -> Any:
    """
    Return a copy of *client* whose multi-gets have the text of each ``_source`` in its place.

    A first request must have been made with the client itself: an async client opens its connections then.

    Raises:
        TypeError: If the client has no transport of a known kind.
    """
    transport = getattr(client, "transport", None)
    reader = next((name for name in _READERS if hasattr(transport, name)), None)
    if reader is None:
        raise WrongTypeError(
            f"{type(client).__name__} has no transport of a known kind, so no document can be archived"
        )
    transport = copy.copy(transport)
    setattr(transport, reader, _RawReader(getattr(transport, reader)))
    clone = copy.copy(client)
    name = "_transport" if hasattr(client, "_transport") else "transport"
    setattr(clone, name, transport)
    return clone


class _RawReader:
    """Reads answers as *reader* does, except the sources of a multi-get."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def loads(self, data: bytes | str, mimetype: str | None = None) -> Any:
        """Return the answer as plain values."""
        try:
            return _read(data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data)
        except ValueError:  # no multi-get: an error of the server, or of something before it
            return self._reader.loads(data, mimetype)


def _read(text: str) -> dict[str, Any]:
    members = split_members(text)
    if "docs" not in members:
        raise ValueError("the answer has no documents")
    docs = []
    for item in split_items(members.pop("docs")):
        parts = split_members(item)
        source = parts.pop("_source", None)
        plain = {name: json.loads(value) for name, value in parts.items()}
        docs.append(plain if source is None else {**plain, "_source": source})
    return {**{name: json.loads(value) for name, value in members.items()}, "docs": docs}
