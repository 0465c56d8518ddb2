"""``screen`` on real servers: its answers are the decisions of an ingest of the same stream into a copy."""

import random

import pytest

from es_simhash import document_fields
from es_simhash.client.dialects import Dialect
from es_simhash.ingest import near
from es_simhash.mapping.resolve import check_unchanged
from tests.ingest.test_verified_server import MAPPINGS, make_documents
from tests.servers.support import ONE_SHARD, put, read_all

RULES = {
    "default": {},
    "12 bits": {"verify": False, "max_distance": 12},
    "values": {"max_distance": 20, "verify": 0.6, "per": "source.raw", "within": ("published", "3d")},
}

COUNCIL, FERRY = "the council votes on the new bridge across the harbour", "a ferry goes to the island at nine"


def make_stream(count, known, seed):
    """Return documents to store: copies, other texts under ids that the index has, bad input, one id twice."""
    chance = random.Random(seed)
    stream = make_documents(count, seed)
    for n, each in enumerate(stream):
        each["_id"] = f"new{n}"
        if chance.random() < 0.3:
            words = chance.choice(known)["body"].split()
            if chance.random() < 0.5:
                words[chance.randrange(len(words))] = "another"
            each["body"] = " ".join(words)
        if chance.random() < 0.1:
            each["_id"] = chance.choice(known)["_id"]
        if chance.random() < 0.1:
            each["_id"] = f"new{chance.randrange(count)}"
        if chance.random() < 0.1:
            each["body"] = chance.choice(["", " - ", "short", [each["body"], "and more"], 5, None])
        if chance.random() < 0.03:
            stream[n] = chance.choice([7, None, ["a"]])
    return stream


def assert_same(screened, reports, stream, groups):
    """Each answer is what the ingest did; *groups*: the groups of the documents that the index had."""
    assert [each.position for each in screened] == list(range(len(stream)))
    group_of = {}
    for each, report in zip(screened, reports, strict=True):
        said = (each, report, stream[each.position])
        if report.action in ("skipped", "tagged"):
            assert (each.answer, each.must_write) == ("near", report.action == "tagged"), said
            group = groups[each.id] if each.place is None else group_of[each.place]
            assert group == report.canonical, said
            if report.similarity is not None:
                assert (each.similarity, each.distance) == (report.similarity, report.distance), said
        else:
            assert each.answer == ("unsure" if report.reason else "new"), said
            assert bool(each.reason) == (each.answer == "unsure" or report.too_short), said
        group_of[each.position] = report.canonical
        assert each.fingerprinted == report.fingerprinted or report.action == "skipped", said


@pytest.mark.parametrize("name", RULES)
def test_the_answers_are_the_decisions_of_an_ingest(server, call, simhash, index, name):
    """For all kinds of rules, over several batches and shards; nothing is written."""
    names = [index, f"{index}-copy"]
    have = make_documents(50, 6)
    stream = make_stream(80, have, 5)
    for each in names:
        settings = {"number_of_shards": 3, "number_of_replicas": 0, "refresh_interval": "-1"}
        call(simhash.create_index(each, text_field="body", settings=settings, mappings=MAPPINGS))
        list(call(simhash.ingest(each, have[:1], **RULES[name])))
    list(call(simhash.ingest(index, have)))
    sources = read_all(server, index)
    assert len(sources) == len(have)
    put(server, names[1], [{"_id": id_, **each} for id_, each in sources.items()])
    before = read_all(server, names[0]), server.request("GET", f"/{names[0]}/_mapping")
    screened = list(call(simhash.screen(names[0], stream)))
    assert (read_all(server, names[0]), server.request("GET", f"/{names[0]}/_mapping")) == before
    reports = list(call(simhash.ingest(names[1], stream, on_duplicate="skip")))
    groups = {id_: (each.get("simhash") or {}).get("group") for id_, each in before[0].items()}
    assert_same(screened, reports, stream, groups)
    assert {each.answer for each in screened} == {"new", "near", "unsure"}
    assert {each.place is None for each in screened if each.answer == "near"} == {True, False}


def test_an_alias_of_two_text_fields(server, call, simhash, index):
    """The texts of a document are joined; a document of an id that the write index has would be written."""
    ferry, council = ({"title": each[:20], "body": each[20:]} for each in (FERRY, COUNCIL))
    for name in (index, f"{index}-old"):
        call(simhash.create_index(name, text_field=["title", "body"], settings=ONE_SHARD))
        add = {"index": name, "alias": f"{index}-alias", "is_write_index": name == index}
        server.request("POST", "/_aliases", {"actions": [{"add": add}]})
    put(server, f"{index}-old", [{"_id": "old", "title": "a", "body": "b"}])
    list(call(simhash.ingest(index, [{"_id": "a", **ferry}, {"_id": "b", **council}])))
    server.request("POST", f"/{index}/_refresh")
    screened = list(call(simhash.screen(f"{index}-alias", [{"_id": id_, **ferry} for id_ in ("x", "b", "old", "a")])))
    found = [(each.answer, each.id, each.index) for each in screened]
    assert found == [*[("near", "a", index)] * 3, ("new", None, None)]


def test_plain_texts_are_documents_without_an_id(server, call, simhash, index):
    """Also one that looks like JSON; what is JSON is given as bytes."""
    have = make_documents(40, 3)
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=MAPPINGS))
    list(call(simhash.ingest(index, have)))
    server.request("POST", f"/{index}/_refresh")
    given = [each["body"] for each in make_stream(60, have, 4) if isinstance(each, dict)]
    given = ['{"body": "a text"}', *(each for each in given if isinstance(each, str))]
    plain = list(call(simhash.screen(index, given)))
    assert plain == list(call(simhash.screen(index, [{"body": each} for each in given])))
    assert {each.answer for each in plain} == {"near", "new"}
    [near] = call(simhash.screen(index, [f'{{"body": "{have[0]["body"]}"}}'.encode()], source=["n"]))
    assert (near.answer, near.id, near.index, near.source) == ("near", "00000", index, {"n": 0})


def test_why_it_is_unsure(call, simhash, index):
    """What cannot be compared is never new, and takes the place of nothing; the rule says that no rule is recorded."""
    kinds = {"properties": {"source": {"type": "keyword"}, "published": {"type": "date", "format": "dd.MM.yyyy"}}}
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=kinds))
    text = COUNCIL
    [plain] = call(simhash.screen(index, [text], per="source"))
    assert (plain.answer, plain.reason.partition(",")[0]) == ("unsure", "a text has no value of source")
    [dated] = call(simhash.screen(index, [{"body": text, "published": "01.02.2026"}], within=("published", "1d")))
    assert (dated.answer, "cannot be read before it is indexed" in dated.reason) == ("unsure", True)
    [new] = call(simhash.screen(index, [text]))
    assert (new.answer, new.rule.origin, new.to_dict()["rule"]) == ("new", "default", str(new.rule))
    for action in ({"_op_type": "delete", "_id": "1"}, {"_op_type": "update", "_id": "1", "doc": {"body": text}}):
        [unsure] = call(simhash.screen(index, [action]))
        assert (unsure.answer, "give whole documents" in unsure.reason) == ("unsure", True)
    # A search for such an id is refused whole, and would spoil the other document.
    bare, new = call(simhash.screen(index, [{"_id": "", "body": text}, {"_id": "a", "body": text}]))
    assert (bare.reason, new.answer) == ("_id '' is empty: give one, or leave it out", "new")
    assert simhash.check(index)[0].grouping is None


def test_one_text_costs_three_requests(call, simhash, index, monkeypatch):
    """Settings, mapping and search, where answers come soon; else the mapping is read again."""
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD))
    list(call(simhash.ingest(index, [{"_id": "a", "body": "the council votes on the new bridge"}])))
    sent = []
    original = Dialect.call

    async def noting(self, client, request):
        sent.append(request.api)
        return await original(self, client, request)

    monkeypatch.setattr(Dialect, "call", noting)
    for most, apis in ((60.0, []), (0.0, ["get_mapping"])):
        monkeypatch.setitem(check_unchanged.__kwdefaults__, "after_seconds", most)
        sent.clear()
        [found] = call(simhash.screen(index, ["Nothing of this kind was told in the north before."]))
        assert (found.answer, sent) == ("new", ["get_settings", "get_mapping", "msearch", *apis])


def test_what_another_program_wrote_is_tagged_by_its_ids(server, call, simhash, index):
    """Groups and fingerprints are those of an ingest; nothing else of a document changes, and none is left out."""
    rule = {"verify": 0.6, "max_distance": 20, "per": "source.raw"}
    have = [each for each in make_documents(60, 6) if "source" in each]
    names = [index, f"{index}-copy"]
    for name in names:
        call(simhash.create_index(name, text_field="body", settings=ONE_SHARD, mappings=MAPPINGS))
        list(call(simhash.ingest(name, have[:20], **rule)))
    rest = [{**each, "vector": [0.1, 0.25], "deep": {"a": [1]}} for each in have[20:]]
    put(server, index, rest)
    reports = list(call(simhash.tag_written(index, [*(each["_id"] for each in rest), "none", "none"])))
    wanted = list(call(simhash.ingest(names[1], rest)))
    told = [[(each.position, each.id, each.action, each.canonical) for each in some] for some in (reports[:-1], wanted)]
    assert told[0] == told[1]
    gone = reports[-1]
    assert (gone.position, gone.id, gone.action, gone.kind) == (len(rest), "none", "refused", "refused")
    stored, others = (read_all(server, name) for name in names)
    for each in (*stored.values(), *others.values()):
        each["simhash"] = {name: value for name, value in each["simhash"].items() if value is not None and name != "at"}
    assert stored == others


def test_a_document_that_lacks_one_of_two_text_fields_keeps_a_fingerprint(server, call, simhash, index):
    """What is tagged was read whole, so a field that is not there is no text that stays as it was."""
    call(simhash.create_index(index, text_field=["title", "body"], settings=ONE_SHARD))
    text = "one text of quite a few words"
    documents = {"a": {"body": text}, "b": {"title": text, "body": None}, "c": {"n": 1}}
    # It lost all its text, and its fingerprint goes too.
    documents["d"] = {"n": 1, **document_fields("a ferry goes to the island")}
    put(server, index, [{"_id": id_, **document} for id_, document in documents.items()])
    reports = list(call(simhash.tag_written(index, list(documents))))
    told = [(each.action, each.fingerprinted, each.reason) for each in reports]
    assert told == [("written", True, None), ("tagged", True, None), *[("written", False, None)] * 2]
    stored = read_all(server, index)
    assert not any((stored["d"].get("simhash") or {}).get(name) for name in ("fingerprint", "block0"))
    call(simhash.backfill(index))
    stored = read_all(server, index)
    assert stored["a"]["simhash"]["fingerprint"] == stored["b"]["simhash"]["fingerprint"]
    assert {id_: each["title"] for id_, each in stored.items() if "title" in each} == {"b": text}


@pytest.mark.parametrize(
    ("lookups", "rule"), [("server", {"verify": 0.6}), ("memory", {"verify": False, "max_distance": 12})]
)
def test_a_copy_stands_for_a_canonical_that_another_program_deleted(server, call, simhash, index, lookups, rule):
    """For screen, skips and tags; what is tagged by its id gets the group that reconcile says."""
    text, other = COUNCIL, FERRY
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD))
    list(call(simhash.ingest(index, [{"_id": id_, "body": text} for id_ in "ab"], **rule)))
    server.request("DELETE", f"/{index}/_doc/a?refresh=true")
    screened = list(call(simhash.screen(index, [text, other])))
    assert [(each.answer, each.id) for each in screened] == [("near", "b"), ("new", None)]
    given = [{"_id": "c", "body": text}, {"_id": "d", "body": other}]
    skipped, written = call(simhash.ingest(index, given, on_duplicate="skip", lookups=lookups))
    assert (skipped.action, skipped.index, written.action) == ("skipped", index, "written")
    assert skipped.reason == "'b' is near, and its canonical 'a' is gone, or has another text: run reconcile"
    [tagged] = call(simhash.ingest(index, [{"_id": "e", "body": text}], lookups=lookups))
    assert (tagged.action, tagged.canonical, tagged.distance) == ("tagged", "a", None)
    [back] = call(simhash.ingest(index, [{"_id": "a", "body": text}], lookups=lookups))
    assert (back.action, back.canonical) == ("written", "a")
    assert call(simhash.reconcile(index)).changed == 0
    server.request("DELETE", f"/{index}/_doc/a?refresh=true")
    server.request("PUT", f"/{index}/_doc/f?refresh=true", {"body": text})
    [tagged] = call(simhash.tag_written(index, ["f"]))
    assert (tagged.action, tagged.canonical) == ("tagged", "b")
    assert [(group.id, len(group.members)) for group in call(simhash.groups(index))] == [("b", 3)]


@pytest.mark.parametrize(
    ("way", "lookups", "rule"),
    [
        ("before", "server", {"verify": 0.6}),
        ("before", "crowded", {"verify": False, "max_distance": 12}),
        ("before", "memory", {"verify": 0.6}),
        ("same call", "crowded", {"verify": False, "max_distance": 12}),
        ("same batch", "memory", {"verify": 0.6}),
        ("deleted in the call", "server", {"verify": 0.6}),
    ],
)
def test_a_copy_stands_for_a_canonical_that_has_another_text_now(
    server, call, simhash, index, way, lookups, rule, monkeypatch
):
    """Written again before, or by the same call; what is decided is what reconcile says."""
    if lookups == "crowded":
        monkeypatch.setattr(near, "CROWD_DOCUMENTS", 1)
        lookups = "server"
    text, other = COUNCIL, FERRY
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD))
    first = [{"_id": id_, "body": text} for id_ in "ab"]
    again = {"_op_type": "delete", "_id": "a"} if way == "deleted in the call" else {"_id": "a", "body": other}
    late = {"_id": "c", "body": text}
    if way == "same call":
        reports = list(call(simhash.ingest(index, [*first, again, late], lookups=lookups, **rule)))
    else:
        list(call(simhash.ingest(index, first, lookups=lookups, **rule)))
        if way == "before":
            list(call(simhash.ingest(index, [again], lookups=lookups)))
            server.request("POST", f"/{index}/_refresh")
            screened = list(call(simhash.screen(index, [text, other])))
            assert [(each.answer, each.id) for each in screened] == [("near", "b"), ("near", "a")]
        reports = list(call(simhash.ingest(index, [late] if way == "before" else [again, late], lookups=lookups)))
    assert (reports[-1].action, reports[-1].canonical, reports[-1].distance) == ("tagged", "a", None)
    [skipped] = call(simhash.ingest(index, [late | {"_id": "d"}], on_duplicate="skip", lookups=lookups))
    assert (skipped.action, skipped.index) == ("skipped", index)
    call(simhash.reconcile(index))
    assert [(each.id, len(each.members)) for each in call(simhash.groups(index))] == [("b", 2)]


def test_an_id_with_two_routing_values_is_one_id(server, call, simhash, index):
    """It hides no other id that the index has: that one is written although it is near, not skipped."""
    text = COUNCIL
    call(simhash.create_index(index, text_field="body", settings={**ONE_SHARD, "number_of_shards": 3}))
    stored = [{"_id": "z", "body": text}, {"_id": "c", "body": "old"}]
    stored += [{"_id": "a", "routing": routing, "_source": {"body": "old"}} for routing in "xyzw"]
    list(call(simhash.ingest(index, stored)))
    server.request("POST", f"/{index}/_refresh")
    given = [{"_id": id_, "body": text} for id_ in "acn"]
    assert [screened.must_write for screened in call(simhash.screen(index, given))] == [True, True, False]
    given = [{"_op_type": "update", "_id": "z", "doc": {"n": 1}}, *given, {"body": text}]  # what is there is not read
    reports = list(call(simhash.ingest(index, given, on_duplicate="skip")))
    told = [(report.id, report.action) for report in reports[1:]]
    assert told == [("a", "tagged"), ("c", "tagged"), ("n", "skipped"), (None, "skipped")]
