"""The recipes in docs/rollover.md run, on both products, and print what they say."""

import re

import pytest

from tests.docs.blocks import ROOT, run
from tests.server.conftest import get_server

_BLOCK = re.compile(r"^```(python[ \w]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATHS = ("/news-*", "/_index_template/news", "/_component_template/es-simhash")


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
def test_the_recipes(request, product):
    """In order, in one namespace; data streams on OpenSearch, since the local Elasticsearch has none."""
    server = get_server(request, product)
    namespace = {"__name__": "rollover"}
    text = (ROOT / "docs/rollover.md").read_text(encoding="utf-8")
    try:
        for kind, block in _BLOCK.findall(text):
            if kind == "python opensearch" and product != "opensearch":
                continue
            code = block.replace("http://localhost:9200", server.url)
            if product == "opensearch":
                code = code.replace("from elasticsearch import Elasticsearch", "from opensearchpy import OpenSearch")
                code = code.replace("Elasticsearch(", "OpenSearch(")
            run(code, namespace)
    finally:
        if "client" in namespace:
            client = namespace["client"]
            if product == "opensearch":
                client.indices.delete_data_stream(name="logs-*")
                client.indices.delete_index_template(name="logs", ignore=404)
            client.close()
        server.remove("news")
        for path in PATHS[1:]:
            server.request("DELETE", path)
