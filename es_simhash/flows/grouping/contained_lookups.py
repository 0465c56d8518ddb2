"""
Finds the documents of a batch that add nothing to a document of the index, before the batch is decided.

Documents that share a term of passages are asked for; their texts are read, and compared by the measure of
``index.passages.contained``. What the same run wrote since its last refresh, or is about to write, is not compared:
nobody knows yet what the index will hold under these ids. No decision about groups and no write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.errors import InvalidInputError, SearchFailedError
from es_simhash.flows.context import Context
from es_simhash.flows.grouping.contents import TextFields, docvalue_fields_of, read_content
from es_simhash.flows.grouping.settings import refuse_untaggable
from es_simhash.flows.grouping.write_target import WriteTarget
from es_simhash.flows.lookup.fetch import FETCH, fetch_hits
from es_simhash.flows.passages.filled import check_filled
from es_simhash.flows.protocol import Call, Compute, Flow, status_of
from es_simhash.flows.transfer.answers import Gap, find_gaps, sentences
from es_simhash.flows.transfer.retry import Patience, is_passing, retry
from es_simhash.flows.transfer.texts import read_hit
from es_simhash.index.documents import text_or_none
from es_simhash.index.fields import CONTAINED_IN, Fields
from es_simhash.index.grouping.content import Content, compare_contents
from es_simhash.index.grouping.in_flight import InFlight
from es_simhash.index.grouping.item import Container, Item
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.json_text import keep_text
from es_simhash.index.keys import Key, document_key
from es_simhash.index.passages.query import candidates_query, terms_query
from es_simhash.index.similarity import shingle_sets

__all__ = ["ContainedLookup", "check_containers"]

ATTEMPTS = 8
TOO_LARGE = 413
# Texts that are compared for one document: those that share most of its terms, the rarest first.
MOST_CANDIDATES = 20
# A server takes 65,536. What is left out of a longer list can only be missed.
MOST_TERMS = 10_000
# A document that contains another has nearly all its terms, so that some of them suffice to put it first.
RANKED_TERMS = 64


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


def check_containers(context: Context, index: str, target: WriteTarget, *, is_tagging: bool) -> Flow[None]:
    """
    Check that documents of *index* which contain others can be found, and, if *is_tagging*, that these can be tagged.

    Raises:
        MappingError: If an index has no passages, or does not map the tag.
        IncompleteSearchError: If documents have no passages yet.
    """
    each = target.resolved.each or {index: target.settings}
    yield from retry(lambda: check_filled(context, index, each))
    if is_tagging:
        refuse_untaggable(target.resolved, prefix=context.prefix)


class ContainedLookup:
    """
    Looks up batch after batch of one ingest.

    Args:
        context:
            What the client object knows.
        index:
            What is searched.
        bound:
            Smallest share of a text that stands in another one.
        grouping:
            Its ``per`` and ``within`` keep documents apart.
        text_fields:
            The text fields of the indices that are searched; the others are those of the new documents.
        is_skipping:
            Whether a document that adds nothing is not to be written; else it is tagged.
    """

    def __init__(
        self,
        context: Context,
        index: str,
        *,
        bound: float,
        grouping: Grouping,
        text_fields: TextFields,
        is_skipping: bool,
    ) -> None:
        self._context = context
        self._fields = Fields(context.prefix)
        self._index = index
        self._bound = bound
        self._apart = replace(grouping, similarity=None)
        self._text_fields = text_fields
        self._is_skipping = is_skipping
        self._patience = Patience(ATTEMPTS)
        # Ids of partial updates that no decision knows of: those of the last batch, and of those before it.
        self._updated: set[str] = set()
        self._updated_before: set[str] = set()

    @property
    def updated(self) -> int:
        """Of how many partial updates the ids are remembered, because searches may not show them yet."""
        return len(self._updated) + len(self._updated_before)

    def note_refresh(self) -> None:
        """Note that searches show what the batches before the last one wrote."""
        self._updated_before.clear()

    def apply(self, items: Sequence[Item], in_flight: InFlight) -> Flow[list[Item]]:
        """
        Return *items*, of which those that add nothing have a tag, or no operation any more.

        Cost: a multi-search, and for every 500 documents that share a term with one of them a search of their texts.
        A refusal raises, except where the server is busy: then it is asked again. Where shards do not answer for long,
        a document may be missed, and its item says so.
        """
        self._updated_before |= self._updated
        self._updated = _ids(each for each in items if each.draft is None)
        asked: list[_Asked] = yield Compute(self._questions, (items,))
        if not asked:
            return list(items)
        changing = _ids(items) | self._updated_before
        answers = yield from self._search(asked)
        gaps = {each.place: find_gaps(answer) for each, answer in zip(asked, answers, strict=True)}
        keys = {each.place: _keys(answer, changing, in_flight) for each, answer in zip(asked, answers, strict=True)}
        found: dict[int, Container] = {}
        for part in _parts([each for each in asked if keys[each.place]], keys):
            wanted = list(dict.fromkeys(key for each in part for key in keys[each.place]))
            candidates, unanswered = yield from self._read(wanted)
            found |= yield Compute(self._compare, (part, keys, candidates))
            for each in part:
                gaps[each.place] += [unanswered[key] for key in keys[each.place] if key in unanswered]
        return [self._settled(item, found.get(n), gaps.get(n, ())) for n, item in enumerate(items)]

    def _questions(self, items: Sequence[Item]) -> list[_Asked]:
        """Return the documents to ask about: those that are written whole, with a fingerprint and passages."""
        found = []
        for place, item in enumerate(items):
            operation, draft = item.operation, item.draft
            if operation is None or operation.kind not in ("index", "create"):
                continue
            if draft is None or draft.fingerprint is None:
                continue
            terms = operation.body[self._context.prefix].get("passages") or ()
            text = text_or_none({"_source": operation.body}, self._text_fields.others)
            if terms and text is not None:
                found.append(_Asked(place, draft.id, text, terms[:MOST_TERMS], draft.content))
        return found

    def _search(self, asked: Sequence[_Asked]) -> Flow[list[Mapping[str, Any]]]:
        """Return the answer to the search of each document; a request that is too large is sent in halves."""
        try:
            return (yield from self._search_at_once(asked))
        except Exception as error:
            if status_of(error) != TOO_LARGE or len(asked) == 1:
                raise
        half = len(asked) // 2
        return [*(yield from self._search(asked[:half])), *(yield from self._search(asked[half:]))]

    def _search_at_once(self, asked: Sequence[_Asked]) -> Flow[list[Mapping[str, Any]]]:
        """Return the answer to the search of each document; they are repeated while the server cannot answer."""
        header = {"index": self._index}
        call = Call("msearch", {"body": [line for each in asked for line in (header, self._body(each))]})

        def send() -> Flow[list[Mapping[str, Any]]]:
            answers: list[Mapping[str, Any]] = (yield call)["responses"]
            for each in answers:
                if "error" in each and not is_passing(each.get("status")):
                    raise _refusal(each)
            return answers

        answers = yield from retry(send, is_done=_are_whole, patience=self._patience)
        for each in answers:
            if "error" in each:
                raise _refusal(each)
        return answers

    def _body(self, asked: _Asked) -> dict[str, Any]:
        """Return the search for documents that may contain one; those that are tagged themselves may go."""
        terms, field = asked.terms, self._fields.passages
        query = candidates_query(
            terms_query(terms, prefix=self._context.prefix),
            without={"exists": {"field": self._fields.contained_in}},
            filter={"exists": {"field": self._fields.fingerprint}},
            exclude_ids=[asked.id],
        )
        ranked = terms[:: -(-len(terms) // RANKED_TERMS)]
        query["bool"]["should"] = [{"term": {field: each}} for each in ranked]
        return {"size": MOST_CANDIDATES, "query": query, "_source": False, "track_total_hits": False}

    def _read(self, wanted: Sequence[Key]) -> Flow[tuple[dict[Key, _Candidate], dict[Key, Gap]]]:
        """Return the documents *wanted* that can be read, and why shards did not answer for others."""
        found: dict[Key, _Candidate] = {}

        def take(hit: Mapping[str, Any]) -> None:
            key = document_key(hit)
            try:
                text = read_hit(hit, self._text_fields.of(key.index))
            except InvalidInputError:
                return
            found[key] = _Candidate(key, text, read_content(hit, self._apart, self._text_fields))

        unanswered = yield from retry(
            lambda: fetch_hits(
                self._index,
                wanted,
                take,
                text_fields=self._text_fields.all,
                docvalue_fields=docvalue_fields_of(self._apart),
            ),
            is_done=lambda missing: not any(missing.values()),
            patience=self._patience,
        )
        return found, {key: gap for key, gap in unanswered.items() if gap is not None}

    def _compare(
        self, asked: Sequence[_Asked], keys: Mapping[int, Sequence[Key]], candidates: Mapping[Key, _Candidate]
    ) -> dict[int, Container]:
        """Return for each place the document that contains the one asked about, where there is one."""
        from es_simhash.index.passages.contained import find_container  # noqa: PLC0415 -- loads numpy

        texts = list(dict.fromkeys([*(each.text for each in asked), *(each.text for each in candidates.values())]))
        shingles = dict(zip(texts, shingle_sets(texts), strict=True))
        found: dict[int, Container] = {}
        for each in asked:
            known = [candidates[key] for key in sorted(keys[each.place], key=_by_id) if key in candidates]
            others = [other for other in known if self._allows(each, other)]
            best = find_container(each.text, [other.text for other in others], shingles, self._bound)
            if best is not None:
                number, share = best
                found[each.place] = Container(others[number].key.id, others[number].key.index, share)
        return found

    def _allows(self, asked: _Asked, other: _Candidate) -> bool:
        """Return whether ``per`` and ``within`` do not keep two documents apart."""
        return compare_contents(asked.content, other.content, self._apart).are_neighbours

    def _settled(self, item: Item, container: Container | None, gaps: Sequence[Gap]) -> Item:
        """Return *item* with what was found for it."""
        if container is None and gaps:
            why = "; ".join(sentences(gaps))
            return replace(
                item, problem=f"a document that contains it may have been missed ({why}): run dedupe with contained"
            )
        operation = item.operation
        if container is None or operation is None:
            return item
        if self._is_skipping:
            return replace(item, operation=None, container=container)
        prefix = self._context.prefix
        body = {**operation.body, prefix: {**operation.body[prefix], CONTAINED_IN: container.id}}
        operation = replace(operation, body=keep_text(operation.body, body))
        return replace(item, operation=operation, container=container)


def _ids(items: Iterable[Item]) -> set[str]:
    return {str(each.operation.header.get("_id")) for each in items if each.operation is not None}


def _by_id(key: Key) -> tuple[str, str]:
    return key.id, key.index


def _are_whole(answers: Sequence[Mapping[str, Any]]) -> bool:
    return not any("error" in each or find_gaps(each) for each in answers)


def _refusal(answer: Mapping[str, Any]) -> SearchFailedError:
    error, status = answer["error"], answer.get("status", 0)
    return SearchFailedError(
        f"the server refused a lookup of passages with status {status}: {error}", status=status, error=error
    )


def _keys(answer: Mapping[str, Any], changing: Collection[str], in_flight: InFlight) -> list[Key]:
    """Return the candidates of an answer, without those that this run changes."""
    keys = map(document_key, answer["hits"]["hits"])
    return [key for key in keys if key.id not in changing and not in_flight.hides(key.id)]


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
