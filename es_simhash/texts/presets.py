"""
Presets: a scheme, a max_distance and a verification bound, under a name that says what they find.

Their measurements are in docs/quality.md. Values only; nothing is compared here.
"""

from __future__ import annotations

from dataclasses import dataclass

from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.texts.measures import Measure, Unit


@dataclass(frozen=True, slots=True)
class Preset:
    """
    A scheme, a max_distance and a verification bound that were measured together.

    Attributes:
        name:
            ``identical``, ``near``, ``similar`` or ``noisy``.
        scheme:
            Id of the scheme whose fingerprints it was measured with.
        max_distance:
            Largest distance of a candidate for verification, in bits.
        similarity:
            Smallest similarity of what is kept, 0 to 1.
        meaning:
            What it finds, in a few words.
        measure, unit:
            What the similarity is: see :class:`~es_simhash.Verification`.
    """

    name: str
    scheme: str
    max_distance: int
    similarity: float
    meaning: str
    measure: Measure = "jaccard"
    unit: Unit = "words"


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("identical", "shingles-2", 3, 1.0, "the same words; punctuation, case, width and layout may differ"),
        Preset("near", "shingles-2", 8, 0.9, "the same text with a few words changed"),
        Preset("similar", "shingles-2", 12, 0.8, "the same text, edited, cut or with something added"),
        Preset(
            "noisy",
            "shingles-2",
            16,
            0.9,
            "the same text with wrong letters: scans, transcripts, typing errors",
            "edit",
            "characters",
        ),
    )
}
"""The presets by name, that of the smallest distance first."""


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
