"""Every example of Spark in docs/services.md runs, and prints what the page says, where pyspark is installed."""

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")
pytest.importorskip("pyarrow", reason="needs the extra spark")

from es_simhash import SimHashClient
from tests.docs.blocks import ran, run
from tests.servers.fixtures import make_client
from tests.spark.conftest import spark

__all__ = ["spark"]


def test_the_examples(spark, server):
    """In order, with an index of the documents of the first example."""
    done = []

    def run_next(code, namespace):
        run(code, namespace)
        done.append(code)
        if len(done) == 1:
            rows = namespace["documents"].where("body is not null").collect()
            with make_client(server) as client:
                simhash = SimHashClient(client)
                simhash.create_index("news", text_field="body")
                list(simhash.ingest("news", [{"_id": row.id, "body": row.body} for row in rows], on_duplicate=None))
                client.indices.refresh(index="news")

    with ran("docs/services.md#Spark", server, runner=run_next) as namespace:
        assert sorted(row.id for row in namespace["news"].collect()) == ["a", "b", "c"]
