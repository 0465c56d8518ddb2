"""
Logins and rights on an OpenSearch with the security plugin: what each kind of reader can do, and what is said to those
who may not.
"""

from __future__ import annotations

import json
import re
import uuid
from zlib import crc32

import pytest

from es_simhash import (
    AsyncSimHashClient,
    IncompleteSearchError,
    MappingError,
    SimHashClient,
    WritesRefusedError,
    fingerprint_fields,
)
from tests.servers.fixtures import Calls
from tests.servers.security import LOGIN, ask, let
from tests.servers.support import ONE_SHARD

pytestmark = pytest.mark.faults

INDEX = "guarded"
COPIES = 2_500  # more than the first page holds, so that reading on is needed
FAR = 2**64 - 1  # no document shares a block with it, whatever the plan

# What each kind of reader may do, in the words of the security plugin: in the cluster, and on the index.
BATCHES = ["indices:data/read/msearch", "indices:data/read/mget"]
SEARCH = ["indices:data/read/search", "indices:data/read/msearch*", "indices:data/read/mget*"]
POINT_IN_TIME = ["indices:data/read/point_in_time/create", "indices:data/read/point_in_time/delete"]
ROLES = {
    "reads": (["cluster_composite_ops"], ["read"]),
    "searches": (BATCHES, SEARCH),
    "pages": (BATCHES, [*SEARCH, *POINT_IN_TIME]),
    "sees-mappings": (["cluster_composite_ops"], ["read", "indices:admin/mappings/get"]),
    "plans": (["cluster_composite_ops"], ["read", "indices:admin/mappings/get", "indices:monitor/settings/get"]),
    "nothing": ([], []),
}


@pytest.fixture(scope="module")
def guarded(secured):
    """The server with the security plugin, with an index of equal documents and a user for each of ``ROLES``."""
    for name, (cluster, index) in ROLES.items():
        let(secured, name, cluster, {"index_patterns": [f"{INDEX}*"], "allowed_actions": index})
    with make_client(secured, *secured.login) as client:
        SimHashClient(client).create_index(INDEX, settings={"number_of_shards": 2, "number_of_replicas": 0})
    lines = [line for n in range(COPIES) for line in ({"index": {"_id": str(n)}}, fingerprint_fields(7))]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    ask(secured, "POST", f"/{INDEX}/_bulk?refresh=true", body)
    return secured


def make_client(server, name, password, *, asynchronous=False):
    """Return a client that logs in and trusts the server's certificate."""
    import opensearchpy

    cls = opensearchpy.AsyncOpenSearch if asynchronous else opensearchpy.OpenSearch
    return cls([server.url], http_auth=(name, password), use_ssl=True, ca_certs=str(server.ca_path), timeout=60)


@pytest.fixture
def login(request, guarded, runner, call):
    """
    Return a function that logs in with a name, a password and options, and returns a client of ours to be called as
    if it were sync; which of the two it is, the name of the test and its case decide.
    """
    opened, is_async = [], crc32(request.node.name.encode()) % 2

    async def make(name, password):
        return make_client(guarded, name, password, asynchronous=True)

    def log_in(name, password=LOGIN[1], **options):
        if not is_async:
            opened.append(make_client(guarded, name, password))
            return SimHashClient(opened[-1], **options)
        opened.append(runner.run(make(name, password)))
        return Calls(AsyncSimHashClient(opened[-1], **options), call)

    yield log_in
    for client in opened:
        call(client.close())


def errors():
    """Return the client's exceptions for a 401 and a 403."""
    from opensearchpy.exceptions import AuthenticationException, AuthorizationException

    return AuthenticationException, AuthorizationException


@pytest.mark.parametrize("scheme", [None, "shingles"])
def test_a_wrong_password_is_the_clients_error(login, scheme):
    """It passes through unchanged, whether or not the mapping would have been read first."""
    unknown, _ = errors()
    simhash = login("reads", "wrong", scheme=scheme)
    with pytest.raises(unknown) as caught:
        simhash.find_near_dups(INDEX, fingerprint=7)
    assert caught.value.status_code == 401


def test_a_reader_who_may_not_read_mappings_is_told_of_scheme(login):
    """The client's error, with a note that names the way out."""
    _, forbidden = errors()
    with pytest.raises(forbidden) as caught:
        login("reads").find_near_dups(INDEX, fingerprint=7)
    assert caught.value.status_code == 403
    assert any("give scheme" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(("name", "scheme"), [("reads", "shingles"), ("pages", "shingles"), ("sees-mappings", None)])
def test_readers_find_everything_beyond_a_page(login, guarded, name, scheme):
    """In a point in time every copy is found, and nothing stays open."""
    simhash = login(name, scheme=scheme)
    found = simhash.find_near_dups(INDEX, fingerprint=7)
    assert len(found) == len({each.id for each in found}) == COPIES
    assert found.complete
    assert len(simhash.find_near_dups(INDEX, fingerprint=7, max_distance=12)) == COPIES
    [first, second] = simhash.find_near_dups_many(INDEX, fingerprints=[7, 2**63])
    assert (len(first), len(second)) == (COPIES, 0)
    assert open_contexts(guarded) == 0


def open_contexts(guarded):
    return ask(guarded, "GET", f"/{INDEX}/_stats/search")["_all"]["total"]["search"]["open_contexts"]


def test_a_reader_who_may_only_search_gets_no_part_for_the_whole(login):
    """No point in time: what fits on a page is found, and beyond it the client's error is raised."""
    _, forbidden = errors()
    simhash = login("searches", scheme="shingles")
    assert simhash.find_near_dups(INDEX, fingerprint=FAR).complete
    assert [each.id for each in simhash.find_near_dups(INDEX, fingerprint=7, filter={"ids": {"values": ["3"]}})] == [
        "3"
    ]
    with pytest.raises(forbidden):
        simhash.find_near_dups(INDEX, fingerprint=7)
    outcome = simhash.find_near_dups_many(INDEX, fingerprints=[7, FAR])
    assert isinstance(outcome[0], forbidden)
    assert len(outcome[1]) == 0


TEXT = " ".join(f"The same text twice, in sentence {number} of ten." for number in range(10))


def make_group(client, name, **how):
    """Make an index with a group, the canonical of which is of another team; return a client of ours that sees all."""
    simhash = SimHashClient(client)
    mapping = {"properties": {"team": {"type": "keyword"}}}
    simhash.create_index(name, text_field="body", mappings=mapping, settings=ONE_SHARD, passages=True)
    documents = [{"_id": f"{n}", "body": TEXT, "note": "n", "team": "ours" if n else "theirs"} for n in range(3)]
    assert [each.action for each in simhash.ingest(name, documents, verify=0.8, **how)][2:] == ["tagged"]
    client.indices.refresh(index=name)
    return simhash


@pytest.fixture
def owned(guarded):
    """A client that may do everything, the name of an index with a group, and a client of ours for it."""
    name = f"{INDEX}-{uuid.uuid4().hex}"
    with make_client(guarded, *guarded.login) as client:
        yield client, name, make_group(client, name)
    ask(guarded, "DELETE", f"/{name},{name}-state?ignore_unavailable=true")


def test_a_reader_may_plan(owned, login, caplog):
    """A login without the right to refresh plans, and counts, by what is visible, and is told so."""
    _, name, _ = owned
    reader = login("plans")
    assert [planned.document.id for planned in reader.plan_removal(name, max_share=1).removals] == ["1", "2"]
    assert (reader.reconcile(name, dry_run=True).changed, reader.setup(name, dry_run=True).documents) == (0, 3)
    assert reader.remove_fields(name, dry_run=True).documents == 3
    assert f"{name} was not refreshed" in caplog.text


@pytest.fixture(
    params=[{"masked_fields": ["body"]}, {"fls": ["~note"]}, {"dls": '{"term": {"team": "ours"}}'}], ids=str
)
def partly(request, guarded, owned, login):
    """An index with duplicates, and a client whose login may do everything there, but sees only a part of it."""
    client, name, simhash = owned
    rights = {"index_patterns": [name], "allowed_actions": ["*"], **request.param}
    state = {"index_patterns": [f"{name}-state"], "allowed_actions": ["*"]}
    let(guarded, "partly", ["*"], rights, state)
    return name, simhash, login("partly"), client


def test_who_sees_a_part_removes_nothing(partly, tmp_path):
    """An archive would hold hashes, or lack fields. A plan of one who sees all is refused too."""
    index, owner, simhash, client = partly
    whole = client.mget(index=index, body={"ids": ["0", "1", "2"]})["docs"]
    for number, planner in enumerate((owner, simhash)):
        plan = tmp_path / f"plan-{number}"
        planner.plan_removal(index, plan, max_share=1)
        with pytest.raises(WritesRefusedError, match="sees only a part of index") as refused:
            list(simhash.apply_removal(plan))
        assert (refused.value.kind, refused.value.index) == ("forbidden", index)
    assert client.mget(index=index, body={"ids": ["0", "1", "2"]})["docs"] == whole
    deleted = [each for each in owner.apply_removal(tmp_path / "plan-0") if each.is_done]
    assert [each.action for each in deleted] == ["deleted"] * 2


def test_who_sees_a_part_writes_nothing_of_it(partly):
    """Each operation that changes documents ends in one error, and leaves documents and records as they were."""
    index, owner, simhash, client = partly
    client.index(index=index, id="3", body={"body": "Another text, long enough to have features.", "team": "ours"})
    ours = {"group": "x", "duplicate_of": "x"}
    client.update(index=index, id="1", body={"doc": {"simhash": ours}}, refresh=True)
    before = client.search(index=index, body={"query": {"match_all": {}}, "size": 10})["hits"]["hits"]
    recorded = client.indices.get_mapping(index=index)[index]["mappings"]["_meta"]
    for work in (
        lambda: list(simhash.backfill(index)),
        lambda: simhash.reconcile(index),
        lambda: simhash.reconcile(index, max_distance=12, regroup=True),
        lambda: simhash.remove_fields(index),
        lambda: list(simhash.follow(index, once=True, state_index=f"{index}-state")),
    ):
        with pytest.raises(WritesRefusedError) as refused:
            work()
        assert refused.value.kind == "forbidden"
    assert client.search(index=index, body={"query": {"match_all": {}}, "size": 10})["hits"]["hits"] == before
    assert client.indices.get_mapping(index=index)[index]["mappings"]["_meta"] == recorded
    assert owner.reconcile(index).is_settled


MASKS = {
    "text masked": ({"masked_fields": ["body"]}, "body"),
    "text hidden": ({"fls": ["~body"]}, "body"),
    "group masked": ({"masked_fields": ["simhash.group"]}, "simhash.group"),
    "duplicate_of masked": ({"masked_fields": ["simhash.duplicate_of"]}, "simhash.duplicate_of"),
    "duplicate_of hidden": ({"fls": ["~simhash.duplicate_of"]}, "simhash.duplicate_of"),
    "fingerprint masked": ({"masked_fields": ["simhash.fingerprint"]}, "simhash.fingerprint"),
    "block masked": ({"masked_fields": ["simhash.block2"]}, "simhash.block2"),
    "note hidden": ({"fls": ["~note"]}, None),
    "some documents": ({"dls": '{"term": {"team": "ours"}}'}, None),
}


@pytest.fixture(scope="module")
def grouped(guarded):
    """Return a function that makes an index with a group; by the same options it is the same index."""
    made = {}

    def make(**how):
        if (key := str(how)) in made:
            return made[key]
        made[key] = name = f"{INDEX}-{uuid.uuid4().hex}"
        with make_client(guarded, *guarded.login) as client:
            make_group(client, name, **how)
        return name

    yield make
    ask(guarded, "DELETE", f"/{','.join(made.values())}?ignore_unavailable=true")


@pytest.fixture
def masked(guarded, grouped, login):
    """Return a function that returns an index with a group, and a login that sees of it what it is told to."""

    def limit(limits, **how):
        name = grouped(**how)
        let(guarded, "masked", ["*"], {"index_patterns": [name], "allowed_actions": ["*"], **limits})
        return name, login("masked"), TEXT

    return limit


@pytest.mark.parametrize(("limits", "field"), MASKS.values(), ids=MASKS)
def test_who_sees_a_mask_decides_nothing(masked, limits, field):
    """One sentence names the field; a login that sees all that decides, of some documents, decides among these."""
    index, simhash, text = masked(limits)
    work = [
        lambda: list(simhash.ingest(index, [{"_id": "9", "body": text, "team": "ours"}], on_duplicate="skip")),
        lambda: list(simhash.ingest(index, [{"_id": "9", "body": text, "team": "ours"}])),
    ]
    if field is None:
        assert [each.action for each in work[0]()] == ["skipped"]
        assert [each.answer for each in simhash.screen(index, [text])] == ["near"]
        return
    for act in [*work, lambda: list(simhash.tag_written(index, ["1"]))]:
        with pytest.raises((WritesRefusedError, MappingError), match="login") as refused:
            act()
        assert field in str(refused.value)


HIDDEN = r"field 'simhash{}' is not mapped.*, or use a login that sees it"
# What a login is shown that sees a part: by find, by search_distinct, and by a plan, or which error ends them.
SHOWN = {
    "some documents": ({"dls": '{"term": {"team": "ours"}}'}, ["1", "2"], ["1"], (1, {})),
    "a field": ({"fls": ["~note"]}, ["0", "1", "2"], ["0"], (2, {})),
    "no text": ({"fls": ["~body"]}, "not for this user", ["0"], (0, {"unreadable": 3})),
    "no name of another": ({"fls": ["~simhash.duplicate_of"]}, ["0", "1", "2"], ["0"], HIDDEN.format(".duplicate_of")),
    "no name of a group": (
        {"fls": ["~simhash.group", "~simhash.duplicate_of"]},
        ["0", "1", "2"],
        *[r"simhash\.group.*a login that sees it"] * 2,
    ),
    "no fingerprint": ({"fls": ["~simhash.fingerprint"]}, *[HIDDEN.format(".fingerprint")] * 3),
    "nothing of ours": ({"fls": ["~simhash"]}, *[HIDDEN.format("")] * 3),
    "nothing in ours": ({"fls": ["~simhash.*"]}, *[HIDDEN.format(".fingerprint")] * 3),
}


@pytest.mark.parametrize(("limits", "found", "distinct", "planned"), SHOWN.values(), ids=SHOWN)
def test_what_a_login_is_shown_is_what_it_sees(masked, caplog, limits, found, distinct, planned):
    """A lookup names no hidden document, a visible copy stands for a hidden canonical, and what is unseen is said."""
    index, simhash, text = masked(limits)

    def shown(read):
        try:
            return read()
        except MappingError as error:
            return str(error)

    def find():
        near = [*simhash.find_near_dups(index, text), *simhash.find_near_dups_many(index, [text])[0]]
        unread = [found.unverified for found in near if found.unverified]
        return unread[0] if unread else sorted({found.id for found in near})

    def plan():
        made = simhash.plan_removal(index, max_share=1)
        assert (f"2 documents of {index} name a canonical that is not there, or not for this login" in caplog.text) == (
            "dls" in limits
        )
        seen = {found.id for found in simhash.find_near_dups(index, text)}
        assert {key.id for line in made.removals for key in (line.document, line.canonical)} <= seen
        return made.count, dict(made.left_out)

    reads = [
        find,
        lambda: [hit.id for hit in simhash.search_distinct(index, {"query": {"match_all": {}}}).hits],
        plan,
    ]
    for read, expected in zip(reads, (found, distinct, planned), strict=True):
        answer = shown(read)
        assert re.search(expected, answer) if isinstance(expected, str) else answer == expected, answer
    [checked] = simhash.check(index)
    assert checked.documents == (2 if "dls" in limits else 3)
    is_told = bool(checked.problems or simhash.check_sample(index, sample=10).reasons)
    assert is_told or not isinstance(found, str)


def test_who_sees_no_text_or_group_reads_no_wrong_answer(masked, tmp_path):
    """What cannot be compared is unsure, or counted as left out; groups that cannot be read are an error."""
    for name in ("text masked", "text hidden"):
        index, simhash, text = masked(MASKS[name][0])
        assert [each.answer for each in simhash.screen(index, [text])] == ["unsure"]
        plan = simhash.plan_removal(index, tmp_path / name, max_share=1)
        assert (plan.count, dict(plan.left_out)) == (0, {"unreadable": 3})
        assert simhash.reconcile(index, dry_run=True).unread == 3
        assert {(pair.similarity, pair.unverified) for pair in simhash.pairs(index)} == {
            (None, "a text could not be read, or is masked for this login")
        }
    index, simhash, _ = masked(MASKS["duplicate_of hidden"][0])
    with pytest.raises(MappingError, match=r"simhash\.duplicate_of.*use a login that sees it"):
        list(simhash.groups(index))
    with pytest.raises(MappingError, match=r"simhash\.duplicate_of.*use a login that sees it"):
        simhash.stats(index)
    index, simhash, _ = masked({"fls": ["~simhash.group"]})
    for read in (simhash.stats, lambda name: simhash.search_distinct(name, {"query": {"match_all": {}}})):
        with pytest.raises(MappingError, match=r"simhash\.group.*use a login that sees it"):
            read(index)


def test_masked_groups_are_no_groups(masked):
    """Whatever reads or compares them is refused by one sentence."""
    index, simhash, _ = masked(MASKS["group masked"][0])
    said = r"this login sees simhash\.group of index .* masked, or not at all"
    for read in (
        lambda: list(simhash.groups(index)),
        lambda: simhash.stats(index),
        lambda: simhash.report(index),
        lambda: simhash.check_sample(index, sample=10),
        lambda: simhash.search_distinct(index, {"query": {"match_all": {}}}),
        lambda: list(simhash.search_distinct_pages(index, {"query": {"match_all": {}}})),
        lambda: simhash.reconcile(index, dry_run=True),
    ):
        with pytest.raises(MappingError, match=said):
            read()
    index, simhash, _ = masked({"masked_fields": ["simhash.distance"]})
    for read in (simhash.stats, lambda name: list(simhash.groups(name)), lambda name: list(simhash.pairs(name))):
        with pytest.raises(MappingError, match=r"this login sees simhash\.distance masked"):
            read(index)


def test_masked_passages_are_no_empty_answer(masked):
    """One reason names what is masked: the text, or the terms by which it is found."""
    index, simhash, text = masked(MASKS["text masked"][0])
    with pytest.raises(IncompleteSearchError, match=r"'0' of .* was not compared: this login sees body masked"):
        simhash.find_passages(index, text)
    index, simhash, text = masked({"masked_fields": ["simhash.passages"]})
    with pytest.raises(MappingError, match=r"this login sees simhash\.passages of index .* masked"):
        simhash.find_passages(index, text)


def test_values_that_keep_apart_are_not_decided_by_masked(masked):
    """What is given has its own value, and no stored one would be the same."""
    index, simhash, text = masked({"masked_fields": ["team"]}, per="team")
    given = [{"_id": "9", "body": text, "team": "ours"}]
    for decide in (simhash.ingest, simhash.screen):
        with pytest.raises(WritesRefusedError, match=r"team of index .* masked"):
            list(decide(index, given))


def test_masked_fingerprints_are_no_empty_answer(masked):
    """Where none can be read, nothing is complete, whatever the plan."""
    index, simhash, text = masked(MASKS["fingerprint masked"][0])
    for distance in (0, 3, 12):
        with pytest.raises(IncompleteSearchError, match="login that sees the field without a mask"):
            simhash.find_near_dups(index, text, max_distance=distance)
    for read in (simhash.pairs, simhash.groups, simhash.reconcile):
        with pytest.raises(IncompleteSearchError, match="login that sees the field without a mask"):
            list(read(index))
    assert [each.answer for each in simhash.screen(index, [text])] == ["unsure"]


def test_who_may_only_read_can_screen(owned, login):
    """By the rule that another recorded: with and without an id, and with the fields of the winner."""
    client, name, _ = owned
    before = client.indices.get(index=name), client.search(index=name, version=True)["hits"]
    asked = [TEXT, {"_id": "b", "body": f"{TEXT} today"}, "a ferry goes at nine", {"_id": "0", "body": TEXT}]
    screened = list(login("sees-mappings").screen(name, asked, source=["team"]))
    assert [(each.answer, each.id, each.source) for each in screened] == [
        *[("near", "0", {"team": "theirs"})] * 2,
        *[("new", None, None)] * 2,
    ]
    assert "at least 80 % of the 7-letter shingles" in str(screened[0].rule)
    assert (client.indices.get(index=name), client.search(index=name, version=True)["hits"]) == before
