"""The frameworks' own stores, on real servers: what they retrieve goes through the filters."""

import uuid

import pytest

from tests.integrations.frameworks import Framework
from tests.servers.fixtures import make_client

ARTICLE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
TEXTS = {"a": ARTICLE, "b": f"{ARTICLE.upper()}!", "c": "A ferry crosses the river until the new bridge is open."}


@pytest.fixture
def name():
    return f"test-{uuid.uuid4().hex}"


def needs(module):
    return pytest.importorskip(module, reason=f"needs {module}: run make integrations")


def test_langchain_with_the_store_and_the_retriever_of_elastic(elasticsearch, name, request):
    """The retriever leaves the id of a hit in the metadata; the store does not tell it."""
    Framework("langchain")
    elastic = needs("langchain_elasticsearch")
    from langchain_classic.retrievers import ContextualCompressionRetriever

    from es_simhash.integrations.langchain import NearDupFilter

    request.addfinalizer(lambda: elasticsearch.remove(name))
    with make_client(elasticsearch) as client:
        store = elastic.ElasticsearchStore(name, client=client, strategy=elastic.BM25Strategy())
        store.add_texts(list(TEXTS.values()), [{"source": each} for each in TEXTS], ids=list(TEXTS))
        retriever = ContextualCompressionRetriever(base_compressor=NearDupFilter(), base_retriever=store.as_retriever())
        first, ferry = retriever.invoke("council bridge")
        assert first.metadata["source"] in "ab"
        assert first.metadata["similar_count"] == 1
        assert ferry.metadata == {"source": "c"}
        hits = elastic.ElasticsearchRetriever(
            index_name=name,
            client=client,
            content_field="text",
            body_func=lambda query: {"query": {"match": {"text": query}}, "sort": ["_doc"]},
        )
        first, ferry = (hits | NearDupFilter()).invoke("council bridge")
        assert {first.metadata["_id"], *first.metadata["similar_ids"]} == {"a", "b"}
        assert ferry.metadata["_id"] == "c"
