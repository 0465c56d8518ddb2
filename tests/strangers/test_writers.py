"""Other programs write through the pipeline: each document finds itself and its planted copies, from Python."""

import json
import subprocess
import sys

import pytest

from es_simhash import fingerprint
from tests.servers.support import truth
from tests.strangers.conftest import SECONDS

SPIDER = """
import pathlib
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    start_urls = [page.as_uri() for page in pathlib.Path("pages").absolute().iterdir()]

    def parse(self, response):
        yield {"url": response.url, "body": response.css("p::text").get()}
"""


def near(documents, most):
    """Return what is within *most* bits of each document, by comparing all."""
    prints = [fingerprint(each["body"]) for each in documents]
    return [truth(prints, each, most) for each in prints]


def check_all_found(server, simhash, index, documents):
    """Compare the lookups of Python for each document with the comparison of all."""
    server.request("POST", f"/{index}/_refresh")
    bodies = [each["body"] for each in documents]
    found = simhash.find_near_dups_many(index, bodies, max_distance=8)
    assert [sorted((hit.distance, hit.id) for hit in hits) for hits in found] == near(documents, 8)
    [check] = simhash.check(index)
    assert (check.fingerprinted, check.problems) == (len(documents), ())


def test_node(node, opensearch, index, simhash, documents):
    """It writes, and its 200 lookups of two requests are exact and complete."""
    assert node("write.mjs", index, lines=documents, OPENSEARCH_URL=opensearch.url) == [{"written": len(documents)}]
    check_all_found(opensearch, simhash, index, documents)
    lines = [{"text": each["body"], "max_distance": most} for most in (3, 8) for each in documents[:100]]
    found = node("lookups.mjs", index, index, lines=lines, OPENSEARCH_URL=opensearch.url)
    expected = [hits for most in (3, 8) for hits in near(documents, most)[:100]]
    assert [sorted((hit["distance"], hit["id"]) for hit in hits) for hits in found] == expected
    assert (len(found), sum(map(len, expected)) > 300) == (200, True)


def test_elasticdump(node, strangers, opensearch, index, simhash, documents, tmp_path):
    """It writes a file, and reads what the index has then: the numbers are the same."""
    lines = ({"_id": each["_id"], "_source": {"n": each["n"], "body": each["body"]}} for each in documents)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    address = f"{opensearch.url}/{index}"
    for source, target in ((tmp_path / "in.jsonl", address), (address, tmp_path / "out.jsonl")):
        command = [strangers / "node_modules/.bin/elasticdump", f"--input={source}", f"--output={target}"]
        subprocess.run([*command, "--type=data", "--limit=500", "--quiet"], check=True, timeout=SECONDS)
        opensearch.request("POST", f"/{index}/_refresh")
    check_all_found(opensearch, simhash, index, documents)
    kept = opensearch.request("POST", f"/{index}/_search", {"size": len(documents)})["hits"]["hits"]
    read = map(json.loads, (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines())
    assert {each["_id"]: each["_source"] for each in read} == {each["_id"]: each["_source"] for each in kept}


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
def test_scrapy(strangers, request, index, product, tmp_path):
    """What it crawls goes through a pipe; a page that repeats another is not written, nor is a page crawled again."""
    scrapy = strangers / "python/bin/scrapy"
    if not scrapy.exists():
        pytest.skip("Scrapy is missing: pip could not bring it")
    server = request.getfixturevalue(product)
    bridge = "The council approved the new bridge over the river on Tuesday after a long debate about its cost"
    (tmp_path / "spider.py").write_text(SPIDER)
    (tmp_path / "pages").mkdir()
    for name, text in {"a": bridge, "b": bridge.upper(), "c": "Rain is expected in the north until Friday"}.items():
        (tmp_path / f"pages/{name}.html").write_text(f"<p>{text}.</p>")
    options = f"ingest {index} - --id-field url --on-duplicate skip --json".split()
    ingest = [sys.executable, "-m", "es_simhash", *options]
    try:
        for more, expected in ((["--create", "--text-field", "body"], (2, 1, 0)), ([], (0, 1, 2))):
            command = [scrapy, "runspider", "--nolog", "spider.py", "-O", "-:jsonlines"]
            crawled = subprocess.run(command, cwd=tmp_path, check=True, timeout=SECONDS, stdout=subprocess.PIPE)
            done = subprocess.run(
                [*ingest, *more, "--url", server.url], input=crawled.stdout, stdout=subprocess.PIPE, check=True
            )
            report = json.loads(done.stdout)
            assert tuple(report[name] for name in ("written", "skipped", "unchanged")) == expected
    finally:
        server.remove(index)
