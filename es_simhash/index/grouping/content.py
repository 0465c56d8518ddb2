"""
What decides beside the fingerprints whether two documents are neighbours: text, value of a keyword field, date.

Pure. What neighbours are is defined by ``rule.Grouping``; how these values are read from a document that is being
written is in ``read_content``, and from an index in ``flows.grouping.contents``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from es_simhash.index.grouping.rule import Grouping
    from es_simhash.index.measures.measure import Score, TextMeasure
    from es_simhash.index.similarity import Shingles

__all__ = ["Comparison", "Content", "Unread", "compare_contents", "moment_of", "per_of", "prepare_together"]


@dataclass(frozen=True, slots=True)
class Unread:
    """
    Why a document cannot be compared.

    Attributes:
        kind:
            ``"text"``: it has no text that can be read. ``"date"``: its date is in a format that is not read here.
            ``"partial"``: it is a partial update without the field. ``"not_read"``: its shard did not answer.
        detail:
            What more is known, such as the name of the field.
    """

    kind: Literal["text", "date", "partial", "not_read"]
    detail: str = ""

    def __str__(self) -> str:
        """Return the sentence for people."""
        match self.kind:
            case "date":
                return f"the date {self.detail} cannot be read before it is indexed"
            case "partial":
                return f"the partial update does not contain {self.detail}"
            case "not_read":
                return f"it was not read: {self.detail}"
            case _:
                return self.detail or "it has no text"


class Content:
    """
    What one document is compared by; its text is prepared when it is first compared.

    Memory: the text, and after the first comparison 8 bytes for each of its distinct shingles, or units, instead.

    Args:
        text:
            Its text; ``None`` where texts are not compared, or it was not read.
        per:
            Its values of the field ``per``, as :func:`per_of` returns them.
        moment:
            Its date of the field ``within``, as :func:`moment_of` returns it.
        unread:
            Why it cannot be compared; ``None`` where it can.
    """

    __slots__ = ("_prepared", "_text", "digest", "moment", "per", "unread")

    def __init__(
        self,
        text: str | None = None,
        *,
        per: tuple[str, ...] = (),
        moment: Decimal | None = None,
        unread: Unread | None = None,
    ) -> None:
        self._text = text
        self.digest = b"" if text is None else blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        self._prepared: Shingles | None = None
        self.per = per
        self.moment = moment
        self.unread = unread

    @property
    def has_text(self) -> bool:
        """Whether its text was read."""
        return bool(self.digest)

    @property
    def has_values(self) -> bool:
        """Whether its values of ``per`` and ``within`` were read: then one without them has none."""
        return self.unread is None or self.unread.kind == "text"

    @property
    def key(self) -> Hashable:
        """A value that only documents share which are compared in the same way with every other."""
        return self.digest, self.per, self.moment, self.unread is None

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
        self._prepared, self._text = prepared, None

    @property
    def pending_text(self) -> str | None:
        """The text, until it is prepared."""
        return self._text


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    The result of a comparison.

    Attributes:
        are_neighbours:
            Whether the two are neighbours, if their fingerprints are near enough.
        similarity:
            How similar their texts are; ``None`` where that was not computed.
        unread:
            Why they could not be compared; ``None`` where they could.
    """

    are_neighbours: bool
    similarity: Score | None = None
    unread: Unread | None = None


_NO, _YES = Comparison(are_neighbours=False), Comparison(are_neighbours=True)
_NO_CONTENT = Content(unread=Unread("text"))


def compare_contents(first: Content | None, second: Content | None, grouping: Grouping) -> Comparison:
    """
    Return whether two documents, whose fingerprints are near enough, are neighbours under *grouping*.

    The cheap conditions are judged first; texts are compared last.
    """
    if grouping.is_by_distance_alone:
        return _YES
    one, other = first or _NO_CONTENT, second or _NO_CONTENT
    for each in (one, other):
        lacks = (grouping.per is not None and not each.per) or (grouping.within is not None and each.moment is None)
        if lacks and each.has_values:
            return _NO
    for each in (one, other):
        if not each.has_values:
            return Comparison(are_neighbours=False, unread=each.unread)
    if grouping.per is not None and one.per != other.per:
        return _NO
    if grouping.within is not None:
        apart = abs((one.moment or Decimal(0)) - (other.moment or Decimal(0)))
        if apart > grouping.within.milliseconds:
            return _NO
    return _YES if grouping.similarity is None else _compare_texts(one, other, grouping.similarity, grouping.measure)


def _compare_texts(first: Content, second: Content, bound: float, measure: TextMeasure) -> Comparison:
    if not (first.has_text and second.has_text):
        missing = second if first.has_text else first
        return Comparison(are_neighbours=False, unread=missing.unread or Unread("text"))
    if first.pending_text is not None and first.digest == second.digest:
        first.put_prepared(second.prepared(measure))  # a copy: its text need not be prepared again
    mine, others = first.prepared(measure), second.prepared(measure)
    if not mine.size or not others.size:
        return Comparison(are_neighbours=bound == 0)
    score = measure.compare(mine, others, bound=bound)
    return Comparison(score.similarity >= bound, score)


def prepare_together(contents: Iterable[Content], measure: TextMeasure) -> None:
    """
    Prepare the texts of all of *contents* that are not prepared yet: several times faster than one by one.
    """
    pending: dict[bytes, list[Content]] = {}
    for each in contents:
        if each.pending_text is not None:
            pending.setdefault(each.digest, []).append(each)
    texts = [copies[0].pending_text or "" for copies in pending.values()]
    for copies, prepared in zip(pending.values(), measure.prepare(texts), strict=True):
        for each in copies:
            each.put_prepared(prepared)


def per_of(values: Iterable[Any]) -> tuple[str, ...]:
    """
    Return the *values* of a keyword field in one document, as they are compared: each once, in order.
    """
    return tuple(sorted(set(map(str, values))))


def moment_of(values: Iterable[Any]) -> Decimal | None:
    """
    Return the date that counts of the *values* of a date field, in milliseconds since 1970: the earliest.

    ``None`` without a value. Exact: a ``date_nanos`` has parts of a millisecond, and a server shows them.
    """
    return min((Decimal(str(each)) for each in values), default=None)
