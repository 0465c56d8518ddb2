"""Lookups in indices as people have them: routed, aliased, replaced, behind names of every kind."""

import pytest

from es_simhash import (
    InvalidInputError,
    SchemeMismatchError,
    Verification,
    build_mapping,
    fingerprint,
    fingerprint_fields,
    get_scheme,
)
from tests.servers.removals import delete_duplicates
from tests.servers.support import ON_BOTH, ONE_SHARD, send_lines

THREE_SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}


def key_of(each):
    return each.id, each.routing


ROUTED = "the council approved text {}"


@pytest.fixture
def routed(server, index, simhash):
    """An index in whose shards one id stands three times, with fingerprints 1, 2 and 4."""
    simhash.create_index(index, text_field="body", settings=THREE_SHARDS)
    # A routing value for each shard; two documents of one id in one shard would replace each other.
    shards = {}
    for routing in "abcdefgh":
        found = server.request("GET", f"/{index}/_search_shards?routing={routing}")
        shards.setdefault(found["shards"][0][0]["shard"], routing)
    values = sorted(shards.values())
    assert len(values) == 3
    send_lines(
        server,
        [
            line
            for bit, routing in enumerate(values)
            for line in (
                {"index": {"_index": index, "_id": "7", "routing": routing}},
                {"body": ROUTED.format(bit), **fingerprint_fields(1 << bit)},
            )
        ],
    )
    return values


def test_one_id_in_several_shards_is_several_documents(index, simhash, routed):
    """Each is found, by every kind of lookup, and told apart by its routing."""
    expected = [("7", routing) for routing in routed]
    for max_distance in (1, 3, 12, 64):
        assert list(map(key_of, simhash.find_near_dups(index, fingerprint=0, max_distance=max_distance))) == expected
    for found in simhash.find_near_dups_many(index, fingerprints=[0, 0]):
        assert list(map(key_of, found)) == expected
    assert len(simhash.find_near_dups(index, fingerprint=0, size=2)) == 2


def test_a_document_of_an_id_that_others_have_too_is_named_by_its_routing(index, simhash, routed):
    """Without routing nobody can know which is meant, with it the others are near-duplicates."""
    with pytest.raises(InvalidInputError, match="differs between"):
        simhash.find_near_dups_of(index, "7")
    with pytest.raises(InvalidInputError, match="differs between"):
        simhash.get_fingerprint(index, "7")
    for number, routing in enumerate(routed):
        assert simhash.get_fingerprint(index, "7", routing=routing) == 1 << number
        others = [("7", other) for other in routed if other != routing]
        for max_distance in (3, 8):
            found = simhash.find_near_dups_of(index, "7", routing=routing, max_distance=max_distance)
            assert list(map(key_of, found)) == others


@pytest.mark.parametrize("options", [{}, {"max_distance": 8}, {"verify": 0.9}, {"size": 40}])
def test_the_routing_of_a_document_restricts_nothing(server, index, simhash, options):
    """Near-duplicates and shared passages are found in all shards; a filter leaves those of one routing value."""
    simhash.create_index(index, text_field="body", passages=True, settings=THREE_SHARDS)
    text = "The council approved the new bridge over the river on Tuesday after a long debate about its cost. " * 3
    actions = [{"_id": str(n), "_routing": f"r{n % 8}", "_source": {"body": text}} for n in range(40)]
    assert {each.action for each in simhash.ingest(index, actions, on_duplicate=None)} == {"written"}
    server.request("POST", f"/{index}/_refresh")
    others, own = {str(n) for n in range(40)} - {"3"}, {"3", "11", "19", "27", "35"}
    lookups = [simhash.find_near_dups_of] if options else [simhash.find_near_dups_of, simhash.find_passages_of]
    for look_up in lookups:
        assert {each.id for each in look_up(index, "3", routing="r3", **options)} == others
        of_one = {"term": {"_routing": "r3"}}
        assert {each.id for each in look_up(index, "3", routing="r3", filter=of_one, **options)} == own - {"3"}
    assert own <= {each.id for each in simhash.find_near_dups(index, text, routing="r3", **options)} < others | {"3"}


def test_texts_of_one_id_in_several_shards_are_verified_each(index, simhash, routed):
    """And not one text for all of them."""
    found = simhash.find_near_dups(index, ROUTED.format(1), max_distance=64, verify=Verification(0.0))
    assert sorted(near_dup.routing for near_dup in found) == routed
    assert [near_dup.routing for near_dup in found if near_dup.similarity == 1.0] == [routed[1]]


def test_pairs_groups_and_duplicates_of_one_id_in_several_shards(server, index, simhash, routed, tmp_path):
    """Each document is itself: in pairs, in groups, and where duplicates are deleted."""
    pairs = simhash.pairs(index, max_distance=2)
    assert sorted(sorted([each.routing, each.other_routing]) for each in pairs) == [
        [routed[0], routed[1]],
        [routed[0], routed[2]],
        [routed[1], routed[2]],
    ]
    assert list(simhash.pairs(index, against=index, max_distance=0)) == []
    simhash.reconcile(index, max_distance=2, verify=False)
    server.request("POST", f"/{index}/_refresh")
    [group] = simhash.groups(index)
    assert sorted(each.routing for each in group.members) == routed
    options = {"verify": 0.0, "also": ["numbers", "rewritten"], "max_share": 1.0}
    deleted = list(delete_duplicates(simhash, index, tmp_path / "removed.db", **options))
    assert [(each.id, each.action) for each in deleted] == [("7", "deleted")] * 2
    server.request("POST", f"/{index}/_refresh")
    left = [each.routing for each in simhash.find_near_dups(index, fingerprint=0)]
    assert sorted([*left, *(each.routing for each in deleted)]) == routed


WORDS = ["the council approved the new bridge", "shares fell after the forecast", "rain is expected on tuesday"]


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)  # the embedded Elasticsearch has no data streams
def test_groups_and_a_removal_of_a_data_stream(server, index, simhash, tmp_path):
    """Over its backing indices, by its name: a duplicate is found, grouped, deleted, and put back."""
    template = {"mappings": build_mapping(text_field="body"), "settings": ONE_SHARD}
    template = {"index_patterns": [f"{index}*"], "data_stream": {}, "priority": 500, "template": template}
    server.request("PUT", f"/_index_template/{index}", template)
    try:
        for id_ in "ab":
            document = {"@timestamp": "2026-01-01T00:00:00Z", "body": ROUTED * 3}
            server.request("PUT", f"/{index}/_create/{id_}", document | fingerprint_fields(fingerprint(ROUTED * 3)))
            if id_ == "a":
                server.request("POST", f"/{index}/_rollover")
        assert simhash.reconcile(index, canonical="id").duplicates == 1
        server.request("POST", f"/{index}/_refresh")
        [group], [pair] = simhash.groups(index), simhash.pairs(index)
        assert [each.id for each in group.members] == sorted([pair.id, pair.other_id]) == ["a", "b"]
        assert pair.index != pair.other_index
        simhash.plan_removal(index, tmp_path / "removal.db", max_share=1.0)
        for method, action, left in (
            (simhash.apply_removal, "deleted", ["a"]),
            (simhash.restore, "restored", ["a", "b"]),
        ):
            assert [(each.id, each.action) for each in method(tmp_path / "removal.db")] == [("b", action)]
            server.request("POST", f"/{index}/_refresh")
            assert [each.id for each in simhash.find_near_dups(index, ROUTED * 3)] == left
        assert simhash.reconcile(index).changed == 0
    finally:
        server.remove(index)
        server.request("DELETE", f"/_index_template/{index}")


def fill_with(simhash, server, index, scheme):
    simhash.create_index(index, scheme=scheme, text_field="body", settings=THREE_SHARDS)
    documents = [{"_id": str(number), "body": text} for number, text in enumerate(WORDS)]
    assert all(each.action == "written" for each in simhash.ingest(index, documents, on_duplicate=None))
    server.request("POST", f"/{index}/_refresh")


def scheme_and_ids(simhash, index, number, kind):
    """Return the scheme that a lookup of *kind* went by, and what it found of the text of that number."""
    text, own = WORDS[number], []
    if kind == "many":
        [found] = simhash.find_near_dups_many(index, [text], max_distance=0)
    elif kind == "of":
        found, own = simhash.find_near_dups_of(index, str(number), max_distance=3), [str(number)]
    else:
        found = simhash.find_near_dups(index, text, max_distance={"near": 0, "far": 10}[kind])
    return str(found.scheme), own + [each.id for each in found]


@ON_BOTH
def test_lookups_between_replacements_as_fast_as_they_go(server, index, make_simhash):
    """However fast another program deletes, creates and fills an index, the next lookup is right."""
    ours = make_simhash()
    schemes = ("keywords", "shingles")
    for turn in range(8):
        scheme = get_scheme(schemes[turn % 2])
        if turn:
            server.request("DELETE", f"/{index}")
        mapping = build_mapping(scheme=scheme, text_field="body")
        server.request("PUT", f"/{index}", {"settings": ONE_SHARD, "mappings": mapping})
        send_lines(
            server,
            [
                line
                for number, text in enumerate(WORDS)
                for line in (
                    {"index": {"_index": index, "_id": str(number)}},
                    {"body": text, **fingerprint_fields(fingerprint(text, scheme=scheme))},
                )
            ],
        )
        number, kind = turn % 3, ("near", "many", "far", "of")[turn // 2 % 4]
        assert scheme_and_ids(ours, index, number, kind) == (scheme.id, [str(number)])


def test_an_alias_that_moves_between_two_lookups(server, index, make_simhash):
    """In one request, without a pause: the second lookup goes by what the alias names now."""
    ours, alias = make_simhash(), f"{index}-alias"
    schemes = {f"{index}-1.a": "keywords-1", f"{index}-2.b": "shingles-3"}
    for name, scheme in schemes.items():
        fill_with(make_simhash(), server, name, scheme.partition("-")[0])
    now, other = schemes
    server.request("POST", "/_aliases", {"actions": [{"add": {"index": now, "alias": alias}}]})
    for turn in range(6):
        kind = ("near", "many", "far")[turn % 3]
        assert scheme_and_ids(ours, alias, turn % 3, kind) == (schemes[now], [str(turn % 3)])
        moved = [{"remove": {"index": now, "alias": alias}}, {"add": {"index": other, "alias": alias}}]
        server.request("POST", "/_aliases", {"actions": moved})
        now, other = other, now
        assert scheme_and_ids(ours, alias, turn % 3, kind) == (schemes[now], [str(turn % 3)])


def test_indices_without_a_marker(server, index, make_simhash):
    """A full mapping may lack it: they are found all the same, alone and beside others; ``check`` names them."""
    ours = make_simhash()
    old, new, other, every = (f"{index}-{name}" for name in ("old", "new", "other", "*"))
    fill_with(make_simhash(), server, new, "keywords")
    mapping = build_mapping(scheme="keywords", text_field="body")
    below = mapping["properties"]["simhash"]["properties"]
    del below[next(name for name in below if name.startswith("settings_"))]
    server.request("PUT", f"/{old}", {"settings": THREE_SHARDS, "mappings": mapping})
    server.request("PUT", f"/{other}", {"settings": THREE_SHARDS})
    list(make_simhash().ingest(old, [{"_id": "x", "body": WORDS[0]}], on_duplicate=None))
    server.request("POST", f"/{every}/_refresh")

    def found_in(name):
        return sorted(each.id for each in ours.find_near_dups(name, WORDS[0]))

    assert [found_in(each) for each in (old, every, f"{new},{other}")] == [["x"], ["0", "x"], ["0"]]
    [report] = ours.check(old)
    assert (report.ready, [each.kind for each in report.faults]) == (True, ["no_marker"])
    ours.put_mapping(old)
    assert ours.check(old)[0].faults == ()
    assert found_in(f"{old},{new}") == ["0", "x"]


def test_an_index_without_our_fields_that_joins_a_pattern(server, index, make_simhash):
    """It holds no fingerprints: lookups go on, though it lacks the marker that they insist on."""
    ours = make_simhash()
    fill_with(ours, server, f"{index}-1", "keywords")
    for body in (None, {"body": WORDS[0]}):
        if body:
            server.request("PUT", f"/{index}-2/_doc/1?refresh=true", body)
        for number, kind in enumerate(("near", "many", "far")):
            assert scheme_and_ids(ours, f"{index}-*", number, kind)[1] == [str(number)]
    fill_with(make_simhash(), server, f"{index}-3", "shingles")
    with pytest.raises(SchemeMismatchError):
        ours.find_near_dups(f"{index}-*", WORDS[0])


def test_pairs_of_two_indices_one_of_which_got_another_scheme(server, index, make_simhash):
    """What the client remembers of the schemes decides neither that they differ nor that they are the same."""
    ours, one, two = make_simhash(), f"{index}-one", f"{index}-two"
    fill_with(ours, server, one, "keywords")
    fill_with(ours, server, two, "keywords")
    assert sorted(each.id for each in ours.pairs(one, two, max_distance=0)) == ["0", "1", "2"]
    for name in (one, two):
        server.request("DELETE", f"/{name}")
        fill_with(make_simhash(), server, name, "shingles")
        if name == one:
            with pytest.raises(SchemeMismatchError, match="keywords-1, but index .* uses shingles-3"):
                list(ours.pairs(one, two, max_distance=0))
    assert sorted(each.id for each in ours.pairs(one, two, max_distance=0)) == ["0", "1", "2"]


def test_an_ingest_stops_when_its_index_is_replaced(server, index, sync_simhash):
    """Nothing with bits of the old scheme is written to the new index."""
    sync_simhash.create_index(index, scheme="keywords", text_field="body", settings=THREE_SHARDS)
    documents = [{"_id": str(number), "body": f"{WORDS[0]} {number}"} for number in range(2_000)]
    reports = iter(sync_simhash.ingest(index, documents, on_duplicate=None))
    assert next(reports).action == "written"
    server.request("DELETE", f"/{index}")
    mapping = build_mapping(scheme="shingles", text_field="body")
    server.request("PUT", f"/{index}", {"settings": THREE_SHARDS, "mappings": mapping})
    with pytest.raises(SchemeMismatchError, match="changed to scheme shingles-3"):
        list(reports)
    server.request("POST", f"/{index}/_refresh")
    assert server.request("GET", f"/{index}/_count")["count"] == 0
