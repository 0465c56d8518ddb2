"""The commands find --preset, explain, check --sample and tune on real servers."""

import json
import re

import pytest

from tests.servers.command_line import failed
from tests.servers.support import ONE_SHARD, put

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


def test_explain_documents(run, news):
    """Documents are named by id; one that is not there is said so in a line."""
    assert "[-Residents-]{+People+}" in run("explain", news, "a", "b").stdout
    failed(run("explain", news, "a", "nobody"), "no document 'nobody' in")
    assert "of the 7-letter shingles  at least 80 %" in run("explain", news, "a", "b").stdout
    assert run("explain", news, "a", "b").stdout.startswith(f"near-duplicates by the rule of {news} ")
    for words in (["--file", news, "a", "b"], [news, "a", "b", "c"], ["a"]):
        assert run("explain", *words).exit_code == 2
    assert "explain [OPTIONS] TEXTS..." in run("explain", "--help").stdout


def test_check_of_a_sample(run, news, server):
    """Exits with 0 for a healthy index, and with 1 and what to do for one that is not."""
    result = run("check", news, "--sample", "10")
    assert result.exit_code == 0, result.output
    assert "3 with a fingerprint, 3 examined" in result.stdout
    server.request("PUT", f"/{news}/_doc/late", {"text": TEXT})
    server.request("PUT", f"/{news}/_doc/picture?refresh=true", {"image": "a.png"})
    result = run("check", news, "--sample", "10", "--json")
    assert result.exit_code == 1
    [finding] = json.loads(result.stdout)["sample"]["findings"]
    assert finding["message"].endswith("which no lookup finds: 1 of 5")
    server.request("PUT", f"/{news}/_doc/late?refresh=true", {"text": "..."})
    result = run("check", news, "--sample", "10", "--json")
    assert (result.exit_code, json.loads(result.stdout)["sample"]["findings"]) == (0, [])


def test_tune(run, news):
    result = run("tune", news)
    assert result.exit_code == 0, result.output
    assert "recommended preset: " in result.stdout.splitlines()[0]
    assert f"to try it: es-simhash find {news} --preset " in result.stdout
    assert json.loads(run("tune", news, "--json").stdout)["sampled"] == 3
    result = run("tune", news, "--text-field", "title")
    assert result.exit_code == 1
    assert "check the field" in result.stderr


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
    command = re.search(r"run es-simhash ([^,]+)", finding.advice)[1].split()
    assert run(*command, *(["--yes"] if command[0] == "setup" else [])).exit_code == 0
    server.request("POST", f"/{index}/_refresh")
    assert simhash.check_sample(index).is_healthy


def test_setup_says_what_the_choice_is_worth(run, server, index):
    """The share that decides, of each preset up to the one that was chosen."""
    texts = {str(number): f"{TEXT} Meeting {number} of {number * 7} in room {number * 11}." for number in range(60)}
    put(server, index, [{"_id": id_, "body": text} for id_, text in texts.items()])
    shown = run("setup", index, "-t", "body").stdout
    chosen = re.search(r"preset (\w+)", shown)[1]
    assert re.search(rf"stay 80 % the same: identical .*{chosen} [0-9.]+ %; 98 % is enough", " ".join(shown.split()))
