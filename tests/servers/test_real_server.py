"""
``make real`` without containers: its checks on embedded servers, in front of which stands a small fake of Kibana or
Dashboards that demands what these demand, and its script with a fake of the package ``docker``.
"""

import email
import http.server
import json
import threading
from itertools import count
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from es_simhash import SimHashClient, build_dashboards
from tests.docs.blocks import load_tool
from tests.languages import run_esql
from tests.servers import real
from tests.servers.fixtures import get_templates

INTERNAL = {"elastic-api-version": "1", "x-elastic-internal-origin": "kibana"}


class Board(http.server.BaseHTTPRequestHandler):
    """Kibana or Dashboards, as far as the checks ask: ``server`` has what it holds, and the search server behind it."""

    def do_GET(self):
        self.answer({"version": {"number": "0.0.0"}} if self.path == "/api/status" else {})

    def do_POST(self):
        body, held = self.rfile.read(int(self.headers["Content-Length"])), self.server.held
        is_kibana = self.server.backend.product == "elasticsearch"
        assert self.headers["kbn-xsrf" if is_kibana else "osd-xsrf"]
        assert self.headers["Authorization"]
        if self.path == "/api/saved_objects/_import?overwrite=true":
            [part] = email.message_from_bytes(
                f"Content-Type: {self.headers['Content-Type']}\n\n".encode() + body
            ).get_payload()
            assert part.get_param("name", header="content-disposition") == "file"
            assert part.get_filename().endswith(".ndjson")
            objects = [json.loads(line) for line in part.get_payload().splitlines() if line]
            known = held | {each["id"] for each in objects}
            assert known.issuperset(reference["id"] for each in objects for reference in each["references"])
            held.update(known)
            self.answer({"success": True, "successCount": len(objects)})
        elif self.path == "/api/saved_objects/_export":
            ids = [each["id"] for each in json.loads(body)["objects"]]
            self.answer("\n".join(json.dumps({"id": each}) for each in ids if each in held))
        else:
            assert self.path.startswith("/internal/search/ese" if is_kibana else "/internal/search/opensearch")
            assert not is_kibana or all(self.headers[name] == value for name, value in INTERNAL.items())
            params = json.loads(body)["params"]
            found = self.server.backend.request("POST", f"/{params['index']}/_search", params["body"])
            is_running = is_kibana and self.path.endswith("ese")
            self.answer({"id": "1", "isRunning": True} if is_running else {"rawResponse": found})

    def answer(self, content):
        is_text = isinstance(content, str)
        self.send_response(200)
        self.send_header("Content-Type", "application/ndjson" if is_text else "application/json")
        self.end_headers()
        self.wfile.write((content if is_text else json.dumps(content)).encode())

    def log_message(self, *arguments):
        """Print nothing."""


@pytest.fixture
def board(server, index):
    """The address of a product that has loaded the pack of *index*, as the containers of a profile leave it."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Board) as listening:
        listening.backend, listening.held = server, {each["id"] for each in build_dashboards(index, **real.FIELDS)}
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://user:pass@127.0.0.1:{listening.server_port}"
        listening.shutdown()


class Engine:
    """What of a container engine the script uses; a container is healthy, or over, after it was looked at twice."""

    def __init__(self):
        self.log, self.left = [], {}
        self.api = SimpleNamespace(create_endpoint_config=lambda aliases: aliases)
        self.images = SimpleNamespace(pull=self.log.append)
        self.networks, self.volumes, self.containers = map(self.things, ("network", "volume", "container"))

    def things(self, kind):
        def create(name, *, labels, **options):
            assert "es-simhash-real" in labels
            self.left[name] = thing = self.container(name, **options) if kind == "container" else SimpleNamespace()
            thing.remove = lambda **_: self.left.pop(name)
            thing.kind = kind

        def listed(*, filters, all=True):
            return [
                each for each in self.left.values() if each.kind == kind and filters == {"label": "es-simhash-real"}
            ]

        return SimpleNamespace(create=lambda name, **options: create(name, **options) or self.left[name], list=listed)

    def container(self, name, *, image, network, networking_config, ports, healthcheck=None, **_):
        assert image in self.log
        assert self.left[network].kind == "network"
        assert networking_config == {network: [name.removeprefix("es-simhash-real-")]}
        assert all(host == "127.0.0.1" for host, _ in ports.values())
        looks = count()

        def reload():
            if next(looks) > 1:
                state = {"Status": "running", "Health": {"Status": "healthy"}} if healthcheck else {"Status": "exited"}
                found.attrs = {"State": state | {"ExitCode": 0}}
                self.log.append(f"{name} ready")

        started, stopped = (
            (lambda **_: self.log.append(f"{name} started")),
            (lambda **_: self.log.append(f"{name} stopped")),
        )
        found = SimpleNamespace(attrs={"State": {"Status": "running"}}, reload=reload, start=started, stop=stopped)
        return found


def test_the_script(request, server, sync_client, index, board, tmp_path, monkeypatch):
    """Services start in order, checks run, results are written, nothing stays. Elasticsearch here lacks Painless."""
    tool, engine, is_whole = load_tool("real"), Engine(), server.product == "opensearch"
    engine.version = lambda: {"Version": "0.0"}
    if is_whole:
        get_templates(request)
        request.addfinalizer(lambda: server.request("DELETE", f"/_ingest/pipeline/{index}-pipeline"))
    monkeypatch.setenv(f"{server.product.upper()}_PORT", str(urlsplit(server.url).port))
    monkeypatch.setenv("DASHBOARDS_PORT" if is_whole else "KIBANA_PORT", str(urlsplit(board).port))
    _, *rest = tool.PROFILES[server.product]
    monkeypatch.setattr(tool, "PROFILES", {server.product: ("http", *rest)})
    monkeypatch.setattr(tool, "DOCUMENT", tmp_path / "page.md")
    tool.DOCUMENT.write_text(f"before\n{tool.MARKS[0]}\nold\n{tool.MARKS[1]}\nafter\n")

    def pause():
        list(SimHashClient(sync_client).follow(index, once=True, state_index=f"{index}-state"))

    monkeypatch.setattr(tool, "Place", lambda *args, board: real.Place(*args, index, board, pause))
    docker = SimpleNamespace(from_env=lambda **_: engine, errors=SimpleNamespace(DockerException=OSError))
    assert tool.main(docker, lambda _: None) == (not is_whole)
    before, after = f"before\n{tool.MARKS[0]}\n\nRun on 20", f"\n\n{tool.MARKS[1]}\nafter\n"
    text = tool.DOCUMENT.read_text()
    assert text.startswith(before)
    assert text.endswith(after)
    shown = {check.__doc__: "shown" in text.partition(check.__doc__)[2].partition("\n")[0] for check in _checks(server)}
    assert shown == {check.__doc__: is_whole or check is real.panels for check in _checks(server)}
    first, second = (f"{tool.NAME}-{each}" for each in rest[1:])
    assert engine.log.index(f"{first} ready") < engine.log.index(f"{second} started")
    assert {f"{first} stopped", f"{second} stopped"} <= set(engine.log)
    assert engine.left == {}


def _checks(server):
    return real.CHECKS[server.product] + real.CHECKS["follow"] * (server.product == "opensearch")


@pytest.mark.parametrize("server", ["elasticsearch"], indirect=True)
def test_esql(server, sync_client, index):
    """The check of ES|QL, answered by a model of the language over the documents of the server."""

    def request(method, path, body=None):
        if path != "/_query":
            return server.request(method, path, body)
        hits = server.request("POST", f"/{index}-esql/_search", {"size": 100})["hits"]["hits"]
        fields = [{f"simhash.{name}": value for name, value in hit["_source"]["simhash"].items()} for hit in hits]
        named = [each | {"_index": hit["_index"], "_id": hit["_id"]} for each, hit in zip(fields, hits)]
        rows = run_esql(body["query"], named)
        return {"columns": [{"name": name} for name in rows[0]], "values": [list(row.values()) for row in rows]}

    place = real.Place(SimpleNamespace(product="elasticsearch", request=request), SimHashClient(sync_client), index)
    assert real.esql(place)
