"""Ingest and groups on estates: pipelines, refused canonicals, several indices, one id in two shards."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

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


@only_opensearch
def test_a_pipeline_that_gives_ids_names_the_groups(server, index, simhash, request):
    """Groups go by the ids that documents have in the index, and reports name these."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    processor = {"script": {"source": "ctx._id = 'x-' + ctx._id"}}
    server.request("PUT", f"/_ingest/pipeline/{index}", {"processors": [processor]})
    server.request("PUT", f"/{index}/_settings", {"index.default_pipeline": index})
    request.addfinalizer(lambda: server.request("DELETE", f"/_ingest/pipeline/{index}"))
    for batch in ("ab", "c"):
        reports = list(simhash.ingest(index, [{"_id": each, "body": TEXT} for each in batch]))
    assert [(each.id, each.canonical) for each in reports] == [("x-c", "x-a")]
    [bare] = simhash.ingest(index, [{"_id": "bare", "body": "…"}])
    assert (bare.id, bare.action, bare.reason) == ("x-bare", "written", None)
    groups = {id_: source["simhash"]["group"] for id_, source in read_all(server, index).items()}
    assert groups == {**dict.fromkeys(["x-a", "x-b", "x-c"], "x-a"), "x-bare": "x-bare"}
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
    if cluster.leader.product == "elasticsearch":
        pytest.skip("Elasticsearch has no segment replication")
    with OpenSearch([cluster.leader.url, cluster.other.url], timeout=60) as client:
        simhash = SimHashClient(client)
        settings = {"number_of_shards": 1, "number_of_replicas": 1, "replication.type": "SEGMENT"}
        for number in range(2):
            name = f"replicated-{number}"
            simhash.create_index(name, text_field="body", settings=settings)
            cluster.await_health()
            documents = numbered(texts(100, seed=number))
            list(simhash.ingest(name, documents[:50], on_duplicate=None))
            lookups = "memory" if number % 2 else "server"
            list(simhash.ingest(name, documents[50:], max_distance=3, lookups=lookups, batch=40))
            report = simhash.reconcile(name)
            assert (report.documents, report.is_settled) == (100, True)
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


def meanwhile(at, work):
    """Yield 120 documents; *work* is done before number *at*, when the first batches are written, or at the end."""
    for n, text in enumerate([*texts(120, seed=3), None]):
        if n == at:
            work()
        if text is not None:
            yield {"_id": f"n{n}", "body": text}


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_rollover_meanwhile(server, index, client, call, simhash, alias, is_prepared):
    """An index without our fields is noticed after the batch that went there; one with them records the rule."""
    list(simhash.ingest(alias, [{"_id": "b", "body": TEXT}]))
    last = f"{index}-last"
    if is_prepared:
        simhash.create_index(last, text_field="body", settings=ONE_SHARD)
    else:
        server.request("PUT", f"/{last}", {"settings": ONE_SHARD})
    actions = write_to(alias, f"{index}-new", last)
    documents = meanwhile(120, lambda: server.request("POST", "/_aliases", {"actions": actions}))
    with nullcontext() if is_prepared else pytest.raises(MappingError, match=last):
        ingest_in_batches(client, call, alias, documents, batch=20)
    assert not is_prepared or simhash.check(last)[0].grouping["max_distance"] == 5


def test_a_rule_that_is_removed_meanwhile_is_recorded_again(server, index, client, call, simhash, sync_simhash):
    """Its documents would have groups of a rule that nobody knows."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)

    def remove():
        with ThreadPoolExecutor(1) as other:
            other.submit(sync_simhash.remove_fields, index, groups_only=True).result()

    ingest_in_batches(client, call, index, meanwhile(60, remove), batch=20)
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
