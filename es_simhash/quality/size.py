"""
What is known about the size of an index: figures, advice, and the real size of one that was measured.

Values only. ``sizing`` works them out, and ``flows.upkeep.size`` reads the real size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import Tabular

__all__ = ["Advice", "Figure", "IndexSize", "Size"]

Basis = Literal["measured", "modelled", "exact"]


@dataclass(frozen=True, slots=True)
class Figure:
    """
    One number about an index, from *low* to *high*.

    Attributes:
        name:
            What it is about, such as ``"disk_fingerprints"``.
        low:
            The least that is expected.
        high:
            The most that is expected; the same where the number is one.
        unit:
            ``"bytes"``, ``"times an empty search"``, ``"terms"``, ``"documents"`` or ``"postings"``.
        basis:
            ``"measured"``: so many for each document were measured. ``"modelled"``: computed by the cost model.
            ``"exact"``: it follows from the lookup plan.
        up_to:
            The most documents of the index in which this was measured; ``None`` for an exact figure.
    """

    name: str
    low: float
    high: float
    unit: str
    basis: Basis
    up_to: int | None = None

    def is_beyond(self, documents: int) -> bool:
        """Return whether *documents* are more than this was measured with."""
        return self.up_to is not None and documents > self.up_to


@dataclass(frozen=True, slots=True)
class Advice:
    """
    What to set.

    Attributes:
        setting:
            A setting of the index, or ``"segments"`` or ``"scripts"``.
        value:
            Its value.
        reason:
            Why: ``"shard size"``, ``"idle index"``, ``"loading"``, ``"idle cores"`` or ``"fewer terms"``.
    """

    setting: str
    value: str | int
    reason: str


@dataclass(frozen=True, slots=True)
class IndexSize:
    """
    The real size of an index.

    Attributes:
        index:
            Its name.
        documents:
            All documents.
        fingerprinted:
            Those with a fingerprint.
        bytes:
            Bytes on disk without replicas, of all fields.
        shards:
            Primary shards.
        replicas:
            Copies of each that are there.
        segments:
            Segments of all primary shards together.
        density:
            How uneven the fingerprints are: see :class:`IndexStats`.
    """

    index: str
    documents: int
    fingerprinted: int
    bytes: int
    shards: int
    replicas: int
    segments: int
    density: float = 1.0


@dataclass(frozen=True, slots=True)
class Size(Tabular):
    """
    What an index takes, as far as is known.

    Attributes:
        documents:
            Documents that were asked for.
        max_distance:
            Largest distance of the lookups, in bits.
        shards:
            Primary shards, given or advised.
        replicas:
            Copies of each.
        segments:
            Segments of one shard as written.
        plans:
            Names of the cheapest lookup plans: with scripts, where they are allowed, and without.
        figures:
            The numbers.
        advice:
            What to set.
        measured:
            The real size of the index, where one was read.
    """

    documents: int
    max_distance: int
    shards: int
    replicas: int
    segments: int
    plans: tuple[str, ...]
    figures: tuple[Figure, ...]
    advice: tuple[Advice, ...]
    measured: IndexSize | None = None

    def figure(self, name: str) -> Figure | None:
        """Return the figure of that name, or ``None``."""
        return next((each for each in self.figures if each.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; each figure says whether it is beyond what was measured."""
        advice = list(map(asdict, self.advice))
        return asdict(self) | {"plans": list(self.plans), "figures": self.to_dicts(), "advice": advice}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each figure; each says whether it is beyond what was measured."""
        return [asdict(each) | {"is_beyond": each.is_beyond(self.documents)} for each in self.figures]

    def _title(self) -> str:
        return f"{self.documents:,} documents in {self.shards} shards, lookups up to {self.max_distance} bits"

    def _sheets(self) -> Sequence[Sheet]:
        measured = [] if self.measured is None else [Sheet("Measured", [asdict(self.measured)])]
        return [Sheet("Figures", self.to_dicts()), Sheet("Advice", [asdict(each) for each in self.advice]), *measured]
