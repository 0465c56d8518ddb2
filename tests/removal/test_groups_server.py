"""After a removal or a restore no document names one that is gone, and what an alias hides is left alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from es_simhash import GuardRailError, InvalidInputError, SimHashClient, fingerprint, fingerprint_fields
from es_simhash.groups.reconcile import Reconciled, reconcile
from es_simhash.removal import regroup
from es_simhash.writes.operations import Failure
from tests.servers.fixtures import make_client
from tests.servers.removals import ALL, DELETED, delete_duplicates, outcomes, plan_again
from tests.servers.support import ONE_SHARD, put, read_all

TEXT, OTHER, MORE = (" ".join(f"{name}{n}" for n in range(50)) for name in ("word", "other", "more"))
LONGER = f"{MORE} {TEXT} {OTHER}"


def tag(simhash, index, documents, *, canonical="id", **options):
    """Make *index*, and ingest *documents* each tagged by what came before it; the recorded order is by ids."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    sources = [{"_id": id_, **({"body": each} if isinstance(each, str) else each)} for id_, each in documents.items()]
    reports = simhash.ingest(index, sources, canonical=canonical, **options)
    assert {each.action for each in reports} <= {"written", "tagged"}


def duplicates(server, index):
    """Return id to canonical of the documents that are tagged."""
    own = {id_: source["simhash"].get("duplicate_of") for id_, source in read_all(server, index).items()}
    return {id_: canonical for id_, canonical in own.items() if canonical is not None}


def test_survivors_of_an_ingest_that_tagged_by_arrival(server, index, simhash, plan, monkeypatch):
    """The recorded order decides who stays; that document and its near-duplicates then name no other."""
    rest = {f"r{n}": " ".join(f"rest{n}of{word}" for word in range(30)) for n in range(20)}
    tag(simhash, index, {"z": TEXT, "a": TEXT.upper(), "c": f"{OTHER} Today.", "b": f"{OTHER} Today!", **rest})
    assert duplicates(server, index)["a"] == "z"
    simhash.plan_removal(index, plan, **ALL)
    found = []

    async def note(*args, **options):
        found.append(await reconcile(*args, **options))
        return found[-1]

    monkeypatch.setattr(regroup, "reconcile", note)
    assert outcomes(simhash.apply_removal(plan))["z"] == DELETED
    assert duplicates(server, index) == {}
    first, second = found  # what was written is looked at once more
    assert 1 <= first.changed <= first.documents < len(rest)  # only what was touched was read
    assert (first.is_settled, second.changed) == (True, 0)
    assert outcomes(simhash.apply_removal(plan))["z"] == DELETED
    assert len(found) == 2
    assert simhash.reconcile(index, dry_run=True).changed == 0


def test_groups_that_are_not_right_are_done_by_the_same_call(server, index, sync_simhash, run, plan, monkeypatch):
    """Where the caller left, or they were refused: the command fails until its groups are right."""
    tag(sync_simhash, index, {"z": TEXT, "a": TEXT})

    async def refuse(*_, **__):
        return Reconciled(1, 1, 0, 0, (Failure("refused", index, "a", 429, "busy"),), is_settled=False)

    records = delete_duplicates(sync_simhash, index, plan, **ALL)
    assert next(records).action == "deleted"
    records.close()
    assert duplicates(server, index) == {"a": "z"}
    command = ("apply", plan, "--yes")
    with monkeypatch.context() as patch:
        patch.setattr(regroup, "reconcile", refuse)
        result = run(*command)
    assert (result.exit_code, f"groups of {index} are not right yet" in result.output) == (1, True), result.output
    assert duplicates(server, index) == {"a": "z"}
    assert run(*command).exit_code == 0
    assert duplicates(server, index) == {}


def test_removals_at_once(server, index, sync_simhash, tmp_path):
    """Whichever ends last: no document names one that is gone."""
    texts = [" ".join(f"word{n}of{word}" for word in range(40)) for n in range(15)]
    tag(sync_simhash, index, {f"{letter}{n:02d}": text for letter in "zymba" for n, text in enumerate(texts)})
    for name, letters in (("one", "zm"), ("two", "yb")):
        wanted = [f"{letter}{n:02d}" for letter in letters for n in range(15)]
        sync_simhash.plan_removal(index, tmp_path / name, filter={"ids": {"values": wanted}}, **ALL)

    def apply(name):
        with make_client(server) as client:
            return list(SimHashClient(client).apply_removal(tmp_path / name))

    with ThreadPoolExecutor(2) as pool:
        assert {each.action for records in pool.map(apply, ["one", "two"]) for each in records} == {"deleted"}
    assert duplicates(server, index) == {}
    assert sync_simhash.reconcile(index, dry_run=True).changed == 0


def test_an_index_that_was_made_anew_is_no_index_of_the_plan(server, index, simhash, plan):
    """What the plan deletes takes no document of it into another group, though it stands behind the same alias."""
    alias, wires = f"{index}-all", f"{index}-wires"
    for name, documents in ((f"{index}-news", {"z": TEXT, "a": TEXT.upper()}), (wires, {"y": OTHER})):
        tag(simhash, name, documents)
        server.request("PUT", f"/{name}/_alias/{alias}")
    simhash.plan_removal(alias, plan, **ALL)
    server.remove(wires)
    tag(simhash, wires, {"y": OTHER})
    server.request("PUT", f"/{wires}/_alias/{alias}")
    copy = fingerprint_fields(fingerprint(TEXT))
    copy["simhash"] |= {"group": "z", "duplicate_of": "z", "distance": 0}
    put(server, wires, [{"_id": "n", "body": TEXT, **copy}])
    before = read_all(server, wires)
    assert outcomes(simhash.apply_removal(plan)) == {"z": DELETED}
    assert read_all(server, wires) == before


def tenants(server, index, simhash, kind):
    """Make an index of two tenants who see their own documents, by a filter or by routing; return their aliases."""
    settings = {"number_of_shards": 1 if kind == "filter" else 7, "number_of_replicas": 0}
    mappings = {"properties": {"tenant": {"type": "keyword"}}}
    simhash.create_index(index, text_field="body", settings=settings, mappings=mappings)
    shards = {}
    for name in [f"t{number}" for number in range(50)]:
        answer = server.request("GET", f"/{index}/_search_shards?routing={name}")
        shards.setdefault(name if kind == "filter" else answer["shards"][0][0]["shard"], name)
        if len(shards) == 2:
            break
    texts = {"z": TEXT, "a": TEXT.upper(), "y": f"{TEXT}.", "s": OTHER, "l": LONGER}
    for name in shards.values():
        shown = {"filter": {"term": {"tenant": name}}} if kind == "filter" else {"routing": name}
        server.request("PUT", f"/{index}/_alias/{index}-{name}", shown)
        routing = {} if kind == "filter" else {"_routing": name}
        mine = [{"_id": f"{name}{id_}", "body": text, "tenant": name, **routing} for id_, text in texts.items()]
        list(simhash.ingest(f"{index}-{name}", mine, canonical="id"))
        server.request("POST", f"/{index}/_refresh")
    return [(name, f"{index}-{name}") for name in shards.values()]


@pytest.mark.parametrize("kind", ["filter", "routing"])
def test_what_an_alias_hides_is_left_alone(server, index, simhash, plan, kind):
    """
    A removal through it counts, and puts into groups, only what it shows; so does the restore. Without the alias a plan
    cannot be counted any more, and a restore says what was not done.
    """
    (mine, alias), (_, other) = tenants(server, index, simhash, kind)
    before, theirs = read_all(server, alias), read_all(server, other)
    assert (len(before), len(theirs)) == (5, 5)
    made = simhash.plan_removal(alias, plan, max_share=0.39)
    assert made.excess.documents == 5
    with pytest.raises(GuardRailError, match="of 5 documents would"):
        list(simhash.apply_removal(plan))
    made = plan_again(simhash, alias, plan, filter={"ids": {"values": [f"{mine}z", f"{mine}a"]}}, **ALL)
    assert (made.documents, made.count) == (5, 1)
    for method, left in ((simhash.apply_removal, 4), (simhash.restore, 5), (simhash.apply_removal, 4)):
        assert {each.action for each in method(plan)} == {"deleted" if left == 4 else "restored"}
        assert (read_all(server, other), len(read_all(server, alias))) == (theirs, left)
        assert simhash.reconcile(alias, dry_run=True).changed == 0
    server.request("DELETE", f"/{index}/_alias/{alias}")
    with pytest.raises(InvalidInputError, match=f"the plan is for {alias}, which does not exist any more: plan again"):
        list(simhash.apply_removal(plan))
    with pytest.warns(UserWarning, match=f"{alias} does not exist any more: run reconcile"):
        assert {each.action for each in simhash.restore(plan)} == {"restored"}
    assert read_all(server, other) == theirs


def test_canonicals_that_an_alias_hides(server, index, simhash, plan):
    """Their duplicates stay as they are; documents that name what was removed are put right all the same."""
    tag(simhash, index, {"hidden": {"body": TEXT, "n": 9}, "member": {"body": f"{TEXT} more", "n": 1}})
    more = {"z": f"{OTHER} Today.", "a": f"{OTHER} Today!", "b": OTHER.upper()}
    assert len(list(simhash.ingest(index, [{"_id": id_, "body": text, "n": 1} for id_, text in more.items()]))) == 3
    assert duplicates(server, index) == {"member": "hidden", "a": "z", "b": "z"}
    alias = f"{index}-few"
    server.request("PUT", f"/{index}/_alias/{alias}", {"filter": {"range": {"n": {"lt": 5}}}})
    simhash.plan_removal(alias, plan, filter={"ids": {"values": ["z"]}}, **ALL)
    assert outcomes(simhash.apply_removal(plan)) == {"z": DELETED}
    assert duplicates(server, index) == {"member": "hidden", "b": "a"}
    assert simhash.reconcile(index, dry_run=True).changed == 0


def test_another_index_has_a_document_of_that_id(server, index, simhash, plan):
    """The duplicates of the one that was removed are judged, though its namesake is a canonical."""
    news, wires = f"{index}-news", f"{index}-wires"
    both = [news, wires]
    for name in both:
        tag(simhash, name, {"d5": TEXT}, canonical="-simhash.at")
    late = {"_id": "d7", "body": TEXT.upper()}
    assert [each.action for each in simhash.ingest(wires, [late], canonical="-simhash.at")] == ["tagged"]
    simhash.plan_removal(both, plan, canonical="id", filter={"ids": {"values": ["d5"]}}, **ALL)
    assert outcomes(simhash.apply_removal(plan)) == {"d5": DELETED}
    assert simhash.reconcile(both, dry_run=True).changed == 0


def test_fields_are_removed_through_an_alias(server, index, simhash):
    """From the documents that it shows; the mapping forgets them with the last."""
    (_, alias), (_, other) = tenants(server, index, simhash, "filter")
    theirs = read_all(server, other)
    meta = server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"]
    for groups_only in (True, False):
        removed = simhash.remove_fields(alias, groups_only=groups_only)
        assert (removed.documents, removed.indices) == (5, ())
        assert read_all(server, other) == theirs
    assert server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"] == meta
    removed = simhash.remove_fields(other)
    assert (removed.documents, removed.indices) == (5, (index,))
