"""
What decides besides fingerprints whether two documents are neighbours: text, keyword values, date.

No requests: ``ingest.content_reader`` reads the values from new documents, :func:`read_content` from hits of an index.
"""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from math import floor
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme, fingerprint
from es_simhash.mapping.fields import read_hit
from es_simhash.texts.measures import WORD_SHINGLES, Score, TextMeasure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from es_simhash.mapping.rule import PairRule
    from es_simhash.texts.shingle_sets import Shingles


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a document cannot be compared; ``"not_read"`` means that its shard did not answer."""

    kind: Literal["text", "value", "partial", "not_read", "deleted", "changed", "routing"]
    detail: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "value":
                return f"{self.detail} cannot be read before it is indexed"
            case "partial":
                return f"the partial update does not contain {self.detail}"
            case "not_read":
                return f"it was not read: {self.detail}"
            case "deleted":
                return "the document was deleted meanwhile"
            case "routing":
                return "it has the same id, and another routing value"
            case "changed":
                return "its text does not fit its fingerprint: it was changed, redacted, cut or masked"
            case _:
                return self.detail or "it has no text"


class Content:
    """What a document is compared by; its first comparison replaces its text by 8 bytes a shingle or unit."""

    __slots__ = ("_digest", "_prepared", "_text", "characters", "found", "moment", "per", "unread")

    def __init__(
        self,
        text: str | None = None,
        *,
        per: tuple[str, ...] = (),
        moment: int | None = None,
        unread: Unread | None = None,
    ) -> None:
        self._text = text
        # The text of a document of the index.
        self.found: str | None = None
        self.characters = 0 if text is None else len(text)
        self._digest = b"" if text is None else None
        self._prepared: Shingles | None = None
        self.per = per
        self.moment = moment
        self.unread = unread

    @property
    def has_text(self) -> bool:
        return self._digest != b""

    @property
    def digest(self) -> bytes:
        """128 bits that only equal texts share; empty where there is no text."""
        if self._digest is None:  # most texts are compared with none
            text = (self._text or "").encode("utf-8", "surrogatepass")
            self._digest = blake2b(text, digest_size=16).digest()
        return self._digest

    @property
    def has_values(self) -> bool:
        """Whether its values of ``per`` and ``within`` were read: then one without them has none."""
        return self.unread is None or self.unread.kind == "text"

    @property
    def key(self) -> Hashable:
        """A value that only documents share which are compared in the same way with every other."""
        return self.digest, self.per, self.moment, self.unread is None

    def fits(self, expected: int | None, scheme: Scheme) -> bool:
        """
        Return whether the text found in an index is that of its fingerprint *expected*.
        It is not if it was changed, redacted or cut since, or is masked for this login.
        """
        return self.found is None or fingerprint(self.found, scheme=scheme) == expected

    @property
    def size(self) -> int:
        """About how many bytes its text occupies, prepared or not."""
        if self._prepared is not None:
            return self._prepared.nbytes
        return 0 if self._text is None else self._text.__sizeof__()

    def prepared(self, measure: TextMeasure) -> Shingles:
        """Return its text as *measure* compares it; an index has one measure, so it is always the same."""
        found = self._prepared
        if found is None:
            found = measure.prepare([self._text or ""])[0]
            self.put_prepared(found)
        return found

    def put_prepared(self, prepared: Shingles) -> None:
        """Take *prepared* for its text, and let go of the text."""
        self._digest = self.digest
        self._prepared, self._text = prepared, None

    @property
    def pending_text(self) -> str | None:
        return self._text


PairReason = Literal["distance", "texts", "per", "within"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    What a rule says of two documents: it accepts them, unless *because* of something, or one of them was *unread*.
    *score*: that of their texts, where these were compared. ``"texts"`` may stand for other numbers, or a text that is
    too short: see :func:`why_apart`.
    """

    because: PairReason | None = None
    score: Score | None = None
    unread: Unread | None = None

    @property
    def accepts(self) -> bool:
        return self.because is None and self.unread is None


_ACCEPTED = Comparison()
_NO_CONTENT = Content(unread=Unread("text"))


def compare_contents(
    first: Content | None, second: Content | None, rule: PairRule, *, distance: int | None = 0
) -> Comparison:
    """Return what *rule* says of two documents; *distance*: ``None`` without a fingerprint."""
    if distance is None or distance > rule.max_distance:
        return Comparison("distance")
    if rule.is_by_distance_alone:
        return _ACCEPTED
    one, other = first or _NO_CONTENT, second or _NO_CONTENT
    for content in (one, other):
        if content.has_values and rule.per is not None and not content.per:
            return Comparison("per")
        if content.has_values and rule.within is not None and content.moment is None:
            return Comparison("within")
    for content in (one, other):
        if not content.has_values:
            return Comparison(unread=content.unread)
    if rule.per is not None and one.per != other.per:
        return Comparison("per")
    if rule.within is not None:
        apart = abs((one.moment or 0) - (other.moment or 0))
        if apart > rule.within.milliseconds:
            return Comparison("within")
    return _ACCEPTED if rule.similarity is None else _compare_texts(one, other, rule.similarity, rule.measure)


def _compare_texts(first: Content, second: Content, bound: float, measure: TextMeasure) -> Comparison:
    for content in (first, second):
        if not content.has_text:
            return Comparison(unread=content.unread or Unread("text"))
    if first.pending_text is not None and first.digest == second.digest:
        first.put_prepared(second.prepared(measure))  # a copy: its text need not be prepared again
    prepared, other = first.prepared(measure), second.prepared(measure)
    score = Score(0.0)
    if prepared.size and other.size:
        score = measure.compare(prepared, other, bound=bound)
    return Comparison(None if score.similarity >= bound else "texts", score)


def why_apart(
    first: Content, second: Content, rule: PairRule
) -> tuple[Literal["texts", "numbers", "short"], float | None]:
    """
    Return what keeps two texts apart that *rule* rejects, and their exact similarity, whatever their numbers; ``None``
    for long texts with less than nine tenths of what the rule wants.
    """
    wanted = rule.similarity or 0.0
    both = first.prepared(rule.measure), second.prepared(rule.measure)
    share = rule.measure.share(*both, bound=0.9 * wanted)
    if not all(prepared.size for prepared in both):
        return "short", share
    return ("texts" if share is None or share < wanted else "numbers"), share


def prepare_together(contents: Iterable[Content], measure: TextMeasure) -> None:
    """Prepare the texts of all of *contents* that are not prepared yet: several times faster than one by one."""
    pending: dict[bytes, list[Content]] = {}
    for content in contents:
        if content.pending_text is not None:
            pending.setdefault(content.digest, []).append(content)
    texts = [copies[0].pending_text or "" for copies in pending.values()]
    for copies, prepared in zip(pending.values(), measure.prepare(texts), strict=True):
        for content in copies:
            content.put_prepared(prepared)


def docvalue_fields(rule: PairRule) -> list[Any]:
    """Return the ``docvalue_fields`` that a search needs so that :func:`read_content` can read its hits."""
    names: list[Any] = [] if rule.per is None else [rule.per]
    return names if rule.within is None else [*names, {"field": rule.within.field, "format": "epoch_millis"}]


def read_content(hit: Mapping[str, Any], rule: PairRule, text_fields: Mapping[str, Sequence[str]]) -> Content:
    """Return what the document of *hit* is compared by: keywords and dates as the server indexed them."""
    values = hit.get("fields") or {}
    per = () if rule.per is None else per_of(values.get(rule.per, ()))
    moment = None if rule.within is None else min(shown_moments(values.get(rule.within.field, ())), default=None)
    if rule.similarity is None:
        return Content(per=per, moment=moment)
    try:
        text = read_hit(hit, text_fields[hit["_index"]])
    except InvalidInputError as error:
        return Content(per=per, moment=moment, unread=Unread("text", str(error)))
    content = Content(text, per=per, moment=moment)
    content.found = text
    return content


def per_of(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the *values* of a keyword field in one document, as they are compared: each once, in order."""
    return tuple(sorted(set(map(str, values))))


def shown_moments(values: Iterable[Any]) -> list[int]:
    """Return dates as a server shows them (``epoch_millis``) in whole milliseconds since 1970: no more counts."""
    return [floor(Decimal(str(value))) for value in values]


MEMORY_BYTES = 256 * 2**20


class TextStore:
    """
    Prepared texts: up to *memory_bytes* in memory, then in a memory-mapped temporary file.
    Texts that are equal after normalisation are kept once. A text takes 8 bytes for each shingle or unit, and about 200
    bytes of memory in addition.
    """

    def __init__(self, measure: TextMeasure = WORD_SHINGLES, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self.measure = measure
        self._limit = memory_bytes
        self._numbers: dict[bytes, int] = {}
        self._ends = array("q", [0])
        self._sizes = array("q")
        self._kept: list[NDArray[np.uint64]] = []
        self._file: Any = None
        self._mapped: NDArray[np.uint64] | None = None

    def add(self, texts: Sequence[str]) -> list[int]:
        """Add *texts*, prepared together; return the number of each, that of an equal one where there is one."""
        different = list(dict.fromkeys(texts))
        numbers = dict(zip(different, map(self._number, self.measure.prepare(different)), strict=True))
        return [numbers[text] for text in texts]

    def _number(self, prepared: NDArray[np.uint64]) -> int:
        digest = blake2b(prepared.data, digest_size=16).digest()
        number = self._numbers.setdefault(digest, len(self._numbers))
        if number == len(self._ends) - 1:
            self._ends.append(self._ends[-1] + prepared.size)
            self._sizes.append(self.measure.size(prepared))
            self._put(prepared)
        return number

    def _put(self, prepared: NDArray[np.uint64]) -> None:
        if self._file is None:
            self._kept.append(prepared)
            if 8 * self._ends[-1] <= self._limit:
                return
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
            weakref.finalize(self, self._file.close)
            for kept in self._kept:
                self._file.write(kept.tobytes())
            self._kept.clear()
        else:
            self._file.write(prepared.tobytes())
        self._mapped = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many shingles or units each text has."""
        import numpy as np  # noqa: PLC0415

        return np.array(self._sizes, np.int64)

    def __getitem__(self, number: int) -> NDArray[np.uint64]:
        import numpy as np  # noqa: PLC0415

        if self._file is None:
            return self._kept[number]
        if self._mapped is None:
            self._file.flush()
            self._mapped = np.memmap(self._file, np.uint64, mode="r")
        return np.asarray(self._mapped[self._ends[number] : self._ends[number + 1]])
