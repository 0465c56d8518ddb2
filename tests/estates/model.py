"""
The slow, simple, obviously right side: what each document must be, who is near to whom, and who belongs together.

Brute force in plain Python; the only thing taken from elsewhere is the slow oracle of tests/reference.py.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import permutations, product
from typing import Any, NamedTuple

from tests import reference

WORDS = (
    "the council approved a new bridge over the river on tuesday after long debate about its cost and noise",
    "shares of the chip maker fell by a tenth once it cut the forecast for this year for the third time",
    "heavy rain closed two mountain roads while crews worked all night to clear the mud near the old tunnel",
)
OTHERS = ("red", "seven", "wooden", "quiet")
BLANK = "…"


def write_text(template: int, edits: Sequence[tuple[int, int]]) -> str:
    """Return a text a few bits away from others of its template; template -1 has no features at all."""
    if template < 0:
        return BLANK
    words = WORDS[template].split()
    for place, word in edits:
        words[place % len(words)] = OTHERS[word % len(OTHERS)]
    return " ".join(words)


@functools.cache
def fingerprint(text: str, scheme: str) -> int | None:
    """Return the fingerprint by the slow oracle."""
    if scheme == "words":
        return reference.fingerprint(text, name="words", version=1, size=2, weighting="linear")
    return reference.fingerprint(text)


class Place(NamedTuple):
    """Where a document is: what makes it one document and not two."""

    index: str
    shard: int
    id: str


@dataclass(frozen=True)
class Doc:
    """
    A document, as it is or as it must be: the user's own fields as JSON, and the fingerprint that it carries.
    """

    user: str
    fingerprint: int | None
    routing: str | None = None

    @property
    def source(self) -> dict[str, Any]:
        """The user's own fields."""
        return json.loads(self.user)


@dataclass(frozen=True)
class Seen:
    """A document as the server showed it."""

    place: Place
    doc: Doc
    ours: Mapping[str, Any]


def to_user(source: Mapping[str, Any]) -> str:
    """Return the user's fields of a ``_source``, so that any difference shows."""
    return json.dumps({key: value for key, value in source.items() if key != "simhash"}, sort_keys=True)


def see(hit: Mapping[str, Any], shard: int) -> Seen:
    """Return what a hit says, after checking that our fields in it agree with each other."""
    source = hit["_source"]
    ours = {key: value for key, value in (source.get("simhash") or {}).items() if value is not None}
    value = None
    if digits := ours.get("fingerprint"):
        value = int(digits, 16)
        blocks = [ours[f"block{number}"] for number in range(4)]
        assert "".join(blocks) == digits, f"{hit['_id']}: blocks {blocks} are not those of {digits}"
        assert "value" not in ours or int(ours["value"]) % 2**64 == value, f"{hit['_id']}: value is not {digits}"
    else:
        assert not {"value", "block0", "block1", "block2", "block3"} & set(ours), f"{hit['_id']}: {ours}"
    return Seen(Place(hit["_index"], shard, hit["_id"]), Doc(to_user(source), value, hit.get("_routing")), ours)


@dataclass
class Model:
    """
    What may be in the estate: for each place every state it may be in; one where nothing went wrong.

    Attributes:
        states:
            From place to states; ``None`` among them: perhaps nothing is there.
        loose:
            Documents without an id that may have been written, each at most once.
    """

    states: dict[Place, list[Doc | None]] = field(default_factory=dict)
    loose: list[Doc] = field(default_factory=list)

    def change(self, place: Place, new: Callable[[Doc | None], Doc | None], *, is_sure: bool = True) -> None:
        """Let the document at *place* become what *new* makes of it; perhaps, where that is not sure."""
        before = self.states.get(place, [None])
        after = [new(each) for each in before]
        self.states[place] = list(dict.fromkeys(after if is_sure else [*before, *after]))

    def check(self, seen: Iterable[Seen], *, is_all: bool) -> None:
        """Compare with what the server shows of these places, or of all; then nothing is uncertain any more."""
        shown = {each.place: each.doc for each in seen}
        for place, states in list(self.states.items()):
            found = shown.pop(place, None)
            assert found in states, f"{place} is {found}, and must be {' or '.join(map(str, states))}"
            self.states[place] = [found]
            if found is None:
                del self.states[place]
        for place, found in shown.items():
            assert found in self.loose, f"{place} is {found}, and nobody wrote that, or not twice"
            self.loose.remove(found)
            self.states[place] = [found]
        if is_all:
            self.loose.clear()

    def drop(self, index: str) -> None:
        """Forget an index that is deleted."""
        self.states = {place: states for place, states in self.states.items() if place.index != index}


def similarity(a: str, b: str) -> float:
    """Return the share of runs of three words that both texts have; the texts here have plain words only."""
    one, two = (_runs(text.split()) for text in (a, b))
    return len(one & two) / len(one | two) if one and two else 0.0


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    words = [word for word in words if word != BLANK]
    return {tuple(words[at : at + 3]) for at in range(max(1, len(words) - 2))} if words else set()


def is_near(bits: int, text: str, other: Doc, grouping: Mapping[str, Any]) -> bool:
    """Return whether *other* is a neighbour of a document with these *bits* and this *text*."""
    if other.fingerprint is None or distance(bits, other.fingerprint) > grouping["max_distance"]:
        return False
    bound = grouping.get("similarity")
    return bound is None or similarity(text, other.source["body"]) >= bound


def distance(a: int, b: int) -> int:
    """Return how many bits differ."""
    return (a ^ b).bit_count()


def group(docs: Sequence[Doc], grouping: Mapping[str, Any]) -> list[int]:
    """Return for each document, in canonical order, the number of its canonical."""
    result: list[int] = []
    for here, own in enumerate(docs):
        bits, text = own.fingerprint or 0, own.source["body"]
        neighbours = [n for n in range(here) if is_near(bits, text, docs[n], grouping)]
        if grouping["rule"] == "star":
            near = [n for n in neighbours if result[n] == n]
            result.append(min(near, default=here))
            continue
        joined = {result[n] for n in neighbours} | {here}
        result = [min(joined) if each in joined else each for each in [*result, here]]
    return result


def expected_groups(seen: Sequence[Seen], grouping: Mapping[str, Any]) -> list[dict[Place, tuple[Any, ...]]]:
    """
    Return what the documents may say of their group: (group, duplicate_of, distance) by place.

    There is one answer, but where several documents share index and id: their order is not defined.
    """
    [order] = [grouping["canonical"]] if isinstance(grouping["canonical"], str) else grouping["canonical"]

    def key(each: Seen) -> tuple[Any, ...]:
        first = 0.0
        if order == "longest":
            first = -len(each.doc.source["body"])
        elif order == "-simhash.at":
            first = -datetime.fromisoformat(each.ours["at"]).timestamp() if "at" in each.ours else 1.0
        return first, each.place.id.encode(), each.place.index

    ties: dict[Any, list[Seen]] = {}
    for each in sorted((each for each in seen if each.doc.fingerprint is not None), key=key):
        ties.setdefault(key(each), []).append(each)
    answers = []
    for order in product(*(permutations(tied) for tied in ties.values())):
        docs = [each for tied in order for each in tied]
        canonical = group([each.doc for each in docs], grouping)
        answer = {}
        for each, number in zip(docs, canonical):
            name = docs[number].place.id
            own = docs[number] is each
            bits = distance(each.doc.fingerprint, docs[number].doc.fingerprint)
            answer[each.place] = (name, None, None) if own else (name, name, bits)
        answers.append(answer)
    return answers


def told_groups(seen: Iterable[Seen]) -> dict[Place, tuple[Any, ...]]:
    """Return what the documents do say of their group."""
    names = ("group", "duplicate_of", "distance")
    return {each.place: tuple(map(each.ours.get, names)) for each in seen if each.doc.fingerprint is not None}
