"""Sends people's own searches twice, as they are and without copies, and reads what ``quality.searches`` judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.folding.request import DistinctOptions, DistinctSearch, SearchPlace
from es_simhash.folding.search_distinct import search_distinct
from es_simhash.lookup.content import docvalue_fields
from es_simhash.lookup.find import Scope, read_scope
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.port import Port
from es_simhash.quality.searches import HITS, Query, Searched, Searches, find_repeats
from es_simhash.quality.shown import MemberReader
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.conversation import attempt, search_texts
from es_simhash.transport.protocol import Index, Progress, cause_of, document_key, status_of

REFUSED = 400


async def read_searches(
    server: Port,
    index: Index,
    queries: Sequence[Query],
    members: MemberReader,
    clauses: Sequence[Mapping[str, Any]],
    *,
    is_grouped: bool,
) -> Searches:
    """
    Return what *queries* show of copies, among the documents that match *clauses*.
    Cost: about three searches for each of them, one where the index is not grouped.
    """
    scope = await read_scope(server, index, LookupOptions(), "document")
    found = []
    for query in queries:
        try:
            search = DistinctSearch(index, _body(query, members.texts, clauses), members.fields)
        except InvalidInputError as error:
            raise InvalidInputError(f"{query.place}: {error}") from error
        found.append(await _read(server, query, search, members, scope, is_grouped=is_grouped))
        server.tell(Progress(len(found), len(queries), "searching"))
    return Searches.of(found, "" if is_grouped else "the index was never grouped: run setup(index)")


def _body(query: Query, texts: Sequence[str], clauses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    body = dict(query.body or {})
    if query.body is None and not texts:
        raise InvalidInputError(
            "it is words, and no text field is recorded: record it with setup(index, text_field=FIELD)"
        )
    if query.body is None:
        body["query"] = {"multi_match": {"query": query.words, "fields": list(texts)}}
    if clauses:
        body["query"] = {"bool": {"must": [body.get("query") or {"match_all": {}}], "filter": list(clauses)}}
    return body


async def _read(
    server: Port, query: Query, search: DistinctSearch, members: MemberReader, scope: Scope, *, is_grouped: bool
) -> Searched:
    extra = [*members.docvalue_fields, scope.fingerprint_field, *docvalue_fields(scope.rule)]
    body = search.hits_body(SearchPlace(), HITS, [])
    body["docvalue_fields"] = [*body["docvalue_fields"], *extra]
    texts = [*dict.fromkeys([*members.texts, *scope.text_fields.all])]
    asked = search_texts(server.patient, search.index, body, texts, source=[*members.shown.values()])
    answer = await attempt(asked)
    if isinstance(answer, Exception):
        if status_of(answer) == REFUSED:
            said = f"{query.place} is no search that the server takes: {cause_of(answer)}"
            raise InvalidInputError(said) from answer
        raise answer
    check_whole(find_gaps(answer))
    hits = answer["hits"]["hits"]
    judge = partial(find_repeats, scope=scope, group_field=members.fields.group)
    repeats, unseen = await server.compute(judge, hits)
    new = None
    if is_grouped:
        page = await search_distinct(server, search.index, search.body, DistinctOptions(size=HITS), None)
        new = len({document_key(hit.hit) for hit in page} - set(map(document_key, hits)))
    pair = [members.read(hits[place]) for place in repeats[0]] if repeats else [None, None]
    return Searched(query.words, len(hits), len(repeats), unseen, new, *pair)
