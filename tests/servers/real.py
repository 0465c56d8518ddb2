"""
What only the real products can show, as checks: ``tools/real.py`` runs them in containers, and a test those that an
embedded server knows. A check returns what it saw; its docstring is what that shows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from es_simhash import (
    SimHashClient,
    build_dashboards,
    build_pipeline,
    build_search_template,
    fingerprint,
    fingerprint_fields,
    fingerprints,
    to_hex,
)
from es_simhash.lookup.paste import paste_lookup
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import candidate_clauses
from tests.pipeline.hostile import hostile_texts
from tests.servers.panels import expand, spec_of
from tests.servers.servers import Server, send
from tests.servers.support import ONE_SHARD, fill, found_in, numbered, planted, simulate, texts, truth

SPAN = tuple(int(datetime(2026, month, 1, tzinfo=UTC).timestamp() * 1000) for month in (1, 3))
FIELDS = {"time_field": "published_at", "source_field": "source", "text_field": "body"}
XSRF = {"elasticsearch": {"kbn-xsrf": "true"}, "opensearch": {"osd-xsrf": "true", "securitytenant": "global"}}
# Kibana's own pages send these with a request of theirs; another program gets a 400 without them.
INTERNAL = {"elasticsearch": {"elastic-api-version": "1", "x-elastic-internal-origin": "kibana"}, "opensearch": {}}
# Both products refuse a file that is not called *.ndjson.
DISPOSITION = 'Content-Disposition: form-data; name="file"; filename="pack.ndjson"'
STRATEGY = {"elasticsearch": "ese", "opensearch": "opensearch"}
TRIES = 180


@dataclass(frozen=True)
class Place:
    """Where checks run: a server, a client of ours on it, names to use, and the address of Kibana or Dashboards."""

    server: Server
    simhash: SimHashClient
    index: str = "my-index"
    board: str = ""
    pause: Callable[[], object] = lambda: time.sleep(1)


def pipeline(place: Place) -> str:
    """The ingest pipeline makes the bits of Python; its probes pass, and an index uses it."""
    server, index = place.server, f"{place.index}-pipeline"
    place.simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    place.simhash.put_pipeline(index, name=index, use_as="final")
    given = hostile_texts(500, seed=1)
    expected = [None if each is None else to_hex(each) for each in fingerprints(given)]
    assert found_in(simulate(server, build_pipeline(text_field="body"), [{"body": each} for each in given])) == expected
    text = texts(1)[0]
    server.request("PUT", f"/{index}/_doc/1?refresh=true", {"body": text})
    asked = {"body": text, "simhash": {"lookup": {"max_distance": 8}}}
    made = server.request("POST", f"/_ingest/pipeline/{index}/_simulate", {"docs": [{"_source": asked}]})
    body = made["docs"][0]["doc"]["_source"]["simhash"]["lookup"]["body"]
    [hit] = server.request("POST", f"/{index}/_search", body)["hits"]["hits"]
    assert (hit["_id"], hit["fields"]["distance"]) == ("1", [0])
    return f"{len(given)} texts of all of Unicode, a document that was written, and the lookup that it builds"


def scripts(place: Place) -> str:
    """Lookups with a script and `remove-fields` compute what Python does."""
    server, index, held = place.server, f"{place.index}-scripts", planted(60)
    place.simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    fill(server, index, held)
    for wanted in (held[0], held[20]):
        clauses = candidate_clauses([wanted], LookupPlan(8, (), 0, script=True))
        body = {"size": 100, "query": {"bool": {"filter": clauses}}}
        hits = server.request("POST", f"/{index}/_search", body)["hits"]["hits"]
        assert {hit["_id"] for hit in hits} == {id_ for _, id_ in truth(held, wanted, 8)}
    place.simhash.remove_fields(index)
    server.request("POST", f"/{index}/_refresh")
    query = {"query": {"exists": {"field": "simhash.fingerprint"}}}
    assert server.request("POST", f"/{index}/_count", query)["count"] == 0
    return f"{len(held)} fingerprints, compared with all of them"


def template(place: Place) -> str:
    """The stored search template finds what is within 3 bits, and refuses a search without one of the blocks."""
    server, index, held = place.server, f"{place.index}-template", planted(60)
    place.simhash.create_index(index, settings=ONE_SHARD)
    fill(server, index, held)
    server.request("PUT", f"/_scripts/{index}", build_search_template())
    for wanted in (held[0], held[20]):
        asked = {"id": index, "params": fingerprint_fields(wanted)["simhash"]}
        hits = server.request("POST", f"/{index}/_search/template", asked)["hits"]["hits"]
        assert {id_ for _, id_ in truth(held, wanted, 3)} <= {hit["_id"] for hit in hits}
        assert len(hits) < len(held)
    del asked["params"]["block3"]
    assert send(server.url, "POST", f"/{index}/_search/template", asked)[0] == 400
    server.request("DELETE", f"/_scripts/{index}")
    return f"{len(held)} fingerprints"


def esql(place: Place) -> str:
    """The text of `find --query esql` returns the near-duplicates, nearest first."""
    server, index, held = place.server, f"{place.index}-esql", planted(60)
    place.simhash.create_index(index, text_field="body", max_distance=16, settings=ONE_SHARD)
    fill(server, index, held)
    for wanted in (held[0], held[20]):
        answer = server.request("POST", "/_query", {"query": paste_lookup("esql", index, wanted, max_distance=16)})
        names = [column["name"] for column in answer["columns"]]
        rows = [dict(zip(names, row, strict=True)) for row in answer["values"]]
        assert [(row["near_dup_distance"], row["_id"]) for row in rows] == truth(held, wanted, 16)
    return f"{len(held)} fingerprints, compared with all of them"


def panels(place: Place) -> str:
    """The product has the pack that its profile loaded, imports one again, and runs the search of each Vega panel."""
    server, index = place.server, place.index
    place.simhash.create_index(index, text_field="body", max_distance=16, settings=ONE_SHARD)
    own = {"published_at": {"type": "date"}, "source": {"type": "keyword"}}
    server.request("PUT", f"/{index}/_mapping", {"properties": own})
    more = [{"published_at": f"2026-01-{1 + n % 28:02d}", "source": f"agency {n % 3}"} for n in range(60)]
    list(place.simhash.ingest(index, [a | b for a, b in zip(numbered(texts(60)), more, strict=True)]))
    server.request("POST", f"/{index}/_refresh")
    pack = build_dashboards(index, **FIELDS)
    _assert_held(place, pack)
    lines = "".join(json.dumps(line) + "\n" for line in pack)
    form = f"--pack\r\n{DISPOSITION}\r\n\r\n{lines}\r\n--pack--\r\n".encode()
    answer = _ask(place, "/api/saved_objects/_import?overwrite=true", form, "multipart/form-data; boundary=pack")
    assert (answer["success"], answer["successCount"]) == (True, len(pack)), answer
    _assert_held(place, pack)
    charts = [each for each in pack if each["type"] == "visualization" and '"vega"' in each["attributes"]["visState"]]
    assert len(charts) >= 5
    for each in charts:
        request = spec_of(each)["data"][0]["url"]
        body = expand(request, product=server.product, span=SPAN)
        shown = _search(place, {"index": request["index"], "body": body})
        assert (shown["timed_out"], shown["_shards"]["failed"]) == (False, 0)
        direct = server.request("POST", f"/{index}/_search", body)
        assert shown["aggregations"] == direct["aggregations"], each["attributes"]["title"]
    return f"{len(pack)} objects, {len(charts)} searches with the numbers that the server itself gives"


def _assert_held(place: Place, pack: list[dict]) -> None:
    wanted = [{"type": each["type"], "id": each["id"]} for each in pack]
    body = json.dumps({"objects": wanted, "excludeExportDetails": True}).encode()
    lines = _ask(place, "/api/saved_objects/_export", body).splitlines()
    assert {json.loads(line)["id"] for line in lines} == {each["id"] for each in pack}


def _search(place: Place, params: dict) -> dict:
    """Kibana answers a search that takes longer with an id to ask again for."""
    path = search = f"/internal/search/{STRATEGY[place.server.product]}"
    asked, headers = json.dumps({"params": params}).encode(), INTERNAL[place.server.product]
    for _ in range(TRIES):
        answer = _ask(place, path, asked, headers=headers)
        if not answer.get("isRunning"):
            return answer["rawResponse"]
        path = f"{search}/{answer['id']}"
        place.pause()
    raise TimeoutError(search)


def _ask(place: Place, path: str, body: bytes, kind: str = "application/json", headers: dict[str, str] | None = None):
    every = XSRF[place.server.product] | {"Content-Type": kind}
    status, answer, _ = send(place.board, "POST", path, body, every | (headers or {}))
    assert status == 200, f"{path}: {status} {answer}"
    return answer


def follow(place: Place) -> str:
    """The service gives a document that another program wrote its fingerprint."""
    text = texts(1, seed=2)[0]
    place.server.request("PUT", f"/{place.index}/_doc/followed", {"body": text})
    for _ in range(TRIES):
        found = place.server.request("GET", f"/{place.index}/_doc/followed")["_source"].get("simhash")
        if found:
            assert found["fingerprint"] == to_hex(fingerprint(text))
            return "1 document"
        place.pause()
    raise TimeoutError(f"no fingerprint after {TRIES} tries")


CHECKS = {
    "elasticsearch": (pipeline, scripts, template, esql, panels),
    "opensearch": (pipeline, scripts, template, panels),
    "follow": (follow,),
}
