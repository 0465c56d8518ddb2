"""A list of texts without near-duplicates, in memory: the candidates, comparison and rule of groups, and no server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.arguments import check_choice, check_items
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing import fingerprints, get_scheme, hamming_distances
from es_simhash.record import Record
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
        contained:
            The share of it that the other text contains, where it was dropped for that.
    """

    _OPTIONAL = "contained"

    position: int
    similarity: float
    contained: float | None = None


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


@dataclass(frozen=True, slots=True)
class DistinctTexts(Record):
    """
    Which of some texts stay.

    Attributes:
        kept:
            Positions of the texts that stay, in the order of the list.
        groups:
            Those of them that stand for others, in the same order.
    """

    kept: tuple[int, ...]
    groups: tuple[TextGroup, ...]


def distinct_texts(
    texts: Iterable[str], *, preset: str | Preset = DEFAULT_PRESET, keep: Keep = "first", contained: float | None = None
) -> DistinctTexts:
    """
    Return which of *texts* stay, so that no two of these are near-duplicates; no server, no model.

    The texts are compared as a grouped index compares them, exactly, whatever their order: each that goes is a
    near-duplicate of the one that stays for it. A text without a fingerprint, such as an empty one, stays. Memory: some
    200 bytes a text, and the shingles of those that have a candidate.

    Args:
        texts:
            The texts.
        preset:
            What is a near-duplicate: ``"identical"``, ``"near"``, ``"similar"`` (the default), ``"edited"`` or
            ``"noisy"``.
        keep:
            Which text of a group stays: ``"first"``, ``"longest"``, or a function of a text: the one for which it
            returns most. Among equal ones the first.
        contained:
            Also drop a text of which at least this share, .8 to 1, stands in another text that stays and is as long or
            longer.

    Raises:
        TypeError: If one of *texts* is no string.
        InvalidInputError: If another argument cannot be used.

    Examples:
        >>> article = "The council approved the new bridge over the river on Tuesday after a long debate."
        >>> distinct_texts([article, "Rain is expected.", article.upper() + "!"]).kept
        (0, 1)
    """
    import numpy as np  # noqa: PLC0415

    from es_simhash.groups.assign import Documents, Nodes, group_documents  # noqa: PLC0415 -- loads numpy
    from es_simhash.lookup.content import TextStore  # noqa: PLC0415
    from es_simhash.passages.contained import check_contained  # noqa: PLC0415

    every = list(check_items("texts", texts, of="texts"))
    for position, text in enumerate(every):
        if not isinstance(text, str):
            raise WrongTypeError(f"texts[{position}] must be a string, not {type(text).__name__} {shorten(text)}")
    chosen = get_preset(preset)
    order = _ranked(every, keep)
    bound = None if contained is None else check_contained(contained)
    scheme = get_scheme(chosen.scheme)
    found = list(fingerprints((every[each] for each in order), scheme=scheme))
    places = np.array([place for place, each in enumerate(found) if each is not None], np.int64)
    values = np.array([each for each in found if each is not None], np.uint64)
    ranked = [every[order[place]] for place in places.tolist()]
    store = TextStore(chosen.text_measure().after(scheme))
    numbers = np.full(len(values), -1, np.int64)
    compared = Nodes(Documents(values)).with_candidates(chosen.max_distance)
    if compared.size:
        numbers[compared] = store.add([ranked[place] for place in compared.tolist()])
    documents = Documents(values, texts=numbers)
    grouped = group_documents(documents, chosen.max_distance, sets=store, similarity=chosen.similarity)
    canonical = np.array(order, np.int64)
    canonical[places] = canonical[places][grouped]
    stands_for = np.empty(len(order), np.int64)
    stands_for[order] = canonical

    by_position = dict(zip(order, found, strict=True))

    def find_near(position: int, others: Sequence[int]) -> int | None:
        """Return the first of *others* that is a near-duplicate of the text at *position*."""
        own, some = by_position[position], [each for each in others if by_position[each] is not None]
        if own is None or not some:
            return None
        close = hamming_distances(own, np.array([by_position[each] for each in some], np.uint64))
        for number in np.flatnonzero(close <= chosen.max_distance).tolist():
            pair = store.measure.prepare([every[position], every[some[number]]])
            if store.measure.compare(*pair).similarity >= chosen.similarity:
                return some[number]
        return None

    shares = {} if bound is None else _drop_contained(every, order, stands_for, bound, find_near)
    return _result(every, stands_for, shares, store.measure)


def _ranked(texts: Sequence[str], keep: Keep) -> list[int]:
    """Return the positions of *texts*, the preferred text first."""
    positions = list(range(len(texts)))
    if callable(keep):
        worth = [keep(each) for each in texts]
        try:
            return sorted(positions, key=lambda each: worth[each], reverse=True)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"keep must return values that can be compared ({error})") from error
    if check_choice("keep", keep, ("first", "longest")) == "longest":
        positions.sort(key=lambda each: -len(texts[each]))
    return positions


def _drop_contained(
    texts: Sequence[str],
    order: Sequence[int],
    stands_for: NDArray[np.int64],
    bound: float,
    find_near: Callable[[int, Sequence[int]], int | None],
) -> dict[int, float]:
    """
    Let texts that others contain go too; return their shares, by position.
    What such a text stood for, in *order*, goes to the first that stays and is near, or stays until it is compared with
    all that stay. This ends: of the texts that ever stay the longest never goes, so the next one goes at most once, ...
    """
    import numpy as np  # noqa: PLC0415

    from es_simhash.hashing.winnowing import passage_terms  # noqa: PLC0415 -- loads numpy
    from es_simhash.passages.contained import find_containers_among  # noqa: PLC0415

    terms: dict[int, Sequence[str]] = {}
    shares: dict[int, float] = {}
    while True:
        kept = np.flatnonzero(stands_for == np.arange(len(texts))).tolist()
        fresh = [each for each in kept if each not in terms]
        terms.update(zip(fresh, passage_terms([texts[each] for each in fresh]), strict=True))
        some, their_terms = [texts[each] for each in kept], [terms[each] for each in kept]
        found = find_containers_among(some, their_terms, bound, allows=lambda *_: True)
        if not found:
            return shares
        for number, (container, share) in found.items():
            stands_for[kept[number]], shares[kept[number]] = kept[container], share
        is_kept = stands_for == np.arange(len(texts))
        staying = [each for each in order if is_kept[each]]
        for freed in [each for each in order if not is_kept[stands_for[each]]]:
            shares.pop(freed, None)
            near = find_near(freed, staying)
            stands_for[freed] = freed if near is None else near
            if near is None:
                staying.append(freed)


def _result(
    texts: Sequence[str], stands_for: NDArray[np.int64], shares: dict[int, float], measure: TextMeasure
) -> DistinctTexts:
    members: dict[int, list[int]] = {}
    for position, kept in enumerate(stands_for.tolist()):
        members.setdefault(kept, []).append(position)
    groups = []
    for kept, positions in sorted(members.items()):
        if len(positions) == 1:
            continue
        first, *others = measure.prepare([texts[kept], *(texts[each] for each in positions if each != kept)])
        scores = [measure.compare(each, first).similarity for each in others]
        dropped = zip((each for each in positions if each != kept), scores, strict=True)
        groups.append(TextGroup(kept, tuple(Dropped(each, score, shares.get(each)) for each, score in dropped)))
    return DistinctTexts(tuple(sorted(members)), tuple(groups))
