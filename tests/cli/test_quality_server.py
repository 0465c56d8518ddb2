"""The commands find --preset, explain, check --sample and tune on real servers."""

import json
import re

import pytest

from tests.servers.support import ONE_SHARD

TEXT = (
    "The council approved the new bridge over the river on Tuesday after a long debate about its cost. Residents had "
    "asked for a crossing for twenty years, and the mayor called the vote a victory for patience."
)
TEXTS = {
    "a": TEXT,
    "b": TEXT.replace("Residents", "People"),
    "c": "Rain is expected in the north until Friday evening.",
}


@pytest.fixture
def news(run, index, server, tmp_path):
    """An index with the documents."""
    documents = tmp_path / "docs.jsonl"
    documents.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in TEXTS.items()))
    result = run("ingest", index, documents, "--create", "-t", "text", "--id-field", "id")
    assert result.exit_code == 0, result.output
    server.request("POST", f"/{index}/_refresh")
    return index


@pytest.mark.parametrize("kind", ["stale", "broken", "lost_canonicals"])
def test_what_a_check_says_to_run_mends_the_index(run, server, index, simhash, kind):
    """Each fault of the fingerprints is found, and the command in its advice leaves none."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    texts = {"a": TEXT, "b": TEXT, "c": TEXTS["c"]}
    list(simhash.ingest(index, [{"_id": id_, "body": text} for id_, text in texts.items()]))
    fields = server.request("GET", f"/{index}/_source/c")["simhash"]
    sources = {
        "stale": {"body": TEXT.replace("the", "every"), "simhash": fields},
        "broken": {"body": TEXTS["c"], "simhash": fields | {"fingerprint": "ABCDEFABCDEFABCD"}},
    }
    if kind in sources:
        server.request("PUT", f"/{index}/_doc/c?refresh=true", sources[kind])
    else:
        server.request("DELETE", f"/{index}/_doc/a?refresh=true")
    [finding] = [finding for finding in simhash.check_sample(index).findings if finding.severity == "error"]
    assert finding.kind == kind
    assert run("check", index, "--sample", "9").exit_code == 1
    command = re.search(r"run es-simhash ([^,]+)", finding.advice)[1].split()
    assert run(*command, *(["--yes"] if command[0] == "setup" else [])).exit_code == 0
    server.request("POST", f"/{index}/_refresh")
    assert simhash.check_sample(index).is_healthy


def test_tune_exits_with_3_where_it_did_not_look_at_all(run, news, server):
    assert run("tune", news).exit_code == 0
    server.request("PUT", f"/{news}/_doc/long?refresh=true", {"text": "every word of a long text " * 5_000})
    result = run("tune", news)
    assert (result.exit_code, "measured by their first 100,000 letters" in result.stderr) == (3, True), result.output
