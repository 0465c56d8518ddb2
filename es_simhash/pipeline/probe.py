"""Texts and features by which a server shows that it makes the same bits as Python, and the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.hashing import Scheme, fingerprint_features, fingerprints, to_hex

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
# Features of each length that is hashed in its own way, in UTF-8 of one to four bytes; and weights that are rounded.
_FEATURES: tuple[dict[str, float], ...] = (
    *({"aé北🙂"[length % 4] * length + "x": 1.0} for length in (0, 1, 2, 4, 9, 17, 33, 70, 100, 129, 241, 902)),
    {"a": 1, "b": 2, "": 1},
    {},
)
_UNEVEN: dict[str, float] = {"a": 1.5, "b": 2.0**-20 * 2.5, "c": 1.5 + 2.0**-20 * 1.5}


@dataclass(frozen=True, slots=True)
class Difference:
    """A text, or features, whose fingerprint differs; *expected* is what Python computes, ``None`` for none."""

    given: Any
    expected: str | None
    found: str | None


def probe_documents(scheme: Scheme, field: str, *, prefix: str) -> list[dict[str, Any]]:
    """Return documents for the simulation of a pipeline that reads *field*; one has a fingerprint already."""
    documents = [_nested(field, value) for value in _values(scheme)]
    documents[0] = {**documents[0], prefix: {"fingerprint": "0" * 16}}
    return [{"_source": document} for document in documents]


def _values(scheme: Scheme) -> tuple[Any, ...]:
    """Return the texts or the features that probe a scheme."""
    if scheme.name != "weighted":
        return _TEXTS
    return _FEATURES if scheme.parameters["levels"] else (*_FEATURES, _UNEVEN)


def _nested(path: str, value: Any) -> dict[str, Any]:
    *above, last = path.split(".")
    document: dict[str, Any] = {last: value}
    for name in reversed(above):
        document = {name: document}
    return document


def find_differences(answers: Sequence[Mapping[str, Any]], scheme: Scheme, *, prefix: str) -> list[Difference]:
    """
    Return the probes for which the server's fingerprint is not the one that Python computes by *scheme*.

    *answers*: the ``docs`` of the answer to :func:`probe_documents`.
    """
    values = _values(scheme)
    if scheme.name == "weighted":
        computed = [fingerprint_features(each, scheme=scheme) for each in values]
    else:
        computed = fingerprints(values, scheme=scheme)
    expected = [None if each is None else to_hex(each) for each in computed]
    found = [((each.get("doc") or {}).get("_source") or {}).get(prefix) or {} for each in answers]
    compared = zip(values, expected, (each.get("fingerprint") for each in found), strict=True)
    return [Difference(given, wanted, made) for given, wanted, made in compared if wanted != made]
