"""Searches without near-duplicates, to the last page, against all hits read at once and folded one by one."""

import base64
import hashlib
import json
import random
from collections import Counter

import pytest

from es_simhash import InvalidInputError, MappingError, hamming_distance
from tests.servers.support import ONE_SHARD, WORDS, put, texts

SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}
GROUP, FINGERPRINT = "simhash.group", "simhash.fingerprint"
TIES = [{"_seq_no": "asc"}]
AGGREGATIONS = {
    "colours": {"terms": {"field": "colour", "size": 2}},
    "flags": {"terms": {"field": "flag", "order": {"_key": "asc"}}},
    "steps": {"histogram": {"field": "step", "interval": 2}},
    "days": {"date_histogram": {"field": "day", "calendar_interval": "month"}},
    "sizes": {"range": {"field": "size", "ranges": [{"to": 2}, {"from": 2}]}},
    "halves": {"date_range": {"field": "day", "ranges": [{"to": "2026-02-01"}, {"from": "2026-02-01"}]}},
    "ones": {"filter": {"term": {"step": 1}}},
    "some": {"filters": {"filters": {"one": {"term": {"step": 1}}, "all": {"match_all": {}}}}},
}
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
    for number, text in enumerate(texts(400, seed=3)):
        step = chance.randrange(4)
        more = {"colour": chance.choice("rgb"), "flag": step > 1, "day": f"2026-0{1 + step}-01", "size": step + 0.5}
        kept = {name: value for name, value in more.items() if chance.random() < 0.8}
        documents.append({"_id": f"{number:03d}", "body": text, "step": step, **kept})
    list(sync_simhash.ingest(index, documents[:340], max_distance=8, verify=False))
    put(server, index, documents[340:])
    return index


def read_all(server, index, body):
    """Every hit of *body*, in the order in which pages have them."""
    sort = body.get("sort") or [{"_score": "desc"}]
    sort = [*(sort if isinstance(sort, list) else [sort]), *TIES]
    plain = {name: value for name, value in body.items() if name in ("query", "post_filter")}
    asked = {**plain, "sort": sort, "size": 1_000, "docvalue_fields": [GROUP, FINGERPRINT]}
    return server.request("POST", f"/{index}/_search", asked)["hits"]["hits"]


def value(hit, name):
    return hit.get("fields", {}).get(name, [None])[0]


def fold(hits, by):
    """The hits that stand for all, by comparing each with all before it."""
    kept = []
    for hit in hits:
        if by == "group":
            is_new = value(hit, GROUP) is None or value(hit, GROUP) not in {value(each, GROUP) for each in kept}
        else:
            mine = value(hit, FINGERPRINT)
            others = [value(each, FINGERPRINT) for each in kept]
            is_new = mine is None or all(
                hamming_distance(int(mine, 16), int(each, 16)) > by for each in others if each is not None
            )
        if is_new:
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


@pytest.mark.parametrize("seed", range(2))
def test_all_pages(server, simhash, filled, seed):
    """No group and nothing near twice, none lost, in the order of the search; and the same in one view."""
    chance = random.Random(seed)
    for by in ("group", 0, 3, 12, "group"):
        body = random_search(chance)
        hits = read_all(server, filled, body)
        keys = {hit["_id"]: hit["sort"] for hit in hits}
        wanted = [hit["sort"] for hit in fold(hits, by)]
        size = chance.choice([3, 10, 50])
        pages = read_pages(simhash, filled, body, by=by, size=size)
        views = list(simhash.search_distinct_pages(filled, body, by=by, size=size))
        for found in (pages, views):
            shown = [each.id for page in found for each in page]
            # Hits of two shards may tie in everything: either of them may come first.
            assert [keys[each] for each in shown] == wanted, (by, body, size)
            assert len(set(shown)) == len(shown)
        assert [page.after for page in views] == [None] * len(views)


def test_what_is_counted(server, simhash, filled):
    """Totals, folded documents and buckets, each group once, by reading everything."""
    for body in ({"query": {"match": {"body": WORDS[0]}}, "post_filter": {"term": {"colour": "r"}}}, {}):
        hits = read_all(server, filled, body)
        page = simhash.search_distinct(
            filled, {**body, "aggs": AGGREGATIONS}, size=20, total=True, counts="groups", similar=2
        )
        assert page.total == len(fold(hits, "group"))
        members = Counter(value(hit, GROUP) for hit in hits)
        for each in page:
            others = [hit for hit in hits if each.group is not None and value(hit, GROUP) == each.group]
            assert each.similar_count == (members[each.group] - 1 if each.group else 0)
            assert [one.id for one in each.similar] == [hit["_id"] for hit in others if hit["_id"] != each.id][:2]
        counted = read_all(server, filled, {name: each for name, each in body.items() if name == "query"})

        def count(matches, counted=counted):
            groups = [value(hit, GROUP) for hit in counted if matches(hit["_source"])]
            return len({each for each in groups if each is not None}) + groups.count(None)

        found = {
            name: [bucket["doc_count"] for bucket in each["buckets"]]
            for name, each in page.aggregations.items()
            if isinstance(each.get("buckets"), list)
        }
        colours = {name: count(lambda source, name=name: source.get("colour") == name) for name in "rgb"}
        ordered = sorted(colours.items(), key=lambda item: (-item[1], item[0]))
        buckets = page.aggregations["colours"]
        assert [(each["key"], each["doc_count"]) for each in buckets["buckets"]] == ordered[:2]
        assert buckets["sum_other_doc_count"] == ordered[2][1]
        assert found["flags"] == [count(lambda source, flag=flag: source.get("flag") is flag) for flag in (False, True)]
        assert found["steps"] == [count(lambda source, low=low: low <= source["step"] < low + 2) for low in (0, 2)]
        months = [f"2026-0{month}-01" for month in (1, 2, 3, 4)]
        days = [count(lambda source, day=day: source.get("day") == day) for day in months]
        assert found["days"] == days
        small = count(lambda source: source.get("size", 9) < 2)
        assert found["sizes"] == [small, count(lambda source: source.get("size", 0) >= 2)]
        assert found["halves"] == [days[0], count(lambda source: source.get("day", "") > "2026-01-01")]
        ones = count(lambda source: source["step"] == 1)
        assert page.aggregations["ones"]["doc_count"] == ones
        some = page.aggregations["some"]["buckets"]
        assert [some[name]["doc_count"] for name in ("one", "all")] == [ones, count(lambda _: True)]


def test_values_that_stand_twice(server, simhash, index, sync_simhash):
    """A document without a group counts once in a bucket; a histogram of dates has its own form of keys."""
    sync_simhash.create_index(index, text_field="body", settings=SHARDS)
    server.request("PUT", f"/{index}/_mapping", {"properties": KINDS})
    list(sync_simhash.ingest(index, [{"_id": "g", "body": texts(1)[0], "step": 5, "day": "2026-01-01"}], verify=False))
    put(server, index, [{"_id": "u", "body": "b", "step": [5, 5], "day": ["2026-01-01", "2026-01-01T08:00:00Z"]}])
    server.request("POST", f"/{index}/_refresh")
    asked = {
        "steps": {"terms": {"field": "step"}},
        "days": {"histogram": {"field": "day", "interval": 86_400_000}},
    }
    found = simhash.search_distinct(index, {"aggs": asked}, counts="groups", total=True)
    assert [bucket["doc_count"] for bucket in found.aggregations["steps"]["buckets"]] == [2]
    assert [bucket["doc_count"] for bucket in found.aggregations["days"]["buckets"]] == [2]
    assert found.total == 2


def test_an_order_by_values_of_few_kinds(server, simhash, index, sync_simhash):
    """Where shards have other least and largest values, and documents lack the field; also two fields in one object."""
    sync_simhash.create_index(index, text_field="body", settings=SHARDS)
    server.request("PUT", f"/{index}/_mapping", {"properties": KINDS})
    list(sync_simhash.ingest(index, [{"_id": "first", "body": texts(1)[0]}], verify=False))
    documents = [{"_id": f"{n}", "step": n // 100} for n in range(300)]
    put(server, index, [*documents, *({"_id": f"none{n}"} for n in range(50))])
    server.request("POST", f"/{index}/_refresh")
    for sort in (
        {"step": "asc", "size": "desc"},
        [{"step": "desc"}],
        [{"step": {"order": "asc", "missing": "_first"}}],
    ):
        pages = read_pages(simhash, index, {"sort": sort}, size=40)
        shown = [each.id for page in pages for each in page]
        assert (len(shown), len(set(shown))) == (351, 351)


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


def test_a_group_of_thousands_takes_few_requests(server, simhash, index, sync_simhash):
    """Members of a group that is known are left out of what is read next."""
    sync_simhash.create_index(index, text_field="body", settings=SHARDS)
    copies = [{"_id": f"c{number:04d}", "body": "the same words as before, many times " * 3} for number in range(1_500)]
    others = [{"_id": f"o{seed}", "body": f"{texts(1, seed=seed)[0]} the"} for seed in range(5)]
    list(sync_simhash.ingest(index, [*copies, *others], verify=False))
    server.request("POST", f"/{index}/_refresh")
    page = simhash.search_distinct(index, {"query": {"match": {"body": "the"}}}, size=4, total=True)
    assert (page[0].similar_count, len(page), page.total) == (1_499, 4, 5)
    last = simhash.search_distinct(index, {"query": {"match": {"body": "the"}}}, size=4, after=page.after)
    assert (len(last), last.after) == (1, None)


def searches_of(server, index):
    return server.request("GET", f"/{index}/_stats/search")["_all"]["total"]["search"]["query_total"]


def test_how_many_requests_a_first_page_takes(server, simhash, index, sync_simhash):
    """One that counts nothing, and one more for what its groups have; the same with sixty copies at the top."""
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    copies = [{"_id": f"c{number:02d}", "body": "one two three four five six seven", "n": 0} for number in range(60)]
    others = [
        {"_id": f"o{number:02d}", "body": f"{word} and nothing else of its kind {word}", "n": 1}
        for number, word in enumerate(WORDS[:20])
    ]
    list(sync_simhash.ingest(index, copies + others, max_distance=3, verify=False))
    server.request("POST", f"/{index}/_refresh")
    for body, least in (({"sort": "n"}, 2), ({"sort": {"n": "desc"}}, 1)):
        for similar, more in ((None, 0), (0, 1), (2, 1)):
            before = searches_of(server, index)
            assert len(simhash.search_distinct(index, body, similar=similar)) == 10
            assert searches_of(server, index) - before == least + more
    first = simhash.search_distinct(index, {"sort": "n"}, similar=2)[0]
    assert (first.similar_count, [each.distance for each in first.similar]) == (59, [0, 0])
    assert simhash.search_distinct(index, {"sort": "n"}, similar=None)[0].similar_count is None


def test_an_alias_with_a_filter_and_an_index_without_groups(server, simhash, filled, sync_simhash):
    alias = f"{filled}-red"
    action = {"add": {"index": filled, "alias": alias, "filter": {"term": {"colour": "r"}}}}
    server.request("POST", "/_aliases", {"actions": [action]})
    wanted = [hit["_id"] for hit in fold(read_all(server, alias, {}), "group")]
    [page] = read_pages(simhash, alias, {}, size=400, total=True)
    assert ([each.id for each in page], page.total) == (wanted, len(wanted))
    sync_simhash.remove_fields(filled, groups_only=True)
    with pytest.raises(MappingError, match="never grouped: run reconcile first, or give by=3"):
        simhash.search_distinct(filled, {})
    assert len(simhash.search_distinct(filled, {}, by=3)) == 10
    with pytest.raises(InvalidInputError, match="by 'groups' is not known: give 'group' or a number of bits$"):
        simhash.search_distinct(filled, {}, by="groups")


def test_a_place_of_another_search(simhash, filled):
    page = simhash.search_distinct(filled, {"query": {"match_all": {}}}, size=3)
    for body, options in (
        ({}, {}),
        ({"query": {"match_all": {}}, "sort": "step"}, {}),
        ({"query": {"match_all": {}}}, {"by": 3}),
    ):
        with pytest.raises(InvalidInputError, match="after is of another search"):
            simhash.search_distinct(filled, body, after=page.after, **options)
    text = base64.urlsafe_b64decode(page.after).decode()
    changed = text[:-3] + chr(ord(text[-3]) ^ 1) + text[-2:]
    for wrong in ("", "x", page.after[:-4], page.after[::-1], base64.urlsafe_b64encode(changed.encode()).decode()):
        with pytest.raises(InvalidInputError, match="was cut or changed"):
            simhash.search_distinct(filled, {"query": {"match_all": {}}}, after=wrong)
    asked, key, run, shown = json.loads(text[16:])
    for parts in (
        *([asked, each, run, shown] for each in (5, "ab", [], {}, [1.5], ["7"], [True], [{}, 3], [-1], [[], 3])),
        *([asked, key, each, shown] for each in (5, [1], [["a"]], [["a", 7, None]], [["a", "b", ["c"]]], {"abc": 1})),
        *([asked, key, run, each] for each in (5, ["x"], [7], ["A" * 16], ["0" * 16] * 10_001, {"a": 1})),
        *([asked], [asked, key, run, shown, 1], "abcd", 7, [[], key, run, shown]),
    ):
        with pytest.raises(InvalidInputError, match="after"):
            simhash.search_distinct(filled, {"query": {"match_all": {}}}, after=forged(json.dumps(parts)))
    with pytest.raises(InvalidInputError, match="was cut or changed"):
        simhash.search_distinct(filled, {}, after=forged("[" * 100_000))
    with pytest.raises(TypeError, match="page.after"):
        simhash.search_distinct(filled, {}, after=7)


def forged(plain):
    """Return a place as anyone can make it, whose digest is right."""
    return base64.urlsafe_b64encode((hashlib.sha256(plain.encode()).hexdigest()[:16] + plain).encode()).decode()


def test_a_page_without_hits_has_its_aggregations(server, simhash, filled):
    """A filter of hits leaves the aggregations as they are."""
    body = {"post_filter": {"term": {"colour": "none"}}, "aggs": {"ones": {"filter": {"match_all": {}}}}}
    everything = fold(read_all(server, filled, {}), "group")
    page = simhash.search_distinct(filled, body, counts="groups", total=True)
    assert (len(page), page.after, page.total) == (0, None, 0)
    assert page.aggregations["ones"]["doc_count"] == len(everything)
    assert simhash.search_distinct(filled, body).aggregations["ones"]["doc_count"] == 400


def test_what_cannot_be_folded(server, simhash):
    """Each is named, before anything is asked of the server."""
    for name in ("collapse", "from", "pit", "search_after", "rescore", "knn", "suggest", "size"):
        with pytest.raises(InvalidInputError, match=f"body has .?{name}"):
            simhash.search_distinct("news", {name: 1})
    drawn = {"query": {"bool": {"must": [{"function_score": {"random_score": {}}}]}}}
    with pytest.raises(InvalidInputError, match="random_score without a seed"):
        simhash.search_distinct("news", drawn)
    drawn = {"function_score": {"functions": [{"random_score": {"field": "n"}}]}}
    with pytest.raises(InvalidInputError, match="random_score without a seed"):
        simhash.search_distinct("news", {"query": drawn})


def test_a_query_of_two_thousand_words(server, simhash, filled):
    """Where the server allows fewer, one line says so; by one page and by all of them."""
    words = " ".join(f"word{n}" for n in range(2_000))
    for search in (simhash.search_distinct, lambda *given: list(simhash.search_distinct_pages(*given))):
        if server.product == "opensearch":
            with pytest.raises(InvalidInputError, match="than the 1,024 that the server allows: give fewer words"):
                search(filled, {"query": {"match": {"body": words}}})
        else:  # its limit grows with its memory
            search(filled, {"query": {"match": {"body": words}}})


def test_arguments(server, simhash):
    for options, message in (
        ({"size": 0}, "size 0 is out of range"),
        ({"size": 10_001}, "size 10001 is out of range"),
        ({"by": 65}, "by 65 is out of range"),
        ({"by": "story"}, "by 'story' is not known"),
        ({"by": 3, "total": True}, "total counts groups: leave it out"),
        ({"counts": "documents"}, "counts 'documents' is not known"),
        ({"similar": 100}, "similar 100 is out of range"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            simhash.search_distinct("news", {}, **options)
    with pytest.raises(TypeError, match="body must be a search"):
        simhash.search_distinct("news", "bridge")
    with pytest.raises(InvalidInputError, match="aggs and aggregations"):
        simhash.search_distinct("news", {"aggs": {}, "aggregations": {}})
    with pytest.raises(InvalidInputError, match="sort by day has a format"):
        simhash.search_distinct("news", {"sort": {"day": {"order": "asc", "format": "yyyy"}}})
    with pytest.raises(InvalidInputError, match="sort by _doc is another order"):
        simhash.search_distinct("news", {"sort": ["_doc"]})
    for wrong, message in (
        ({"histogram": {"field": "step", "interval": 2, "offset": 1}}, "has 'offset'"),
        ({"terms": {"field": "step", "size": "2"}}, "size of aggregation 'wrong' must be an int"),
        ({"avg": {"field": "step"}}, "cannot count groups: give one of terms"),
        ({"terms": {"field": "step", "missing": 1}}, "has 'missing', with which groups"),
        ({"terms": {"field": "step"}, "aggs": {"x": {"avg": {"field": "size"}}}}, "with nothing below it"),
        ({"terms": {"field": "step", "min_doc_count": 2}}, "min_doc_count"),
        ({"terms": {"field": "step", "order": {"x": "asc"}}}, "ordered by _count or by _key"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            simhash.search_distinct("news", {"aggs": {"wrong": wrong}}, counts="groups")
