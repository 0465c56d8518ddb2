"""An operation that has a whole bulk request refused costs no other document, on real servers."""

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


def test_an_id_that_is_too_long_is_refused_alone(server, index, simhash):
    """Both servers refuse the whole request; the others reach the index, and the reason reaches the caller."""
    simhash.create_index(index, text_field="body")
    ids = [f"{n}" for n in range(20)]
    ids[7] = "x" * 513
    written = list(simhash.ingest(index, [{"_id": each, "body": TEXT} for each in ids]))
    assert [each.position for each in written if each.action == "refused"] == [7]
    assert "too long" in written[7].reason
    server.request("POST", f"/{index}/_refresh")
    assert server.request("GET", f"/{index}/_count")["count"] == 19
