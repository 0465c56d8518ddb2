"""
How the texts of near-duplicates are measured: what is counted of which unit. No text is read here.

A :class:`TextMeasure` first prepares texts, then compares what it prepared: sorted hashes of shingles, or for
edits the units in their order. A prepared text of one measure means nothing to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from es_simhash.arguments import check_choice
from es_simhash.hashing import Scheme
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.texts.similarity import Similarity, compare_shingles, shingle_sets, word_hashes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from es_simhash.texts.similarity import Shingles


Measure = Literal["jaccard", "containment", "edit"]
Unit = Literal["words", "characters"]
MEASURES: tuple[str, ...] = get_args(Measure)
UNITS: tuple[str, ...] = get_args(Unit)


@dataclass(frozen=True, slots=True)
class Score:
    """How similar two texts are, 0 to 1; *containment* is ``None`` where edits are counted."""

    similarity: float
    containment: float | None = None


@dataclass(frozen=True, slots=True)
class TextMeasure:
    """
    A way to measure how similar two texts are, 0 to 1.

    *measure*: ``"jaccard"`` is the shared shingles as a share of those that either text has; ``"containment"``,
    of those of the text that has fewer; ``"edit"``, the units that stay as a share of the longer text, with the
    fewest edits.
    *unit*: ``"words"``, or ``"characters"`` without what stands between words.
    *scheme*: texts first go through its steps before features; ``None`` for none. It is recorded with the
    fingerprints, not here.
    """

    measure: Measure = "jaccard"
    unit: Unit = "words"
    scheme: Scheme | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, MEASURES)
        check_choice("unit", self.unit, UNITS)

    def __str__(self) -> str:
        """Return the measure as words, for messages."""
        return f"{self.measure} of {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON values that stand in ``_meta`` and in plans."""
        return {"measure": self.measure, "unit": self.unit}

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> TextMeasure:
        """Return the measure that :meth:`to_dict` wrote."""
        return cls(recorded["measure"], recorded["unit"])

    def after(self, scheme: Scheme) -> TextMeasure:
        """Return this measure of texts as the fingerprints of *scheme* see them."""
        return replace(self, scheme=scheme if scheme.changes_texts else None)

    def prepare(self, texts: Sequence[str]) -> list[Shingles]:
        """Return each of *texts* prepared for :meth:`compare`; empty for a text without words."""
        if self.scheme is not None and (convert := preprocessor(self.scheme)) is not None:
            texts = convert(texts)
        if self.unit == "words":
            return word_hashes(texts) if self.measure == "edit" else shingle_sets(texts)
        from es_simhash.texts.edit import letter_shingles, letters_of  # noqa: PLC0415 - loads numpy

        return letters_of(texts) if self.measure == "edit" else letter_shingles(texts)

    def compare(self, first: Shingles, second: Shingles, *, bound: float = 0.0) -> Score:
        """Return how similar two prepared texts are; 0 where either is empty, perhaps also below *bound*."""
        if self.measure == "edit":
            from es_simhash.texts.edit import edit_similarity  # noqa: PLC0415 - loads numpy

            return Score(edit_similarity(first, second, bound=bound))
        smaller, larger = sorted((first.size, second.size))
        # No two sets share more than the smaller has.
        if not smaller or (self.measure == "jaccard" and smaller / larger < bound):
            return Score(0.0, 0.0)
        same = compare_shingles(first, second)
        return Score(same.containment if self.measure == "containment" else same.jaccard, same.containment)

    def largest(self, smaller: NDArray[np.int64], larger: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the similarity that no two prepared texts of these sizes exceed."""
        import numpy as np  # noqa: PLC0415

        if self.measure == "containment":
            return (smaller > 0).astype(np.float64)
        shares: NDArray[np.float64] = smaller / np.maximum(larger, 1)
        return shares


WORD_SHINGLES = TextMeasure()
"""The measure where none is named: Jaccard similarity of shingles of words."""


def compare_texts(first: str, second: str, *, scheme: Scheme | None = None) -> Similarity:
    """
    Return Jaccard similarity and containment of the shingles of words of two texts, as *scheme* sees them.

    Examples:
        >>> compare_texts("The cat sat on the mat today", "the cat sat on the mat -- today!").jaccard
        1.0
        >>> compare_texts("长江是中华民族的母亲河", "长江是中华民族的母亲").containment
        1.0
    """
    measure = WORD_SHINGLES if scheme is None else WORD_SHINGLES.after(scheme)
    return compare_shingles(*measure.prepare([first, second]))
