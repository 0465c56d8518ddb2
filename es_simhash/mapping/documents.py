"""The text and the fingerprint fields of one document at a time. No request is made here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint
from es_simhash.mapping.fields import DEFAULT_PREFIX, dotted_names, fingerprint_fields, made_wrong, without_fingerprint


def document_fields(
    text: str | None,
    *,
    scheme: str | Scheme = DEFAULT_SCHEME,
    prefix: str = DEFAULT_PREFIX,
    value: bool = True,
    passages: bool = False,
) -> dict[str, Any]:
    """
    Return the fields that a document with *text* carries, as one nested object; ``{}`` where it has no features.

    Args:
        text:
            The text; ``None`` counts as no text.
        scheme:
            Name of a scheme, or a scheme.
        prefix:
            Name of the object that holds the fields.
        value:
            Whether to add the signed 64-bit copy that script filters read.
        passages:
            Whether to add the terms of the text's passages, for an index that has them.

    Raises:
        TypeError: If *text* is not a string.
        InvalidInputError: If the scheme or prefix cannot be used.

    Examples:
        >>> document_fields(" ... ")
        {}
        >>> sorted(document_fields("the quick brown fox")["simhash"])
        ['block0', 'block1', 'block2', 'block3', 'fingerprint', 'value']
    """
    found = None if text is None else fingerprint(text, scheme=scheme)
    terms: list[str] = []
    if passages and text is not None:
        from es_simhash.hashing.batches import stored_term_list  # noqa: PLC0415 -- loads numpy

        [terms] = stored_term_list([text], [found])
    return fingerprint_fields(found, prefix=prefix, value=value, passages=terms)


def _values(node: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield what stands at *path* below *node*: keys may be dotted, and lists are walked in order."""
    if isinstance(node, (list, tuple)):
        for each in node:
            yield from _values(each, path)
    elif not path:
        yield node
    elif isinstance(node, Mapping):
        for length in range(1, len(path) + 1):
            key = ".".join(path[:length])
            if key in node:
                yield from _values(node[key], path[length:])


def read_values(document: Mapping[str, Any], field: str) -> list[Any]:
    """
    Return the values of *field* in *document*, in order; a path may be written nested or dotted.
    >>> read_values({"by": [{"name": "a"}, {"name": "b"}]}, "by.name")
    ['a', 'b']
    """
    return list(_values(document, field.split(".")))


def read_text(document: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """Return the values of *fields*, in that order, joined by line feeds; ``None`` if there is none."""
    if len(fields) == 1 and type(text := document.get(fields[0])) is str and "." not in fields[0]:
        return text  # most documents, without detours
    parts = []
    for name in fields:
        for value in _values(document, name.split(".")):
            if isinstance(value, str):
                parts.append(value)
            elif value is not None:
                raise InvalidInputError(
                    f"field {name!r} holds {shorten(value)} ({type(value).__name__}), not text: give a string"
                )
    return "\n".join(parts) if parts else None


def text_or_none(hit: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """Return the text of a *hit* of a search, from ``_source`` or from stored fields; ``None`` where it has none."""
    try:
        return read_text(hit.get("_source") or hit.get("fields") or {}, fields)
    except InvalidInputError:
        return None


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


def carries(partial: Mapping[str, Any], field: str) -> bool:
    """Return whether a partial update with *partial* sets or clears *field*."""

    def decides(node: Any, path: Sequence[str]) -> bool:
        if not path or not isinstance(node, Mapping):
            return True  # a list, a null or a scalar replaces all that was below
        keys = [(length, ".".join(path[:length])) for length in range(1, len(path) + 1)]
        return any(key in node and decides(node[key], path[length:]) for length, key in keys)

    return decides(partial, field.split("."))


def check_prefix(document: Mapping[str, Any], prefix: str) -> None:
    """Raise if *document* has something of its own where our object goes."""
    held = document.get(prefix)
    if held is not None and not isinstance(held, Mapping):
        raise InvalidInputError(
            f"field {prefix!r} already holds {shorten(held)}: choose another prefix for the fingerprint fields"
        )


def with_fields(document: Mapping[str, Any], fields: Mapping[str, Any], *, prefix: str) -> dict[str, Any]:
    """Return a copy of *document* with *fields* in place of an old fingerprint and all they make wrong."""
    if prefix not in document and dotted_names(prefix).isdisjoint(document):  # most documents, without detours
        return {**document, **fields}
    check_prefix(document, prefix)
    own = fields.get(prefix) or {}
    copy = without_fingerprint(document, prefix=prefix, names=made_wrong(own))
    if own:
        copy[prefix] = {**(copy.get(prefix) or {}), **own}
    return copy
