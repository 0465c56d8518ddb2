"""Ingest and groups on estates: pipelines, refused canonicals, several indices, one id in two shards."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from opensearchpy import OpenSearch

from es_simhash import MappingError, SimHashClient, fingerprint
from tests.servers.batches import ingest_in_batches
from tests.servers.removals import delete_duplicates
from tests.servers.support import ONE_SHARD, ByDistance, numbered, read_all, send_lines, texts

TEXT, OTHER = texts(2, seed=5, edits=0)[0], texts(1, seed=9)[0]
# The local Elasticsearch has no processors.
only_opensearch = pytest.mark.parametrize("server", ["opensearch"], indirect=True)


@pytest.fixture
def simhash(simhash):
    """These tests are about bits."""
    return ByDistance(simhash)


@pytest.fixture
def pipeline(server, index):
    """Return a function that gives the index a default pipeline with one processor."""

    def put(processor):
        server.request("PUT", f"/_ingest/pipeline/{index}", {"processors": [processor]})
        server.request("PUT", f"/{index}/_settings", {"index.default_pipeline": index})

    yield put
    server.request("PUT", f"/{index}/_settings", {"index.default_pipeline": None})
    server.request("DELETE", f"/_ingest/pipeline/{index}")


@only_opensearch
def test_a_pipeline_that_gives_ids_names_the_groups(server, index, simhash, pipeline):
    """Groups go by the ids that documents have in the index, and reports name these."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    pipeline({"script": {"source": "ctx._id = 'x-' + ctx._id"}})
    for batch in ("ab", "c"):
        reports = list(simhash.ingest(index, [{"_id": each, "body": TEXT} for each in batch]))
    assert [(each.id, each.canonical) for each in reports] == [("x-c", "x-a")]
    [bare] = simhash.ingest(index, [{"_id": "bare", "body": "…"}])
    assert (bare.id, bare.action, bare.reason) == ("x-bare", "written", None)
    server.request("POST", f"/{index}/_refresh")
    found = read_all(server, index)
    assert {id_: source["simhash"]["group"] for id_, source in found.items()} == dict.fromkeys(
        ["x-a", "x-b", "x-c"], "x-a"
    ) | {"x-bare": "x-bare"}
    assert simhash.reconcile(index).changed == 0


def test_the_longest_text_is_measured_by_each_indexs_own_fields(server, index, simhash, tmp_path):
    """The canonical of a group over two indices is the longest, whatever its field is called."""
    short, long = TEXT, f"{TEXT} {TEXT}"
    assert fingerprint(short) != fingerprint(long)
    for name, field, text in (("a", "body", short), ("b", "content", long)):
        simhash.create_index(f"{index}-{name}", text_field=field, settings=ONE_SHARD)
        list(simhash.ingest(f"{index}-{name}", [{"_id": name, field: text}], canonical="longest", max_distance=64))
    records = list(delete_duplicates(simhash, f"{index}-*", tmp_path / "removed.db", verify=0.1, max_share=1.0))
    assert [(each.id, each.action, each.canonical) for each in records] == [("a", "deleted", "b")]


def test_segment_replication(cluster):
    """A refresh does not reach replicas there; reconcile reads what was just written anyway."""
    if cluster.nodes[0].product == "elasticsearch":
        pytest.skip("Elasticsearch has no segment replication")
    with OpenSearch(cluster.urls, timeout=60) as client:
        simhash = SimHashClient(client)
        settings = {"number_of_shards": 1, "number_of_replicas": 1, "replication.type": "SEGMENT"}
        for number in range(2):
            name = f"replicated-{number}"
            simhash.create_index(name, text_field="body", settings=settings)
            cluster.await_health("green")
            documents = numbered(texts(200, seed=number))
            list(simhash.ingest(name, documents[:100], on_duplicate=None))
            lookups = "memory" if number % 2 else "server"
            list(simhash.ingest(name, documents[100:], max_distance=3, lookups=lookups, batch=40))
            report = simhash.reconcile(name)
            assert (report.documents, report.is_settled) == (200, True)
            assert simhash.reconcile(name).changed == 0
            client.indices.delete(index=name)


def write_to(alias, old, new):
    """Return the actions that let writes through *alias* go to the index *new*."""
    names = {old: False, new: True}
    return [{"add": {"index": name, "alias": alias, "is_write_index": is_new}} for name, is_new in names.items()]


@pytest.fixture
def alias(server, index, simhash):
    """An alias over an index with our fields, and a newer one without them that is written to."""
    simhash.create_index(f"{index}-old", text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(f"{index}-old", [{"_id": "a", "body": TEXT}], max_distance=5))
    server.request("PUT", f"/{index}-new", {"settings": ONE_SHARD})
    actions = write_to(f"{index}-all", f"{index}-old", f"{index}-new")
    server.request("POST", "/_aliases", {"actions": actions})
    return f"{index}-all"


def test_an_index_that_was_mapped_as_text_is_refused(server, index, simhash, alias):
    """By name, before anything is written."""
    send_lines(server, [{"index": {"_index": f"{index}-new", "_id": "x"}}, {"simhash": {"block0": "0000"}}])
    server.request("POST", f"/{index}-new/_refresh")
    with pytest.raises(MappingError, match=f"{index}-new"):
        list(simhash.ingest(alias, [{"_id": "b", "body": TEXT}]))
    assert sorted(read_all(server, f"{index}-new")) == ["x"]


def test_a_rollover_to_an_index_without_our_fields_is_noticed(server, index, client, call, simhash, alias):
    """After the batch that went there, which is reported."""
    list(simhash.ingest(alias, [{"_id": "b", "body": TEXT}]))
    server.request("PUT", f"/{index}-last", {"settings": ONE_SHARD})
    found = texts(120, seed=3)

    def documents():
        for n, text in enumerate(found):
            if n == 100:
                moves = write_to(alias, f"{index}-new", f"{index}-last")
                server.request("POST", "/_aliases", {"actions": moves})
            yield {"_id": f"n{n}", "body": text}

    with pytest.raises(MappingError, match=f"{index}-last"):
        ingest_in_batches(client, call, alias, documents(), batch=20)


def test_a_rollover_takes_the_rule_with_it(server, index, client, call, simhash, alias):
    """The next index records the rule by which its documents were grouped."""
    list(simhash.ingest(alias, [{"_id": "b", "body": TEXT}]))
    simhash.create_index(f"{index}-last", text_field="body", settings=ONE_SHARD)

    def documents():
        for n, text in enumerate(texts(120, seed=3)):
            if n == 60:
                moves = write_to(alias, f"{index}-new", f"{index}-last")
                server.request("POST", "/_aliases", {"actions": moves})
            yield {"_id": f"n{n}", "body": text}

    ingest_in_batches(client, call, alias, documents(), batch=20)
    assert simhash.check(f"{index}-last")[0].grouping["max_distance"] == 5


def test_a_rule_that_is_removed_meanwhile_is_recorded_again(server, index, client, call, simhash, sync_simhash):
    """Its documents would have groups of a rule that nobody knows."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)

    def documents():
        for n, text in enumerate(texts(120, seed=3)):
            if n == 60:
                with ThreadPoolExecutor(1) as other:
                    other.submit(sync_simhash.remove_fields, index, groups_only=True).result()
            yield {"_id": f"n{n}", "body": text}

    ingest_in_batches(client, call, index, documents(), batch=20)
    assert simhash.check(index)[0].grouping["max_distance"] == 3


def test_a_document_that_names_another_index_is_refused(server, index, simhash, alias):
    """It would be mapped as text there; one behind the name is as good as the name."""
    actions = [
        {"_index": f"{index}-other", "_id": "b", "body": TEXT},
        {"_index": f"{index}-old", "_id": "c", "body": TEXT},
    ]
    assert [each.action for each in simhash.ingest(alias, actions)] == ["refused", "tagged"]
    assert sorted(server.request("GET", f"/{index}-*/_mapping")) == [f"{index}-new", f"{index}-old"]


def test_each_index_of_an_alias_is_written_by_its_own_text_fields(server, index, simhash):
    """The fingerprint comes from the field that the index written to records."""
    for name, field in (("old", "body"), ("new", "content")):
        simhash.create_index(f"{index}-{name}", text_field=field, settings=ONE_SHARD)
    actions = write_to(f"{index}-all", f"{index}-old", f"{index}-new")
    server.request("POST", "/_aliases", {"actions": actions})
    [report] = simhash.ingest(f"{index}-all", [{"_id": "a", "content": TEXT, "body": OTHER}])
    assert (report.action, report.index) == ("written", f"{index}-new")
    assert read_all(server, f"{index}-new")["a"]["simhash"]["fingerprint"] == f"{fingerprint(TEXT):016x}"


def test_external_versions(index, simhash):
    """``tag`` keeps the version that its owner gave; an update raises it by one, which room between numbers absorbs."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)

    def write(version):
        action = {"_id": "b", "_source": {"body": TEXT}, "version": version, "version_type": "external"}
        [report] = simhash.ingest(index, [action])
        return report.action

    list(simhash.ingest(index, [{"_id": "c", "body": TEXT}]))
    assert [write(5), write(6)] == ["tagged", "tagged"]
    assert simhash.reconcile(index).changed == 0
    assert simhash.reconcile(index, regroup=True, canonical="id").changed == 2
    assert [write(7), write(1_000_000)] == ["refused", "written"]  # it is the canonical now


def test_one_id_under_several_routing_values(server, index, simhash, tmp_path):
    """Ingest knows one document of an id, and says so; reconcile tells them apart, and a removal loses none."""
    simhash.create_index(index, text_field="body", settings={"number_of_shards": 3, "number_of_replicas": 0})
    shards = {}
    for routing in "abcdefgh":  # two documents of one id in one shard would replace each other
        found = server.request("GET", f"/{index}/_search_shards?routing={routing}")
        shards.setdefault(found["shards"][0][0]["shard"], routing)
    first, second, third = shards.values()
    given = [
        {"_id": "7", "_routing": key, "body": body} for key, body in ((first, TEXT), (second, OTHER), (third, TEXT))
    ]
    reports = list(simhash.ingest(index, given, on_duplicate="skip"))
    said = "document '7' is near and was not compared: it has the same id, and another routing value"
    assert [said in (report.reason or "") for report in reports] == [False, True, True]
    server.request("POST", f"/{index}/_refresh")
    [again] = simhash.ingest(index, [{"_id": "7", "_routing": second, "body": TEXT + " more"}])
    assert said in again.reason
    assert simhash.reconcile(index).is_settled
    assert simhash.reconcile(index).changed == 0
    found = simhash.find_near_dups_of(index, "7", routing=first, max_distance=0)
    assert [near.routing for near in found] == [third]
    plan = tmp_path / "plan"
    simhash.plan_removal(index, plan, max_share=1, max_distance=0)
    gone = [(line.id, line.routing) for line in simhash.apply_removal(plan) if line.is_done]
    assert gone in ([("7", first)], [("7", third)])
    assert [(line.id, line.routing) for line in simhash.restore(plan) if line.action == "restored"] == gone
