"""
How the texts of near-duplicates are measured: what is counted of which unit; presets; kinds of difference. A
:class:`TextMeasure` first prepares texts, then compares what it prepared, which means nothing to another measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from es_simhash.arguments import check_choice, check_number
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing import Scheme
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.record import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from es_simhash.texts.shingle_sets import Shingles

Measure = Literal["jaccard", "edit"]
Unit = Literal["words", "characters"]
Numbers = Literal["any", "most", "same"]
MEASURES: tuple[str, ...] = get_args(Measure)
UNITS: tuple[str, ...] = get_args(Unit)
NUMBERS: tuple[str, ...] = get_args(Numbers)
_NUMBERS_SAID: dict[Numbers, str] = {"any": "", "most": ", most numbers the same", "same": ", the same numbers"}

# Letters of one text times those of the other, all of whose edits are counted in .05 s.
_LONG = 1 << 30

DEFAULT_SIMILARITY = 0.8
"""The smallest similarity that counts as the same text, where nothing else is given or recorded."""

FEWEST_LETTERS = 20
"""Fewer letters say too little to be compared: "N/A", "See below"; so many are 8 logographs."""


def check_bound(name: str, bound: Any) -> float:
    """Return *bound* as a float, or raise if it is not a similarity from 0 to 1."""
    return check_number(name, bound, advice="a similarity from 0 to 1, such as 0.8")


Replaced = Literal["only", "signs", "replaced", "same"]
"""What became of the numbers of a text in another one."""


@dataclass(frozen=True, slots=True)
class Score:
    """
    How similar two texts are, 0 to 1; *containment* is ``None`` where edits are counted.
    *numbers*: ``"only"`` if nothing but numbers differs, ``"signs"`` if nothing but their signs, ``"replaced"`` if
    numbers stand in the places of others beside other differences, else ``"same"``; ``None`` where nobody asked.
    """

    similarity: float
    containment: float | None = None
    numbers: Replaced | None = None


@dataclass(frozen=True, slots=True)
class TextMeasure(Record):
    """
    A way to measure how similar two texts are, 0 to 1.
    *measure*: ``"jaccard"`` is the shared shingles as a share of those that either text has; ``"edit"``, the units that
    stay as a share of the longer text, with the fewest edits. *unit*: ``"words"`` are pieces of some three letters,
    ``"characters"`` letters; blanks count in neither. *numbers*: with ``"same"``, texts with other numbers in the same
    places are 0 similar; with ``"most"``, those with more such numbers, from two on, than equal ones. *scheme*: texts
    first go through its steps before features; ``None`` for none. It is recorded with the fingerprints, not here.
    *notes_numbers*: whether scores say what became of numbers, whatever the rule. *fewest_letters*: texts of fewer are
    prepared as if they had none (:meth:`for_bound`). *spares_numbers*: texts that differ in nothing but numbers are 0
    similar too (:meth:`sparing_numbers`).
    """

    _NAMES = "measure unit numbers"

    measure: Measure = "jaccard"
    unit: Unit = "words"
    numbers: Numbers = "any"
    scheme: Scheme | None = field(default=None, compare=False)
    notes_numbers: bool = field(default=False, compare=False)
    fewest_letters: int = field(default=0, compare=False, repr=False)
    spares_numbers: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, MEASURES)
        check_choice("unit", self.unit, UNITS)
        check_choice("numbers", self.numbers, NUMBERS)

    def __str__(self) -> str:
        return f"{self.measure} of {self.unit}" + _NUMBERS_SAID[self.numbers]

    @property
    def of_what(self) -> str:
        """
        Return what a similarity is a share of, for people.
        >>> TextMeasure().of_what
        'of the 7-letter shingles'
        """
        if self.measure == "edit":
            return "of the pieces of 3 letters" if self.unit == "words" else "of the letters"
        return f"of the {5 if self.unit == 'characters' else 7}-letter shingles"

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> TextMeasure:
        return cls(recorded["measure"], recorded["unit"], recorded.get("numbers", "any"))

    def after(self, scheme: Scheme) -> TextMeasure:
        """Return this measure of texts as the fingerprints of *scheme* see them."""
        return replace(self, scheme=scheme if scheme.preprocess else None)

    def for_bound(self, similarity: float) -> TextMeasure:
        """
        Return this measure for a rule that accepts texts from *similarity* on.
        Texts that are too short to say anything are like none, unless the letters have to be the same, or need not.
        """
        return replace(self, fewest_letters=FEWEST_LETTERS if 0 < similarity < 1 else 0)

    def noting_numbers(self) -> TextMeasure:
        """Return this measure with scores that say what became of the numbers."""
        return replace(self, notes_numbers=True)

    def sparing_numbers(self) -> TextMeasure:
        """
        Return this measure for what skips or deletes a text: none goes for another one where nothing but numbers, or
        their signs, differs. A scheme that leaves numbers out says that they do not count.
        """
        return replace(self, spares_numbers=not self._leaves_numbers_out)

    def spares(self, score: Score | None) -> bool:
        """Return whether texts of that *score* differ in nothing but numbers, so that none goes for the other."""
        return score is not None and score.numbers in {"only", "signs"} and not self._leaves_numbers_out

    @property
    def _leaves_numbers_out(self) -> bool:
        return self.scheme is not None and "numbers" in self.scheme.preprocess

    @property
    def _has_numbers(self) -> bool:
        return self.notes_numbers or self.spares_numbers or self.numbers != "any"

    def prepare(self, texts: Sequence[str]) -> list[Shingles]:
        """Return each of *texts* prepared for :meth:`compare`; empty for a text without letters, or with too few."""
        seen = _converted(texts, self.scheme)
        units = self._units(seen)
        few = [place for place, cut in enumerate(units) if 0 < cut.size < self.fewest_letters]
        if few:
            from es_simhash.texts.letters import have_fewer  # noqa: PLC0415 -- loads numpy

            are_short = have_fewer([seen[place] for place in few], self.fewest_letters).tolist()
            for place, is_short in zip(few, are_short, strict=True):
                units[place] = units[place][: 0 if is_short else None]
        if not self._has_numbers:
            return units
        if self.scheme is not None and self._leaves_numbers_out:
            steps = tuple(step for step in self.scheme.preprocess if step != "numbers")
            seen = _converted(texts, replace(self.scheme, preprocess=steps))
        import numpy as np  # noqa: PLC0415

        from es_simhash.texts.numbers import text_numbers  # noqa: PLC0415 -- loads numpy

        both = zip(units, text_numbers(seen), strict=True)
        return [np.concatenate([cut, numbers]) if cut.size else cut for cut, numbers in both]

    def _units(self, texts: Sequence[str]) -> list[Shingles]:
        from es_simhash.texts.shingle_sets import shingle_sets, units_in_order  # noqa: PLC0415 - loads numpy

        return (units_in_order if self.measure == "edit" else shingle_sets)(texts, self.unit)

    def size(self, prepared: Shingles) -> int:
        """Return how many shingles or units a prepared text has."""
        return prepared.size - int(prepared[-1]) - 3 if self._has_numbers and prepared.size else prepared.size

    def compare(self, first: Shingles, second: Shingles, *, bound: float = 0.0) -> Score:
        """
        Return how similar two prepared texts are; 0 where either is empty, perhaps also below *bound*. There, numbers
        are not compared.
        """
        if not self._has_numbers:
            return self._compare(first, second, bound)
        sizes = self.size(first), self.size(second)
        score = self._compare(first[: sizes[0]], second[: sizes[1]], bound)
        if score.similarity < bound or not all(sizes):
            return score
        from es_simhash.texts.numbers import compare_numbers  # noqa: PLC0415 -- loads numpy

        found, are_most = compare_numbers(first[sizes[0] :], second[sizes[1] :])
        is_apart = self.spares_numbers and found in {"only", "signs"}
        is_apart |= {"any": False, "most": are_most, "same": found != "same"}[self.numbers]
        return replace(score, similarity=0.0 if is_apart else score.similarity, numbers=found)

    def share(self, first: Shingles, second: Shingles, *, bound: float) -> float | None:
        """
        Return how similar two prepared texts are, also where other numbers keep them apart.
        ``None`` if it is below *bound* and takes long to say: all edits of two texts of 100,000 letters take .3 to
        1.2 s, and those down to a bound of .8 a tenth of it.
        """
        is_long = self.measure == "edit" and first.size * second.size > _LONG
        plain = replace(self, numbers="any", notes_numbers=self._has_numbers, spares_numbers=False)
        share = plain.compare(first, second, bound=bound if is_long else 0.0).similarity
        return None if is_long and share == 0 else share

    def _compare(self, first: Shingles, second: Shingles, bound: float) -> Score:
        if self.measure == "edit":
            from es_simhash.texts.shingle_sets import edit_similarity  # noqa: PLC0415 - loads numpy

            return Score(edit_similarity(first, second, bound=bound))
        from es_simhash.texts.shingle_sets import share_of_few  # noqa: PLC0415 -- loads numpy

        smaller, larger = sorted((first.size, second.size))
        # No two sets share more than the smaller has.
        if not smaller or smaller / larger < bound:
            return Score(0.0, 0.0)
        return Score(*share_of_few(first, second))

    def largest(self, smaller: NDArray[np.int64], larger: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the similarity that no two prepared texts of these sizes exceed."""
        import numpy as np  # noqa: PLC0415

        shares: NDArray[np.float64] = smaller / np.maximum(larger, 1)
        return shares


def _converted(texts: Sequence[str], scheme: Scheme | None) -> Sequence[str]:
    convert = None if scheme is None else preprocessor(scheme)
    return texts if convert is None else convert(texts)


WORD_SHINGLES = TextMeasure()
"""The measure where none is named: Jaccard similarity of shingles of words."""


@dataclass(frozen=True, slots=True)
class Preset:
    """
    A scheme, a max_distance and a verification bound that were measured together.

    Attributes:
        name:
            ``identical``, ``near``, ``similar``, ``edited`` or ``noisy``.
        scheme:
            Id of the scheme whose fingerprints it was measured with; empty for any.
        max_distance:
            Largest distance of a candidate for verification, in bits.
        similarity:
            Smallest similarity of what is kept, 0 to 1.
        meaning:
            What it finds, in a few words.
        measure, unit:
            What the similarity is. ``"jaccard"``: the shared shingles as a share of those that either text has.
            ``"edit"``: the units that stay, as a share of the longer text. ``"words"``: pieces of some three letters;
            ``"characters"``: letters, of which scattered errors change fewer.
        numbers:
            Whether numbers count; ``None``: no. With ``None`` and ``"most"``, the ``"same"`` of an index stays.
    """

    name: str
    scheme: str
    max_distance: int
    similarity: float
    meaning: str
    measure: Measure = "jaccard"
    unit: Unit = "words"
    numbers: Numbers | None = None

    def text_measure(self, numbers: Numbers = "any") -> TextMeasure:
        """Return what it compares; *numbers*: whether these count by the rule that it is put on."""
        stays = numbers == "same" and self.numbers in {None, "most"}
        return TextMeasure(self.measure, self.unit, "same" if stays else self.numbers or "any").for_bound(
            self.similarity
        )


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("identical", "shingles-3", 3, 1.0, "the same letters; punctuation, case, blanks and layout may differ"),
        Preset("near", "shingles-3", 8, 0.9, "the same text with a few words changed"),
        Preset("similar", "shingles-3", 12, 0.8, "the same text, republished: a line added, a sentence or two changed"),
        Preset(
            "edited",
            "shingles-3",
            16,
            0.6,
            "the same text, edited: a paragraph cut, an introduction added, sentences rewritten",
            unit="characters",
            numbers="most",
        ),
        Preset(
            "noisy",
            "shingles-3",
            16,
            0.9,
            "the same text with wrong letters: scans, transcripts, typing errors",
            "edit",
            "characters",
            "most",
        ),
    )
}
"""The presets by name, that of the smallest distance first."""

DEFAULT_PRESET = PRESETS["similar"]
"""The rule where nothing is given or recorded: it finds reposts, with a line added, a date or a sentence changed."""


def get_preset(preset: str | Preset) -> Preset:
    """
    Return the preset of that name.

    Raises:
        TypeError: If *preset* is neither a name nor a preset.
        InvalidInputError: If there is none of that name.

    Examples:
        >>> get_preset("similar").max_distance
        12
    """
    if isinstance(preset, Preset):
        return preset
    if not isinstance(preset, str):
        raise WrongTypeError(f"preset must be a name, not {type(preset).__name__}")
    if preset not in PRESETS:
        raise InvalidInputError(f"unknown preset {shorten(preset)}: give one of {', '.join(PRESETS)}")
    return PRESETS[preset]


def compare_pairs(
    texts: Sequence[str],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    *,
    measure: TextMeasure = WORD_SHINGLES,
    bound: float = 0.0,
) -> NDArray[np.float64]:
    """
    Return the similarity of the texts at *left* with those at *right*, pair by pair.
    A similarity below *bound* may be returned as 0. Memory: 8 bytes
    for each distinct shingle, or each unit, of a text that occurs in a pair.
    """
    import numpy as np  # noqa: PLC0415

    ends = list(zip(left.tolist(), right.tolist(), strict=True))
    places = sorted({place for pair in ends for place in pair})
    prepared = dict(zip(places, measure.prepare([texts[place] for place in places]), strict=True))
    found = (measure.compare(prepared[first], prepared[second], bound=bound) for first, second in ends)
    return np.fromiter((score.similarity for score in found), np.float64, len(ends))
