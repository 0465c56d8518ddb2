"""A list of texts without near-duplicates, in memory: the candidates, comparison and rule of groups, and no server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from es_simhash.arguments import check_choice, check_items
from es_simhash.errors import InvalidInputError, WrongTypeError, count, shorten
from es_simhash.hashing import fingerprints, get_scheme
from es_simhash.record import Record
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import DEFAULT_PRESET, Preset, get_preset

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from es_simhash.texts.measures import TextMeasure

Keep = Literal["first", "longest"] | Callable[[str], Any]
"""Which text of a group stays: the first, the longest, or that for which a function returns most."""


@dataclass(frozen=True, slots=True)
class Dropped(Record):
    """
    A text that another one stands for.

    Attributes:
        position:
            Its position in the list.
        similarity:
            Similarity of the two texts by the measure of the preset, 0 to 1.
    """

    position: int
    similarity: float


@dataclass(frozen=True, slots=True)
class TextGroup(Record):
    """
    A text that stays, and those it stands for.

    Attributes:
        kept:
            Its position in the list.
        dropped:
            The others, in the order of the list.
    """

    kept: int
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True, repr=False)
class DistinctTexts(Record, Tabular):
    """
    Which of some texts stay. In a notebook, and printed, it is a few lines, however many texts there are.

    Attributes:
        kept:
            Positions of the texts that stay, in the order of the list.
        groups:
            Those of them that stand for others, in the same order.
        texts:
            The texts that stay.
    """

    _NAMES = "kept groups"

    kept: tuple[int, ...]
    groups: tuple[TextGroup, ...]
    texts: tuple[str, ...]

    _COLUMNS: ClassVar[tuple[str, ...]] = ("position", "kept", "similarity", "text")

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a flat row for each text that goes, with the text that stays for it."""
        text_at = dict(zip(self.kept, self.texts, strict=True))
        return [
            {
                "position": dropped.position,
                "kept": group.kept,
                "similarity": dropped.similarity,
                "text": text_at[group.kept],
            }
            for group in self.groups
            for dropped in group.dropped
        ]

    def _title(self) -> str:
        gone = sum(len(group.dropped) for group in self.groups)
        return f"{len(self.kept):,} of {count(len(self.kept) + gone, 'text')} stay"


def distinct_texts(
    texts: Iterable[str], *, preset: str | Preset = DEFAULT_PRESET, keep: Keep = "first"
) -> DistinctTexts:
    """
    Return which of *texts* stay, so that no two of these are near-duplicates; no server, no model.

    The texts are compared as a grouped index compares them, exactly, whatever their order: each that goes is a
    near-duplicate of the one that stays for it. A text without a fingerprint, such as an empty one, stays, and one that
    differs in nothing but numbers or signs. Memory: some 200 bytes a text, and the shingles of those that have a
    candidate.

    Args:
        texts:
            The texts.
        preset:
            What is a near-duplicate: ``"identical"``, ``"near"``, ``"similar"`` (the default), ``"edited"`` or
            ``"noisy"``.
        keep:
            Which text of a group stays: ``"first"``, ``"longest"``, or a function of a text: the one for which it
            returns most. Among equal ones the first.

    Raises:
        TypeError: If one of *texts* is no string.
        InvalidInputError: If another argument cannot be used.

    Examples:
        >>> article = "The council approved the new bridge over the river on Tuesday after a long debate."
        >>> distinct_texts([article, "Rain is expected.", article.upper() + "!"]).kept
        (0, 1)
        >>> distinct_texts([article, article.upper() + "!"]).texts == (article,)
        True
    """
    import numpy as np  # noqa: PLC0415

    from es_simhash.groups.assign import Documents, group_documents, with_candidates  # noqa: PLC0415 -- loads numpy
    from es_simhash.lookup.content import TextStore  # noqa: PLC0415

    every = list(check_items("texts", texts, of="texts"))
    for position, text in enumerate(every):
        if not isinstance(text, str):
            raise WrongTypeError(f"texts[{position}] must be a string, not {type(text).__name__} {shorten(text)}")
    chosen = get_preset(preset)
    order = _ranked(every, keep)
    scheme = get_scheme(chosen.scheme)
    found = list(fingerprints((every[position] for position in order), scheme=scheme))
    places = np.array([place for place, value in enumerate(found) if value is not None], np.int64)
    values = np.array([value for value in found if value is not None], np.uint64)
    ranked = [every[order[place]] for place in places.tolist()]
    store = TextStore(chosen.text_measure().after(scheme).sparing_numbers())
    numbers = np.full(len(values), -1, np.int64)
    compared = with_candidates(Documents(values), chosen.max_distance)
    if compared.size:
        numbers[compared] = store.add([ranked[place] for place in compared.tolist()])
    documents = Documents(values, texts=numbers)
    grouped = group_documents(documents, chosen.max_distance, sets=store, similarity=chosen.similarity)
    canonical = np.array(order, np.int64)
    canonical[places] = canonical[places][grouped]
    stands_for = np.empty(len(order), np.int64)
    stands_for[order] = canonical
    return _result(every, stands_for, store.measure)


def _ranked(texts: Sequence[str], keep: Keep) -> list[int]:
    """Return the positions of *texts*, the preferred text first."""
    positions = list(range(len(texts)))
    if callable(keep):
        worth = [keep(text) for text in texts]
        try:
            return sorted(positions, key=lambda position: worth[position], reverse=True)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"keep must return values that can be compared ({error})") from error
    if check_choice("keep", keep, ("first", "longest")) == "longest":
        positions.sort(key=lambda position: -len(texts[position]))
    return positions


def _result(texts: Sequence[str], stands_for: NDArray[np.int64], measure: TextMeasure) -> DistinctTexts:
    members: dict[int, list[int]] = {}
    for position, kept in enumerate(stands_for.tolist()):
        members.setdefault(kept, []).append(position)
    groups = []
    for kept, positions in sorted(members.items()):
        if len(positions) == 1:
            continue
        positions.remove(kept)
        first, *others = measure.prepare([texts[position] for position in (kept, *positions)])
        dropped = [
            Dropped(position, measure.compare(other, first).similarity)
            for position, other in zip(positions, others, strict=True)
        ]
        groups.append(TextGroup(kept, tuple(dropped)))
    stays = tuple(sorted(members))
    return DistinctTexts(stays, tuple(groups), tuple(texts[position] for position in stays))
