"""Searches without near-duplicates, to the last page, against all hits read at once and folded one by one."""

import base64
import random
from collections import Counter

import pytest

from es_simhash import InvalidInputError, MappingError, fingerprint_fields
from es_simhash.folding.request import DistinctOptions, DistinctSearch
from es_simhash.mapping.fields import Fields
from tests.servers.support import ON_BOTH, ONE_SHARD, WORDS, put, texts

SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}
GROUP = "simhash.group"
TIES = [{"_seq_no": "asc"}]
KINDS = {
    "colour": {"type": "keyword"},
    "flag": {"type": "boolean"},
    "step": {"type": "integer"},
    "day": {"type": "date"},
    "size": {"type": "double"},
}


@pytest.fixture
def filled(server, index, sync_simhash):
    """An index, most of which is grouped; many documents lack a field, some a fingerprint."""
    chance = random.Random(5)
    sync_simhash.create_index(index, text_field="body", settings=SHARDS)
    server.request("PUT", f"/{index}/_mapping", {"properties": KINDS})
    documents = []
    for number, text in enumerate(texts(240, seed=3)):
        step = chance.randrange(4)
        more = {"colour": chance.choice("rgb"), "flag": step > 1, "day": f"2026-0{1 + step}-01", "size": step + 0.5}
        kept = {name: value for name, value in more.items() if chance.random() < 0.8}
        documents.append({"_id": f"{number:03d}", "body": text, "step": step, **kept})
    list(sync_simhash.ingest(index, documents[:200], max_distance=8, verify=False))
    put(server, index, documents[200:])
    return index


@pytest.fixture
def make(server, sync_simhash):
    """Return a function that makes an index with a grouping, and with documents as another program writes them."""

    def make_index(name, documents, *, settings=ONE_SHARD, kinds=KINDS):
        sync_simhash.create_index(name, text_field="body", settings=settings)
        server.request("PUT", f"/{name}/_mapping", {"properties": kinds})
        list(sync_simhash.ingest(name, [{"_id": f"first of {name}", "body": "records the grouping"}]))
        put(server, name, documents)

    return make_index


def read_all(server, index, body):
    """Every hit of *body*, in the order in which pages have them."""
    sort = body.get("sort") or [{"_score": "desc"}]
    sort = [*(sort if isinstance(sort, list) else [sort]), *TIES]
    plain = {name: value for name, value in body.items() if name in ("query", "post_filter")}
    asked = {**plain, "sort": sort, "size": 1_000, "docvalue_fields": [GROUP]}
    return server.request("POST", f"/{index}/_search", asked)["hits"]["hits"]


def value(hit, name):
    return hit.get("fields", {}).get(name, [None])[0]


def fold(hits):
    """The hits that stand for all, by comparing each with all before it."""
    kept = []
    for hit in hits:
        if value(hit, GROUP) is None or value(hit, GROUP) not in {value(other, GROUP) for other in kept}:
            kept.append(hit)
    return kept


def random_search(chance):
    body = {}
    if chance.random() < 0.7:
        body["query"] = {"match": {"body": " ".join(chance.sample(WORDS, 2))}}
    if chance.random() < 0.3:
        body["post_filter"] = {"term": {"colour": "r"}}
    sorts = [
        None,
        "step",
        [{"size": "desc"}, "_score"],
        [{"colour": {"order": "desc"}}],
        [{"day": "asc"}, {"step": "desc"}],
    ]
    if sort := chance.choice(sorts):
        body["sort"] = sort
    return body


def read_pages(simhash, index, body, **options):
    pages, after = [], None
    while True:
        pages.append(simhash.search_distinct(index, body, after=after, **options))
        after = pages[-1].after
        if after is None:
            return pages
        assert len(pages[-1]) == options["size"]


@ON_BOTH
def test_all_pages(server, simhash, filled):
    """No group and nothing near twice, none lost, in the order of the search; the same in one view; all counted."""
    chance = random.Random(0)
    for _ in range(5):
        body = random_search(chance)
        hits = read_all(server, filled, body)
        keys = {hit["_id"]: hit["sort"] for hit in hits}
        wanted = [hit["sort"] for hit in fold(hits)]
        size = chance.choice([3, 10, 50])
        pages = read_pages(simhash, filled, body, size=size)
        views = list(simhash.search_distinct_pages(filled, body, size=size))
        for found in (pages, views):
            shown = [each.id for page in found for each in page]
            # Hits of two shards may tie in everything: either of them may come first.
            assert [keys[each] for each in shown] == wanted, (body, size)
            assert len(set(shown)) == len(shown)
        assert [page.after for page in views] == [None] * len(views)
        page = simhash.search_distinct(filled, body, size=20, total=True)
        assert page.total == len(wanted)
        members = Counter(value(hit, GROUP) for hit in hits)
        assert all(each.similar_count == (members[each.group] - 1 if each.group else 0) for each in page)


@ON_BOTH
def test_an_order_by_values_of_few_kinds(simhash, index, make):
    """Where shards have other least and largest values, and documents lack the field; also two fields in one object."""
    numbered = [{"_id": f"{n}", "step": n // 100} for n in range(300)]
    make(index, [*numbered, *({"_id": f"none{n}"} for n in range(50))], settings=SHARDS)
    for sort in (
        {"step": "asc", "size": "desc"},
        [{"step": "desc"}],
        [{"step": {"order": "asc", "missing": "_first"}}],
    ):
        pages = read_pages(simhash, index, {"sort": sort}, size=40)
        shown = [each.id for page in pages for each in page]
        assert (len(shown), len(set(shown))) == (351, 351)


@ON_BOTH
def test_hits_as_the_server_has_them(server, simhash, filled):
    """Fields, highlights and sort values are those of the caller's own search, and nothing of ours is beside them."""
    body = {
        "query": {"match": {"body": WORDS[0]}},
        "sort": ["step", {"colour": "asc"}],
        "_source": ["step"],
        "fields": ["colour", GROUP],
        "highlight": {"fields": {"body": {}}},
        "aggs": {"colours": {"terms": {"field": "colour"}}},
    }
    page = simhash.search_distinct(filled, body, size=5)
    plain = server.request("POST", f"/{filled}/_search", {**body, "sort": [*body["sort"], *TIES], "size": 400})
    by_id = {hit["_id"]: hit for hit in plain["hits"]["hits"]}
    for each in page:
        theirs = by_id[each.id]
        assert each.hit == {**theirs, "sort": theirs["sort"][:2]}
    assert page.aggregations == plain["aggregations"]
    assert page.to_dict()["hits"][0]["_id"] == page[0].id
    assert [row["id"] for row in page.to_dicts()] == [each.id for each in page]


def searches_of(server, index):
    return server.request("GET", f"/{index}/_stats/search")["_all"]["total"]["search"]["query_total"]


def test_how_many_requests_a_first_page_takes(server, simhash, index, make):
    """One for its hits, or two with sixty copies at the top, and one for what its groups have."""
    own = fingerprint_fields(7)["simhash"]
    copies = [{"_id": f"c{n}", "n": 0, "simhash": own | {"group": "c0"}} for n in range(60)]
    others = [{"_id": f"o{n}", "n": 1, "simhash": own | {"group": f"o{n}"}} for n in range(20)]
    make(index, copies + others)
    query = {"query": {"exists": {"field": "n"}}}
    for order, least in (("asc", 2), ("desc", 1)):
        before = searches_of(server, index)
        assert len(simhash.search_distinct(index, query | {"sort": {"n": order}})) == 10
        assert searches_of(server, index) - before == least + 1
    assert simhash.search_distinct(index, query | {"sort": "n"})[0].similar_count == 59


def test_an_alias_with_a_filter_and_an_index_without_groups(server, simhash, filled, sync_simhash):
    alias = f"{filled}-red"
    action = {"add": {"index": filled, "alias": alias, "filter": {"term": {"colour": "r"}}}}
    server.request("POST", "/_aliases", {"actions": [action]})
    wanted = [hit["_id"] for hit in fold(read_all(server, alias, {}))]
    [page] = read_pages(simhash, alias, {}, size=400, total=True)
    assert ([each.id for each in page], page.total) == (wanted, len(wanted))
    sync_simhash.remove_fields(filled, groups_only=True)
    with pytest.raises(MappingError, match=r"never grouped: run setup\(index\) first$"):
        simhash.search_distinct(filled, {})


def test_a_place_of_another_search(simhash, filled):
    page = simhash.search_distinct(filled, {"query": {"match_all": {}}}, size=3)
    for body in ({}, {"query": {"match_all": {}}, "sort": "step"}):
        with pytest.raises(InvalidInputError, match="after is of another search"):
            simhash.search_distinct(filled, body, after=page.after)
    forged = [base64.urlsafe_b64encode(plain).decode() for plain in (b"7", b"[1, 2]", b"[1, 2, 3]", b"[" * 100_000)]
    for wrong in ("", "x", page.after[:-4], page.after[::-1], *forged):
        with pytest.raises(InvalidInputError, match="was cut or changed"):
            simhash.search_distinct(filled, {"query": {"match_all": {}}}, after=wrong)
    with pytest.raises(TypeError, match="page.after"):
        simhash.search_distinct(filled, {}, after=7)


def test_a_page_without_hits_has_its_aggregations(server, simhash, filled):
    """A filter of hits leaves the aggregations as they are."""
    body = {"post_filter": {"term": {"colour": "none"}}, "aggs": {"ones": {"filter": {"match_all": {}}}}}
    page = simhash.search_distinct(filled, body, total=True)
    assert (len(page), page.after, page.total) == (0, None, 0)
    assert page.aggregations["ones"]["doc_count"] == 240


DRAWN = {"function_score": {"random_score": {}}}
DRAWN_BY_FIELD = {"function_score": {"functions": [{"random_score": {"field": "n"}}]}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        *(({name: 1}, f"body has .?{name}") for name in ("collapse", "from", "pit", "search_after", "rescore", "size")),
        *(({name: 1}, f"body has .?{name}") for name in ("knn", "suggest")),
        ({"query": {"bool": {"must": [DRAWN]}}}, "random_score without a seed"),
        ({"query": DRAWN_BY_FIELD}, "random_score without a seed"),
        ("bridge", "body must be a search"),
        ({"aggs": {}, "aggregations": {}}, "aggs and aggregations"),
        ({"sort": {"day": {"order": "asc", "format": "yyyy"}}}, "sort by day has a format"),
        ({"sort": ["_doc"]}, "sort by _doc is another order"),
    ],
)
def test_what_cannot_be_folded(body, message):
    """Each is named, before anything is asked of the server."""
    with pytest.raises((InvalidInputError, TypeError), match=message):
        DistinctSearch("news", body, Fields())


@pytest.mark.parametrize("size", [0, 10_001])
def test_a_page_of_no_or_too_many_hits(size):
    with pytest.raises(InvalidInputError, match=f"size {size} is out of range"):
        DistinctOptions(size=size)


def test_twins_in_two_indices(simhash, index, make):
    """Copies with the same sequence numbers, two in each group: shown once, however they tie."""
    chance = random.Random(8)
    marks = [fingerprint_fields(chance.getrandbits(64))["simhash"] | {"group": f"g{n}"} for n in range(40)]
    for number in range(2):
        make(f"{index}-{number}", [{"_id": f"{number}-{n}", "simhash": mark} for n, mark in enumerate(marks)])
    query = {"query": {"prefix": {"simhash.group": "g"}}}
    for size in (1, 3):
        pages = read_pages(simhash, f"{index}-*", query, size=size)
        shown = [hit.id[2:] for page in pages for hit in page]
        assert sorted(shown, key=int) == [str(n) for n in range(40)]


def test_a_shown_document_that_moves(server, simhash, index, make):
    """The last one of a page goes behind another and into its group: the group comes once more, and is not lost."""
    own = fingerprint_fields(7)["simhash"]
    make(index, [{"_id": name, "n": n, "simhash": own | {"group": name}} for n, name in enumerate("xyz", 1)])
    body = {"sort": "n", "query": {"range": {"n": {"gte": 1}}}}
    page = simhash.search_distinct(index, body, size=1)
    put(server, index, [{"_id": "x", "n": 2, "simhash": own | {"group": "y"}}])
    following = simhash.search_distinct(index, body, size=9, after=page.after)
    assert [each.id for each in following] == ["y", "z"]


@ON_BOTH
def test_values_of_several_kinds(simhash, index, make):
    """No page goes on behind a missing value there; with one kind for all, each document comes once."""
    for kind in ("integer", "long"):
        documents = [{"_id": f"{kind}{n}"} | ({"n": n} if n < 3 else {}) for n in range(6)]
        make(f"{index}-{kind}", documents, kinds={"n": {"type": kind}})
    with pytest.raises(InvalidInputError, match="sort by n has several kinds of values .*integer, long.*numeric_type"):
        simhash.search_distinct(f"{index}-*", {"sort": "n"})
    pages = read_pages(simhash, f"{index}-*", {"sort": [{"n": {"order": "asc", "numeric_type": "long"}}]}, size=2)
    shown = [hit.id for page in pages for hit in page]
    assert len(set(shown)) == len(shown) == 14
