"""Every example in docs/dedup.md runs, on both products."""

from tests.docs.blocks import adapt, blocks, execute

EXPECTED = ["a written a", "b tagged a", "c written c"]


def test_the_examples(server):
    """In order, in one namespace, with the product's own client."""
    server.remove("news")
    namespace = {"__name__": "dedup"}
    try:
        code = [adapt(block, server) for block in blocks("docs/dedup.md", "python")]
        lines = [line for block in code for line in execute(block, namespace)]
        assert lines[:3] == EXPECTED
        assert lines[3] == "3 2 1 0"
        assert lines[4] == "[0.7]"
        assert lines[5].startswith("a [('a', 0), ('b', ")
        assert len(namespace["hits"]["hits"]["hits"]) == 1
        assert [bucket["key"] for bucket in namespace["largest"]["aggregations"]["groups"]["buckets"]] == ["a"]
        assert sorted(hit["_id"] for hit in namespace["thinned"]) in (["a", "c"], ["b", "c"])
        assert lines[-2] == "would tag b duplicates a"
        assert sorted(lines[-1].split()[:2]) == ["a", "b"]
    finally:
        if "client" in namespace:
            namespace["client"].close()
        server.remove("news")
