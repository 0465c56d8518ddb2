"""The examples in docs/quality.md run, and print what they say."""

from es_simhash.texts.presets import PRESETS
from tests.docs.blocks import ROOT, adapt, blocks, run
from tests.servers.fixtures import get_server


def test_the_examples(request):
    """In order, on a real OpenSearch, with its own client."""
    server = get_server(request, "opensearch")
    server.remove("news")
    try:
        for block in blocks("docs/quality.md", "python"):
            run(adapt(block, server), {})
    finally:
        server.remove("news")


def test_the_table_of_presets():
    """The table says what the presets are."""
    text = (ROOT / "docs/quality.md").read_text(encoding="utf-8")
    for each in PRESETS.values():
        assert f"| `{each.name}` | {each.meaning} | {each.max_distance} | {each.similarity} |" in text
