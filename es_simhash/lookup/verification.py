"""
What a caller may give as ``verify``: whether, by which measure and with which bound texts are compared.

Plain values, checked. Where the texts come from is known to the flows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from es_simhash.arguments import check_fields
from es_simhash.errors import InvalidInputError, WrongTypeError
from es_simhash.lookup.near_dups import NearDup
from es_simhash.texts.measures import WORD_SHINGLES, Measure, TextMeasure, Unit
from es_simhash.texts.presets import Preset
from es_simhash.texts.similarity import DEFAULT_SIMILARITY, check_bound

TextSource: TypeAlias = Callable[[NearDup], str | None]


@dataclass(frozen=True, slots=True)
class Verification:
    """
    How to verify near-duplicates.

    Args:
        similarity:
            Smallest similarity to keep, 0 to 1; with 0 nothing is dropped.
        text_field:
            Field or fields of the text in the index; by default those that the index records. For lookups only.
        texts:
            A function that returns the text of a :class:`NearDup`, or ``None``, in place of the index; async clients
            call it in a thread. For lookups only.
        measure:
            ``"jaccard"``: the shared shingles as a share of those that either text has. ``"containment"``: as a share
            of those of the text that has fewer. ``"edit"``: the units that stay, as a share of the longer text.
        unit:
            ``"words"``, or ``"characters"`` without what stands between words, which stand scattered errors.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the similarity is out of range, a measure or unit is unknown, or a field name cannot be
            used.
    """

    similarity: float = DEFAULT_SIMILARITY
    text_field: str | Sequence[str] = ()
    texts: TextSource | None = None
    measure: Measure = "jaccard"
    unit: Unit = "words"

    def __post_init__(self) -> None:
        check_bound(self.similarity, name="similarity")
        check_fields("text_field", self.text_field, may_lack=True)
        if self.texts is not None and not callable(self.texts):
            raise WrongTypeError(f"texts must be a function of a NearDup, not {type(self.texts).__name__}")
        TextMeasure(self.measure, self.unit)

    @property
    def text_measure(self) -> TextMeasure:
        """What is counted, of which unit."""
        return TextMeasure(self.measure, self.unit)

    def check_recordable(self) -> None:
        """
        Refuse a verification that names its own texts, where documents are grouped: all writers compare the same.

        Raises:
            InvalidInputError: If it names a text field, or a function that has the texts.
        """
        if self.text_field or self.texts is not None:
            raise InvalidInputError(
                "groups are verified by the text fields that the index records: leave text_field and texts out of "
                "the Verification"
            )


Verify: TypeAlias = bool | float | TextSource | Verification
"""What a caller of a lookup gives as ``verify``."""

Verified: TypeAlias = bool | float | Verification
"""What a caller gives as ``verify`` where documents are grouped."""


def measure_of(preset: Preset | None) -> TextMeasure:
    """Return the measure of *preset*; that of words where there is none."""
    return WORD_SHINGLES if preset is None else TextMeasure(preset.measure, preset.unit)


def verification_of(verify: Verify | None, *, preset: Preset | None = None) -> Verification | None:
    """
    Return the verification that the argument *verify* of the find methods means; ``None`` for none.

    ``True``, a number and a function take from *preset* what they do not say.

    Raises:
        TypeError: If it is neither a bool, a number, a function nor a :class:`Verification`.
        InvalidInputError: If it is a number out of range.
    """
    if verify is None or verify is False:
        return None
    if isinstance(verify, Verification):
        return verify
    similarity = DEFAULT_SIMILARITY if preset is None else preset.similarity
    measure = measure_of(preset)
    if verify is True:
        return Verification(similarity, measure=measure.measure, unit=measure.unit)
    if callable(verify):
        return Verification(similarity, texts=verify, measure=measure.measure, unit=measure.unit)
    return Verification(check_bound(verify), measure=measure.measure, unit=measure.unit)
