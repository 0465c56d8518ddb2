"""Every example in docs/dedup.md runs, on both products."""

import contextlib
import io

import pytest

from tests.docs.blocks import blocks
from tests.server.conftest import get_server

EXPECTED = ["a written a", "b tagged a", "c written c"]


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
def test_the_examples(request, product):
    """In order, in one namespace, with the product's own client."""
    server = get_server(request, product)
    server.remove("news")
    namespace = {"__name__": "dedup"}
    printed = io.StringIO()
    try:
        for block in blocks("docs/dedup.md", "python"):
            code = block.replace("http://localhost:9200", server.url)
            if product == "opensearch":
                code = code.replace("from elasticsearch import Elasticsearch", "from opensearchpy import OpenSearch")
                code = code.replace("Elasticsearch(", "OpenSearch(")
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "dedup.md", "exec"), namespace)  # noqa: S102 -- the project's own examples
        lines = printed.getvalue().splitlines()
        assert lines[:3] == EXPECTED
        assert lines[3] == "3 2 1 0"
        assert lines[4] == "[0.7]"
        assert lines[5].startswith("a [('a', 0), ('b', ")
        assert len(namespace["hits"]["hits"]["hits"]) == 1
        assert [bucket["key"] for bucket in namespace["largest"]["aggregations"]["groups"]["buckets"]] == ["a"]
        assert sorted(hit["_id"] for hit in namespace["thinned"]) in (["a", "c"], ["b", "c"])
        assert lines[-2] == "would delete b duplicates a"
        assert sorted(lines[-1].split()[:2]) == ["a", "b"]
    finally:
        if "client" in namespace:
            namespace["client"].close()
        server.remove("news")
