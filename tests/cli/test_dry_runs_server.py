"""What a command says with --dry-run, or without --yes, is what it then does, and until then nothing is changed."""

import json

import pytest

from tests.servers.archives import write_archive
from tests.servers.command_line import NEAR, TEXT, failed
from tests.servers.support import read_all

BAD = [
    json.dumps({"_id": "1", "body": TEXT}),
    "{broken",
    json.dumps({"_id": "2", "body": None}),
    json.dumps({"_id": "3", "body": "!!!"}),
    json.dumps({"_id": "4", "simhash": "taken", "body": TEXT}),
    json.dumps([{"body": TEXT}]),
    json.dumps({"body": NEAR}),
]


def mapping_of(server, index):
    return server.request("GET", f"/{index}/_mapping")[index]["mappings"]


@pytest.mark.parametrize(
    "command",
    [
        ["create", "{index}-new", "-t", "body"],
        ["ingest", "{index}", "{lines}"],
        ["reconcile", "{index}"],
        ["restore", "{removal}"],
    ],
    ids=lambda command: command[0],
)
def test_each_says_that_it_is_a_dry_run(run, news, server, tmp_path, command):
    (tmp_path / "lines").write_text(json.dumps({"body": TEXT}))
    archive = tmp_path / "removed.db"
    if command[0] == "restore":
        write_archive(archive, [(news, "x", None, json.dumps({"body": TEXT}), "a")])
    command = [each.format(index=news, lines=tmp_path / "lines", removal=archive) for each in command]
    before = read_all(server, news)
    shown = run(*command, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[-1].endswith("; dry run: nothing was written")
    assert json.loads(run(*command, "--dry-run", "--json").stdout)["dry_run"] is True
    assert read_all(server, news) == before


REFUSED = [
    ["create", "News", "-t", "body"],
    ["create", "{index}", "-t", "body"],
    ["ingest", "_News", "{lines}", "--create", "-t", "body"],
    ["ingest", "{index}-new", "{lines}"],
    ["ingest", "{index}", "{lines}", "--preset", "near", "--verify", "2"],
    ["ingest", "{index}", "{lines}", "--on-duplicate", "skip", "--max-distance", "9"],
]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_is_refused_is_refused_in_a_dry_run_too(run, news, server, tmp_path, command):
    (tmp_path / "lines").write_text(json.dumps({"body": TEXT}))
    command = [each.format(index=news, lines=tmp_path / "lines") for each in command]
    before = mapping_of(server, news)
    dry = run(*command, "--dry-run")
    assert dry.exit_code in (1, 2), dry.output
    assert len([line for line in dry.stderr.splitlines() if line.lower().startswith("error: ")]) == 1
    assert "template" not in dry.stderr
    assert mapping_of(server, news) == before
    assert run(*command).exit_code == dry.exit_code


@pytest.mark.parametrize("name", ["ingest", "restore"])
def test_no_file_is_replaced(run, news, tmp_path, name):
    """The report of an earlier run stays; a new one is written."""
    lines, archive, report = tmp_path / "lines", tmp_path / "removed.db", tmp_path / "report.jsonl"
    lines.write_text(json.dumps({"body": TEXT}))
    write_archive(archive, [(news, "x", None, json.dumps({"body": TEXT}), "a")])
    command = {"ingest": ["ingest", news, lines], "restore": ["restore", archive]}[name]
    report.write_text("earlier\n")
    shown = run(*command, "--report", report, "--dry-run")
    assert shown.exit_code != 0
    assert f"{report} exists, and a dry run replaces no file: give another name" in shown.stderr
    assert report.read_text() == "earlier\n"
    report.unlink()
    shown = run(*command, "--report", report, "--dry-run")
    assert (shown.exit_code, len(report.read_text().splitlines())) == (0, 1), shown.output
    assert run(*command, "--report", report).exit_code == 0


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


@pytest.mark.parametrize("is_new", [True, False])
def test_ingest(run, index, server, tmp_path, is_new):
    """The same lines are read, or not, as when they are written; near-duplicates are not searched for."""
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(BAD))
    command = ["ingest", index, path, "--on-duplicate", "none", "--json"]
    if is_new:
        command += ["--create", "-t", "body"]
    else:
        assert run("create", index, "-t", "body").exit_code == 0
    dry = run(*command, "--dry-run")
    if is_new:
        failed(run("check", index), index)
    else:
        assert read_all(server, index) == {}
    [planned, done] = [json.loads(each.stdout) for each in (dry, run(*command))]
    assert (planned["unreadable"], planned["fingerprinted"]) == (2, done["fingerprinted"])
    # What the server refuses is known only then.
    assert planned["written"] == done["written"] + done["refused"]
    command.remove("--json")
    assert "5 documents would be written" in run(*command, "--dry-run").stdout


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_pipeline(run, news, server):
    """The Elasticsearch of these tests has no Painless."""
    shown = run("export", "pipeline", news, "--install", "--name", news, "--use-as", "final")
    assert (shown.exit_code, f"would store pipeline {news}" in shown.stdout) == (0, True), shown.output
    assert news not in (server.request("GET", "/_ingest/pipeline", missing_ok=True) or {})
