"""Recall and precision against pairs whose similarity is known: of an exact join of all texts, or of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.errors import InvalidInputError, MissingDependencyError, shorten
from es_simhash.groups.all_pairs import near_pairs
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint_array, get_scheme
from es_simhash.lookup.near_dups import NearDups
from es_simhash.mapping.meta import check_max_distance
from es_simhash.quality.known_pairs import Truth
from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet, draw_shares
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import Measure, Preset, TextMeasure, Unit, check_bound, compare_pairs, get_preset

_SUFFIXES = (".png", ".svg", ".pdf")
# Lower ends of the classes of length, in characters of the shorter text.
_LENGTHS = (0, 10, 20, 50, 100, 200, 500, 1000, 5000)
# How far below a positive a reported pair may be for the forgiving precision.
_FORGIVEN = 0.1

Search = Callable[[Sequence[str]], Sequence[NearDups | Exception]]


def check_picture(path: str | Path) -> None:
    """Raise InvalidInputError if the name *path* is of no kind of picture that can be drawn."""
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise InvalidInputError(
            f"{shorten(str(path))} is not the name of a picture: give a name that ends in {', '.join(_SUFFIXES)}"
        )


def plot_report(report: Report, path: str | Path) -> None:
    """Write recall and precision by max_distance to *path*, with and without verification."""
    check_picture(path)
    try:
        # Not pyplot: it would choose a window system and keep the figure.
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingDependencyError("a plot needs matplotlib: pip install 'es-simhash[plot]'") from error
    rows = report.by_distance()
    distances = [row["max_distance"] for row in rows]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for label, style, figures in (("", "--", rows), (", verified", "-", [row["verified"] for row in rows])):
        for name, colour in (("recall", "tab:blue"), ("precision", "tab:orange")):
            # A figure that does not exist, such as the precision of nothing, leaves a gap.
            values = [float("nan") if row[name] is None else row[name] for row in figures]
            axes.plot(distances, values, style, color=colour, marker=".", label=f"{name}{label}")
    axes.set(
        xlabel="max_distance (bits)",
        ylabel=f"share of pairs (Jaccard {report.positive:g} and more)",
        ylim=(0, 1.03),
        title=f"{report.scheme}, verified at {report.similarity:g}",
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    figure.savefig(path)


@dataclass(frozen=True, slots=True)
class Evaluation(Record):
    """
    Recall and precision of reported pairs, with their counts.

    *positives*: known pairs at or above the similarity that counts. *found*: those of them among the *reported* pairs.
    *forgiven*: reported pairs that are at most 0.1 below a positive, positives included.
    """

    _NAMES = "recall precision precision_forgiving positives reported"

    positives: int
    reported: int
    found: int
    forgiven: int

    @property
    def recall(self) -> float | None:
        """Share of the positives reported; ``None`` where there are none."""
        return self.found / self.positives if self.positives else None

    @property
    def precision(self) -> float | None:
        """Share of the reported pairs that are positives; ``None`` where none is reported."""
        return self.found / self.reported if self.reported else None

    @property
    def precision_forgiving(self) -> float | None:
        """Share of the reported pairs at most 0.1 below a positive; ``None`` where none is reported."""
        return self.forgiven / self.reported if self.reported else None


@dataclass(frozen=True, slots=True)
class Report(Tabular):
    """
    The pairs that were reported, with their known similarities.

    Attributes:
        truth:
            Documents and known pairs.
        scheme:
            Scheme of the fingerprints.
        max_distance:
            Largest distance reported, in bits.
        positive:
            Known similarity from which a pair counts.
        similarity:
            Verification's bound.
        left, right:
            Positions of the documents of each pair reported; left is the smaller.
        distance:
            Their distances in bits.
        scores, containment:
            Their similarity as verification computes it, and their containment, NaN where edits are counted; an edit
            similarity below the bound is 0.
        known:
            Their known similarity; 0 for pairs that are not listed.
        fingerprinted:
            Which documents have a fingerprint.
        text_measure:
            What the similarity is.
    """

    truth: Truth
    scheme: Scheme
    max_distance: int
    positive: float
    similarity: float
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distance: NDArray[np.uint8]
    scores: NDArray[np.float64]
    containment: NDArray[np.float64]
    known: NDArray[np.float64]
    fingerprinted: NDArray[np.bool_]
    text_measure: TextMeasure

    def measure(self, max_distance: int | None = None, *, verified: bool = False) -> Evaluation:
        """Return the figures of all pairs within *max_distance* (default: all reported), *verified* or not."""
        distance = self.max_distance if max_distance is None else check_max_distance(max_distance)
        return self._measure(self.distance <= distance, self.truth.jaccard >= self._from(0), verified=verified)

    def _from(self, forgiven: float) -> float:
        # 0.8 - 0.1 is a little more than 0.7 in binary.
        return self.positive - forgiven - 1e-9

    def _measure(self, reported: NDArray[np.bool_], positives: NDArray[np.bool_], *, verified: bool) -> Evaluation:
        if verified:
            reported = reported & (self.scores >= self.similarity)
        known = self.known[reported]
        return Evaluation(
            int(positives.sum()),
            int(reported.sum()),
            int((known >= self._from(0)).sum()),
            int((known >= self._from(_FORGIVEN)).sum()),
        )

    def by_distance(self) -> list[dict[str, Any]]:
        """Return the figures for each max_distance up to the one asked for."""
        return [
            {
                "max_distance": distance,
                **self.measure(distance).to_dict(),
                "verified": self.measure(distance, verified=True).to_dict(),
            }
            for distance in range(self.max_distance + 1)
        ]

    def by_length(self) -> list[dict[str, Any]]:
        """Return the figures by length of the shorter text of a pair, in characters; without classes without pairs."""
        lengths = np.array([len(text) for text in self.truth.texts], np.int64)
        reported = np.minimum(lengths[self.left], lengths[self.right])
        listed = np.minimum(lengths[self.truth.left], lengths[self.truth.right])
        positive = self.truth.jaccard >= self._from(0)
        rows = []
        for first, end in zip(_LENGTHS, (*_LENGTHS[1:], None), strict=True):
            last = np.iinfo(np.int64).max if end is None else end
            inside = (reported >= first) & (reported < last)
            positives = positive & (listed >= first) & (listed < last)
            if inside.any() or positives.any():
                plain, verified = (self._measure(inside, positives, verified=each).to_dict() for each in (False, True))
                rows.append({"from": first, "below": end, **plain, "verified": verified})
        return rows

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Yield the pairs reported: ids, distance, similarity, known similarity, and whether it is kept."""
        ids = self.truth.ids
        columns = (self.left, self.right, self.distance, self.scores, self.containment, self.known)
        for row in zip(*(each.tolist() for each in columns), strict=True):
            left, right, distance, score, containment, known = row
            yield {
                "id1": ids[left],
                "id2": ids[right],
                "distance": distance,
                "similarity": round(score, 4),
                "containment": None if isnan(containment) else round(containment, 4),
                "known": round(known, 4),
                "verified": score >= self.similarity,
            }

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain JSON values."""
        return {
            **self.measure().to_dict(),
            "verified": self.measure(verified=True).to_dict(),
            "scheme": str(self.scheme),
            "max_distance": self.max_distance,
            "similarity": self.similarity,
            **self.text_measure.to_dict(),
            "positive": self.positive,
            "documents": len(self.truth.ids),
            "without_fingerprint": int((~self.fingerprinted).sum()),
            "known_pairs": int(self.truth.jaccard.size),
            "lowest_known": float(self.truth.jaccard.min()),
            "by_distance": self.by_distance(),
            "by_length": self.by_length(),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a flat row for each max_distance: the figures by distance alone, and those verified."""
        return [_flat(each) for each in self.by_distance()]

    def _title(self) -> str:
        known = f"{int((self.truth.jaccard >= self._from(0)).sum()):,} known pairs"
        said = f"verified at {self.similarity:g} {self.text_measure.of_what}; similar means {self.positive:g} or more"
        return f"{self.scheme} against {known} of {len(self.truth.ids):,} documents; {said}"

    def _sheets(self) -> Sequence[Part]:
        shares = [f"{kind}{name}" for kind in ("", "verified.") for name in ("recall", "precision")]
        rows = self.to_dicts()
        lines = {name: [row[name] for row in rows] for name in shares}
        curve = draw_shares("Recall and precision by max_distance", [row["max_distance"] for row in rows], lines)
        bars = {name.replace(".", " "): 1.0 for name in shares}
        by_distance = [{"max distance": row["max_distance"]} | _cells(row) for row in rows]
        by_length = [
            {"characters": _length(row), "pairs": row["positives"]} | _cells(_flat(row)) for row in self.by_length()
        ]
        of_length = f"By length of the shorter text, max_distance {self.max_distance}"
        return [curve, Sheet("By max_distance", by_distance, bars), Sheet(of_length, by_length, bars)]


_FIGURES = {"recall": "recall", "precision": "precision", "precision_forgiving": "forgiving", "reported": "reported"}


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {said: row[name] for name, said in _FIGURES.items()}
    return plain | {f"verified {said}": row[f"verified.{name}"] for name, said in _FIGURES.items()}


def _length(row: Mapping[str, Any]) -> str:
    return f"from {row['from']:,}" if row["below"] is None else f"{row['from']:,}–{row['below'] - 1:,}"


def _flat(figures: Mapping[str, Any]) -> dict[str, Any]:
    verified = {f"verified.{name}": value for name, value in figures["verified"].items() if name != "positives"}
    return {name: value for name, value in figures.items() if name != "verified"} | verified


def evaluate(
    truth: Truth,
    *,
    preset: str | Preset | None = None,
    scheme: str | Scheme | None = None,
    max_distance: int | None = None,
    similarity: float | None = None,
    measure: Measure | None = None,
    unit: Unit | None = None,
    positive: float = 0.8,
    search: Search | None = None,
) -> Report:
    """
    Return which pairs of documents are reported, for recall and precision with and without verification.

    Cost: fingerprints of all texts; an exact join of all pairs within max_distance; shingles of the texts reported.

    Args:
        truth:
            Documents and known pairs, from :func:`read_truth`.
        preset:
            Preset to measure; other arguments override it. Default: ``similar``.
        scheme:
            Scheme of the fingerprints.
        max_distance:
            Largest distance reported, in bits, inclusive.
        similarity:
            Verification's bound, 0 to 1; by default the preset's.
        measure:
            What the similarity is, as :class:`~es_simhash.Verification` takes it; by default the preset's.
        unit:
            Of what it is; by default the preset's.
        positive:
            Known similarity from which a pair counts, 0 to 1.
        search:
            Function from texts to answers, in place of the exact join, to measure a server that has the documents
            under their ids.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If an argument has a value that cannot be used, a search failed, or it found a document that
            is not one of these.

    Examples:
        >>> from es_simhash.quality import read_truth
        >>> texts = ["the quick brown fox jumps", "The quick, brown fox jumps!", "nothing of the kind"]
        >>> documents = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
        >>> report = evaluate(read_truth(documents, [{"id1": "0", "id2": "1", "jaccard": 1.0}]))
        >>> report.measure().recall, report.measure(verified=True).precision
        (1.0, 1.0)
    """
    chosen = get_preset("similar" if preset is None else preset)
    used = get_scheme(scheme or (chosen.scheme if preset is not None else DEFAULT_SCHEME))
    distance = chosen.max_distance if max_distance is None else check_max_distance(max_distance)
    bound = chosen.similarity if similarity is None else check_bound("similarity", similarity)
    by = TextMeasure(measure or chosen.measure, unit or chosen.unit, chosen.numbers or "any")
    check_bound("positive", positive)
    if search is None:
        values, known = fingerprint_array(truth.texts, scheme=used)
        left, right, inside = _join(values, known, distance)
    else:
        answers = search(truth.texts)
        used = next((each.scheme for each in answers if isinstance(each, NearDups) and each.scheme), used)
        left, right, inside = _read_answers(truth, answers)
        known = fingerprint_array(truth.texts, scheme=used)[1]
    # Counting the edits of texts that differ much takes long, and the verdict is known before.
    least = bound if by.measure == "edit" else 0.0
    scores, containment = compare_pairs(truth.texts, left, right, measure=by.after(used), bound=least)
    return Report(
        truth,
        used,
        distance,
        float(positive),
        bound,
        left,
        right,
        inside,
        scores,
        containment,
        _known(truth, left, right),
        known,
        by,
    )


Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]


def _join(values: NDArray[np.uint64], known: NDArray[np.bool_], max_distance: int) -> Found:
    places = np.flatnonzero(known)
    found = [
        (np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right), pairs.distance)
        for pairs in near_pairs(values[known], max_distance)
    ]
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
    left, right, distance = (np.concatenate(side) for side in zip(*found, strict=True))
    order = np.lexsort((right, left))
    return places[left[order]], places[right[order]], distance[order]


def _read_answers(truth: Truth, answers: Sequence[NearDups | Exception]) -> Found:
    places = {name: place for place, name in enumerate(truth.ids)}
    pairs: dict[tuple[int, int], int] = {}
    for place, answer in enumerate(answers):
        if isinstance(answer, Exception):
            raise InvalidInputError(f"the search for document {shorten(truth.ids[place])} failed: {answer}") from answer
        for each in answer:
            if each.id not in places:
                raise InvalidInputError(
                    f"the index holds document {shorten(each.id)}, which is not one of those given: "
                    "evaluate with an index that holds the same documents under the same ids"
                )
            other = places[each.id]
            if other != place:
                pairs[min(place, other), max(place, other)] = each.distance
    rows = np.array([(*ends, pairs[ends]) for ends in sorted(pairs)], np.int64).reshape(-1, 3)
    return rows[:, 0], rows[:, 1], rows[:, 2].astype(np.uint8)


def _known(truth: Truth, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the known similarity of each pair; 0 where it is not listed."""
    count = len(truth.ids)
    listed = truth.left * count + truth.right
    order = np.argsort(listed)
    listed, jaccard = listed[order], truth.jaccard[order]
    keys = left * count + right
    at = np.minimum(np.searchsorted(listed, keys), listed.size - 1)
    return np.where(listed[at] == keys, jaccard[at], 0.0)
