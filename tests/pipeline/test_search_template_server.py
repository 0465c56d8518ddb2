"""The stored search template: every fingerprint within 3 bits is among its candidates, on both products."""

import json
import random
import re
import uuid

from es_simhash import SimHashClient, build_search_template, fingerprint_fields, hamming_distance
from tests.servers.fixtures import get_templates, make_client
from tests.servers.servers import send
from tests.servers.support import ONE_SHARD, fill

SOURCE = build_search_template()["script"]["source"]


def rendered(parameters):
    """Return the search that the template becomes, without its server: each name replaced, each check left out."""
    plain = re.sub(r"\{\{\^(\w+)\}\}(.*?)\{\{/\1\}\}", lambda found: "" if found[1] in parameters else found[2], SOURCE)
    return re.sub(r"\{\{(\w+)\}\}", lambda found: str(parameters.get(found[1], "")), plain)


def test_every_near_duplicate_is_a_candidate(server, index):
    """Compared with all others; the search is the one that a template becomes, so it needs no template engine."""
    chance = random.Random(1)
    bases = [chance.getrandbits(64) for _ in range(30)]
    prints = [base ^ sum(1 << bit for bit in chance.sample(range(64), n)) for base in bases for n in range(6)]
    with make_client(server) as client:
        SimHashClient(client).create_index(index, settings=ONE_SHARD)
    fill(server, index, prints)
    for asked in prints[::7]:
        body = json.loads(rendered(fingerprint_fields(asked)["simhash"]))
        answer = server.request("POST", f"/{index}/_search", body)
        hits = [int(hit["fields"]["simhash.fingerprint"][0], 16) for hit in answer["hits"]["hits"]]
        near = sorted(each for each in hits if hamming_distance(asked, each) <= 3)
        assert near == sorted(each for each in prints if hamming_distance(asked, each) <= 3)
        assert answer["hits"]["total"] == {"value": len(hits), "relation": "eq"}


def test_the_template_on_a_server(request):
    """It becomes the same search; without a block it is an error, not an answer with fewer hits."""
    templates, name = get_templates(request), f"test-{uuid.uuid4().hex}"
    templates.request("PUT", f"/_scripts/{name}", build_search_template())
    request.addfinalizer(lambda: templates.request("DELETE", f"/_scripts/{name}"))
    ours = fingerprint_fields(0x00AA_0000_FFFF_1234)["simhash"]
    for parameters in (ours, ours | {"size": 5}):
        answer = templates.request("POST", "/_render/template", {"id": name, "params": parameters})
        assert answer["template_output"] == json.loads(rendered(parameters))
    for block in ("block0", "block3"):
        asked = {"id": name, "params": {key: value for key, value in ours.items() if key != block}}
        assert send(templates.url, "POST", "/_search/template", asked)[0] == 400
