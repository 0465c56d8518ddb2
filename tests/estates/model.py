"""
The slow, simple, obviously right side: what each document must be, who is near to whom, and who belongs together.

Brute force in plain Python; the only thing taken from elsewhere is the slow oracle of tests/reference.py.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import permutations, product
from math import inf
from typing import Any, NamedTuple

from tests import reference
from tests.reference import passage_terms

WORDS = (
    "the council approved a new bridge over the river on tuesday after long debate about its cost and noise",
    "shares of the chip maker fell by a tenth once it cut the forecast for this year for the third time",
    "heavy rain closed two mountain roads while crews worked all night to clear the mud near the old tunnel",
)
WORDS += (" ".join(WORDS[:2]), " ".join(WORDS))  # the first stands in the second, in runs of 100 letters
OTHERS = ("red", "seven", "wooden", "quiet")
BLANK = "…"
GROUPED = ("group", "duplicate_of", "distance")


def write_text(template: int, edits: Sequence[tuple[int, int]]) -> str:
    """Return a text a few bits away from others of its template; -1 has no features at all."""
    if template < 0:
        return BLANK
    words = WORDS[template].split()
    for place, word in edits:
        words[place % len(words)] = OTHERS[word % len(OTHERS)]
    return " ".join(words)


@functools.cache
def fingerprint(text: str, size: int) -> int | None:
    """Return the fingerprint by the slow oracle."""
    return reference.fingerprint(text, size=size)


class Settings(NamedTuple):
    """What decides our fields of a text: the size of shingles, and whether there are passages."""

    size: int
    passages: bool = False

    def give(self, doc: Doc) -> Doc:
        """Return *doc* with the fields of its present text."""
        text = doc.source["body"]
        return replace(doc, fingerprint=fingerprint(text, self.size), passages=self._terms(text))

    @functools.cache  # noqa: B019 -- of a few short texts
    def _terms(self, text: str) -> tuple[str, ...]:
        return tuple(passage_terms(text)) if self.passages else ()


class Place(NamedTuple):
    """Where a document is: what makes it one document and not two."""

    index: str
    shard: int
    id: str


@dataclass(frozen=True)
class Doc:
    """A document, as it is or as it must be: the user's own fields as JSON, and what it carries of its text."""

    user: str
    fingerprint: int | None = None
    routing: str | None = None
    passages: tuple[str, ...] = ()

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
    raw: str
    version: tuple[int | None, ...]


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
        without = {"value", "block0", "block1", "block2", "block3", "duplicate_of", "distance"} & set(ours)
        without |= {ours["group"]} - {hit["_id"]} if "group" in ours else set()  # it may be a group of its own
        assert not without, f"{hit['_id']} has no fingerprint: {ours}"
    doc = Doc(to_user(source), value, hit.get("_routing"), tuple(sorted(ours.get("passages", ()))))
    version = hit.get("_seq_no"), hit.get("_primary_term")
    return Seen(Place(hit["_index"], shard, hit["_id"]), doc, ours, json.dumps(source), version)


@dataclass
class Model:
    """What may be in the estate: for each place every state it may be in; one where nothing went wrong."""

    states: dict[Place, list[Doc | None]] = field(default_factory=dict)  # None among them: perhaps nothing is there

    def change(self, place: Place, new: Callable[[Doc | None], Doc | None], *, is_sure: bool = True) -> None:
        """Let the document at *place* become what *new* makes of it; perhaps, where that is not sure."""
        before = self.states.get(place, [None])
        after = [new(each) for each in before]
        self.states[place] = list(dict.fromkeys(after if is_sure else [*before, *after]))

    def check(self, seen: Iterable[Seen]) -> None:
        """Compare with what the server shows of all places; then nothing is uncertain any more."""
        shown = {each.place: each.doc for each in seen}
        for place, states in list(self.states.items()):
            found = shown.pop(place, None)
            assert found in states, f"{place} is {found}, and must be {' or '.join(map(str, states))}"
            self.states[place] = [found]
            if found is None:
                del self.states[place]
        assert not shown, f"nobody wrote {shown}"

    def drop(self, index: str) -> None:
        """Forget an index that is deleted."""
        self.states = {place: states for place, states in self.states.items() if place.index != index}


def similarity(a: str, b: str) -> float:
    """Return the similarity of two texts by the oracle."""
    return float(reference.jaccard(a, b))


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
        near = (n for n in range(here) if result[n] == n and is_near(bits, text, docs[n], grouping))
        result.append(next(near, here))
    return result


def canonicals(seen: Sequence[Seen], grouping: Mapping[str, Any]) -> list[dict[Place, Seen]]:
    """
    Return the canonical of each document that has a fingerprint.

    There is one answer, but where several documents share index and id: their order is not defined.
    """
    [order] = [grouping["canonical"]] if isinstance(grouping["canonical"], str) else grouping["canonical"]

    def key(each: Seen) -> tuple[Any, ...]:
        first = 0.0
        if order.endswith("simhash.at"):
            moment = datetime.fromisoformat(each.ours["at"]).timestamp() if "at" in each.ours else inf
            first = -moment if order.startswith("-") and moment < inf else moment
        return first, each.place.id.encode(), each.place.index

    ties: dict[Any, list[Seen]] = {}
    for each in sorted((each for each in seen if each.doc.fingerprint is not None), key=key):
        ties.setdefault(key(each), []).append(each)
    answers = []
    for order in product(*(permutations(tied) for tied in ties.values())):
        docs = [each for tied in order for each in tied]
        found = group([each.doc for each in docs], grouping)
        answers.append({each.place: docs[number] for each, number in zip(docs, found)})
    return answers


def expected_groups(
    seen: Sequence[Seen], grouping: Mapping[str, Any], *, full: bool = False
) -> list[dict[Place, tuple[Any, ...]]]:
    """
    Return what the documents may say of their group: (group, duplicate_of, distance) by place.

    With *full*, every group has its full name.
    """
    docs = {each.place: each for each in seen}
    answers = []
    for answer in canonicals(seen, grouping):
        names = _names({each.place: each for each in answer.values()}.values(), full=full)
        answers.append({place: _group_fields(docs[place], each, names[each.place]) for place, each in answer.items()})
    return answers


def _names(canonicals: Iterable[Seen], *, full: bool) -> dict[Place, str]:
    """Return the names of groups: the id of the canonical, and its index before it where another one has that id."""
    names: dict[Place, str] = {}
    for each in sorted(canonicals, key=lambda each: (each.place.index, each.doc.routing or "")):
        index, id_, routing = each.place.index, each.place.id, each.doc.routing
        is_first = id_ not in names.values() and not full
        names[each.place] = id_ if is_first else f"{index}/{id_}" if routing is None else f"{index}?{routing}/{id_}"
    return names


def _group_fields(own: Seen, canonical: Seen, name: str) -> tuple[Any, ...]:
    if canonical is own:
        return name, None, None
    return name, name, distance(own.doc.fingerprint, canonical.doc.fingerprint)


def told_groups(seen: Iterable[Seen]) -> dict[Place, tuple[Any, ...]]:
    """Return what the documents do say of their group."""
    return {each.place: tuple(map(each.ours.get, GROUPED)) for each in seen if each.doc.fingerprint is not None}


def names_of(seen: Iterable[Seen]) -> set[str]:
    """Return the names by which the canonicals among *seen* are told apart; one without a group has its id."""
    found = (each for each in seen if each.doc.fingerprint is not None and "duplicate_of" not in each.ours)
    return {each.ours.get("group", each.place.id) for each in found}


def wrong_groups(seen: Sequence[Seen], grouping: Mapping[str, Any]) -> set[Place]:
    """
    Return the documents that say of their group what no answer says.

    A full name stays right when the other document of that id is gone: the next reconcile shortens it.
    """
    answers = [each for full in (False, True) for each in expected_groups(seen, grouping, full=full)]
    return {place for place, own in told_groups(seen).items() if all(own != answer[place] for answer in answers)}
