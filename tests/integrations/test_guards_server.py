"""Guards on write in the frameworks' own pipelines and stores, on real servers."""

import asyncio
import random
import uuid

import pytest

from es_simhash import IncompleteWriteError, SimHashClient
from tests.integrations.frameworks import Framework
from tests.servers.fixtures import make_client
from tests.servers.support import ONE_SHARD, WORDS

WINDOW = "The user prefers a window seat on long flights."
AISLE = WINDOW.replace("a window", "an aisle")
MORE = [" ".join(random.Random(n).choices(WORDS, k=40)) for n in range(30)]
REFUSED = "^1 chunk of 3 in .*there is no document of this id"
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


def test_langchain_before_the_store_of_elastic(elasticsearch, name, request):
    """Embeds and stores what is new for its user; each text gets the id of what is there."""
    Framework("langchain")
    elastic = needs("langchain_elasticsearch")
    from langchain_core.documents import Document

    from es_simhash.integrations.langchain import add_documents

    def chunk(text, id_=None, user="ada"):
        return Document(text, metadata={"user": user}, id=id_)

    with make_client(elasticsearch) as client:
        kinds = {"metadata": {"properties": KINDS}}
        simhash = prepared(elasticsearch, request, client, name, "text", kinds, per="metadata.user")
        inner = elastic.ElasticsearchStore(name, client=client, strategy=elastic.BM25Strategy())
        asked, add = [], inner.add_texts

        def watched(texts, *rest, **more):
            asked.extend(texts)
            return add(texts, *rest, **more)

        inner.add_texts = watched

        def write(*documents, **options):
            return add_documents(inner, documents, simhash, name, **options)

        assert write(chunk(WINDOW, "w"), chunk(AISLE, "a"), chunk(WINDOW.upper(), "x")) == ["w", "a", "w"]
        given = [chunk(WINDOW, "b", "bob"), chunk(f"{AISLE}!"), *map(chunk, MORE)]
        second = write(*given)
        assert second[:2] == ["b", "a"]
        assert asked == [WINDOW, AISLE, WINDOW, *MORE]
        assert write(*given) == second
        documents = stored(elasticsearch, name)
        assert documents.keys() == {"w", "a", "b", *second[2:]}
        assert_all_are_tagged(elasticsearch, name, simhash)
        forced = write(chunk(WINDOW.upper(), "x"), force=True)
        assert (forced, stored(elasticsearch, name)["x"]["simhash"]["duplicate_of"]) == (["x"], "w")
        assert write(chunk(f"{AISLE} Not any more.", "a")) == ["a"]
        assert stored(elasticsearch, name)["a"]["text"] == f"{AISLE} Not any more."
        assert_all_are_tagged(elasticsearch, name, simhash)
        assert write() == []
        assert write(chunk("Left to a pipeline.", "p"), tags=False) == ["p"]
        assert "simhash" not in stored(elasticsearch, name)["p"]


def test_langchain_store_that_refuses_a_chunk(elasticsearch, name, request):
    """What it has written is tagged, and the error says how much that is; nothing is taken for known."""
    Framework("langchain")
    elastic = needs("langchain_elasticsearch")
    from elasticsearch.helpers import BulkIndexError
    from langchain_core.documents import Document

    from es_simhash.integrations.langchain import add_documents

    with make_client(elasticsearch) as client:
        kinds = {"metadata": {"properties": {"page": {"type": "integer"}}}}
        simhash = prepared(elasticsearch, request, client, name, "text", kinds)
        inner = elastic.ElasticsearchStore(name, client=client, strategy=elastic.BM25Strategy())

        def write(*pages):
            documents = [Document(text, metadata={"page": page}) for text, page in zip(MORE, pages)]
            return add_documents(inner, documents, simhash, name)

        with pytest.raises(IncompleteWriteError, match=REFUSED) as raised:
            write(1, "no number", 3)
        assert isinstance(raised.value.__context__, BulkIndexError)
        assert_all_are_tagged(elasticsearch, name, simhash)
        ids = write(1, 2, 3)
        assert {each["text"] for each in stored(elasticsearch, name).values()} == set(MORE[:3])
        assert set(ids) == stored(elasticsearch, name).keys()


def test_llama_index_before_the_embedding(elasticsearch, name, request):
    """In a pipeline with a cache, which must not remember what the index had."""
    Framework("llama_index")
    needs("llama_index.vector_stores.elasticsearch")
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.schema import ImageNode, TextNode
    from llama_index.core.vector_stores import SimpleVectorStore
    from llama_index.vector_stores.elasticsearch import AsyncBM25Strategy, ElasticsearchStore

    from es_simhash.integrations.llama_index import NearDupGuard

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
        pipeline = IngestionPipeline(transformations=[guard, Counting(2)], vector_store=store)

        def nodes(texts, user="ada"):
            return [TextNode(text=text, metadata={"user": user}) for text in texts]

        def ids(nodes):
            return [node.node_id for node in nodes]

        first = pipeline.run(nodes=nodes([WINDOW, AISLE, WINDOW.upper(), *MORE]))
        assert [report.action for report in guard.tag(ids(first))] == ["written"] * len(first)
        assert [each.text for each in first] == [WINDOW, AISLE, *MORE]
        assert pipeline.run(nodes=nodes([WINDOW, AISLE, WINDOW.upper(), *MORE])) == []
        guard.tag(ids(loop.run_until_complete(pipeline.arun(nodes=nodes([WINDOW], "bob")))))
        assert len(embedded) == len(MORE) + 3
        assert len(stored(elasticsearch, name)) == len(MORE) + 3
        assert_all_are_tagged(elasticsearch, name, simhash)
        image = ImageNode(text=WINDOW, image_url="http://a/1.png", metadata={"user": "ada"})
        assert asyncio.run(guard.acall([*nodes([WINDOW]), image])) == [image]
        forcing = NearDupGuard(simhash=simhash, index=name, force=True)
        [forced] = IngestionPipeline(transformations=[forcing, Counting(2)], vector_store=store).run(
            nodes=nodes([WINDOW])
        )
        forcing.tag([forced.node_id])
        assert "duplicate_of" in stored(elasticsearch, name)[forced.node_id]["simhash"]
        elsewhere = Counting(2)(nodes([MORE[0]]))
        SimpleVectorStore().add(elsewhere)
        with pytest.raises(IncompleteWriteError, match="1 chunk of 1 in .*there is no document of this id"):
            guard.tag(ids(elsewhere))
        assert "simhash" not in guard.to_json()
        with pytest.raises(ValueError, match="simhash must be a SimHashClient, not NoneType"):
            NearDupGuard(simhash=None, index=name)


def test_haystack_between_converter_and_writer(opensearch, name, request):
    """What is there is neither embedded nor written, and comes out with the id of what it is near."""
    Framework("haystack")
    needs("haystack_integrations.document_stores.opensearch")
    from haystack import Document, Pipeline, component
    from haystack.components.writers import DocumentWriter
    from haystack.dataclasses import ByteStream
    from haystack_integrations.document_stores.opensearch import OpenSearchDocumentStore

    from es_simhash.integrations.haystack import NearDupGuard

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
            guard = NearDupGuard(simhash, name, **options)
            pipeline = Pipeline()
            pipeline.add_component("guard", guard)
            pipeline.add_component("embed", Embedder())
            pipeline.add_component("write", DocumentWriter(store))
            pipeline.connect("guard.documents", "embed.documents")
            pipeline.connect("embed.documents", "write.documents")
            found = pipeline.run({"guard": {"documents": documents}}, include_outputs_from={"guard"})
            return found, guard.tag([document.id for document in found["guard"]["documents"]])

        given = [Document(content=each, meta={"user": "ada"}) for each in (WINDOW, AISLE, WINDOW.upper(), *MORE)]
        found, reports = run(given)
        assert [report.action for report in reports] == ["written"] * (len(MORE) + 2)
        assert found["write"]["documents_written"] == len(MORE) + 2
        [known] = found["guard"]["duplicates"]
        assert (known.id, known.meta) == (given[2].id, {"user": "ada", "similar_to": given[0].id})
        assert given[2].meta == {"user": "ada"}
        again, _ = run(given)  # the writer's policy would raise
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
