"""Every example of Spark in docs/services.md runs, and prints what the page says, where pyspark is installed."""

import uuid

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")
pytest.importorskip("pyarrow", reason="needs the extra spark")

from es_simhash import SimHashClient
from tests.docs.blocks import blocks, run
from tests.servers.fixtures import get_server, make_client
from tests.spark.conftest import spark

__all__ = ["spark"]


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
def test_the_examples(spark, request, product, tmp_path):
    """In order, with an index of the documents of the first examples."""
    server = get_server(request, product)
    name = f"spark-{uuid.uuid4().hex}"
    client = make_client(server)
    namespace = {}
    simhash = SimHashClient(client)
    simhash.create_index(name, text_field="body")
    try:
        for number, block in enumerate(blocks("docs/services.md#Spark", "python")):
            code = block.replace("http://localhost:9200", server.url).replace('"news"', f'"{name}"')
            code = code.replace('"removal.db"', repr(str(tmp_path / "removal.db")))
            if product == "opensearch":
                code = code.replace("from elasticsearch import Elasticsearch", "from opensearchpy import OpenSearch")
                code = code.replace("Elasticsearch(", "OpenSearch(")
            run(code, namespace)
            if number == 1:
                rows = namespace["documents"].where("body is not null").collect()
                list(simhash.ingest(name, [{"_id": row.id, "body": row.body} for row in rows], on_duplicate=None))
                client.indices.refresh(index=name)
        found = {group.id: sorted(each.id for each in group.members) for group in simhash.groups(name, min_size=2)}
        assert found == {"a": ["a", "b"]}
    finally:
        if "client" in namespace:
            namespace["client"].close()
        client.close()
        server.remove(name)
