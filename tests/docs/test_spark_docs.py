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
def test_the_examples(spark, request, product):
    """In order, with an index of the documents of the first examples."""
    server = get_server(request, product)
    name, namespace = f"spark-{uuid.uuid4().hex}", {}
    client = make_client(server)
    simhash = SimHashClient(client)
    simhash.create_index(name, text_field="body")
    try:
        for number, block in enumerate(blocks("docs/services.md#Spark", "python")):
            run(block.replace("http://localhost:9200", server.url).replace('"news"', f'"{name}"'), namespace)
            if number == 1:
                rows = namespace["documents"].where("body is not null").collect()
                list(simhash.ingest(name, [{"_id": row.id, "body": row.body} for row in rows], on_duplicate=None))
                client.indices.refresh(index=name)
        assert sorted(row.id for row in namespace["news"].collect()) == ["a", "b", "c"]
    finally:
        client.close()
        server.remove(name)
