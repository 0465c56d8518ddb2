"""The examples for LangChain, LlamaIndex and Haystack in docs/, where these are installed."""

import pytest

from tests.docs.blocks import blocks, ran, run

for package, extra in (("langchain_core", "langchain"), ("llama_index.core", "llama-index"), ("haystack", "haystack")):
    pytest.importorskip(package, reason=f"needs the extra {extra}: run make integrations")


def test_the_examples():
    """In order, in one namespace."""
    namespace = {"__name__": "examples"}
    every = blocks("docs/search.md", "python frameworks")
    assert len(every) == 3
    for block in every:
        run(block, namespace)


def test_the_guards(elasticsearch):
    """In order, with the examples before them: what is written on the way is found."""
    with ran("docs/stores.md", elasticsearch) as namespace:
        every = blocks("docs/stores.md", "python guards")
        assert len(every) == 3
        for block in every:
            run(block, namespace)
