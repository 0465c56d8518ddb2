"""
Which documents add nothing, because another document that stays contains their text.

A document *adds nothing* if another one, at least as long, contains it, and that other one stays. Longer is the one
with more shingles, then the one with more characters; the canonical order decides between equals. The documents are
decided about in this order, the longest first, so that each that goes names one that stays, and chains end there.

What contains means is measured by :class:`ContainmentMeasure`. To read and compare two texts is expensive, so
:class:`AddsNothing` says which pairs are to be compared, and is told the results. Pure; numpy is loaded here, so
callers import this module when they first need it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from es_simhash.hashing.winnowing import GUARANTEE
from es_simhash.index.measures.measure import Score
from es_simhash.index.passages.compare import Question, covered_share, shared_shingles
from es_simhash.index.passages.query import MOST_CANDIDATES
from es_simhash.index.similarity import shingle_sets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from es_simhash.index.passages.join import PlacePairs
    from es_simhash.index.similarity import Shingles

__all__ = [
    "AddsNothing",
    "ContainmentMeasure",
    "ShingleStore",
    "find_container",
    "find_containers",
    "find_containers_among",
]

_MOST_REFUTED = 20
# Documents that are counted for one document, over all of its terms: a common passage counts once or a few times.
_MOST_COUNTED = 5_000


class ContainmentMeasure:
    """
    How much of a text stands in another: the share of its shingles that the other one has.

    It is 0 if it would be less than the bound, or if less than the bound of the text's characters are in runs of 100
    letters that both have: single shingles of a short text also stand here and there in a very long one.
    """

    def prepare(self, texts: Sequence[str]) -> list[Question]:
        """Return each of *texts* prepared for :meth:`compare`."""
        return [Question(text, min_run=GUARANTEE) for text in texts]

    def compare(self, first: Question, second: Question, *, bound: float) -> Score:
        """Return how much of *first* stands in *second*; less than *bound* is 0."""
        share = shared_shingles(first, second)
        is_contained = share >= bound and covered_share(first, second) >= bound
        return Score(share if is_contained else 0.0)


class ShingleStore(Protocol):
    """The shingles of different texts, by number."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many shingles each text has."""

    def __getitem__(self, number: int) -> Shingles:
        """Return the shingles of a text."""


def find_containers(
    pairs: PlacePairs, ranks: NDArray[np.int64], numbers: NDArray[np.int64], shingles: ShingleStore, bound: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """
    Return places of documents, those that may contain them, and the share of shingles, where it reaches *bound*.

    Args:
        pairs:
            Places of two documents each.
        ranks:
            The rank of each document in the order of the rule, the longest first.
        numbers:
            The number of the text of each document; -1 where it was not read.
        shingles:
            The different texts.
        bound:
            Smallest share of the shingles of a text.
    """
    left, right = pairs
    known = (numbers[left] >= 0) & (numbers[right] >= 0)
    left, right = left[known], right[known]
    is_first = ranks[left] < ranks[right]
    contained, container = np.where(is_first, right, left), np.where(is_first, left, right)
    texts = np.stack([numbers[contained], numbers[container]], axis=1)
    different, which = np.unique(texts, axis=0, return_inverse=True)
    shares = np.array([_share(shingles, *pair) for pair in different.tolist()], np.float64)[which.ravel()]
    enough = shares >= bound
    return contained[enough], container[enough], shares[enough]


def _share(shingles: ShingleStore, contained: int, container: int) -> float:
    first = shingles[contained]
    if contained == container:
        return 1.0 if first.size else 0.0
    return _share_of(first, shingles[container])


def _share_of(first: Shingles, second: Shingles) -> float:
    shared = np.intersect1d(first, second, assume_unique=True).size
    return shared / first.size if first.size else 0.0


def find_container(
    text: str, others: Sequence[str], shingles: Mapping[str, Shingles], bound: float
) -> tuple[int, float] | None:
    """
    Return the number of the one of *others* that contains *text* to *bound*, and the share; ``None`` if none does.

    It is at least as long. The largest share is preferred, then the shortest, then the first. A text that is prepared
    takes much memory, so that few are at any time.

    Args:
        text:
            The text.
        others:
            Texts that may contain it.
        shingles:
            The shingles of all these texts.
        bound:
            Smallest share of the text.
    """
    own, promising = shingles[text], []
    for number, other in enumerate(others):
        there = shingles[other]
        size, share = (there.size, len(other)), _share_of(own, there)
        if share >= bound and size >= (own.size, len(text)):
            promising.append((-share, size, number))
    if not promising:
        return None
    measure = ContainmentMeasure()
    [first] = measure.prepare([text])
    for _, _, number in sorted(promising):
        [second] = measure.prepare([others[number]])
        if (share := measure.compare(first, second, bound=bound).similarity) >= bound:
            return number, share
    return None


def find_containers_among(
    texts: Sequence[str],
    terms: Sequence[Sequence[str]],
    bound: float,
    *,
    allows: Callable[[int, int], bool],
) -> dict[int, tuple[int, float]]:
    """
    Return which of *texts* stand in another of them that stays, with its number and the share.

    The longest is decided first, of equal texts the first one stays. *allows* says whether two may be compared.
    """
    having: defaultdict[str, list[int]] = defaultdict(list)
    for number, own in enumerate(terms):
        for term in dict.fromkeys(own):
            having[term].append(number)
    shared = [sorted((having[term] for term in set(own) if len(having[term]) > 1), key=len) for own in terms]
    asked = [number for number, postings in enumerate(shared) if postings]
    different = list(dict.fromkeys(texts[number] for number in asked))
    shingles = dict(zip(different, shingle_sets(different), strict=True))
    asked.sort(key=lambda number: (-shingles[texts[number]].size, -len(texts[number]), number))
    staying: set[int] = set()
    found: dict[int, tuple[int, float]] = {}
    for number in asked:
        others = [each for each in _sharing_most(shared[number], staying) if allows(number, each)]
        best = find_container(texts[number], [texts[each] for each in others], shingles, bound)
        if best is None:
            staying.add(number)
        else:
            found[number] = others[best[0]], best[1]
    return found


def _sharing_most(postings: Sequence[Sequence[int]], staying: Container[int]) -> list[int]:
    """Return the documents that stay and are in most of *postings*, the shortest of which come first."""
    counts: Counter[int] = Counter()
    counted = 0
    for each in postings:
        if counted and counted + len(each) > _MOST_COUNTED:
            break
        counted += len(each)
        counts.update(number for number in each if number in staying)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_CANDIDATES]
    return sorted(number for number, _ in most)


class AddsNothing:
    """
    The rule over documents, whose pairs are judged one after another.

    Ask :meth:`unjudged` for pairs, judge them all, and ask again until there are none; then :meth:`decide` has the
    result. It is the same as if all pairs had been judged; but where 20 of a document were refuted, it stays.

    Args:
        contained:
            Places of documents that may be contained.
        containers:
            For each, the place of a document before it in the order of the rule that may contain it.
        shares:
            For each, the share of its shingles that stand there: the largest is preferred.
        ranks:
            The rank of each document in the order of the rule. Of equal shares the shortest container is preferred.
    """

    def __init__(
        self,
        contained: NDArray[np.int64],
        containers: NDArray[np.int64],
        shares: NDArray[np.float64],
        ranks: NDArray[np.int64],
    ) -> None:
        order = np.lexsort((-ranks[containers], -shares, ranks[contained]))
        contained, containers = contained[order], containers[order]
        starts = np.flatnonzero(np.diff(contained, prepend=-1))
        parts = np.split(containers, starts)[1:]  # before the first start there is nothing
        self._containers = dict(zip(contained[starts].tolist(), parts, strict=True))
        self._confirmed: set[tuple[int, int]] = set()
        self._refuted: dict[int, dict[int, str]] = {}
        self._staying: dict[int, str] = {}

    def decide(self) -> dict[int, int]:
        """Return the documents that add nothing, each with the one that contains it, by all that is known."""
        gone: dict[int, int] = {}
        for place, containers in self._containers.items():
            if place in self._staying:
                continue
            refuted = self._refuted.get(place, {})
            if len(refuted) >= _MOST_REFUTED:
                continue
            for container in containers.tolist():
                if container not in gone and container not in refuted:
                    gone[place] = container
                    break
        return gone

    def unjudged(self) -> list[tuple[int, int]]:
        """Return the pairs that the decision rests on and nobody has judged."""
        return [pair for pair in self.decide().items() if pair not in self._confirmed]

    def confirm(self, pair: tuple[int, int]) -> None:
        """Note that the first document of *pair* stands in the second."""
        self._confirmed.add(pair)

    def refute(self, pair: tuple[int, int], why: str) -> None:
        """Note that it does not, or that nobody can say, and *why*."""
        self._refuted.setdefault(pair[0], {})[pair[1]] = why

    def keep(self, place: int, why: str) -> None:
        """Note that a document stays in any case, and *why*."""
        self._staying[place] = why

    def left_out(self) -> Counter[str]:
        """Return how many documents may be contained and stay, by why; the reason of the best container counts."""
        gone = self.decide()
        refuted = (next(iter(whys.values())) for place, whys in self._refuted.items() if self._is_open(place, gone))
        return Counter(self._staying.values()) + Counter(refuted)

    def _is_open(self, place: int, gone: Container[int]) -> bool:
        return place not in gone and place not in self._staying
