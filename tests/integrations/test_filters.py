"""The filters of all frameworks, with documents of their own: what stays, and what its metadata tell."""

import asyncio
import sys
from importlib import import_module

import pytest

from es_simhash import MissingDependencyError, distinct_texts
from es_simhash.texts.measures import PRESETS
from tests.integrations.frameworks import PACKAGES, Found, Framework
from tests.servers.support import texts

ARTICLE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
CHINESE = "国务院总理主持召开常务会议，部署进一步稳定和扩大就业的措施，决定延长有关政策的期限。" * 3


@pytest.fixture(params=PACKAGES)
def framework(request):
    return Framework(request.param)


def made(*every, **metadata):
    return [Found(f"id{n}", text, {"source": f"s{n}", **metadata}, 1 - n / 8) for n, text in enumerate(every)]


def last(text):
    """A way to choose what stays, with a name that a file of a pipeline can have."""
    return text[::-1]


@pytest.mark.parametrize(
    "options", [{}, {"preset": "similar", "keep": "longest"}, {"preset": PRESETS["noisy"], "keep": last}]
)
def test_what_stays_is_what_distinct_texts_says(framework, options):
    """In its order, with scores and metadata, and with the number and the ids of what each stands for."""
    assert framework.run([]) == []
    every = [*texts(60), "", " - ", "", CHINESE, CHINESE.replace("，", "。"), ARTICLE, f"{ARTICLE} {CHINESE}"]
    wanted = distinct_texts(every, **options)
    given = [Found(f"id{n}", text, {"at": [n]}, n / 100) for n, text in enumerate(every)]
    told = {
        group.kept: {
            "similar_count": len(group.dropped),
            "similar_ids": [f"id{each.position}" for each in group.dropped],
        }
        for group in wanted.groups
    }
    assert len(wanted.kept) < len(every) - 5
    documents = [framework.document(each) for each in given]
    found = framework.run(documents, **options)
    plain = [given[n]._replace(metadata={**given[n].metadata, **told.get(n, {})}) for n in wanted.kept]
    if framework.name == "langchain":
        plain = [each._replace(score=None) for each in plain]
    assert list(map(framework.read, found)) == plain
    alone = [n for n in wanted.kept if n not in told]
    assert [each for each in found if any(each is documents[n] for n in alone)] == [documents[n] for n in alone]


def test_one_filter_behind_another(framework):
    """Adds up: what a document stood for, the one that stays for it stands for too."""
    given = made(ARTICLE, ARTICLE.upper(), f"{ARTICLE} - ", "Rain is expected until Friday.")
    first = framework.filtered(given[1:])
    assert first[0].metadata == {"source": "s1", "similar_count": 1, "similar_ids": ["id2"]}
    second = framework.filtered([given[0], *first])
    assert [each.id for each in second] == ["id0", "id3"]
    assert second[0].metadata == {"source": "s0", "similar_count": 2, "similar_ids": ["id1", "id2"]}
    third = framework.filtered([second[0], made("", ARTICLE)[1]._replace(id="new")])
    assert third[0].metadata == {"source": "s0", "similar_count": 3, "similar_ids": ["id1", "id2", "new"]}


def test_a_document_found_twice_is_no_similar_one(framework):
    """As where the hits of two retrievers are joined."""
    given = made(ARTICLE, ARTICLE.upper())
    [found] = framework.filtered([given[0], given[1], given[0], given[1]])
    assert found.metadata == {"source": "s0", "similar_count": 1, "similar_ids": ["id1"]}
    branches = [framework.filtered([given[0], each]) for each in (given[1], given[1]._replace(id="new"))]
    [joined] = framework.filtered([*branches[0], *branches[1]])
    assert joined.metadata == {"source": "s0", "similar_count": 2, "similar_ids": ["id1", "new"]}
    [only] = framework.filtered([given[0], given[0]])
    assert only.metadata == {"source": "s0"}


@pytest.mark.parametrize(
    "taken",
    [
        {"similar_count": "many"},
        {"similar_ids": "a, b"},
        {"similar_count": True},
        {"similar_count": -1},
        {"similar_ids": [{}]},
    ],
)
def test_metadata_of_somebody_else_are_not_overwritten(framework, taken):
    [name] = taken
    with pytest.raises(ValueError, match=f"{name} in the metadata of document 'id0' is .*: rename it"):
        framework.run([framework.document(each) for each in made(ARTICLE, ARTICLE.upper(), **taken)])
    [alone] = framework.filtered(made(ARTICLE, **taken))
    assert alone.metadata == {"source": "s0", **taken}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"preset": "exact"}, "unknown preset 'exact'"), ({"keep": "last"}, "(?i)keep"), ({"presets": "near"}, "presets")],
)
def test_options_are_checked_where_they_are_given(framework, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        framework.filter(**options)


def test_langchain_in_a_retriever_and_in_a_chain():
    Framework("langchain")
    classic = pytest.importorskip(
        "langchain_classic.retrievers", reason="needs langchain-classic: run make integrations"
    )
    from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    from es_simhash.integrations.langchain import NearDupFilter

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [
                Document(ARTICLE, id="a"),
                Document(ARTICLE.upper(), metadata={"_id": "b"}),
                Document(f"{ARTICLE}!"),
            ]

    pipeline = DocumentCompressorPipeline(transformers=[NearDupFilter()])
    for chain in (
        classic.ContextualCompressionRetriever(base_compressor=NearDupFilter(), base_retriever=Fixed()),
        classic.ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=Fixed()),
        Fixed() | NearDupFilter(),
    ):
        [found] = chain.invoke("bridge")
        # The third has no id: it is counted.
        assert (found.id, found.metadata) == ("a", {"similar_count": 2, "similar_ids": ["b"]})
        assert asyncio.run(chain.ainvoke("bridge")) == [found]
        assert chain.batch(["a", "b"]) == [[found], [found]]
        assert list(chain.stream("bridge")) == [[found]]
        assert chain.get_graph().nodes


def test_llama_index_in_a_query_engine(monkeypatch):
    """Without a model; the prompt is as it was, and so is the text for an embedding."""
    Framework("llama_index")
    from llama_index.core import Settings
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

    from es_simhash.integrations.llama_index import NearDupPostprocessor

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            kinds = {"metadata": {"agency": "north"}, "excluded_llm_metadata_keys": ["hidden"]}
            nodes = [TextNode(text=text, id_=id_, **kinds) for id_, text in (("a", ARTICLE), ("b", ARTICLE.upper()))]
            return [NodeWithScore(node=node, score=0.5) for node in nodes]

    monkeypatch.setattr(Settings, "_llm", MockLLM())  # without one it looks for that of a vendor
    before = Fixed().retrieve("bridge")[0].node
    for mode in ("no_text", "compact"):
        engine = RetrieverQueryEngine.from_args(
            Fixed(), response_mode=mode, node_postprocessors=[NearDupPostprocessor()]
        )
        for answer in (engine.query("bridge"), asyncio.run(engine.aquery("bridge"))):
            [found] = answer.source_nodes
            assert (found.score, found.node.metadata["similar_ids"]) == (0.5, ["b"])
            assert "similar" not in str(answer)
            assert mode == "no_text" or "agency: north" in str(answer)
    for each in MetadataMode.LLM, MetadataMode.EMBED:
        assert found.node.get_content(each) == before.get_content(each)
    assert found.node.excluded_llm_metadata_keys == ["hidden", "similar_count", "similar_ids"]


def test_llama_index_nodes_that_are_not_only_text_stay():
    Framework("llama_index")
    from llama_index.core import schema

    from es_simhash.integrations.llama_index import NearDupPostprocessor

    kind, text = schema.MediaResource, schema.MediaResource(text=ARTICLE)
    others = [
        schema.ImageNode(text=ARTICLE, image_url="http://a/1.png"),
        schema.ImageDocument(text=ARTICLE, image="aGVsbG8="),
        schema.IndexNode(text=ARTICLE, index_id="table"),
        schema.Node(text_resource=text, image_resource=kind(url="http://a/2.png")),
        schema.Node(text_resource=text, audio_resource=kind(url="http://a/2.ogg")),
        schema.Node(),
    ]
    dropped = [schema.Node(text_resource=text), schema.Document(text=ARTICLE)]
    nodes = [schema.NodeWithScore(node=each) for each in (schema.TextNode(text=ARTICLE), *others, *dropped)]
    first, *rest = NearDupPostprocessor().postprocess_nodes(nodes)
    assert [each.node for each in rest] == others
    assert first.node.metadata == {"similar_count": 2, "similar_ids": [each.node_id for each in dropped]}
    assert type(first.node) is schema.TextNode


def test_haystack_in_a_pipeline_and_in_its_file():
    Framework("haystack")
    from haystack import Document, Pipeline
    from haystack.components.retrievers import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from es_simhash.integrations.haystack import NearDupFilter

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=each) for each in (ARTICLE, f"{ARTICLE} - ", "Rain until Friday.")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline.add_component("thin", NearDupFilter("noisy", keep="longest"))
    pipeline.connect("retriever.documents", "thin.documents")
    asked = {"retriever": {"query": "council river bridge Friday"}}
    for answer in (pipeline.run(asked), asyncio.run(pipeline.run_async(asked))):
        [first, rain] = answer["thin"]["documents"]
        assert first.meta["similar_count"] == len(first.meta["similar_ids"]) == 1
        assert rain.meta == {}
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["es_simhash.integrations.haystack"])
    assert (loaded.get_component("thin").preset, loaded.get_component("thin").keep) == ("noisy", "longest")


def test_haystack_documents_without_text_or_with_a_blob_stay():
    Framework("haystack")
    from haystack import Document
    from haystack.dataclasses import ByteStream

    from es_simhash.integrations.haystack import NearDupFilter

    blob = ByteStream(b"png", mime_type="image/png")
    given = [
        Document(id="a", content=ARTICLE),
        Document(id="b", content=ARTICLE, blob=blob),
        Document(),
        Document(blob=blob),
    ]
    assert NearDupFilter().run(given)["documents"] == given


def test_langchain_ids_that_are_no_strings_are_not_told():
    Framework("langchain")
    from langchain_core.documents import Document

    from es_simhash.integrations.langchain import NearDupFilter

    documents = (Document(ARTICLE, metadata={"_id": each, "similar_count": None}) for each in ([1], 2, None))
    [found] = NearDupFilter()(documents)
    assert found.metadata == {"_id": [1], "similar_count": 2}
    first = [Document(ARTICLE, id="a"), Document(ARTICLE, id="b"), found]
    [again] = NearDupFilter()(first)
    assert again.metadata == {"similar_count": 4, "similar_ids": ["b"]}
    [more] = NearDupFilter()([again, Document(ARTICLE)])
    assert more.metadata == {"similar_count": 5, "similar_ids": ["b"]}


def test_options_as_json():
    """Each framework that has schemas of its parts can show and read these."""
    pytest.importorskip("pydantic")
    from es_simhash.integrations.filters import Options

    for name in ("langchain", "llama_index"):
        cls = Framework(name).filter
        assert {"preset", "keep"} <= cls.model_json_schema()["properties"].keys()
        made = cls(preset="similar", keep="longest")
        read = (
            cls.from_json(made.to_json()) if name == "llama_index" else cls.model_validate_json(made.model_dump_json())
        )
        assert all(getattr(read, each) == getattr(made, each) for each in Options.model_fields)


@pytest.mark.parametrize("name", PACKAGES)
def test_without_the_framework(name, monkeypatch):
    """The error is one line that names the extra."""
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    for module in [each for each in sys.modules if each.startswith(f"{PACKAGES[name]}.")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"es_simhash.integrations.{name}", raising=False)
    with pytest.raises(MissingDependencyError) as raised:
        import_module(f"es_simhash.integrations.{name}")
    assert f'pip install "es-simhash[{name.replace("_", "-")}]"' in str(raised.value)
    assert "\n" not in str(raised.value)
