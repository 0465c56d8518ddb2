"""The table of refusals against what real servers say."""

from es_simhash.client.port import finish, port_of
from es_simhash.transport import refusals
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import attempt
from es_simhash.transport.protocol import Call

SPOILING = [{"index": {"_index": "x", "_id": "a" * 513}}, {}]


def test_what_real_servers_say(server, index, sync_client):
    """The refusals that a server with its defaults can be made to give, each met by its row."""
    server.request("PUT", f"/{index}", {"mappings": {"_source": {"enabled": False}}})
    server.request("PUT", f"/{index}/_doc/1?refresh=true", {"body": "text"})
    scroll = {"index": index, "body": {}, "scroll": "60s"}
    port = port_of(sync_client)

    async def work():
        said = {
            "SPOILT": await attempt(port.bulk(body=SPOILING)),
            "NO_SOURCE": await attempt(port.search(index=index, body={"_source": ["body"], "stored_fields": ["body"]})),
        }
        opened = (await port.send(Call("search", scroll)))["_scroll_id"]
        await port.clear_scroll(body={"scroll_id": [opened]})
        said["VIEW_ENDED"] = await attempt(port.scroll(body={"scroll_id": opened, "scroll": "60s"}))
        if server.product == "opensearch":  # Elasticsearch knows the order without a point in time, too
            said["NO_ORDER"] = await attempt(port.search(index=index, body={"sort": ["_shard_doc"]}))
        server.request("POST", f"/{index}/_close")
        said["CLOSED"] = await attempt(port.open_point_in_time(index=index, keep_alive="1s"))
        return said

    said = finish(work())
    for name, answer in said.items():
        refusal = answer if isinstance(answer, Exception) else find_gaps(answer)
        assert getattr(refusals, name).meets(refusal), (name, answer)
