"""Promise 5, on real servers: every way to ask gives what the recorded rule says, compared with slow, obvious code."""

import asyncio
import functools
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import pytest

from es_simhash import InvalidInputError, MappingError, Preset, Verification, distinct_texts, fingerprint, get_scheme
from es_simhash.cli.mcp import Tools
from es_simhash.connection import Login, Server
from es_simhash.groups import recorded
from es_simhash.mapping.meta import marker_name, markers_in_use, read_settings
from es_simhash.mapping.rule import PairRule, parse_within
from es_simhash.texts.measures import NUMBERS, TextMeasure
from es_simhash.upkeep import put_fields
from es_simhash.writes import targets
from tests.reference import distance, most_numbers_replaced
from tests.servers.support import ONE_SHARD, put, texts

MAPPINGS = {"properties": {"source": {"type": "keyword"}, "published": {"type": "date"}}}
MEASURES = [("jaccard", "words"), ("jaccard", "characters"), ("edit", "characters")]


def edited(chance, text):
    """Return *text* after so many edits that some rules accept it, and others do not."""
    words = text.split()
    for _ in range(chance.randrange(5)):
        place = chance.randrange(len(words))
        words[place : place + chance.randrange(3)] = chance.choices(
            ["north", "tram", "mayor", "1999", "2000", "(Agency)"], k=1
        )
    return " ".join(words)


def make_documents(chance, prefix):
    """Return documents of a few texts, most of them copies, some without a value of a field."""
    found = {}
    for number in range(24):
        document = {"body": edited(chance, chance.choice(BASES))}
        if chance.random() < 0.9:
            document["source"] = chance.choice("xy")
        if chance.random() < 0.9:
            document["published"] = f"2026-03-{chance.randint(1, 9):02d}T00:00:00Z"
        found[f"{prefix}{number:02d}"] = document
    return found


BASES = texts(3, seed=5)


def preset_of(rule):
    measure = rule.measure
    return Preset(
        "own", "shingles-3", rule.max_distance, rule.similarity, "", measure.measure, measure.unit, measure.numbers
    )


def make_rule(chance):
    """Return a rule, and the arguments of ``reconcile`` that record it."""
    measure, unit = chance.choice(MEASURES)
    numbers = chance.choice(NUMBERS)
    rule = PairRule(
        chance.choice([4, 8, 12, 16]),
        chance.choice([None, 0.4, 0.6, 0.8, 0.95]),
        TextMeasure(measure, unit, numbers),
        chance.choice([None, None, "source"]),
        chance.choice([None, None, parse_within(("published", "3d"))]),
    )

    how = {"max_distance": rule.max_distance, "verify": False, "per": rule.per or False}
    if rule.similarity is not None:
        how |= {"preset": preset_of(rule), "verify": None}
    return rule, how | {"within": False if rule.within is None else ("published", rule.within.span)}


def accepts(rule, first, second, *, is_text=False):
    """Return whether *rule* accepts two documents; *is_text*: the first is a text, without values."""
    return reason(rule, first, second, is_text=is_text) is None


bits_of = functools.cache(fingerprint)


@functools.cache
def prepared(text, measure):
    return measure.prepare([text])[0]


def reason(rule, first, second, *, is_text=False):
    """Return what keeps two documents apart under *rule*, the distance first, the texts last."""
    if distance(bits_of(first["body"]), bits_of(second["body"])) > rule.max_distance:
        return "distance"
    if not is_text:
        if rule.per and (first.get("source") is None or first.get("source") != second.get("source")):
            return "per"
        days = [int(each["published"][8:10]) if "published" in each else None for each in (first, second)]
        if rule.within and (None in days or abs(days[0] - days[1]) > 3):
            return "within"
    if rule.similarity is not None:
        measure = TextMeasure(rule.measure.measure, rule.measure.unit).noting_numbers()
        score = measure.compare(prepared(first["body"], measure), prepared(second["body"], measure))
        if score.similarity < rule.similarity:
            return "texts"
        most = most_numbers_replaced(first["body"], second["body"])
        if {"any": False, "most": most, "same": score.numbers != "same"}[rule.measure.numbers]:
            return "numbers"
    return None


@pytest.fixture
def make(server, simhash):
    """Return a function that makes an index of documents about which nothing is decided yet."""

    def make_index(name, documents, **options):
        simhash.create_index(name, text_field="body", settings=ONE_SHARD, **options)
        list(simhash.ingest(name, documents, on_duplicate=None))
        server.request("POST", f"/{name}/_refresh")

    return make_index


@pytest.fixture
def estate(index, simhash, make):
    """Return a function that makes indices with documents and rules, and returns all of these."""

    def make_all(chance, number):
        rules, held = {}, {}
        rule, how = make_rule(chance)
        for position in range(number):
            name = f"{index}-{position}"
            documents = make_documents(chance, f"{position}-")
            make(name, [{"_id": id_, **each} for id_, each in documents.items()], mappings=MAPPINGS)
            rules[name] = rule
            simhash.reconcile(name, **how)
            held |= {(name, id_): each for id_, each in documents.items()}
        return f"{index}-*", rules, held

    return make_all


def ids(found):
    return sorted((each.index, each.id) for each in found)


@pytest.fixture
def meanwhile(monkeypatch):
    """Return a function: before *moment* of a module comes for the first time, *meddle* is done in another thread."""

    def do(module, moment, meddle):
        whole, left = getattr(module, moment), [meddle]

        def after(*args, **how):
            with ThreadPoolExecutor(1) as other:  # not in the loop that runs here
                while left:
                    other.submit(left.pop()).result()
            return whole(*args, **how)

        monkeypatch.setattr(module, moment, after)

    return do


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_every_way_of_asking_gives_the_same(run, server, simhash, estate, seed):
    """By text, document, many, from memory, pairs, groups, command line, agents; one index, or two; plainly too."""
    simhash._context.is_plain = seed > 1  # as ES_SIMHASH_PLAIN=1 makes it
    chance = random.Random(seed)
    name, rules, held = estate(chance, 1 + seed % 2)
    key, document = chance.choice(list(held.items()))

    def near(asked, *, is_text):
        return sorted(other for other, each in held.items() if accepts(rules[other[0]], asked, each, is_text=is_text))

    by_text = near(document, is_text=True)
    whole = simhash.find_near_dups(name, document["body"])
    assert ids(whole) == by_text
    assert whole.rule.origin == "recorded"
    asked = [*chance.sample([*held.values()], 4), document]
    for way in ("server", "memory"):
        many = simhash.find_near_dups_many(name, [each["body"] for each in asked], lookups=way)
        assert [ids(each) for each in many] == [near(each, is_text=True) for each in asked]
    first = simhash.find_near_dups(name, document["body"], size=2)
    assert {each.distance for each in first} == set(sorted(each.distance for each in whole)[:2])
    by_document = [each for each in near(document, is_text=False) if each != key]
    assert ids(simhash.find_near_dups_of(name, key[1])) == by_document
    for other in chance.sample(sorted(held), 6):
        expected = reason(rules[other[0]], document, held[other])
        if other != key:
            assert simhash.explain(name, key[1], other[1]).because == expected
        for_text = simhash.explain(name, other[1], texts=[document["body"]])
        expected = reason(rules[other[0]], document, held[other], is_text=True)
        assert (for_text.because, for_text.index) == (expected, other[0])
    reasons = {(other, reason(rules[other[0]], document, each, is_text=True)) for other, each in held.items()}
    assert {((each.near_dup.index, each.near_dup.id), each.because) for each in whole.rejected} <= reasons
    farthest = max(rule.max_distance for rule in rules.values())
    bits = bits_of(document["body"])
    apart = [each for each in held if distance(bits, bits_of(held[each]["body"])) <= farthest and each not in by_text]
    assert len(whole.rejected) == min(5, len(apart))
    shown = json.loads(run("find", name, "--id", key[1], "--json").stdout)
    assert sorted((each["index"], each["id"]) for each in shown["near_dups"]) == by_document
    piped = json.loads(run("find", name, "--json", "-", stdin=document["body"]).stdout)
    assert sorted((each["index"], each["id"]) for each in piped["near_dups"]) == by_text
    assert piped["rule"]["max_distance"] == shown["rule"]["max_distance"] == whole.rule.max_distance
    tools = Tools(Server(server.url), Login())

    async def agents():
        try:
            return await tools.find(index=name, id=key[1], limit=50)
        finally:
            await tools.client.close()

    told = asyncio.run(agents())
    assert sorted((each["index"], each["id"]) for each in told["near_dups"]) == by_document
    for concrete, rule in rules.items():
        own = [key for key in held if key[0] == concrete]
        pairs = {frozenset(pair) for pair in combinations(own, 2) if accepts(rule, *(held[key] for key in pair))}
        paired = list(simhash.pairs(concrete))
        assert len(paired) == len(pairs)
        assert {frozenset([(each.index, each.id), (each.other_index, each.other_id)]) for each in paired} == pairs
        grouped = {}
        for group in simhash.groups(concrete):
            first, *members = (held[concrete, each.id] for each in group.members)
            grouped |= {(concrete, each.id): group for each in group.members}
            assert all(accepts(rule, each, first) for each in members)
        alone = [held[each] for each in own if each not in grouped]
        assert not any(accepts(rule, *pair) for pair in combinations(alone, 2))
        if rule.similarity is not None:
            bodies = [held[each]["body"] for each in own]
            kept = [{"body": bodies[each]} for each in distinct_texts(bodies, preset=preset_of(rule)).kept]
            assert not any(accepts(rule, *pair, is_text=True) for pair in combinations(kept, 2))
    by_bits = simhash.find_near_dups(name, document["body"], max_distance=16)
    assert ids(by_bits) == sorted(other for other, each in held.items() if distance(bits, bits_of(each["body"])) <= 16)


def test_what_cannot_be_read_is_kept_and_decides_nothing(server, index, simhash):
    """A text that is gone from _source: found and marked by every lookup, in no group, and no reason to skip."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    text = BASES[0]
    list(simhash.ingest(index, [{"_id": "a", "body": text}]))
    hidden = server.request("GET", f"/{index}/_source/a")
    del hidden["body"]
    put(server, index, [{"_id": "b", **hidden}])
    found = simhash.find_near_dups(index, text)
    assert [(each.id, each.similarity, each.unverified is None) for each in found] == [
        ("a", 1.0, True),
        ("b", None, False),
    ]
    assert [(each.id, each.unverified is None) for each in simhash.find_near_dups_of(index, "a")] == [("b", False)]
    [pair] = simhash.pairs(index)
    assert (pair.similarity, pair.unverified) == (None, "a text could not be read, or is masked for this login")
    assert simhash.reconcile(index).duplicates == 0
    server.request("DELETE", f"/{index}/_doc/a?refresh=true")
    [report] = simhash.ingest(index, [{"_id": "c", "body": text}], on_duplicate="skip")
    assert report.action == "written"


def test_traditional_and_simplified_chinese_are_verified_after_the_conversion(server, index, make_simhash):
    """A scheme that converts them finds, groups and plans them as one text."""
    opencc = pytest.importorskip("opencc", reason="needs the extra preprocess")
    simplified = "长江是中华民族的母亲河，也是中华民族发展的重要支撑，国家和沿江省市把修复长江生态环境摆在重要位置。"
    documents = [{"_id": "a", "body": simplified}, {"_id": "b", "body": opencc.OpenCC("s2t").convert(simplified)}]
    simhash = make_simhash(scheme=get_scheme("shingles", preprocess=["t2s"]))
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    assert [each.canonical for each in simhash.ingest(index, documents)] == ["a", "a"]
    server.request("POST", f"/{index}/_refresh")
    assert [each.similarity for each in simhash.find_near_dups(index, simplified, verify=True)] == [1.0, 1.0]
    assert simhash.reconcile(index).changed == 0
    assert [each.similarity for each in simhash.pairs(index, verify=True)] == [1.0]


def test_a_preset_keeps_the_condition_on_numbers(server, index, make_simhash):
    """Also where the fingerprints leave numbers out; only a Verification takes it away. The reason is said."""
    simhash = make_simhash(scheme=get_scheme("shingles", preprocess=("numbers",)))
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    week, next_week = (
        f"Flats sold in the city: {n} at 3,250 dollars a metre, said the chamber on {n} May." for n in (17, 18)
    )
    how = {"verify": Verification(0.8, numbers="same"), "on_duplicate": "skip"}
    documents = [{"_id": "a", "body": week}, {"_id": "b", "body": next_week}, {"_id": "c", "body": week.upper()}]
    assert [each.action for each in simhash.ingest(index, documents, **how)] == ["written", "written", "skipped"]
    server.request("POST", f"/{index}/_refresh")
    for found in (simhash.find_near_dups(index, week), simhash.find_near_dups(index, week, preset="near")):
        assert (ids(found), found.rule.measure.numbers) == ([(index, "a")], "same")
        assert str(found.rejected[0]).endswith("0 bits, 100 % of the 7-letter shingles, but other numbers")
    both = simhash.find_near_dups(index, week, verify=Verification(numbers="any"))
    assert {each.id: each.numbers for each in both} == {"a": "same", "b": "only"}
    found = simhash.explain(index, "a", "b")
    assert (found.because, found.similarity, found.verdict[:18]) == ("numbers", 1.0, "no near-duplicates")


def test_explain_by_the_fingerprints_of_the_index(server, index, simhash, make):
    """A text changed by others is found unverified, and explained so; one without a fingerprint is not found."""
    make(index, [{"_id": id_, "body": BASES[0]} for id_ in "ab"])
    fields = server.request("GET", f"/{index}/_source/b")["simhash"]
    server.request("PUT", f"/{index}/_doc/b", {"body": BASES[1], "simhash": fields})
    server.request("PUT", f"/{index}/_doc/c?refresh=true", {"body": BASES[0]})
    [found] = simhash.find_near_dups_of(index, "a")
    told = simhash.explain(index, "a", "b")
    assert (found.id, told.because, told.unverified) == ("b", None, found.unverified)
    assert "but not compared" in told.verdict
    by_text = simhash.explain(index, "b", texts=[BASES[0]])
    assert (by_text.because, by_text.unverified) == (None, found.unverified)
    assert simhash.explain(index, "a", "c").because == "fingerprint"


def test_a_rule_that_another_client_records_decides_at_once(server, index, make_simhash):
    """What a client remembers of the settings is not enough: the first ingest, a change, and their end are seen."""
    mine, theirs = make_simhash(), make_simhash()
    mine.create_index(index, text_field="body", settings=ONE_SHARD)

    def recorded():
        rule = mine.find_near_dups(index, BASES[0]).rule
        return rule.origin, rule.max_distance

    assert recorded() == ("default", 12)
    list(theirs.ingest(index, [{"_id": "a", "body": BASES[0]}], max_distance=5))
    assert recorded() == ("recorded", 5)
    theirs.reconcile(index, max_distance=7, regroup=True)
    assert recorded() == ("recorded", 7)
    theirs.remove_fields(index, groups_only=True)
    assert recorded() == ("default", 12)
    assert (mine.check(index)[0].ready, mine.check(index)[0].faults) == (True, ())
    list(mine.ingest(index, [{"_id": "b", "body": BASES[1]}], max_distance=6))
    assert recorded() == ("recorded", 6)


@pytest.mark.parametrize("moment", ["choose_grouping", "write_settings"])
def test_rules_that_are_recorded_at_the_same_time(index, simhash, sync_simhash, make, meanwhile, moment):
    """Before the mapping is read again, the later is refused; after it, the last one stays, and no other marker."""
    make(index, [{"_id": "a", "body": BASES[0]}])

    def distance_of_rule():
        return sync_simhash.find_near_dups(index, BASES[0]).rule.max_distance

    def meddle():
        assert sync_simhash.reconcile(index, max_distance=3).is_settled
        assert distance_of_rule() == 3

    meanwhile(recorded, moment, meddle)
    if moment == "choose_grouping":
        with pytest.raises(MappingError, match=r"was changed to .* meanwhile: start again"):
            simhash.reconcile(index, max_distance=12)
    else:
        assert simhash.reconcile(index, max_distance=12).is_settled
    assert distance_of_rule() == (3 if moment == "choose_grouping" else 12)
    assert not simhash.check(index)[0].faults


@pytest.mark.parametrize("flow", ["put_mapping", "backfill"])
@pytest.mark.parametrize("moment", ["check_texts", "write_settings"])
def test_a_rule_that_is_recorded_while_fields_are_added(server, index, simhash, sync_simhash, meanwhile, flow, moment):
    """What was recorded before the mapping is read again stays; in any case, one marker stays, that of the record."""
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD, "mappings": {"properties": {"body": {"type": "text"}}}})
    put(server, index, [{"_id": "a", "body": BASES[0]}])

    def meddle():
        sync_simhash.put_mapping(index, text_field="body", scheme="shingles-3", max_distance=7)
        sync_simhash.reconcile(index, max_distance=3)

    meanwhile(targets if (flow, moment) == ("backfill", "write_settings") else put_fields, moment, meddle)
    done = getattr(simhash, flow)(index, text_field="body")
    assert flow == "put_mapping" or list(done)
    mapping = server.request("GET", f"/{index}/_mapping")[index]["mappings"]
    settings = read_settings(mapping)
    assert markers_in_use(mapping, prefix="simhash") == [marker_name(settings)]
    if moment == "check_texts":
        assert sync_simhash.find_near_dups(index, BASES[0]).rule.max_distance == 3
        assert settings.max_distance == 7


@pytest.fixture
def two(index, make):
    """Two indices with copies of one text, under an id of their own and one that both have; no groups yet."""
    for name in (f"{index}-1", f"{index}-2"):
        make(name, [{"_id": id_, "body": BASES[0]} for id_ in ("same", name[-1:])])
    return f"{index}-*"


def test_indices_of_different_rules_are_not_looked_up_together(run, index, simhash, two):
    """One error names them, and what to do: one rule for all is given, or one index named."""
    assert simhash.find_near_dups(two, BASES[0]).rule.origin == "default"
    assert simhash.explain(two, "1", "2").index == f"{index}-2"
    simhash.reconcile(f"{index}-1", verify=0.95)
    wanted = (
        rf"the indices have different rules \({index}-1: within 12 bits, at least 95 % .*; {index}-2: within 12 bits, "
        r"at least 80 % .*\): name indices of one rule, or give one for all"
    )
    for ask in (
        lambda: simhash.find_near_dups(two, BASES[0]),
        lambda: simhash.find_near_dups_of(two, "1"),
        lambda: list(simhash.find_near_dups_many(two, [BASES[0]])),
        lambda: simhash.get_rule(two),
        lambda: simhash.explain(two, "1", "2"),
        lambda: list(simhash.pairs(two)),
    ):
        with pytest.raises(InvalidInputError, match=wanted):
            ask()
    assert re.search(wanted, run("find", two, "--id", "1").stderr)
    for given in ({"preset": "near"}, {"max_distance": 3}, {"verify": 0.9}):
        assert len(simhash.find_near_dups(two, BASES[0], **given)) == 4
    assert len(simhash.find_near_dups(two, fingerprint=fingerprint(BASES[0]), max_distance=0)) == 4


def test_indices_of_different_rules_are_grouped_by_one(run, index, simhash, two):
    """Where the caller names all in which they differ; else the error says which rule is where, and how to do that."""
    simhash.reconcile(f"{index}-1", max_distance=3)
    simhash.reconcile(f"{index}-2", verify=False, max_distance=5)
    for how in ({}, {"regroup": True, "max_distance": 7}):
        with pytest.raises(InvalidInputError, match="are grouped by different rules") as caught:
            simhash.reconcile(two, **how)
    said = str(caught.value)
    assert (
        f"'{index}-2': within 5 bits, texts not compared, stays: the earliest by simhash.at, star groups): name" in said
    )
    assert said.endswith("reconcile(index, regroup=True), and everything in which these differ")
    shown = run("reconcile", two, "--regroup", "-d", "7", "--yes")
    assert (shown.exit_code, "es-simhash reconcile INDEX --regroup" in shown.stderr) == (1, True), shown.stderr
    assert all(pair.rule.startswith("within 5 bits, texts not") for pair in simhash.pairs(two, max_distance=5))
    report = simhash.reconcile(two, regroup=True, preset="near")
    assert (report.is_settled, report.duplicates) == (True, 3)
    rules = [simhash.check(f"{index}-{number}")[0].grouping for number in (1, 2)]
    assert rules[0] == rules[1] != {}
    assert simhash.reconcile(two).changed == 0


def test_values_that_a_server_may_index_otherwise_decide_nothing(server, index, simhash):
    """What copy_to fills, and fractions, which a rewritten source has in another form: written, with the reason."""
    copying = {"properties": {"origin": {"type": "keyword", "copy_to": "source"}, "source": {"type": "keyword"}}}
    documents = [{"_id": each, "body": BASES[0], "origin": "x", "source": 12345678.0} for each in "ab"]
    for name, mappings, reason in ((index, copying, "copy_to"), (f"{index}-2", MAPPINGS, "the number 12345678.0")):
        simhash.create_index(name, text_field="body", mappings=mappings, settings=ONE_SHARD)
        [_, second] = simhash.ingest(name, documents, per="source", on_duplicate="skip")
        assert (second.action, reason in second.reason) == ("written", True)


@pytest.mark.parametrize("text", ["See below.", "\u6682\u65e0\u63cf\u8ff0"])
def test_a_text_too_short_to_say_anything(server, index, simhash, text):
    """Near nothing in every flow that compares texts, each says why; bits alone and the same letters find it."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    documents = [{"_id": each, "body": text} for each in "abc"]
    reports = list(simhash.ingest(index, documents[:2], on_duplicate="skip"))
    assert [(report.action, report.too_short) for report in reports] == [("written", False), ("written", True)]
    server.request("POST", f"/{index}/_refresh")
    assert [each.too_short for each in simhash.ingest(index, documents[2:])] == [True]
    server.request("POST", f"/{index}/_refresh")
    for found in (simhash.find_near_dups(index, text), *simhash.find_near_dups_many(index, [text])):
        assert (len(found), {each.because for each in found.rejected}) == (0, {"short"})
        assert "too short to compare" in str(found.rejected[0])
    assert not simhash.find_near_dups_of(index, "a")
    [screened] = simhash.screen(index, [text])
    assert (screened.answer, "too short" in screened.reason) == ("new", True)
    assert "too short" in simhash.explain(index, "a", "b").verdict
    assert list(simhash.pairs(index)) == list(simhash.groups(index)) == []
    tagged = list(simhash.tag_written(index, list("abc")))
    assert [(report.action, report.too_short) for report in tagged] == [("written", True)] * 3
    assert simhash.reconcile(index).duplicates == simhash.plan_removal(index).count == 0
    assert distinct_texts([text, text]).kept == (0, 1)
    assert ids(simhash.find_near_dups(index, text, preset="identical")) == [(index, each) for each in "abc"]
    assert len(simhash.find_near_dups(index, text, max_distance=0)) == 3
    assert simhash.reconcile(index, regroup=True, preset="identical").duplicates == 2
    assert simhash.plan_removal(index).count == 2
    assert distinct_texts([text, text], preset="identical").kept == (0,)


NUMBERED = [
    ("Each new member of the staff is paid $500 in the first week of the year.", "$500", "\u20ac500"),
    ("The harbour office counted this many ships in the first week of May: 10", "10", "100"),
]


@pytest.mark.parametrize(("text", "old", "new"), NUMBERED, ids=[row[2] for row in NUMBERED])
def test_what_differs_in_numbers_only_is_never_skipped_or_deleted(server, index, simhash, text, old, new):
    """It is found and tagged, with what differs; a second copy of the same numbers goes."""
    other = text.replace(old, new)
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    documents = [{"_id": id_, "body": body} for id_, body in (("a", text), ("b", other), ("c", text))]
    list(simhash.ingest(index, documents[:1], on_duplicate="skip"))
    server.request("POST", f"/{index}/_refresh")
    [found] = simhash.find_near_dups(index, other)
    assert found.numbers in ("only", "signs")
    screened = simhash.screen(index, [other, text])
    assert [(each.answer, each.must_write) for each in screened] == [("near", True), ("near", False)]
    reports = simhash.ingest(index, documents[1:], on_duplicate="skip")
    assert [each.action for each in reports] == ["tagged", "skipped"]
    server.request("POST", f"/{index}/_refresh")
    list(simhash.ingest(index, documents[2:]))
    server.request("POST", f"/{index}/_refresh")
    copies = [{"_id": id_, "body": other + "!"} for id_ in "de"]
    assert [(near.must_write, near.id) for near in simhash.screen(index, [other + "!"])] == [(False, "b")]
    reports = list(simhash.ingest(index, copies, on_duplicate="skip"))
    assert [(report.action, report.canonical, report.reason) for report in reports] == [("skipped", "a", None)] * 2
    made = simhash.plan_removal(index)
    assert (made.count, dict(made.losses)) == (1, {"same": 1, "numbers": 1})
    assert simhash.reconcile(index).changed == 0
    assert distinct_texts([text, other, text]).kept == (0, 1)
