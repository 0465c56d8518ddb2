"""Every example in docs/notebook.md runs, on both products."""

import pytest

from tests.docs.blocks import blocks, run
from tests.server.conftest import get_server


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
def test_the_examples(request, product):
    """In order, in one namespace."""
    pytest.importorskip("pandas")
    server = get_server(request, product)
    server.remove("news")
    namespace = {"__name__": "notebook"}
    try:
        for block in blocks("docs/notebook.md", "python"):
            code = block.replace("http://localhost:9200", server.url)
            if product == "opensearch":
                code = code.replace("from elasticsearch import Elasticsearch", "from opensearchpy import OpenSearch")
                code = code.replace("Elasticsearch(", "OpenSearch(")
            run(code, namespace)
    finally:
        if "client" in namespace:
            namespace["client"].close()
        server.remove("news")
