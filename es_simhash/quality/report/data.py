"""
What a report is made of: numbers, groups that are shown, and what the presets would remove. Plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.quality.health import Diagnosis
from es_simhash.quality.stats import Stats

if TYPE_CHECKING:
    from es_simhash.quality.real_pairs import PresetSample


WIDEST_SEARCH = 1_000
"""The largest groups among which those of many sources and over a long time are looked for."""

Reason = Literal["largest", "farthest", "sources", "span"]


@dataclass(frozen=True, slots=True)
class WhyShown:
    """
    Why a group is shown.

    Attributes:
        reason:
            ``largest``; ``farthest``: a member with one of the largest distances to its canonical; ``sources``: of many
            sources; ``span``: over a long time.
        number:
            Documents, bits, sources, or milliseconds.
    """

    reason: Reason
    number: int


@dataclass(frozen=True, slots=True)
class Member:
    """
    A document of a group that is shown.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the concrete index that holds it.
        text:
            The beginning of its text; ``None`` where none could be read.
        length:
            Characters of the whole text.
        distance:
            Bits that differ from the canonical; 0 for that itself.
        similarity:
            Similarity of its text to that of the canonical, 0 to 1; ``None`` where they were not compared.
        source, time:
            Its values of the source field and of the time field; empty where it has none.
    """

    id: str
    index: str
    text: str | None
    length: int = 0
    distance: int = 0
    similarity: float | None = None
    source: str = ""
    time: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning of the text is here."""
        return self.text is not None and len(self.text) < self.length

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values, without the text."""
        names = ("id", "index", "length", "distance", "similarity", "source", "time")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """
    A group, with some of its documents.

    Attributes:
        id:
            Name of the group: the id of its canonical.
        documents:
            Number of its documents.
        why:
            Why it is shown.
        canonical:
            Its canonical; ``None`` where that could not be read.
        members:
            Some of its duplicates, those with the largest distance first.
    """

    id: str
    documents: int
    why: tuple[WhyShown, ...]
    canonical: Member | None
    members: tuple[Member, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values, without the texts."""
        return {
            "id": self.id,
            "documents": self.documents,
            "why": {each.reason: each.number for each in self.why},
            "canonical": self.canonical and self.canonical.to_dict(),
            "members": [each.to_dict() for each in self.members],
        }


@dataclass(frozen=True, slots=True)
class IndexReport:
    """
    Everything that a page says about an index.

    Attributes:
        stats:
            Its numbers, exact.
        diagnosis:
            The health of its fingerprints, from a sample.
        presets:
            What each preset would remove, from a sample; empty where the presets do not fit the scheme of the index, or
            no text could be read.
        groups:
            The largest and the strangest groups.
        at:
            The moment at which it was made, ISO 8601 in UTC.
        version:
            Version of this library.
        seed:
            What chose the samples.
        filter:
            The queries that the counted documents match; empty where all were counted.
    """

    stats: Stats
    diagnosis: Diagnosis
    presets: tuple[PresetSample, ...] = ()
    groups: tuple[ShownGroup, ...] = ()
    at: str = ""
    version: str = ""
    seed: int = 0
    filter: tuple[Mapping[str, Any], ...] = ()

    def html(self, *, language: str = "en") -> str:
        """
        Return the report as one HTML page that loads nothing.

        Args:
            language:
                ``"en"`` or ``"zh"``.

        Raises:
            InvalidInputError: If the language is another one.
            MissingDependencyError: If the charts cannot be drawn: ``pip install 'es-simhash[report]'``.
        """
        from es_simhash.quality.report.page import build_report  # noqa: PLC0415 -- only for pages

        return build_report(self, language=language)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values, without texts."""
        return {
            "at": self.at,
            "version": self.version,
            "seed": self.seed,
            "filter": [dict(each) for each in self.filter],
            "stats": self.stats.to_dict(),
            "diagnosis": self.diagnosis.to_dict(),
            "presets": [each.to_dict() for each in self.presets],
            "groups": [each.to_dict() for each in self.groups],
        }
