"""What ``make real`` checks in containers, as far as it runs without them."""

from types import SimpleNamespace

import pytest

from es_simhash import SimHashClient
from tests.languages import run_esql
from tests.servers import real


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
