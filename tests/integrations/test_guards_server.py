"""Guards on write in the frameworks' own pipelines and stores, on real servers."""

import asyncio
import random
import uuid

import pytest

from es_simhash import IncompleteWriteError, InvalidInputError, SimHashClient
from tests.integrations.frameworks import Framework
from tests.servers.fixtures import make_client
from tests.servers.support import ONE_SHARD, WORDS

WINDOW = "The user prefers a window seat on long flights."
AISLE = WINDOW.replace("a window", "an aisle")
MORE = [" ".join(random.Random(n).choices(WORDS, k=40)) for n in range(30)]
KINDS = {"user": {"type": "keyword"}}


@pytest.fixture
def name():
    return f"test-{uuid.uuid4().hex}"


def needs(module):
    return pytest.importorskip(module, reason=f"needs {module}: run make integrations")


def prepared(server, request, client, name, text_field, mappings, **rule):
    """Return a client of ours for an index of a store with one text, which was made ready."""
    request.addfinalizer(lambda: server.remove(name))
    simhash = SimHashClient(client)
    simhash.create_index(name, text_field=text_field, settings=ONE_SHARD, mappings={"properties": mappings})
    if rule:
        document = {"_id": "0", text_field: "a", **({"metadata": {"user": "-"}} if "metadata" in mappings else {})}
        list(simhash.ingest(name, [document], **rule))
    return simhash


def stored(server, name):
    server.request("POST", f"/{name}/_refresh")
    hits = server.request("POST", f"/{name}/_search", {"size": 500})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits if hit["_id"] != "0"}


def assert_all_are_tagged(server, name, simhash):
    """Nothing is left for backfill and reconcile to do."""
    [check] = simhash.check(name)
    assert (check.fingerprinted, check.problems) == (check.documents, ())
    assert simhash.reconcile(name, dry_run=True).changed == 0


def test_langchain_around_the_store_of_elastic(elasticsearch, name, request):
    """Embeds and stores what is new for its user; each text gets the id of what is there."""
    Framework("langchain")
    elastic = needs("langchain_elasticsearch")
    from langchain_core.documents import Document

    from es_simhash.integrations.langchain import GuardedStore, add_documents

    with make_client(elasticsearch) as client:
        kinds = {"metadata": {"properties": KINDS}}
        simhash = prepared(elasticsearch, request, client, name, "text", kinds, per="metadata.user")
        inner = elastic.ElasticsearchStore(name, client=client, strategy=elastic.BM25Strategy())
        asked, add = [], inner.add_texts

        def watched(texts, *rest, **more):
            asked.extend(texts)
            return add(texts, *rest, **more)

        inner.add_texts = watched
        store = GuardedStore(inner, simhash, name)
        first = store.add_texts([WINDOW, AISLE, WINDOW.upper()], [{"user": "ada"}] * 3, ids=["w", "a", "x"])
        assert first == ["w", "a", "w"]
        given = [
            *(Document(WINDOW, metadata={"user": "bob"}, id="b"), Document(f"{AISLE}!", metadata={"user": "ada"})),
            *(Document(each, metadata={"user": "ada"}) for each in MORE),
        ]
        second = asyncio.run(store.aadd_documents(given))
        assert second[:2] == ["b", "a"]
        assert asked == [WINDOW, AISLE, WINDOW, *MORE]
        assert store.add_documents(given[2:]) == second[2:]
        assert add_documents(inner, given, simhash, name) == second
        documents = stored(elasticsearch, name)
        assert documents.keys() == {"w", "a", "b", *second[2:]}
        assert_all_are_tagged(elasticsearch, name, simhash)
        forced = store.add_texts([WINDOW.upper()], [{"user": "ada"}], ids=["x"], force=True)
        assert (forced, stored(elasticsearch, name)["x"]["simhash"]["duplicate_of"]) == (["x"], "w")
        assert store.add_texts([f"{AISLE} Not any more."], [{"user": "ada"}], ids=["a"]) == ["a"]
        assert stored(elasticsearch, name)["a"]["text"] == f"{AISLE} Not any more."
        assert_all_are_tagged(elasticsearch, name, simhash)
        assert len(store.as_retriever().invoke("window")) > 0
        assert store.similarity_search("aisle", 1)[0].page_content.startswith(AISLE)
        assert store.add_texts([]) == []
        with pytest.raises(InvalidInputError, match="^ids has 1 for 2 texts: give one for each, or leave ids out$"):
            store.add_texts(["a", "b"], ids=["x"])


def test_langchain_store_that_refuses_a_chunk(elasticsearch, name, request):
    """What it has written is tagged, and its error says how much that is; nothing is taken for known."""
    Framework("langchain")
    elastic = needs("langchain_elasticsearch")
    from elasticsearch.helpers import BulkIndexError

    from es_simhash.integrations.langchain import GuardedStore

    with make_client(elasticsearch) as client:
        kinds = {"metadata": {"properties": {"page": {"type": "integer"}}}}
        simhash = prepared(elasticsearch, request, client, name, "text", kinds)
        inner = elastic.ElasticsearchStore(name, client=client, strategy=elastic.BM25Strategy())
        store = GuardedStore(inner, simhash, name)
        with pytest.raises(BulkIndexError) as raised:
            store.add_texts(MORE[:3], [{"page": 1}, {"page": "no number"}, {"page": 3}])
        assert raised.value.__notes__ == ["2 of 3 chunks were stored: give the others again"]
        assert_all_are_tagged(elasticsearch, name, simhash)
        ids = store.add_texts(MORE[:3], [{"page": 1}, {"page": 2}, {"page": 3}])
        assert {each["text"] for each in stored(elasticsearch, name).values()} == set(MORE[:3])
        assert set(ids) == stored(elasticsearch, name).keys()


def test_langchain_store_that_fails_as_does_its_index(opensearch, name, request):
    """The error of the store stays the error."""
    Framework("langchain")
    from langchain_core.vectorstores import VectorStore

    from es_simhash.integrations.langchain import GuardedStore

    class Failing(VectorStore):
        def add_texts(self, *args, **kwargs):
            opensearch.remove(name)
            raise RuntimeError("the model is gone")

        from_texts = similarity_search = None

    with make_client(opensearch) as client:
        store = GuardedStore(Failing.__new__(Failing), prepared(opensearch, request, client, name, "text", {}), name)
        with pytest.raises(RuntimeError, match="the model is gone") as raised:
            store.add_texts(MORE[:2])
        assert "NotFoundError): run setup, then give them again" in raised.value.__notes__[0]


def test_llama_index_before_the_embedding(elasticsearch, name, request):
    """In a pipeline with a cache, which must not remember what the index had."""
    Framework("llama_index")
    needs("llama_index.vector_stores.elasticsearch")
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.schema import ImageNode, TextNode
    from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
    from llama_index.vector_stores.elasticsearch import AsyncBM25Strategy, ElasticsearchStore

    from es_simhash.integrations.llama_index import NearDupGuard, TaggingStore

    embedded = []

    class Counting(MockEmbedding):
        def _get_text_embedding(self, text):
            embedded.append(text)
            return [0.5, 0.5]

        async def _aget_text_embedding(self, text):
            return self._get_text_embedding(text)

    loop = asyncio.new_event_loop()
    request.addfinalizer(lambda: (asyncio.set_event_loop(None), loop.close()))
    asyncio.set_event_loop(loop)

    async def connect():
        return make_client(elasticsearch, asynchronous=True)

    inner = loop.run_until_complete(connect())
    request.addfinalizer(lambda: loop.run_until_complete(inner.close()))
    with make_client(elasticsearch) as client:
        kinds = {"metadata": {"properties": KINDS}}
        simhash = prepared(elasticsearch, request, client, name, "content", kinds, per="metadata.user")
        store = ElasticsearchStore(name, es_client=inner, retrieval_strategy=AsyncBM25Strategy())
        guard = NearDupGuard(simhash=simhash, index=name)
        tagging = TaggingStore(store=store, guard=guard)
        pipeline = IngestionPipeline(transformations=[guard, Counting(2)], vector_store=tagging)

        def nodes(texts, user="ada"):
            return [TextNode(text=text, metadata={"user": user}) for text in texts]

        first = pipeline.run(nodes=nodes([WINDOW, AISLE, WINDOW.upper(), *MORE]))
        assert [each.text for each in first] == [WINDOW, AISLE, *MORE]
        assert pipeline.run(nodes=nodes([WINDOW, AISLE, WINDOW.upper(), *MORE])) == []
        loop.run_until_complete(pipeline.arun(nodes=nodes([WINDOW], "bob")))
        assert len(embedded) == len(MORE) + 3
        assert len(stored(elasticsearch, name)) == len(MORE) + 3
        assert_all_are_tagged(elasticsearch, name, simhash)
        image = ImageNode(text=WINDOW, image_url="http://a/1.png", metadata={"user": "ada"})
        assert asyncio.run(guard.acall([*nodes([WINDOW]), image])) == [image]
        forcing = IngestionPipeline(
            transformations=[NearDupGuard(simhash=simhash, index=name, force=True), Counting(2)], vector_store=tagging
        )
        [forced] = forcing.run(nodes=nodes([WINDOW]))
        assert "duplicate_of" in stored(elasticsearch, name)[forced.node_id]["simhash"]
        [found] = tagging.query(VectorStoreQuery(query_str="aisle", similarity_top_k=1)).nodes
        assert (found.text, tagging.client) == (AISLE, store.client)
        with pytest.raises(IncompleteWriteError, match="1 chunk of 1 in .*there is no document of this id"):
            TaggingStore(store=SimpleVectorStore(), guard=guard).add(Counting(2)(nodes([MORE[0]])))
        assert "simhash" not in guard.to_json()
        with pytest.raises(ValueError, match="simhash must be a SimHashClient, not NoneType"):
            NearDupGuard(simhash=None, index=name)


def test_haystack_between_converter_and_writer(opensearch, name, request):
    """What is there is neither embedded nor written, and comes out with the id of what it is near."""
    Framework("haystack")
    needs("haystack_integrations.document_stores.opensearch")
    from haystack import Document, Pipeline, component
    from haystack.dataclasses import ByteStream
    from haystack_integrations.document_stores.opensearch import OpenSearchDocumentStore

    from es_simhash.integrations.haystack import NearDupGuard, NearDupWriter

    embedded = []

    @component
    class Embedder:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]) -> dict[str, list[Document]]:
            embedded.extend(each.content for each in documents)
            return {"documents": documents}

    with make_client(opensearch) as client:
        simhash = prepared(opensearch, request, client, name, "content", KINDS)
        how = {"mappings": {"properties": {}}, "settings": {}, "use_ssl": False}
        store = OpenSearchDocumentStore(hosts=opensearch.url, index=name, **how)

        def run(documents, **options):
            pipeline = Pipeline()
            pipeline.add_component("guard", NearDupGuard(simhash, name, **options))
            pipeline.add_component("embed", Embedder())
            pipeline.add_component("write", NearDupWriter(store, simhash, name))
            pipeline.connect("guard.documents", "embed.documents")
            pipeline.connect("embed.documents", "write.documents")
            return pipeline.run({"guard": {"documents": documents}})

        given = [Document(content=each, meta={"user": "ada"}) for each in (WINDOW, AISLE, WINDOW.upper(), *MORE)]
        found = run(given)
        assert [each.action for each in found["write"]["reports"]] == ["written"] * (len(MORE) + 2)
        assert found["write"]["documents_written"] == len(MORE) + 2
        [known] = found["guard"]["duplicates"]
        assert (known.id, known.meta) == (given[2].id, {"user": "ada", "similar_to": given[0].id})
        assert given[2].meta == {"user": "ada"}
        again = run(given)  # the writer's policy would raise
        alone = Pipeline()
        alone.add_component("guard", NearDupGuard(simhash, name))
        found = asyncio.run(alone.run_async({"guard": {"documents": given}}))["guard"]
        assert found == {"documents": [], "duplicates": again["guard"]["duplicates"]}
        assert [each.meta["similar_to"] for each in again["guard"]["duplicates"][:3]] == [
            *(given[0].id, given[1].id, given[0].id)
        ]
        assert len(embedded) == len(stored(opensearch, name)) == len(MORE) + 2
        run([Document(id="forced", content=WINDOW.upper())], force=True)
        assert stored(opensearch, name)["forced"]["simhash"]["duplicate_of"] == given[0].id
        assert_all_are_tagged(opensearch, name, simhash)
        blob = Document(content=WINDOW, blob=ByteStream(b"png", mime_type="image/png"))
        assert NearDupGuard(simhash, name).run([blob]) == {"documents": [blob], "duplicates": []}
        new = Document(content=" ".join(reversed(MORE[0].split())), meta={"_source": {"content": WINDOW}})
        for found in (NearDupGuard(simhash, name).run([new]), NearDupGuard(simhash, name).run([new, new])):
            assert found["documents"] == [new]


def test_a_store_that_refuses_a_chunk_tags_the_others(elasticsearch, opensearch, name, request):
    """In LlamaIndex, awaited too, and in Haystack: the next call finds what was written; the error says how much."""
    for framework in ("llama_index", "haystack"):
        Framework(framework)
    from haystack import Document
    from haystack.document_stores.errors import DocumentStoreError
    from llama_index.core.schema import TextNode

    from es_simhash.integrations.haystack import NearDupGuard as Guard, NearDupWriter
    from es_simhash.integrations.llama_index import NearDupGuard, TaggingStore

    needs("llama_index.vector_stores.elasticsearch")
    stores = needs("haystack_integrations.document_stores.opensearch")
    from elasticsearch.helpers import BulkIndexError
    from llama_index.vector_stores.elasticsearch import AsyncBM25Strategy, ElasticsearchStore

    pages, page = [1, "no number", 3], {"page": {"type": "integer"}}
    note = ["2 of 3 chunks were stored: give the others again"]
    with make_client(opensearch) as client:
        simhash = prepared(opensearch, request, client, name, "content", page)
        how = {"mappings": {"properties": {}}, "settings": {}, "use_ssl": False}
        store = stores.OpenSearchDocumentStore(hosts=opensearch.url, index=name, **how)
        documents = [Document(content=text, meta={"page": each}) for text, each in zip(MORE, pages)]
        with pytest.raises(DocumentStoreError) as raised:
            NearDupWriter(store, simhash, name).run(documents)
        assert raised.value.__notes__ == note
        assert_all_are_tagged(opensearch, name, simhash)
        assert Guard(simhash, name).run(documents)["documents"] == [documents[1]]

    async def add(client, guard, nodes):
        inner = make_client(elasticsearch, asynchronous=True)
        try:
            store = ElasticsearchStore(name, es_client=inner, retrieval_strategy=AsyncBM25Strategy())
            await TaggingStore(store=store, guard=guard).async_add(nodes)
        finally:
            await inner.close()

    with make_client(elasticsearch) as client:
        simhash = prepared(elasticsearch, request, client, name, "content", {"metadata": {"properties": page}})
        guard = NearDupGuard(simhash=simhash, index=name)
        nodes = [TextNode(text=text, embedding=[0.5], metadata={"page": each}) for text, each in zip(MORE, pages)]
        with pytest.raises(BulkIndexError) as raised:
            asyncio.run(add(client, guard, nodes))
        assert raised.value.__notes__ == note
        assert_all_are_tagged(elasticsearch, name, simhash)
        assert [each.text for each in guard([TextNode(text=text) for text in MORE[:3]])] == [MORE[1]]
