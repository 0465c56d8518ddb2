"""Lookups on real servers: the same answers as an exhaustive comparison, sync and async."""

import random

import pytest

from es_simhash import IncompleteSearchError, InvalidInputError, MappingError, SchemeMismatchError, fingerprint_fields
from es_simhash.hashing import fingerprint
from tests.servers.support import ONE_SHARD, fill, open_contexts, planted, send_lines, truth

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


def test_lookups_return_what_an_exhaustive_comparison_returns(server, index, simhash):
    """Every distance from 0 to 20 and 64, with the plan that is chosen for it."""
    fingerprints = planted(3_000)
    simhash.create_index(index, settings={"number_of_shards": 3, "number_of_replicas": 0})
    fill(server, index, fingerprints)
    chance = random.Random(2)
    for max_distance in [*range(21), 64]:
        for wanted in chance.sample(fingerprints, 3):
            found = simhash.find_near_dups(index, fingerprint=wanted, max_distance=max_distance)
            assert [(each.distance, each.id) for each in found] == truth(fingerprints, wanted, max_distance)
            assert found.complete


def test_more_candidates_than_any_page(server, index, simhash):
    """12,001 documents equal to the question: all are returned, beyond the result window of 10,000."""
    simhash.create_index(index, settings=ONE_SHARD)
    fill(server, index, [7] * 12_001)
    found = simhash.find_near_dups(index, fingerprint=7, max_distance=0)
    assert len(found) == len({each.id for each in found}) == 12_001
    assert found.complete
    assert len(simhash.find_near_dups(index, fingerprint=7, size=5)) == 5
    assert open_contexts(server, index) == 0


def test_a_lowered_limit_is_named(server, index, simhash):
    """Requests ask for what servers allow by default; of less, the server's own words say which setting is too low."""
    simhash.create_index(index, settings={**ONE_SHARD, "max_result_window": 40})
    fill(server, index, [7] * 333)
    with pytest.raises(Exception, match="index.max_result_window"):
        simhash.find_near_dups(index, fingerprint=7)
    with pytest.raises(Exception, match="index.max_result_window"):
        list(simhash.pairs(index))
    simhash.create_index(f"{index}-b", settings=ONE_SHARD)
    with pytest.raises(IncompleteSearchError, match="index.max_result_window"):  # of the shards of one index
        simhash.find_near_dups(f"{index}*", fingerprint=7)
    assert open_contexts(server, index) == 0


def test_long_lists_of_ids(server, index, simhash):
    """Elasticsearch takes 10,000 in one query."""
    simhash.create_index(index, settings=ONE_SHARD)
    fill(server, index, [7] * 5)
    ids = [f"{number:05d}" for number in range(1, 12_000)]
    assert [each.id for each in simhash.find_near_dups(index, fingerprint=7, exclude_ids=ids)] == ["00000"]


def test_many_pages_of_several_indices(server, index, simhash):
    """No hit is lost between pages, though shards of different indices have the same number."""
    for part in "abc":
        simhash.create_index(f"{index}-{part}", settings=ONE_SHARD)
        fill(server, f"{index}-{part}", [7] * 300)
    found = simhash.find_near_dups(f"{index}-*", fingerprint=7)
    assert (len({(each.index, each.id) for each in found}), found.complete) == (900, True)
    assert len(simhash.find_near_dups(f"{index}-*", fingerprint=7, size=350)) == 350
    assert open_contexts(server, index) == 0


def test_text_document_and_many_agree(server, index, simhash):
    """A lookup by text, by fingerprint, by document id and in a batch: by the rule, and by bits alone."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, max_distance=12)
    texts = [TEXT, TEXT.replace("Tuesday", "Monday"), f"{TEXT} (Agency)", "Shares fell after the forecast.", "…"]
    documents = [{"_id": str(n), "body": text} for n, text in enumerate(texts)]
    reports = list(simhash.ingest(index, documents, on_duplicate=None))
    assert [report.action for report in reports] == ["written"] * 5
    server.request("POST", f"/{index}/_refresh")
    found = simhash.find_near_dups(index, TEXT, max_distance=12)
    assert {each.id for each in found} == {"0", "1", "2"}
    assert str(found.rule) == "within 12 bits, texts not compared"
    by_fingerprint = simhash.find_near_dups(index, fingerprint=fingerprint(TEXT))
    assert by_fingerprint.items == found.items
    assert str(by_fingerprint.rule).endswith("as the index records; a fingerprint has no text to compare")
    # A weekday is a tenth of the shingles of so short a text.
    by_rule = simhash.find_near_dups(index, TEXT)
    assert [each.id for each in by_rule] == ["0", "2"]
    assert by_rule.rule.words == "within 12 bits, at least 80 % of the 7-letter shingles are the same"
    [rejected] = by_rule.rejected
    assert (rejected.near_dup.id, rejected.because, 0 < rejected.near_dup.similarity < 0.8) == ("1", "texts", True)
    assert [each.id for each in simhash.find_near_dups_of(index, "0")] == ["2"]
    many = simhash.find_near_dups_many(index, [*texts, None])
    assert [[each.id for each in one] for one in many[:5]] == [["0", "2"], ["1"], ["2", "0"], ["3"], []]
    assert isinstance(many[5], TypeError)


def test_filter_exclude_source_and_routing(server, index, simhash):
    """What a search offers beside the lookup."""
    simhash.create_index(index, settings={"number_of_shards": 4, "number_of_replicas": 0})
    lines = []
    for number in range(40):
        routing = "a" if number % 2 else "b"
        lines.append({"index": {"_index": index, "_id": f"{number:02d}", "routing": routing}})
        lines.append({"n": number, "body": "x", **fingerprint_fields(number % 4)})
    send_lines(server, lines)
    recent = {"range": {"n": {"gte": 30}}}
    found = simhash.find_near_dups(index, fingerprint=0, max_distance=1, filter=recent, source=["n"])
    assert {each.source["n"] for each in found} == {30, 32, 33, 34, 36, 37, 38}
    assert all(set(each.source) == {"n"} for each in found)
    found = simhash.find_near_dups(index, fingerprint=0, max_distance=0, filter=[recent], exclude_ids=["32"])
    assert [each.id for each in found] == ["36"]
    found = simhash.find_near_dups(index, fingerprint=0, max_distance=64, routing="a")
    assert {int(each.id) % 2 for each in found} == {1}


def test_several_indices_alias_and_wildcard(server, index, simhash):
    """Hits name the index that holds them, and order is by distance, index, id."""
    for part in "ab":
        simhash.create_index(f"{index}-{part}", settings=ONE_SHARD)
        fill(server, f"{index}-{part}", [1, 0])
    server.request("POST", "/_aliases", {"actions": [{"add": {"index": f"{index}-*", "alias": f"{index}-alias"}}]})
    expected = [(0, f"{index}-a", "00001"), (0, f"{index}-b", "00001"), (1, f"{index}-a", "00000")]
    for name in (f"{index}-*", f"{index}-alias", [f"{index}-a", f"{index}-b"], f"{index}-a,{index}-b"):
        found = simhash.find_near_dups(name, fingerprint=0)
        assert [(each.distance, each.index, each.id) for each in found[:3]] == expected


def test_a_lookup_beside_an_index_without_our_fields(server, index, make_simhash):
    """A server without scripts refuses the plan in some shards only: those of the other index have nothing to run."""
    make_simhash().create_index(f"{index}-ours", settings=ONE_SHARD)
    server.request("PUT", f"/{index}-theirs", {"settings": {"number_of_shards": 2}})
    server.request("POST", f"/{index}-ours/_refresh")
    assert len(make_simhash().find_near_dups(f"{index}-*", fingerprint=0, max_distance=9)) == 0
    fill(server, f"{index}-ours", [1, 0])
    found = make_simhash().find_near_dups(f"{index}-*", fingerprint=0, max_distance=9)
    assert sorted(each.id for each in found)[:2] == ["00000", "00001"]


def test_names_that_match_nothing(index, simhash):
    """A wildcard answers 200 with zero shards: that is not the same as no near-duplicates."""
    with pytest.raises(IncompleteSearchError, match="no index matches"):
        simhash.find_near_dups(f"{index}-nothing-*", TEXT)
    with pytest.raises(Exception, match="no such index") as caught:
        simhash.find_near_dups(f"{index}-nothing", TEXT)
    assert type(caught.value).__name__ == "NotFoundError"


def test_a_closed_index(server, index, simhash):
    """The client's own error, which names the index."""
    simhash.create_index(index, settings=ONE_SHARD)
    server.request("POST", f"/{index}/_close")
    with pytest.raises(Exception, match="closed"):
        simhash.find_near_dups(index, TEXT)
    [report] = simhash.check(index)
    assert not report.ready
    assert "open it" in report.problems[-1]


def test_a_prefix_that_is_something_else(server, index, simhash):
    """The index's simhash is the user's own keyword."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"simhash": {"type": "keyword"}}}})
    for attempt in (lambda: simhash.find_near_dups(index, TEXT), lambda: simhash.put_mapping(index)):
        with pytest.raises(MappingError, match=r"one of your own \('keyword'\).* choose another prefix"):
            attempt()


def test_schemes_do_not_mix(index, make_simhash):
    """The index's scheme wins where none is asked for; another is refused, and both are named."""
    make_simhash(scheme="keywords").create_index(index, settings=ONE_SHARD)
    assert make_simhash().find_near_dups(index, TEXT).scheme.name == "keywords"
    assert make_simhash(scheme="keywords").find_near_dups(index, TEXT).complete
    with pytest.raises(SchemeMismatchError, match=r"keywords-1.*shingles") as caught:
        make_simhash(scheme="shingles").find_near_dups(index, TEXT)
    assert (caught.value.index_scheme, caught.value.client_scheme) == ("keywords-1", "shingles")


def test_two_prefixes_side_by_side(server, index, make_simhash):
    """Title and body, or an old and a new scheme, in one index."""
    make_simhash().create_index(index, settings=ONE_SHARD, text_field="body")
    second = make_simhash(prefix="title_hash", scheme="keywords")
    assert second.put_mapping(index, text_field="title") == [index]
    document = {"_id": "1", "title": "The bridge over the river is approved", "body": TEXT}
    list(make_simhash().ingest(index, [document]))
    [action] = list(second.with_fingerprints(index, [document]))
    send_lines(server, [{"update": {"_index": index, "_id": "1"}}, {"doc": {"title_hash": action["title_hash"]}}])
    assert [each.id for each in second.find_near_dups(index, document["title"])] == ["1"]
    assert [each.id for each in make_simhash().find_near_dups(index, TEXT)] == ["1"]


@pytest.mark.parametrize("text", ["…!?", "\ud800"], ids=["punctuation", "surrogate"])
def test_texts_without_features_find_nothing(server, index, simhash, text):
    """Not even one another."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": "1", "body": "…"}, {"_id": "2", "body": TEXT}]))
    server.request("POST", f"/{index}/_refresh")
    found = simhash.find_near_dups(index, text, max_distance=3)
    assert (len(found), found.complete) == (0, True)


def test_a_text_of_two_megabytes(server, index, simhash):
    """It takes a moment, and works."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    text = (TEXT + " 河上的新橋 ") * 18_000
    [report] = list(simhash.ingest(index, [{"_id": "1", "body": text}]))
    assert report.action == "written"
    server.request("POST", f"/{index}/_refresh")
    assert [each.id for each in simhash.find_near_dups(index, text)] == ["1"]


@pytest.mark.parametrize("id_", ["a/b c", 'quo"te', "新聞 1", "a?b=c&d", "%2F"])
def test_ids_of_any_kind(server, index, simhash, id_):
    """Slashes, quotes and other scripts in ids."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": id_, "body": TEXT}, {"_id": "other", "body": TEXT}]))
    server.request("POST", f"/{index}/_refresh")
    assert [each.id for each in simhash.find_near_dups_of(index, id_)] == ["other"]
    assert [each.id for each in simhash.find_near_dups_of(index, "other")] == [id_]
    assert [each.id for each in simhash.find_near_dups(index, TEXT, exclude_ids=[id_])] == ["other"]


@pytest.mark.parametrize(
    ("mappings", "routing", "later"),
    [({"_source": {"excludes": ["simhash"]}}, {}, None), ({}, {"routing": "elsewhere"}, None), ({}, {}, 2**64 - 1)],
    ids=["not in _source", "routed", "changed since the refresh"],
)
def test_a_document_whose_stored_terms_are_not_to_be_had(server, index, simhash, mappings, routing, later):
    """The terms lookup by id finds nothing, or other terms than searches do: the answer is whole all the same."""
    settings = {"number_of_shards": 5, "number_of_replicas": 0, "refresh_interval": "-1"}
    simhash.create_index(index, settings=settings, mappings=mappings)
    headers = [{"index": {"_index": index, "_id": str(n), **routing}} for n in range(6)]
    send_lines(server, [line for header in headers for line in (header, fingerprint_fields(7))])
    if later is not None:
        server.request("PUT", f"/{index}/_doc/0", fingerprint_fields(later))
    assert [each.id for each in simhash.find_near_dups_of(index, "0")] == ["1", "2", "3", "4", "5"]


def test_a_document_that_is_not_there_or_has_no_fingerprint(server, index, simhash):
    """Told apart, with what to do."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": "blank", "body": "…"}]))
    server.request("POST", f"/{index}/_refresh")
    with pytest.raises(InvalidInputError, match="no document 'gone'"):
        simhash.find_near_dups_of(index, "gone")
    with pytest.raises(InvalidInputError, match="no fingerprint"):
        simhash.find_near_dups_of(index, "blank")
