"""Every example of README and of the pages in docs/ runs, and prints what the page says: on one of the products."""

import asyncio
import doctest
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from es_simhash import AsyncSimHashClient, SimHashClient, fingerprint, fingerprint_fields, to_hex
from es_simhash.texts.measures import PRESETS
from tests.docs.blocks import ROOT, adapt, blocks, commands, execute, ran, run
from tests.languages import run_esql, run_ppl
from tests.servers.command_line import invoke
from tests.servers.fixtures import get_server, get_templates, make_client
from tests.servers.support import ONE_SHARD, put, random_texts

PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
VIEWS = "docs/views.md"
PIPELINE = (ROOT / "docs/services.md").read_text(encoding="utf-8")
REQUESTS = re.findall(r"```http\n(POST) (\S+)\n(.*?)```", PIPELINE, re.DOTALL)
STREAMS = ("/_data_stream/logs-*", "/_index_template/logs")
TEMPLATES = ("/_index_template/news", "/_component_template/es-simhash")


def run_commands(name):
    """Run the commands of a page, and return what each prints."""
    printed = []
    for arguments in commands(name):
        done = invoke(arguments)
        assert done.exit_code == 0, (arguments, done.output)
        printed.append(done.stdout)
    return printed


def on(*products):
    """Run a test on these products."""
    return pytest.mark.parametrize("server", products, indirect=True)


def in_turn(*pages):
    """Run pages on one product and the other in turn: a Chinese page has the code of the English one (test_chinese)."""
    pairs = zip(itertools.cycle(["opensearch", "elasticsearch"]), pages, strict=False)
    return pytest.mark.parametrize(("server", "page"), [*pairs], indirect=["server"])


@in_turn(
    *("README.md", "README.zh-CN.md", "docs/zh/start.md", "docs/start.md", "docs/lookup.md", "docs/zh/lookup.md"),
    *("docs/quality.md", "docs/zh/quality.md", "docs/search.md", "docs/stores.md", "docs/zh/dedup.md"),
)
def test_the_examples_of_a_page(server, page):
    with ran(page, server) as names:
        if page.endswith("lookup.md"):
            assert [near_dup.id for near_dup in names["asked"][0]] == ["a", "b"]
            assert names["found"].contains < 0.8
        if page == "docs/stores.md":
            assert names["found"].similarity == 1
        if page == "docs/zh/dedup.md":
            assert [hit["_id"] for hit in names["hits"]["hits"]["hits"]] == ["a"]
        assert "client" in names


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


@pytest.mark.parametrize("name", ["README.md", "docs/start.md"])
def test_the_shell_examples_of_the_first_hour(opensearch, tmp_path, monkeypatch, name):
    """All commands, in order: on an index that exists, and on a file of the reader's."""
    server = opensearch
    for index in ("news", "posts"):
        server.remove(index)
    kinds = {"body": {"type": "text"}, "published": {"type": "date"}}
    server.request("PUT", "/news", {"mappings": {"properties": kinds}})
    bodies = enumerate(random_texts(9, 1))
    articles = [{"_id": f"{n}", "body": f"{body}.", "published": "2026-01-02"} for n, body in bodies]
    articles.append({**articles[0], "_id": "4711", "published": "2026-01-01"})
    put(server, "news", articles)
    [text] = random_texts(1, 2)
    lines = [f'{{"id": "n1", "body": "{text}"}}', f'{{"id": "n2", "body": "{text} (agency)"}}']
    (tmp_path / "posts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ES_SIMHASH_URL", server.url)
    printed = {}
    try:
        for arguments in commands(name):
            done = invoke(arguments)
            assert done.exit_code == 0, (arguments, done.stderr)
            printed[arguments[0], arguments[1]] = done.stdout
            server.request("POST", f"/{'posts' if arguments[1] == 'posts' else 'news'}/_refresh")
        if name.startswith("README"):
            assert "found: 1 duplicate" in printed["setup", "news"]
            assert "1 near-duplicate" in printed["find", "news"]
            assert "4711 stands for these removed documents" in printed["history", "4711"]
            assert server.request("GET", "/news/_count")["count"] == 10
        else:
            assert "n2" in printed["find", "posts"]
    finally:
        server.remove("news")
        server.remove("posts")


@pytest.fixture
def news(server):
    """An index with the names of README, which records 8 bits."""
    server.remove("news")
    with make_client(server) as client:
        SimHashClient(client).create_index("news", text_field="body", max_distance=8, settings=ONE_SHARD)
    kinds = {"body": {"type": "text"}, "published": {"type": "date"}}
    server.request("PUT", "/news/_mapping", {"properties": kinds})
    yield "news"
    server.remove("news")


@on("opensearch")
def test_dashboards(news):
    """The command prints the same objects as the Python examples, and finds its fields in the index of README."""
    namespace = {"__name__": "examples"}
    for block in blocks(f"{VIEWS}#Dashboards", "python"):
        run(block, namespace)
    [line, *_] = blocks(f"{VIEWS}#Dashboards", "sh")[0].splitlines()
    assert f" {news} " in line
    done = invoke(shlex.split(line.partition(">")[0])[1:])
    assert done.exit_code == 0, done.stderr
    assert [json.loads(each) for each in done.stdout.splitlines()] == namespace["pack"]
    assert [json.loads(each) for each in namespace["ndjson"].splitlines()] == namespace["pack"]


@on("opensearch")
def test_dedup(server):
    lines = []
    with ran("docs/dedup.md", server, runner=lambda code, names: lines.extend(execute(code, names))) as namespace:
        assert lines[:5] == ["a written a", "b tagged a", "c written c", "3 2 1 0", "[0.7]"]
        assert lines[5].startswith("a [('a', 0), ('b', ")
        assert len(namespace["hits"]["hits"]["hits"]) == 1
        assert lines[6].split()[:2] == ["3", "3"]


@on("elasticsearch")
def test_bulk_code_that_one_has_with_asyncio(server, capsys):
    """The bulk helper looks for nothing, so the first of the two is no canonical; what is in the index is not lost."""
    _, ingest, _ = blocks("docs/dedup.md", "python")[:3]
    needed = {adapt(ingest, server): adapt(ingest.partition("for report")[0], server)}

    def execute_few(code, names):
        if "write" not in names:
            execute(needed.get(code, code), names)

    with ran("docs/dedup.md", server, runner=execute_few) as namespace:

        async def use():
            client = make_client(server, asynchronous=True)
            try:
                await namespace["write"](client, AsyncSimHashClient(client))
            finally:
                await client.close()

        asyncio.run(use())
        assert capsys.readouterr().out.splitlines() == ["a tagged", "b written", "c written"]
        namespace["client"].indices.refresh(index="news")
        assert namespace["client"].count(index="news")["count"] == 3


def test_kibana(server, news):
    """Each command of the page works, and prints what it names; OpenSearch has no ES|QL."""
    refused = int(server.product == "opensearch")
    put(server, news, [{"_id": "4711", **fingerprint_fields(255)}])
    first, *_ = blocks(f"{VIEWS}#Queries to paste", "sh")
    done = [invoke(shlex.split(line)[1:]) for line in first.splitlines()]
    assert [each.exit_code for each in done] == [0, 0, refused], [each.output for each in done]
    starts = ("POST /news/_search\n{", "(", "" if refused else 'FROM "news"')
    assert all(each.stdout.startswith(start) for each, start in zip(done, starts, strict=True))


def test_one_of_each_group_in_other_languages(server, news):
    """The documents that the recipes mean, by models of the languages, are those of `collapse`."""
    texts = {"a": "One bridge.", "b": "ONE BRIDGE", "c": "A bridge", "d": "no river", "e": "that bridge"}
    groups = {"a": "a", "b": "a", "c": "c", "d": "d"}
    flat = [
        {"_index": news, "_id": id_, "body": body} | ({"simhash.group": groups[id_]} if id_ in groups else {})
        for id_, body in texts.items()
    ]
    put(server, news, [{name: value for name, value in each.items() if name != "_index"} for each in flat])
    [esql], [ppl] = blocks(VIEWS, "esql"), blocks(VIEWS, "ppl")
    plain = [{**each, "body": each["body"].replace(".", "")} for each in flat]
    assert run_esql(esql.strip(), plain) == [{"story": name, "hits": 1 + (name == "a")} for name in "ace"]
    # A search folds those without a group into one.
    collapse = {"query": {"match": {"body": "bridge"}}, "collapse": {"field": "simhash.group"}, "sort": ["_doc"]}
    hits = server.request("POST", f"/{news}/_search", collapse)["hits"]["hits"]
    found = [(hit["_source"]["body"].replace(".", ""), hit["_source"].get("simhash.group")) for hit in hits]
    assert found == [(row["body"], row["simhash.group"]) for row in run_ppl(ppl, plain)]


@on("opensearch")
def test_the_alert(server, news):
    """The search of the page: what was grouped for the first time counts, and what a regrouping rewrites does not."""
    [body] = map(json.loads, blocks(VIEWS, "json"))

    def counted():
        server.request("POST", f"/{news}/_refresh")
        return server.request("POST", f"/{news}/_search", body)["hits"]["total"]["value"]

    with make_client(server) as client:
        simhash, text = SimHashClient(client), random_texts(1, 1)[0]
        put(server, news, [{"_id": id_, "body": text} for id_ in "ab"])
        list(simhash.backfill(news))
        simhash.reconcile(news)
        assert counted() == 1
        old = {"doc": {"simhash": {"at": "2020-01-01T00:00:00.000Z"}}}
        for id_ in "ab":
            server.request("POST", f"/{news}/_update/{id_}?refresh=true", old)
        assert counted() == 0
        assert simhash.reconcile(news, regroup=True, max_distance=12, verify=0.5).is_settled
        assert counted() == 0
        list(simhash.ingest(news, [{"_id": "b", "body": f"{text} Again."}]))
        assert counted() == 1
    [*_, cron] = blocks(f"{VIEWS}#Queries to paste", "sh")
    done = invoke(shlex.split(cron.partition("|")[0])[1:])
    assert json.loads(done.stdout)["share"] == 0.5
    assert "| jq -e '.share < " in cron


def test_the_lookup_of_a_pipeline(request):
    server = get_server(request, "opensearch")
    name = f"test-{uuid.uuid4().hex}"
    request.addfinalizer(lambda: server.request("DELETE", f"/_ingest/pipeline/{name}"))
    request.addfinalizer(lambda: server.remove(name))
    with make_client(server) as client:
        simhash = SimHashClient(client)
        simhash.create_index(name, text_field="body", settings=ONE_SHARD)
        simhash.put_pipeline(name, name=name, use_as="final")
    (method, simulate, asked), (_, search, _) = REQUESTS
    question = json.loads(asked)
    text = question["docs"][0]["_source"]["body"]
    for number, body in enumerate((text.upper(), "Something else entirely, about other people in another town.")):
        server.request("PUT", f"/{name}/_doc/{number}?refresh=true", {"body": body})
    made = server.request(method, simulate.replace("simhash-fingerprints", name), question)
    ours = made["docs"][0]["doc"]["_source"]["simhash"]
    assert ours["fingerprint"] == to_hex(fingerprint(text))
    answer = server.request(method, search.replace("news", name), ours["lookup"]["body"])
    assert [(hit["_id"], hit["fields"]["distance"]) for hit in answer["hits"]["hits"]] == [("0", [0])]
    assert answer["hits"]["total"] == {"value": 1, "relation": "eq"}


def test_the_search_template(request):
    """The commands, as a shell runs them, find the document of the example."""
    templates, index = get_templates(request), f"test-{uuid.uuid4().hex}"
    request.addfinalizer(lambda: templates.remove(index))
    [text] = {json.loads(body)["docs"][0]["_source"]["body"] for _, path, body in REQUESTS if "_simulate" in path}
    with make_client(templates) as client:
        SimHashClient(client).create_index(index, settings=ONE_SHARD)
    put(templates, index, [{"_id": "near", **fingerprint_fields(fingerprint(text))}])
    put(templates, index, [{"_id": "far", **fingerprint_fields(0)}])
    request.addfinalizer(lambda: templates.request("DELETE", f"/_scripts/{index}"))
    [block] = re.findall(r"```sh\n(.*?)```", PIPELINE, re.DOTALL)
    script = block.replace("simhash-candidates", index).replace("/news/", f"/{index}/")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", script], env={**os.environ, "PATH": path, "URL": templates.url}, capture_output=True, check=True
    )
    stored, found = map(json.loads, done.stdout.decode().replace("}{", "}\n{", 1).splitlines())
    assert stored == {"acknowledged": True}
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["near"]


def test_the_table_of_presets():
    text = (ROOT / "docs/quality.md").read_text(encoding="utf-8")
    for each in PRESETS.values():
        assert f"| `{each.name}` | {each.meaning} | {each.max_distance} | {each.similarity} |" in text


@in_turn("docs/removal.md", "docs/zh/removal.md")
def test_removal(server, page):
    """The Python blocks; then the commands, on an index that is ten times as large."""
    with ran(page, server) as namespace:
        simhash, documents = namespace["simhash"], [each for each in namespace["documents"] if each["_id"] != "b"]
        documents += [{"_id": f"n{n}", "body": f"{n} " * 20 + chr(97 + n) * 9} for n in range(9)]
        documents.append({"_id": "z", "body": namespace["text"] + "!"})
        simhash.create_index("news", text_field="body")
        list(simhash.ingest("news", documents))
        Path("removal.db").unlink()
        printed = run_commands(page)
        assert len(printed) >= 3
        assert any("1 document" in each for each in printed)


@on("elasticsearch")
def test_views(server):
    """The Python blocks; then the commands of the report, with the field that they name."""
    pytest.importorskip("pandas")
    with ran(VIEWS, server) as namespace:
        more = {"lang": {"type": "keyword"}}
        namespace["client"].indices.put_mapping(index="news", body={"properties": more})
        assert len(run_commands(f"{VIEWS}#Numbers and a report")) == 7


@on("opensearch")  # the local Elasticsearch has no data streams
def test_your_index(server):
    try:
        with ran("docs/your-index.md", server, "python", "python opensearch") as namespace:
            assert "client" in namespace
    finally:
        for path in (*STREAMS, *TEMPLATES):
            server.request("DELETE", path, missing_ok=True)


@pytest.mark.parametrize("name", PAGES)
def test_the_prompts_of_the_docs(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=flags, encoding="utf-8")
    assert failed == 0


def test_pages_that_the_program_names_exist():
    files = [path for folder in ("es_simhash", "deploy", "bench", "tools") for path in (ROOT / folder).rglob("*")]
    texts = [
        path.read_text(encoding="utf-8") for path in files if path.suffix in {".py", ".service", ""} and path.is_file()
    ]
    named = set(re.findall(r"docs/[\w/-]+\.md", "\n".join(texts)))
    assert len(named) > 4
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_promises_name_tests_that_exist():
    """Each promise has tests, and each test named is there; also those of the table of compatibility."""
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    # Promises have two columns; the table of a server's settings has three.
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") == 3]
    rows = [line for line in rows if not line.startswith("| covers")]
    assert len(rows) > 25
    assert [row for row in rows if "`tests/" not in row] == []
    text += (ROOT / "COMPATIBILITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]*test_\w+\.py)(?:::(\w+))?`", text)
    for path, name in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"def {name}\(", source) if name else source, f"{path}::{name}"


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)*(?:\w+/|\w+\.(?:py|json|md)))`", text)
    assert len(named) > 40
    missing = [name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "es_simhash"))]
    assert missing == []
