"""
Texts by which a server shows that it makes the same bits as Python, and the comparison of its answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.hashing import Scheme, fingerprints, to_hex

__all__ = ["Difference", "find_differences", "probe_documents"]

# Each is there for a part of the script: case folding and ligatures, marks that move or combine, Hangul in parts,
# wide and half-width forms, characters above U+FFFF, characters that Unicode 14.0 does not know, repeated shingles,
# shingles that reach from one piece of a long text into the next, and texts that are too short or have nothing.
_TEXTS = (
    "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog.",
    "STRASSE Straße ﬁne ŒUVRE İstanbul ΣΊΣΥΦΟΣ Ὰ\u0bcd\u0345 ᾳ\u0306 ǅ",
    "Tie\u0302\u0301ng Vie\u0323\u0302t q\u0307\u0323 \u0301\u0323a שָׁלוֹם مُحَمَّد क़ानून क\u093cा",
    "\u1112\u1161\u11ab\u1100\u1173\u11af 한국어 뉴스 ﾊﾝｶｸ ｶﾞ パ\u309a か\u3099 ㍿ ① ２０２４年",
    "近日,美国一名年轻女子在网上发文称,自己成功地拒绝了男友的求婚。繁體中文與简体",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠮷野家 𐐀𐐨 \U0002f800 \U0001f600 \u0e4e\U0001e030 ไทย ລາວ မြန်မာ ភាសាខ្មែរ",
    "a" + "\u0301\u0323" * 70 + "b",
    "long " * 600 + "é" * 1_500 + "ﷺ" * 900 + "end",
    "ab",
    "京",
    " .,;:!?…—— ",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """
    A text whose fingerprint differs.

    Attributes:
        text:
            The text.
        expected:
            The fingerprint that Python computes, as hex digits; ``None`` where it has none.
        found:
            What the server answered.
    """

    text: str
    expected: str | None
    found: str | None


def probe_documents(text_field: str, *, prefix: str) -> list[dict[str, Any]]:
    """
    Return documents for the simulation of a pipeline that reads *text_field*; one has a fingerprint already.
    """
    documents = [_nested(text_field, text) for text in _TEXTS]
    documents[0] = {**documents[0], prefix: {"fingerprint": "0" * 16}}
    return [{"_source": document} for document in documents]


def _nested(path: str, text: str) -> dict[str, Any]:
    *above, last = path.split(".")
    document: dict[str, Any] = {last: text}
    for name in reversed(above):
        document = {name: document}
    return document


def find_differences(answers: Sequence[Mapping[str, Any]], scheme: Scheme, *, prefix: str) -> list[Difference]:
    """
    Return the texts for which a server answered another fingerprint than Python computes by *scheme*.

    Args:
        answers:
            What it answered to :func:`probe_documents`: the ``docs`` of its answer.
        scheme:
            The scheme.
        prefix:
            Name of the object that holds the fields.
    """
    expected = [None if each is None else to_hex(each) for each in fingerprints(_TEXTS, scheme=scheme)]
    found = [((each.get("doc") or {}).get("_source") or {}).get(prefix) or {} for each in answers]
    compared = zip(_TEXTS, expected, (each.get("fingerprint") for each in found), strict=True)
    return [Difference(text, wanted, given) for text, wanted, given in compared if wanted != given]
