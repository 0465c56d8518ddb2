"""
What was learned about the template text of an index or of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.hashing.boilerplate.mask import MaskPassage, mask_json
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import Tabular

__all__ = ["Boilerplate"]


@dataclass(frozen=True, slots=True)
class Boilerplate(Tabular):
    """
    Passages of template text, those in most documents first.

    Attributes:
        passages:
            The passages, each a ``MaskPassage`` with its text, documents, share and source.
        sampled:
            How many texts were read.
        counted:
            How many of them were counted: texts whose contents are the same or nearly the same count once, and texts
            that are nothing but template do not count.
        masked:
            Share of the letters of all sampled texts that the passages leave out, 0 to 1.
        reasons:
            Why not every document could be sampled; empty if each could.
    """

    passages: tuple[MaskPassage, ...] = ()
    sampled: int = 0
    counted: int = 0
    masked: float = 0.0
    reasons: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the content of a mask file, which ``get_scheme(..., boilerplate=PATH)`` reads."""
        return mask_json(self.passages)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "sampled": self.sampled,
            "counted": self.counted,
            "masked": round(self.masked, 4),
            "passages": self.to_dicts(),
            "reasons": list(self.reasons),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each passage."""
        return [each.to_dict() for each in self.passages]

    def _title(self) -> str:
        return f"{len(self.passages):,} passages of template text in {self.sampled:,} sampled texts"

    def _sheets(self) -> Sequence[Sheet]:
        return [Sheet("", self.to_dicts(), {"share": 1})]
