"""The recipes in docs/rollover.md run, on both products, and print what they say."""

from tests.docs.blocks import ran

PATHS = ("/_data_stream/logs-*", "/_index_template/logs", "/_index_template/news", "/_component_template/es-simhash")


def test_the_recipes(server):
    """In order, in one namespace; data streams on OpenSearch, since the local Elasticsearch has none."""
    has_streams = server.product == "opensearch"
    try:
        with ran("docs/rollover.md", server, "python", *(["python opensearch"] if has_streams else [])) as namespace:
            assert "client" in namespace
    finally:
        for path in PATHS if has_streams else PATHS[2:]:
            server.request("DELETE", path, missing_ok=True)
