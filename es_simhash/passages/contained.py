"""
Which documents share a term of passages, and which add nothing because another contains them. Loads numpy.

The container stays, and is at least as long: more shingles, then more characters, then the canonical order. The longest
is decided first, so that each document that goes names one that stays, and chains end there. Documents are numbers:
places in a table of the caller.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from es_simhash.arguments import check_number
from es_simhash.errors import Argument, InvalidInputError, Said
from es_simhash.hashing.winnowing import GUARANTEE, TERM_CHARACTERS
from es_simhash.passages.compare import Question, covered_share
from es_simhash.texts.measures import Score
from es_simhash.texts.shingle_sets import Shingles, run_shingles, share_shingles

SMALLEST_CONTAINED = 0.8
"""The smallest share: a text of which less is in another text may add something."""


def check_contained(share: Any) -> float:
    """Return *share*, the smallest part of a text that must be in another one, as a float from 0.8 to 1."""
    advice = f"a share from {SMALLEST_CONTAINED} to 1, such as 0.95"
    found = check_number("contained", share, advice=advice)
    if found < SMALLEST_CONTAINED:
        raise InvalidInputError(Said(Argument("contained"), f" {found:g} is out of range: give {advice}"))
    return found


PlacePairs = tuple[NDArray[np.int64], NDArray[np.int64]]

# Pairs that are made at once; one document may have more.
_CHUNK = 1 << 21


class SharedTerms:
    """
    The terms of documents, and the pairs of documents that share one.
    A term that more than *common* documents have makes no pairs. Memory: some 50 bytes a term while pairs are made, 12
    before.
    """

    def __init__(self, *, common: int) -> None:
        self._common = common
        self._count = 0
        self._parts: list[tuple[NDArray[np.uint64], NDArray[np.int32]]] = []
        self._postings: _Postings | None = None

    def __len__(self) -> int:
        return self._count

    def add(self, documents: Sequence[Sequence[object]]) -> None:
        """Add the terms of *documents*, whose places follow those added before; what is no term is left out."""
        terms = [
            {each for each in own if isinstance(each, str) and len(each) == TERM_CHARACTERS and each.isascii()}
            for own in documents
        ]
        places = np.arange(self._count, self._count + len(terms), dtype=np.int32)
        self._count += len(terms)
        packed = np.frombuffer("".join(each for own in terms for each in own).encode("ascii"), ">u2")
        parts = packed.reshape(-1, TERM_CHARACTERS // 2).astype(np.uint64)
        values = np.zeros(len(parts), np.uint64)
        for column in parts.T:
            values = values << np.uint64(16) | column
        self._parts.append((values, np.repeat(places, [len(own) for own in terms])))
        self._postings = None

    def _post(self) -> _Postings:
        if self._postings is None:
            values = np.concatenate([np.empty(0, np.uint64), *(values for values, _ in self._parts)])
            owners = np.concatenate([np.empty(0, np.int32), *(owners for _, owners in self._parts)])
            self._parts = [(values, owners)]
            self._postings = _Postings.of(values, owners)
        return self._postings

    def with_common(self) -> NDArray[np.bool_]:
        """Return which documents have a common term: they may share it with others, and no pair says so."""
        posted = self._post()
        found = np.zeros(self._count, np.bool_)
        found[posted.owners[posted.sizes[posted.terms] > self._common]] = True
        return found

    def pairs(self) -> Iterator[PlacePairs]:
        """Yield each pair of documents that share a term which is not common, the smaller place first."""
        posted = self._post()
        sizes = posted.sizes[posted.terms]
        entries = np.flatnonzero((sizes > 1) & (sizes <= self._common))
        owners, work = posted.owners[entries], np.cumsum(sizes[entries])
        begin = 0
        while begin < entries.size:
            before = int(work[begin - 1]) if begin else 0
            last = owners[min(int(np.searchsorted(work, before + _CHUNK)), entries.size - 1)]
            # All entries of a document are in one part, so that no pair comes twice; the last document may wait.
            end = int(np.searchsorted(owners, last))
            end = end if end > begin else int(np.searchsorted(owners, last, side="right"))
            end = entries.size if work[-1] - before <= _CHUNK else end
            yield posted.pairs_of(entries[begin:end])
            begin = end


@dataclass(frozen=True, slots=True, eq=False)
class _Postings:
    """
    Which documents have each term; an entry is a document and one of its terms.
    *owners*, *terms*: the document, ascending, and the number of the term of each entry. *sorted_owners*: the documents
    of all entries, sorted by term and then by document; *starts* has each term's first. *sizes*: how many documents
    have each term.
    """

    owners: NDArray[np.int32]
    terms: NDArray[np.int64]
    sorted_owners: NDArray[np.int32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.uint64], owners: NDArray[np.int32]) -> _Postings:
        order = np.argsort(values, kind="stable")
        in_order = values[order]
        is_first = np.ones(values.size, np.bool_)
        is_first[1:] = in_order[1:] != in_order[:-1]
        starts = np.flatnonzero(is_first)
        terms = np.empty(values.size, np.int64)
        terms[order] = np.cumsum(is_first) - 1
        return cls(owners, terms, owners[order], starts, np.diff(starts, append=values.size))

    def pairs_of(self, entries: NDArray[np.int64]) -> PlacePairs:
        """Return the pairs of the documents of *entries* with later documents that share one of these terms."""
        sizes, starts = self.sizes[self.terms[entries]], self.starts[self.terms[entries]]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        left = np.repeat(self.owners[entries], sizes).astype(np.int64)
        right = self.sorted_owners[np.repeat(starts, sizes) + within].astype(np.int64)
        is_later = right > left
        both = np.unique(left[is_later] << 32 | right[is_later])
        return both >> 32, both & 0xFFFF_FFFF


_MOST_REFUTED = 20

# Documents that are counted for one document, over all of its terms: a common passage counts once or a few times.
_MOST_COUNTED = 5_000


class ContainmentMeasure:
    """
    How much of a text is in another: the share of its shingles that the other one has.
    It is 0 below the bound, or if less than the bound of the text's characters are in shared runs of 100 letters:
    single shingles of a short text also occur here and there in a very long one.
    """

    def prepare(self, texts: Sequence[str]) -> list[Question]:
        return [Question(text, min_run=GUARANTEE) for text in texts]

    def compare(self, first: Question, second: Question, *, bound: float) -> Score:
        """Return how much of *first* stands in *second*; less than *bound* is 0."""
        share = share_shingles(first.shingles, second.shingles)[0]
        is_contained = share >= bound and covered_share(first, second) >= bound
        return Score(share if is_contained else 0.0)


class ShingleStore(Protocol):
    """The shingles of different texts, by number."""

    def __getitem__(self, number: int) -> Shingles: ...


def find_containers(
    pairs: PlacePairs, ranks: NDArray[np.int64], numbers: NDArray[np.int64], shingles: ShingleStore, bound: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """
    Return places of documents, of those that may contain them, and their shares of *bound* or more.
    A share is of the shingles of the contained text. *ranks*: by document, the longest first. *numbers*: the text of
    each document; -1 if it was not read.
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
    return share_shingles(first, shingles[container])[0]


def find_container(
    text: str, others: Sequence[str], shingles: Mapping[str, Shingles], bound: float
) -> tuple[int, float] | None:
    """
    Return the number of the one of *others* that has *bound* of *text*, and the share, or ``None``.
    It is at least as long. The largest share is preferred, then the shortest, then the first. Texts are prepared one at
    a time, because a prepared text takes much memory.
    """
    own, promising = shingles[text], []
    for number, other in enumerate(others):
        there = shingles[other]
        size, share = (there.size, len(other)), share_shingles(own, there)[0]
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
    texts: Sequence[str], terms: Sequence[Sequence[str]], bound: float, *, allows: Callable[[int, int], bool]
) -> dict[int, tuple[int, float]]:
    """
    Return which of *texts* are in another of them that stays, with its number and the share.
    The longest is decided first; of equal texts the first one stays. *allows* says whether two may be compared.
    """
    having: defaultdict[str, list[int]] = defaultdict(list)
    for number, own in enumerate(terms):
        for term in dict.fromkeys(own):
            having[term].append(number)
    shared = [sorted((having[term] for term in set(own) if len(having[term]) > 1), key=len) for own in terms]
    asked = [number for number, postings in enumerate(shared) if postings]
    different = list(dict.fromkeys(texts[number] for number in asked))
    shingles = dict(zip(different, run_shingles(different), strict=True))
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
    The rule over documents; pairs are judged one after another, because comparing texts is expensive.
    Ask :meth:`unjudged` for pairs, judge them all, and ask again until there are none; then :meth:`decide` has the
    result. It is the same as if all pairs had been judged, but a document of which 20 pairs were refuted stays. Arrays
    are by pair: *containers* come before *contained* in *ranks*. The largest of *shares* is preferred, then the
    shortest container.
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
        decided = gone.keys() | self._staying.keys()
        refuted = (next(iter(whys.values())) for place, whys in self._refuted.items() if place not in decided)
        return Counter(self._staying.values()) + Counter(refuted)


# Texts that are compared for one document: those that share most of its terms, the rarest first.
MOST_CANDIDATES = 20
