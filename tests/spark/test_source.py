"""An index as a DataFrame, on both products: read, and grouped as ``reconcile`` groups it."""

import json
import uuid

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")
pytest.importorskip("pyarrow", reason="needs the extra spark")

from es_simhash import SimHashClient
from es_simhash.errors import InvalidInputError
from es_simhash.spark import groups, register
from es_simhash.spark.data_source import read_connection
from tests.servers.fixtures import get_server, make_client
from tests.servers.servers import PRODUCTS
from tests.servers.support import ONE_SHARD, numbered, texts

DOCUMENTS = 60
LOGIN = {"user": "us", "password": "open sesame"}
GROUPING = {"max_distance": 16, "verify": 0.5}


@pytest.fixture(params=PRODUCTS, scope="module")
def server(request):
    return get_server(request, request.param)


@pytest.fixture(scope="module")
def client(server):
    client = make_client(server)
    yield client
    client.close()


@pytest.fixture(scope="module")
def index(server, client):
    """An index whose groups ``reconcile`` has written."""
    name = f"spark-{uuid.uuid4().hex}"
    simhash = SimHashClient(client)
    simhash.create_index(name, text_field="body", settings={**ONE_SHARD, "number_of_shards": 2})
    empty = {"_id": "empty", "body": "...", "n": 1}
    list(simhash.ingest(name, [*numbered(texts(DOCUMENTS)), empty], on_duplicate=None))
    assert simhash.reconcile(name, **GROUPING).duplicates > 5
    yield name
    server.remove(name)


@pytest.fixture(scope="module")
def documents(spark, server, index):
    """All documents of the index, in small pages."""
    register(spark)
    options = {"url": server.url, "index": index, "columns": "body,n", "slices": "3", "page": "7"}
    return spark.read.format("es_simhash").options(**options, **LOGIN).load()


def hits(client, index):
    body = {"query": {"match_all": {}}, "size": 10 * DOCUMENTS, "seq_no_primary_term": True}
    return client.search(index=index, body=body)["hits"]["hits"]


def recorded(client, index):
    """Return the groups that the documents say."""
    found = [(hit["_id"], hit["_source"].get("simhash", {})) for hit in hits(client, index)]
    names = ("group", "duplicate_of", "distance")
    return sorted((key, *map(fields.get, names)) for key, fields in found if "group" in fields)


def test_every_document_is_read_once(documents, client, index):
    """With its version and the fields that were asked for; those that are no strings are JSON."""
    wanted = []
    for hit in hits(client, index):
        source = hit["_source"]
        fingerprint = source.get("simhash", {}).get("fingerprint")
        version = hit["_seq_no"], hit["_primary_term"]
        wanted.append((hit["_id"], index, None, *version, fingerprint, source["body"], str(source["n"])))
    assert sorted(map(tuple, documents.collect())) == sorted(wanted)
    assert len(wanted) == DOCUMENTS + 1
    assert documents.rdd.getNumPartitions() == 3
    assert client.indices.stats(index=index)["_all"]["total"]["search"]["open_contexts"] == 0  # no view is left open


def test_no_plan_shows_the_login(documents):
    """Neither the plans of Spark nor what is sent to executors, as text."""
    assert "sesame" not in documents._jdf.queryExecution().toString()
    options = {"url": "http://me:sesame@localhost", "index": "news", "api_key": "sesame"}
    assert "sesame" not in repr(read_connection(options))


def test_groups_are_those_of_reconcile(documents, client, index):
    """Of the same documents, with verification."""
    found = groups(documents, max_distance=16, verify=0.5, text="body").toArrow()
    found = zip(*(found[name].to_pylist() for name in found.column_names), strict=True)
    assert sorted(found) == recorded(client, index)


def test_fingerprints_that_no_source_shows(spark, server, client):
    """They are read from doc values; an index without our fields, and a column that no document shows, are errors."""
    name, simhash = f"spark-{uuid.uuid4().hex}", SimHashClient(client)
    register(spark)

    def read(index, **options):
        reader = spark.read.format("es_simhash").options(url=server.url, index=index, slices="2", **options)
        return reader.load()

    try:
        hidden = {"_source": {"excludes": ["simhash", "secret"]}}
        simhash.create_index(name, text_field="body", settings=ONE_SHARD, mappings=hidden)
        list(simhash.ingest(name, numbered(texts(30)), on_duplicate=None))
        client.indices.refresh(index=name)
        df = read(name, columns="body").localCheckpoint()
        wanted = {str(hit["_id"]): simhash.get_fingerprint(name, hit["_id"]) for hit in hits(client, name)}
        assert {row.id: int(row.fingerprint, 16) for row in df.collect()} == wanted
        assert groups(df, max_distance=16).where("duplicate_of is not null").count() > 0
        assert read(name, scheme="shingles").count() == 30
        assert read(name, filter=json.dumps({"ids": {"values": ["00000", "00007"]}})).count() == 2
        for options, message in (
            ({"columns": "secret"}, "_source does not show field 'secret'"),
            ({"prefix": "other"}, "has no 'other' fields"),
            ({"scheme": "keywords"}, "keywords"),
        ):
            with pytest.raises(Exception, match=message):
                read(name, **options).count()
    finally:
        server.remove(name)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"url": "http://localhost:9200"},
        {"url": "http://localhost:9200", "index": "news", "product": "solr"},
        {"url": "http://localhost:9200", "index": "news", "user": "me"},
        {"url": "http://localhost:9200", "index": "news", "timeout_seconds": "soon"},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(InvalidInputError):
        read_connection(options)
