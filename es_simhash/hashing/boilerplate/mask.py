"""
The mask: a JSON file that lists passages of template text, which people may read and edit.

Only the texts of its passages count; what stands beside a text says where it comes from. Masks are the same if their
passages are the same after normalisation, in any order: the digest is made of these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import SchemeError, shorten
from es_simhash.hashing.boilerplate.grams import FEWEST_LETTERS, count_worth
from es_simhash.hashing.characters import SEPARATOR, normalise_text, to_codes

__all__ = ["LARGEST_MASK", "MaskPassage", "mask_digest", "mask_json", "read_mask"]

FORMAT, VERSION = "es-simhash boilerplate", 1

LARGEST_MASK = 8 << 20
"""Largest mask file in bytes."""

_ADVICE = "give a file that es-simhash boilerplate wrote"


@dataclass(frozen=True, slots=True)
class MaskPassage:
    """
    A passage of template text.

    Attributes:
        text:
            The text.
        documents:
            In how many of the documents that were counted it stands; ``None`` if nobody counted.
        share:
            This number as a share of the documents that were counted.
        source:
            The source within which it was counted; ``None`` for all documents.
    """

    text: str
    documents: int | None = None
    share: float | None = None
    source: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the values that are known, as plain JSON."""
        values = {"text": self.text, "documents": self.documents, "share": self.share, "source": self.source}
        return {name: value for name, value in values.items() if value is not None}


def mask_json(passages: Iterable[MaskPassage]) -> str:
    """Return the content of the mask file of *passages*."""
    content = {"format": FORMAT, "version": VERSION, "passages": [each.to_dict() for each in passages]}
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def read_mask(content: bytes) -> list[str]:
    """
    Return the texts of the passages of a mask file; nothing else in it is looked at.

    Raises:
        SchemeError: If *content* is too large, is not such a file, or a passage cannot be used.
    """
    if len(content) > LARGEST_MASK:
        raise SchemeError(f"the mask has {len(content):,} bytes, and {LARGEST_MASK:,} are allowed: remove passages")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SchemeError(f"the mask is not JSON ({error}): {_ADVICE}") from error
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise SchemeError(f'the mask has no "format": "{FORMAT}": {_ADVICE}')
    if data.get("version") != VERSION:
        raise SchemeError(f"the mask has version {shorten(data.get('version'))}, not {VERSION}: upgrade es_simhash")
    passages = data.get("passages")
    if not isinstance(passages, list) or not passages:
        raise SchemeError("the mask has no passages: add one, or use the scheme without boilerplate")
    return [_text_of(passage, number) for number, passage in enumerate(passages, 1)]


def _text_of(passage: Any, number: int) -> str:
    text = passage.get("text") if isinstance(passage, Mapping) else None
    if not isinstance(text, str):
        raise SchemeError(f'passage {number} of the mask is {shorten(passage)}: give an object with a string "text"')
    letters = count_worth(to_codes(_letters(text)))
    if letters < FEWEST_LETTERS:
        raise SchemeError(
            f"passage {number} of the mask, {shorten(text)}, is worth {int(letters)} letters: give at least "
            f"{FEWEST_LETTERS} (40 characters of Chinese), or remove it"
        )
    return text


def mask_digest(texts: Sequence[str]) -> str:
    """Return the SHA-256 of the passages of a mask as 64 hexadecimal digits: of their letters and digits, sorted."""
    lines = sorted(set(map(_letters, texts)))
    return hashlib.sha256("\n".join([f"{FORMAT} {VERSION}", *lines]).encode()).hexdigest()


def _letters(text: str) -> str:
    return normalise_text(text).replace(chr(SEPARATOR), "")
