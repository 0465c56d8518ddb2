"""The frameworks' own stores, on real servers: what they retrieve goes through the filters."""

import asyncio
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


def test_llama_index_with_its_store_for_elasticsearch(elasticsearch, name, request):
    Framework("llama_index")
    needs("llama_index.vector_stores.elasticsearch")
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.schema import MetadataMode, QueryBundle, TextNode
    from llama_index.vector_stores.elasticsearch import AsyncBM25Strategy, ElasticsearchStore

    from es_simhash.integrations.llama_index import NearDupPostprocessor

    request.addfinalizer(lambda: elasticsearch.remove(name))
    loop = asyncio.new_event_loop()
    request.addfinalizer(lambda: (asyncio.set_event_loop(None), loop.close()))
    asyncio.set_event_loop(loop)

    async def connect():
        return make_client(elasticsearch, asynchronous=True)

    client = loop.run_until_complete(connect())
    request.addfinalizer(lambda: loop.run_until_complete(client.close()))
    store = ElasticsearchStore(name, es_client=client, retrieval_strategy=AsyncBM25Strategy())
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(2))
    index.insert_nodes([TextNode(text=text, id_=id_) for id_, text in TEXTS.items()])
    nodes = index.as_retriever(vector_store_query_mode="text_search").retrieve(QueryBundle("council bridge"))
    assert len(nodes) == 2  # the two best
    [found] = NearDupPostprocessor().postprocess_nodes(nodes)
    assert {found.node.node_id, *found.node.metadata["similar_ids"]} == {"a", "b"}
    assert found.score == nodes[0].score
    assert found.node.get_content(MetadataMode.LLM) == nodes[0].node.get_content(MetadataMode.LLM)


def test_haystack_with_its_store_for_opensearch(opensearch, name, request):
    """Without the plugin for vectors, which this OpenSearch lacks."""
    Framework("haystack")
    needs("haystack_integrations.document_stores.opensearch")
    from haystack import Document, Pipeline
    from haystack_integrations.components.retrievers.opensearch import OpenSearchBM25Retriever
    from haystack_integrations.document_stores.opensearch import OpenSearchDocumentStore

    from es_simhash.integrations.haystack import NearDupFilter

    request.addfinalizer(lambda: opensearch.remove(name))
    mappings = {"properties": {"content": {"type": "text"}}}
    store = OpenSearchDocumentStore(hosts=opensearch.url, index=name, mappings=mappings, settings={}, use_ssl=False)
    store.write_documents([Document(id=id_, content=text) for id_, text in TEXTS.items()])
    opensearch.request("POST", f"/{name}/_refresh")
    pipeline = Pipeline()
    pipeline.add_component("retriever", OpenSearchBM25Retriever(document_store=store))
    pipeline.add_component("thin", NearDupFilter())
    pipeline.connect("retriever", "thin")
    asked = {"retriever": {"query": "council bridge"}}
    for answer in (pipeline.run(asked), asyncio.run(pipeline.run_async(asked))):
        first, ferry = answer["thin"]["documents"]
        assert {first.id, *first.meta["similar_ids"]} == {"a", "b"}
        assert first.score > ferry.score
        assert (ferry.id, ferry.meta) == ("c", {})
