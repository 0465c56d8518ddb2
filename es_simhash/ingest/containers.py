"""
Finds the documents of a batch that add nothing to another document, before the batch is decided.

Order: refresh, if this run wrote documents that may count; search by shared terms of passages; compare texts by
``passages.contained``; compare the batch in memory. Once it is written, the texts of its containers are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from es_simhash.errors import Advice, IncompleteSearchError, InvalidInputError, Said
from es_simhash.groups.read import fetch_compared
from es_simhash.groups.recorded import refuse_untaggable
from es_simhash.ingest.item import Container, Item
from es_simhash.ingest.reading import GroupedIngest, WriteTarget
from es_simhash.lookup.content import Content, compare_contents, read_content
from es_simhash.lookup.fetch import FETCH
from es_simhash.lookup.find_many import refusal
from es_simhash.mapping.fields import CONTAINED_IN, Fields, read_hit, text_or_none
from es_simhash.mapping.port import Port
from es_simhash.passages.candidates import candidates_query, terms_query
from es_simhash.passages.contained import MOST_CANDIDATES, find_container, find_containers_among
from es_simhash.passages.find_passages import check_filled
from es_simhash.texts.shingle_sets import run_shingles
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.protocol import Call, Key, document_key, status_of
from es_simhash.transport.retry import Patience, is_passing, refresh, retry

ATTEMPTS = 8
TOO_LARGE = 413
# A server takes 65,536. What is left out of a longer list can only be missed.
MOST_TERMS = 10_000
# A document that contains another has nearly all its terms, so that some of them suffice to put it first.
RANKED_TERMS = 64
# Terms and ids that are remembered of what searches may not show yet: some 20 MB.
MOST_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class _Asked:
    """A document of the batch: its place there, its id, its text, its terms, and what may keep it apart from others."""

    place: int
    id: str
    text: str
    terms: Sequence[str]
    content: Content | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A document of the index: its text, and what may keep it apart from others."""

    key: Key
    text: str
    content: Content


async def check_containers(server: Port, index: str, target: WriteTarget, *, is_tagging: bool) -> None:
    """Raise if *index*, or some of its documents, has no passages, or, if *is_tagging*, it has no tag."""
    each = target.resolved.each or {index: target.settings}
    await retry(server, lambda: check_filled(server, index, each))
    if is_tagging:
        refuse_untaggable(target.resolved, prefix=server.prefix)


class ContainedLookup:
    """
    The lookups of one ingest, batch after batch, for documents that add nothing to another one.
    *bound*: smallest share of a text that stands in another one. Only ``per`` and ``within`` keep documents apart.
    """

    def __init__(self, ingest: GroupedIngest, bound: float) -> None:
        self._prefix = ingest.prefix
        self._fields = Fields(ingest.prefix)
        self._index = ingest.index
        self._bound = bound
        self._apart = replace(ingest.grouping, similarity=None)
        self._text_fields = ingest.text_fields
        self._is_skipping = ingest.options.on_duplicate == "skip"
        self._patience = Patience(ATTEMPTS)
        # Of what this run wrote since the last refresh: ids, terms, and whether something is not known.
        self._written: set[str] = set()
        self._terms: set[str] = set()
        self._must_refresh = False

    def note_written(self, items: Iterable[Item]) -> None:
        """Note which *items* were written: searches may not show them yet."""
        for item in items:
            operation, outcome = item.operation, item.outcome
            if operation is None or outcome is None or not outcome.is_done:
                continue
            self._written.update({str(outcome.id), str(operation.header.get("_id"))})
            if operation.kind == "update":  # what the document is now, nobody knows
                self._must_refresh = True
            elif operation.own is not None:
                self._terms.update(operation.own.get("passages") or ())
        self._must_refresh |= len(self._terms) + len(self._written) > MOST_REMEMBERED

    async def _refresh(self, server: Port) -> None:
        """Make visible what was written; where shards do not answer, the searches that follow say so."""
        try:
            await refresh(server, self._index)
        except IncompleteSearchError:
            return
        self._written.clear()
        self._terms.clear()
        self._must_refresh = False

    async def apply(self, server: Port, items: Sequence[Item]) -> list[Item]:
        """
        Return *items*, of which those that add nothing have a tag, or no operation any more.
        Cost: a multi-search, and for every 500 documents that share a term with one of them a search of their texts; a
        refresh where documents that this run wrote since the last one share a term. A refusal raises, except that a
        busy server is asked again. Where shards do not answer for long, a document may be missed, and its item says so.
        """
        asked: list[_Asked] = await server.compute(self._questions, items)
        if not asked:
            return list(items)
        if self._must_refresh or any(not self._terms.isdisjoint(each.terms) for each in asked):
            await self._refresh(server)
        ids = Counter(str(each.operation.header.get("_id")) for each in items if each.operation is not None)
        changing = ids.keys() | self._written
        answers = await self._search(server, asked)
        gaps = {each.place: find_gaps(answer) for each, answer in zip(asked, answers, strict=True)}
        keys = {each.place: _keys(answer, changing) for each, answer in zip(asked, answers, strict=True)}
        found: dict[int, Container] = {}
        for part in _parts([each for each in asked if keys[each.place]], keys):
            wanted = list(dict.fromkeys(key for each in part for key in keys[each.place]))
            candidates, unanswered = await self._read(server, wanted)
            found |= await server.compute(self._compare, part, keys, candidates)
            for each in part:
                gaps[each.place] += [unanswered[key] for key in keys[each.place] if key in unanswered]
        stays: set[int] = set()
        if self._is_skipping:  # what the index has under such an id would keep its old text
            stays = {n for n, item in enumerate(items) if item.draft is not None and item.draft.must_write}
            found = {n: each for n, each in found.items() if n not in stays}
        settled = [self._settled(item, found.get(n), gaps.get(n, ())) for n, item in enumerate(items)]
        # A document that is written again in this batch has two texts.
        rest = [each for each in asked if each.place not in found and ids[each.id] == 1]
        among: dict[int, tuple[int, float]] = await server.compute(self._compare_among, rest)
        for number, (other, share) in among.items():
            place, container = rest[number].place, rest[other]
            if place in stays:
                continue
            item = items[place]
            kept = self._settled(item, Container(container.id, "", share), ())
            withheld = item.operation if kept.operation is None else None
            position = items[container.place].position
            settled[place] = replace(kept, container_position=position, withheld=withheld)
        return settled

    async def confirm(self, server: Port, items: Sequence[Item]) -> list[Item]:
        """
        Return *items* of a written batch, without containers from it that the index does not have.
        The index has one if the same id has the same text there: the server may have refused it, or a pipeline changed
        it. Cost: a refresh and searches of these texts, where there are any.
        """
        used = {each.container_position for each in items if each.container_position is not None}
        containers = {
            each.position: Key(each.outcome.index or "", each.outcome.id or "", _routing(each))
            for each in items
            if each.position in used and each.outcome and each.outcome.is_done and not each.is_renamed
        }
        if not used:
            return list(items)
        found: dict[Key, _Candidate] = {}
        if containers:
            await self._refresh(server)
            found, _ = await self._read(server, list(containers.values()))
        texts = {each.position: self._text(each) for each in items if each.position in containers}
        right = {n: key for n, key in containers.items() if key in found and found[key].text == texts[n]}
        return [self._confirmed(each, right) for each in items]

    @staticmethod
    def _confirmed(item: Item, right: Mapping[int, Key]) -> Item:
        if item.container is None or item.container_position is None:
            return item
        key = right.get(item.container_position)
        return (
            item.without_container()
            if key is None
            else replace(item, container=replace(item.container, index=key.index))
        )

    def _text(self, item: Item) -> str | None:
        return (
            None if item.operation is None else text_or_none({"_source": item.operation.body}, self._text_fields.others)
        )

    def _questions(self, items: Sequence[Item]) -> list[_Asked]:
        """Return the documents to ask about: those that are written whole, with a fingerprint and passages."""
        found = []
        for place, item in enumerate(items):
            operation, draft = item.operation, item.draft
            if operation is None or operation.kind not in ("index", "create"):
                continue
            if draft is None or draft.fingerprint is None or operation.own is None:
                continue
            terms = operation.own.get("passages") or ()
            text = self._text(item)
            if terms and text is not None:
                found.append(_Asked(place, draft.id, text, terms[:MOST_TERMS], draft.content))
        return found

    async def _search(self, server: Port, asked: Sequence[_Asked]) -> list[Mapping[str, Any]]:
        """Return the answer to the search of each document; a request that is too large is sent in halves."""
        try:
            return await self._search_at_once(server, asked)
        except Exception as error:
            if status_of(error) != TOO_LARGE or len(asked) == 1:
                raise
        half = len(asked) // 2
        return [*await self._search(server, asked[:half]), *await self._search(server, asked[half:])]

    async def _search_at_once(self, server: Port, asked: Sequence[_Asked]) -> list[Mapping[str, Any]]:
        """Return the answer to the search of each document; they are repeated while the server cannot answer."""
        header = {"index": self._index}
        call = Call("msearch", {"body": [line for each in asked for line in (header, self._body(each))]})

        async def send() -> list[Mapping[str, Any]]:
            answers: list[Mapping[str, Any]] = (await server.send(call))["responses"]
            for each in answers:
                if "error" in each and not is_passing(each.get("status")):
                    raise refusal(each, "a lookup of passages")
            return answers

        def are_whole(answers: list[Mapping[str, Any]]) -> bool:
            return not any("error" in each or find_gaps(each) for each in answers)

        answers = await retry(server, send, is_done=are_whole, patience=self._patience)
        for each in answers:
            if "error" in each:
                raise refusal(each, "a lookup of passages")
        return answers

    def _body(self, asked: _Asked) -> dict[str, Any]:
        """Return the search for documents that may contain one; those that are tagged themselves may go."""
        terms, field = asked.terms, self._fields.passages
        query = candidates_query(
            terms_query(terms, prefix=self._prefix),
            without={"exists": {"field": self._fields.contained_in}},
            filter={"exists": {"field": self._fields.fingerprint}},
            exclude_ids=[asked.id],
        )
        ranked = terms[:: -(-len(terms) // RANKED_TERMS)]
        query["bool"]["should"] = [{"term": {field: each}} for each in ranked]
        return {"size": MOST_CANDIDATES, "query": query, "_source": False, "track_total_hits": False}

    async def _read(self, server: Port, wanted: Sequence[Key]) -> tuple[dict[Key, _Candidate], dict[Key, Gap]]:
        """Return the documents *wanted* that can be read, and why shards did not answer for others."""
        found: dict[Key, _Candidate] = {}

        def take(hit: Mapping[str, Any]) -> None:
            key = document_key(hit)
            try:
                text = read_hit(hit, self._text_fields[key.index])
            except InvalidInputError:
                return
            found[key] = _Candidate(key, text, read_content(hit, self._apart.pair_rule, self._text_fields))

        fields, patience = self._text_fields.all, self._patience
        gaps = await fetch_compared(
            server, self._index, wanted, take, grouping=self._apart, text_fields=fields, patience=patience
        )
        return found, gaps

    def _compare(
        self, asked: Sequence[_Asked], keys: Mapping[int, Sequence[Key]], candidates: Mapping[Key, _Candidate]
    ) -> dict[int, Container]:
        """Return for each place the document that contains the one asked about, where there is one."""
        texts = list(dict.fromkeys([*(each.text for each in asked), *(each.text for each in candidates.values())]))
        shingles = dict(zip(texts, run_shingles(texts), strict=True))
        found: dict[int, Container] = {}
        for each in asked:
            known = [
                candidates[key] for key in sorted(keys[each.place], key=attrgetter("id", "index")) if key in candidates
            ]
            others = [other for other in known if self._allows(each, other)]
            best = find_container(each.text, [other.text for other in others], shingles, self._bound)
            if best is not None:
                number, share = best
                found[each.place] = Container(others[number].key.id, others[number].key.index, share)
        return found

    def _compare_among(self, asked: Sequence[_Asked]) -> dict[int, tuple[int, float]]:
        """Return the numbers of those of *asked* that another of them contains, with its number and the share."""
        return find_containers_among(
            [each.text for each in asked],
            [each.terms for each in asked],
            self._bound,
            allows=lambda one, other: self._allows(asked[one], asked[other]),
        )

    def _allows(self, asked: _Asked, other: _Asked | _Candidate) -> bool:
        """Return whether ``per`` and ``within`` do not keep two documents apart."""
        return compare_contents(asked.content, other.content, self._apart.pair_rule).are_neighbours

    def _settled(self, item: Item, container: Container | None, gaps: Sequence[Gap]) -> Item:
        if container is None and gaps:
            why = "; ".join(sentences(gaps))
            return replace(
                item,
                problem=Said(
                    f"a document that contains it may have been missed ({why}): run ",
                    Advice("tag_contained", command="reconcile INDEX --contained 0.95"),
                ),
            )
        operation = item.operation
        if container is None or operation is None:
            return item
        if self._is_skipping:
            return replace(item, operation=None, container=container)
        operation = replace(operation, own={**(operation.own or {}), CONTAINED_IN: container.id})
        return replace(item, operation=operation, container=container)


def _routing(item: Item) -> str | None:
    return None if item.draft is None or item.draft.routing is None else str(item.draft.routing)


def _keys(answer: Mapping[str, Any], changing: Collection[str]) -> list[Key]:
    """Return the candidates of an answer, without those that this run changes."""
    keys = map(document_key, answer["hits"]["hits"])
    return [key for key in keys if key.id not in changing]


def _parts(asked: Sequence[_Asked], keys: Mapping[int, Sequence[Key]]) -> Iterator[list[_Asked]]:
    """Yield *asked* in parts whose candidates are fetched at once, so that few texts are in memory."""
    part: list[_Asked] = []
    wanted: set[Key] = set()
    for each in asked:
        if part and len(wanted | set(keys[each.place])) > FETCH:
            yield part
            part, wanted = [], set()
        part.append(each)
        wanted.update(keys[each.place])
    if part:
        yield part
