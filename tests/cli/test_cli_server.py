"""
The commands create, find, check, tune, remove-fields and serve on real servers: what they do, and what they print.

What a command says with --dry-run, or without --yes, is what it then does, and until then nothing is changed.
"""

import gzip
import json
import re
from pathlib import Path

import pytest

from es_simhash import fingerprint, hamming_distance, to_hex
from es_simhash.cli.local import show_demo
from es_simhash.cli.options import To
from es_simhash.cli.show import Output
from tests.docs.test_cli_docs import MAPPINGS
from tests.servers.archives import write_archive
from tests.servers.command_line import NEAR, OTHER, TEXT, failed
from tests.servers.support import ONE_SHARD, read_all


def mapping_of(server, index):
    return server.request("GET", f"/{index}/_mapping")[index]["mappings"]


def test_find_by_text_file_fingerprint_and_id(run, news, tmp_path):
    """Every way of asking gives the same near-duplicates; a document asked for is not its own."""
    distance = hamming_distance(fingerprint(TEXT), fingerprint(NEAR))
    assert 0 < distance <= 12
    (tmp_path / "text").write_text(TEXT)
    for arguments, stdin in (
        ([TEXT], None),
        (["-"], TEXT),
        ([], TEXT),
        (["--file", tmp_path / "text"], None),
        (["--fingerprint", to_hex(fingerprint(TEXT))], None),
    ):
        found = json.loads(run("find", news, *arguments, "-d", 12, "--json", stdin=stdin).stdout)
        assert found["complete"] is True
        assert [(each["id"], each["distance"]) for each in found["near_dups"]] == [("a", 0), ("b", distance)]
    for options in ([], ["--routing", "a"]):  # the value of a document without one is its id
        [other] = json.loads(run("find", news, "--id", "a", *options, "-d", 12, "--json").stdout)["near_dups"]
        assert other["id"] == "b"


def test_find_prints_a_table(run, news, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    result = run("find", news, TEXT, "-d", 12, "--source", "body,key", "--filter", '{"ids": {"values": ["a", "b"]}}')
    assert "2 near-duplicates within 12 bits" in result.stdout
    assert NEAR in result.stdout
    nothing = run("find", news, "quite another text", "-d", 0)
    assert nothing.stdout == "no near-duplicates within 0 bits, texts not compared\n"
    assert f"found by es-simhash passages {news}, a document of a moment ago after the next refresh" in nothing.stderr
    assert "has no letters and no digits" in run("find", news, "...").stderr


def test_find_many_answers_each_line(run, news, tmp_path):
    """Texts and documents give a line each, in order; one that cannot be asked does not keep the others waiting."""
    path = tmp_path / "questions.jsonl.gz"
    lines = [json.dumps(TEXT), json.dumps({"body": OTHER}), "{broken", json.dumps({"body": 7}), "3", '{"title": "x"}']
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    result = run("find", news, "--input", path, "--size", 1, "-d", 12)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["line"] for each in answers] == [1, 2, 3, 4, 5, 6]
    assert [[found["id"] for found in each.get("near_dups", [])] for each in answers] == [["a"], ["c"], [], [], [], []]
    assert ["error" in each for each in answers] == [False, False, True, True, True, False]
    said = "error: 3 lines of 6 failed: see their error in the output\n"
    assert (result.exit_code, result.stderr) == (3, said)


def test_create_check_and_remove(run, index, server, tmp_path):
    """An index made by the command works, and after remove nothing of ours is in it."""
    (tmp_path / "own.json").write_text(json.dumps({"mappings": {"properties": {"title": {"type": "keyword"}}}}))
    made = run("create", index, "-t", "body", "-d", 8, "--mappings", tmp_path / "own.json",
               "--settings", '{"number_of_shards": 1}', "--set", "size=5", "--json")  # fmt: skip
    assert json.loads(made.stdout)["scheme"]["parameters"]["size"] == 5
    failed(run("create", index, "-t", "body"), index, "choose another name")
    (tmp_path / "x.jsonl").write_text(json.dumps({"_id": "1", "title": "t", "body": TEXT}))
    assert run("ingest", index, tmp_path / "x.jsonl").exit_code == 0
    table = run("check", index).stdout
    assert "shingles-3(" in table
    shown = run("remove-fields", index)
    assert f"would remove 'simhash' from 1 document, and from _meta in the mapping of {index}; " in shown.stdout
    assert "nothing changed, pass --yes to do it" in shown.stdout
    assert read_all(server, index)["1"]["simhash"]
    assert "has nothing below 'nosuch'" in run("remove-fields", index, "--prefix", "nosuch", "--yes").stderr
    assert json.loads(run("remove-fields", index, "--yes", "--json").stdout)["documents"] == 1
    assert read_all(server, index)["1"].get("simhash") is None
    assert "es_simhash" not in mapping_of(server, index).get("_meta", {})
    after = run("check", index)
    assert after.exit_code == 1
    assert f"warning: {index}: " in after.stderr


@pytest.mark.parametrize("kind", ["stale", "broken", "lost_canonicals"])
def test_what_a_check_says_to_run_mends_the_index(run, server, index, simhash, kind):
    """Each fault of the fingerprints is found, and the command in its advice leaves none."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    texts = {"a": TEXT, "b": TEXT, "c": OTHER}
    list(simhash.ingest(index, [{"_id": id_, "body": text} for id_, text in texts.items()]))
    fields = server.request("GET", f"/{index}/_source/c")["simhash"]
    sources = {
        "stale": {"body": TEXT.replace("the", "every"), "simhash": fields},
        "broken": {"body": OTHER, "simhash": fields | {"fingerprint": "ABCDEFABCDEFABCD"}},
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
    server.request("PUT", f"/{news}/_doc/long?refresh=true", {"body": "every word of a long text " * 5_000})
    result = run("tune", news)
    assert (result.exit_code, "measured by their first 100,000 letters" in result.stderr) == (3, True), result.output


@pytest.mark.parametrize("server", ["elasticsearch", "opensearch"], indirect=True)
def test_the_files_of_mappings_are_taken_by_the_server(server, index):
    """Under names of this test's own."""
    files = {path.stem: json.loads(path.read_text("utf-8")) for path in MAPPINGS.glob(f"{server.product}/*.json")}
    template = files["index-template"] | {"index_patterns": [f"{index}-*"], "composed_of": [index]}
    try:
        server.request("PUT", f"/{index}", files["mapping"])
        server.request("PUT", f"/{index}/_mapping", files["mapping"]["mappings"])
        server.request("PUT", f"/_component_template/{index}", files["component-template"])
        server.request("PUT", f"/_index_template/{index}", template)
        server.request("PUT", f"/{index}-more")
        held = server.request("GET", f"/{index}-more/_mapping")[f"{index}-more"]["mappings"]
        assert held["properties"]["simhash"]["properties"]["block3"]["type"] == "keyword"
        assert held["_meta"]["es_simhash"]["simhash"]["scheme"]["name"] == "shingles"
    finally:
        server.request("DELETE", f"/_index_template/{index}", missing_ok=True)
        server.request("DELETE", f"/_component_template/{index}", missing_ok=True)


@pytest.mark.parametrize(
    "command",
    [
        ["create", "{index}-new", "-t", "body"],
        ["reconcile", "{index}"],
        ["restore", "{removal}"],
    ],
    ids=lambda command: command[0],
)
def test_each_says_that_it_is_a_dry_run(run, news, server, tmp_path, command):
    archive = tmp_path / "removed.db"
    if command[0] == "restore":
        write_archive(archive, [(news, "x", None, json.dumps({"body": TEXT}), "a")])
    command = [each.format(index=news, removal=archive) for each in command]
    before = read_all(server, news)
    shown = run(*command, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[-1].endswith("; dry run: nothing was written")
    assert json.loads(run(*command, "--dry-run", "--json").stdout)["dry_run"] is True
    assert read_all(server, news) == before


def test_what_is_refused_is_refused_in_a_dry_run_too(run, news, server):
    before = mapping_of(server, news)
    for more in ([], ["--dry-run"]):
        failed(run("create", "News", "-t", "body", *more), "News")
    failed(run("ingest", news, "-", "--preset", "near", "--verify", "2", stdin=json.dumps({"body": TEXT})), "verify 2")
    assert mapping_of(server, news) == before


def test_create_existing(run, news, server):
    """Recorded settings stay until --yes is given."""
    before = mapping_of(server, news)
    shown = run("create", news, "--existing", "-t", "title", "-d", 5)
    assert shown.exit_code == 0, shown.output
    assert f"would add the fields to {news}; nothing changed, pass --yes to do it" in shown.stdout
    assert mapping_of(server, news) == before
    assert run("create", news, "--existing", "-t", "title", "-d", 5, "--yes").exit_code == 0
    [report] = json.loads(run("check", news, "--json").stdout)["indices"]
    assert (report["text_fields"], report["max_distance"]) == (["title"], 5)


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_pipeline_is_not_stored(run, news, server):
    """The Elasticsearch of these tests has no Painless."""
    shown = run("export", "pipeline", news, "--install", "--name", news, "--use-as", "final")
    assert (shown.exit_code, f"would store pipeline {news}" in shown.stdout) == (0, True), shown.output
    assert news not in (server.request("GET", "/_ingest/pipeline", missing_ok=True) or {})


def test_the_demo_leaves_nothing_behind(server, capsys, monkeypatch):
    """It finds copies of the corpus, says what to do next, and deletes its index."""
    show_demo(To(url=server.url))
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("news-zh-01-typo", "{+", "-]"))
    readme = Path("README.md").read_text("utf-8").split("```sh\n")[2].split("```")[0]
    commands = [line.removeprefix("es-simhash") for line in readme.splitlines() if line.startswith("es-simhash")]
    assert len(commands) == 6
    assert all(f"{command}\n" in shown for command in commands)
    monkeypatch.setattr(Output, "as_json", True)
    show_demo(To(url=server.url))
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert any({"listing-zh-01", "listing-zh-01-fullwidth"} <= {*group} for group in groups)
    # A copy begins with the id of its original.
    assert all(name.startswith(group[0][: len("news-zh-01")]) for group in groups for name in group)
    assert server.request("GET", "/es-simhash-demo-*", missing_ok=True) == {}
