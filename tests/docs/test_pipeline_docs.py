"""The examples in docs/pipeline.md: the requests, as any program sends them, find what Python finds."""

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

from es_simhash import SimHashClient, fingerprint, fingerprint_fields, to_hex
from tests.docs.blocks import ROOT
from tests.servers.fixtures import get_server, get_templates, make_client
from tests.servers.support import ONE_SHARD, put

TEXT = (ROOT / "docs/pipeline.md").read_text(encoding="utf-8")
REQUESTS = re.findall(r"```http\n(POST) (\S+)\n(.*?)```", TEXT, re.DOTALL)


def test_the_example_for_node():
    """It is the file that `make strangers` runs."""
    assert f"```js\n{(ROOT / 'tests/strangers/near.mjs').read_text(encoding='utf-8')}```\n" in TEXT


def test_the_lookup(request):
    """With names of this test's own."""
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
    [block] = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    script = block.replace("simhash-candidates", index).replace("/news/", f"/{index}/")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", script], env={**os.environ, "PATH": path, "URL": templates.url}, capture_output=True, check=True
    )
    stored, found = map(json.loads, done.stdout.decode().replace("}{", "}\n{", 1).splitlines())
    assert stored == {"acknowledged": True}
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["near"]
