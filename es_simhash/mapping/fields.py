"""The fields of a document with a fingerprint, and its text; no other module spells the names of our fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from es_simhash.arguments import check_items
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint, to_hex

DEFAULT_PREFIX = "simhash"

# No dot: one nested object per document. No quote or blank: the prefix also stands in scripts and in KQL.
_PREFIX = re.compile(r"[^\W_][\w-]*", re.ASCII)


class Fields:
    """
    The full names of the fingerprint fields below one prefix.
    *fingerprint*: keyword of the 16 hex digits. *blocks*: keywords of the four block terms, most significant first.
    *value*: long of the signed fingerprint, for scripts. *passages*: keyword of the terms of passages, where the index
    has them. *error*: keyword that says why an ingest pipeline made no fingerprint. *group*: keyword of the group that
    a document belongs to. On duplicates only: *duplicate_of*, keyword of the canonical's id; *distance*, byte: to the
    canonical, in bits. *at*: date of the moment a document was grouped.
    """

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        if not isinstance(prefix, str):
            raise WrongTypeError(f"prefix must be a string, not {type(prefix).__name__}")
        if not _PREFIX.fullmatch(prefix):
            raise InvalidInputError(
                f"prefix {shorten(prefix)} cannot name the fields: use letters, digits, '_' and '-', "
                "beginning with a letter or digit, without dots"
            )
        self.prefix = prefix
        named = (f"{prefix}.{name}" for name in FINGERPRINTED)
        self.fingerprint, *blocks, self.value, self.passages, self.error = named
        self.blocks = tuple(blocks)
        self.group, self.duplicate_of, self.distance, self.at = (f"{prefix}.{name}" for name in GROUPED)


FINGERPRINTED = ("fingerprint", "block0", "block1", "block2", "block3", "value", "passages", "error")
"""Names, without the prefix, of what another text makes wrong; the group fields are not among them."""

GROUPED = ("group", "duplicate_of", "distance", "at")
"""Names, below the prefix, of what grouping writes."""


WITHOUT_FINGERPRINT = ("passages", "error", *GROUPED)
"""Names, below the prefix, of what a document without a fingerprint may have of ours."""

_FINGERPRINT = re.compile("[0-9a-f]{16}")


def read_fingerprint(digits: Any) -> int | None:
    """Return the fingerprint that *digits* of a document are; ``None`` if they are none: anybody may write them."""
    return int(digits, 16) if isinstance(digits, str) and _FINGERPRINT.fullmatch(digits) else None


def fingerprint_fields(
    fingerprint: int | None, *, prefix: str = DEFAULT_PREFIX, value: bool = True, passages: Sequence[str] = ()
) -> dict[str, Any]:
    """
    Return the fields that put *fingerprint* into a document, as one nested object.

    Args:
        fingerprint:
            Unsigned 64-bit SimHash, or ``None`` for a text without features.
        prefix:
            Name of the object.
        value:
            Whether to add the signed 64-bit copy that script filters read. It is a decimal string: JSON libraries that
            read numbers as doubles, as JavaScript does, would round it.
        passages:
            The terms of the text's passages, where the index has them.

    Returns:
        ``{prefix: {"fingerprint": ..., "block0": ..., ..., "value": ...}}``, or ``{}`` for ``None``, so that
        ``document | fingerprint_fields(fingerprint)`` is right in both cases. A text without features in
        a scheme may have passages.

    Raises:
        InvalidInputError: If the fingerprint does not fit in 64 bits, or the prefix is unusable.

    Examples:
        >>> fingerprint_fields(0x8000_0000_0000_000A)["simhash"]["fingerprint"]
        '800000000000000a'
        >>> fingerprint_fields(0x8000_0000_0000_000A)["simhash"]["value"]
        '-9223372036854775798'
    """
    Fields(prefix)
    if fingerprint is not None:
        to_hex(fingerprint)  # refuses what is no fingerprint
    ours = our_fields(fingerprint, value=value)
    if passages:
        ours["passages"] = list(check_items("passages", passages, of="strings"))
    return {prefix: ours} if ours else {}


def our_fields(fingerprint: int | None, *, value: bool) -> dict[str, Any]:
    """Return what :func:`fingerprint_fields` puts below the prefix; *fingerprint* was computed here."""
    if fingerprint is None:
        return {}
    digits = f"{fingerprint:016x}"  # each block is four digits, as in ``hashing.block_terms``
    fields = {
        "fingerprint": digits,
        "block0": digits[:4],
        "block1": digits[4:8],
        "block2": digits[8:12],
        "block3": digits[12:],
    }
    if value:
        fields["value"] = str(to_signed(fingerprint))
    return fields


def to_signed(fingerprint: int) -> int:
    """Return the value of the field ``value``: a ``long`` is signed, so the upper half of the range is negative."""
    return fingerprint - (1 << 64) if fingerprint >> 63 else fingerprint


def group_fields(
    group: str, *, canonical: str | None = None, distance: int | None = None, at: str | None = None
) -> dict[str, Any]:
    """Return the group fields of a document, without the prefix; *canonical* is ``None`` on the canonical itself."""
    return {"group": group, "duplicate_of": canonical, "distance": None if canonical is None else distance, "at": at}


def full_name(index: str, id_: str, routing: str | None = None) -> str:
    """Return the name of a group whose canonical shares its id; no index has ``/`` or ``?`` in its name."""
    return f"{index}/{id_}" if routing is None else f"{index}?{quote(routing, safe='')}/{id_}"


@cache
def dotted_names(prefix: str) -> frozenset[str]:
    return frozenset(f"{prefix}.{name}" for name in (*FINGERPRINTED, *GROUPED))


def made_wrong(ours: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that the new fields *ours* make wrong; without a fingerprint a document has no other group."""
    return FINGERPRINTED if ours.get("fingerprint") is not None and "group" not in ours else (*FINGERPRINTED, *GROUPED)


def whole_update(ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return *ours* for a partial update: the server merges objects, so what *ours* makes wrong is a null."""
    return dict.fromkeys(made_wrong(ours)) | dict(ours)


def clearing(source: Mapping[str, Any], names: Iterable[str], *, prefix: str) -> dict[str, Any]:
    """
    Return the partial document that clears the fields *names* of *source*, nested and dotted; empty if it has none.
    An update cannot take a key out, but a null in its place is indexed as nothing. If the object below *prefix* has
    nothing else, the null replaces the object.
    """
    held = source.get(prefix)
    ours = {key for key, value in held.items() if value is not None} if isinstance(held, Mapping) else set()
    names = list(names)
    nested = {name: None for name in names if name in ours}
    dotted: dict[str, Any] = {key: None for name in names if source.get(key := f"{prefix}.{name}") is not None}
    return dotted | ({prefix: nested if ours - nested.keys() else None} if nested else {})


def without_fingerprint(
    document: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX, names: Collection[str] = FINGERPRINTED
) -> dict[str, Any]:
    """
    Return a copy of *document* without *names*, the fields of an earlier fingerprint, nested or dotted.
    An object that becomes empty is removed. A prefix with something other than an object is left as it is.
    """
    dotted = {f"{prefix}.{name}" for name in names}
    copy = {key: value for key, value in document.items() if key not in dotted}
    held = copy.get(prefix)
    if isinstance(held, Mapping):
        rest = {key: value for key, value in held.items() if key not in names}
        if rest:
            copy[prefix] = rest
        else:
            del copy[prefix]
    return copy


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
        for item in node:
            yield from _values(item, path)
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


NO_SOURCE = "the index stores no _source, so the text cannot be read"


def text_or_none(hit: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """Return the text of a *hit* of a search; ``None`` where it has none."""
    try:
        return read_text(hit.get("_source") or {}, fields)
    except InvalidInputError:
        return None


_MASK = re.compile(r"(?:[0-9a-f]{32,128}\s*)+")  # what OpenSearch shows in place of a value: its digest


def is_masked(text: str) -> bool:
    """Return whether *text* is nothing but digests: the mask of a text, unless it fits its fingerprint."""
    return _MASK.fullmatch(text) is not None


def read_hit(hit: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return the text of a hit of :func:`search_texts`; if it has none, raise one line that says why."""
    text = read_text(hit.get("_source") or {}, fields)
    if text is not None:
        return text
    if "_source" not in hit:
        raise InvalidInputError(NO_SOURCE)
    raise InvalidInputError(f"it has no text in {', '.join(fields)}: not in _source, or not for this user")


def carries(partial: Mapping[str, Any], field: str) -> bool:
    def decides(node: Any, path: Sequence[str]) -> bool:
        if not path or not isinstance(node, Mapping):
            return True  # a list, a null or a scalar replaces all that was below
        keys = [(length, ".".join(path[:length])) for length in range(1, len(path) + 1)]
        return any(key in node and decides(node[key], path[length:]) for length, key in keys)

    return decides(partial, field.split("."))


def users_content(document: Mapping[str, Any], prefix: str, *, is_kept: bool = False) -> Any:
    """
    Return what *document* has of the user's where our object goes; ``None`` if nothing.
    An object is ours if it has a fingerprint, something else in its place beside the block terms, or only what a
    document may have of ours without one. Keys of others beside a fingerprint stay there. *is_kept*: the fields are not
    made anew, so that something else in the place of a fingerprint is none of ours.
    """
    held = document.get(prefix)
    has_dotted = not dotted_names(prefix).isdisjoint(document)
    if held is None and not has_dotted:
        return None  # most documents, without detours
    if held is not None and not isinstance(held, Mapping):
        return held
    dotted = _read_dotted(document, prefix) if has_dotted else {}
    ours = {**dotted, **(held or {})}
    if not ours or read_fingerprint(ours.get("fingerprint")) is not None:
        return None
    if ours.keys() >= {*FINGERPRINTED[:5]} and not (is_kept and ours["fingerprint"] is not None):
        return None
    return ours if any(ours[name] is not None for name in ours.keys() - WITHOUT_FINGERPRINT) else None


def is_broken(held: Any) -> bool:
    """Return whether what :func:`users_content` found has no names but ours, with another value as the fingerprint."""
    return (
        isinstance(held, Mapping) and held.get("fingerprint") is not None and held.keys() <= {*FINGERPRINTED, *GROUPED}
    )


def _read_dotted(document: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    names = {name: document.get(f"{prefix}.{name}") for name in (*FINGERPRINTED, *GROUPED)}
    return {name: value for name, value in names.items() if value is not None}


def our_object(document: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """Return our object in *document*; empty if there is none, or one of the user's own in its place."""
    return {} if users_content(document, prefix) is not None else document.get(prefix) or {}


def say_taken(held: Any, prefix: str) -> str:
    return f"field {prefix!r} already holds {shorten(held)}: choose another prefix"


def check_prefix(document: Mapping[str, Any], prefix: str, *, is_kept: bool = False) -> None:
    """Raise if *document* has something of its own where our object goes, as :func:`users_content` says."""
    if (held := users_content(document, prefix, is_kept=is_kept)) is not None:
        raise InvalidInputError(say_taken(held, prefix))


def with_fields(document: Mapping[str, Any], fields: Mapping[str, Any], *, prefix: str) -> dict[str, Any]:
    """Return a copy of *document* with *fields* in place of an old fingerprint and all that is wrong then."""
    if prefix not in document and dotted_names(prefix).isdisjoint(document):  # most documents, without detours
        return {**document, **fields}
    check_prefix(document, prefix)
    ours = fields.get(prefix) or {}
    copy = without_fingerprint(document, prefix=prefix, names=made_wrong(ours))
    if ours:
        copy[prefix] = {**(copy.get(prefix) or {}), **ours}
    return copy


def now() -> str:
    """Return the time as ``simhash.at`` holds it: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
