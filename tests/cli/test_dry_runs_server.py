"""What a command says with --dry-run, or without --yes, is what it then does, and until then nothing is changed."""

import json

import pytest

from tests.servers.archives import write_archive
from tests.servers.command_line import TEXT
from tests.servers.support import read_all


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
    ["ingest", "_News", "{lines}", "--create", "-t", "body"],
    ["ingest", "{index}-new", "{lines}"],
    ["ingest", "{index}", "{lines}", "--preset", "near", "--verify", "2"],
]


def test_what_is_refused_is_refused_in_a_dry_run_too(run, news, server, tmp_path):
    (tmp_path / "lines").write_text(json.dumps({"body": TEXT}))
    before = mapping_of(server, news)
    for command in REFUSED:
        words = [word.format(index=news, lines=tmp_path / "lines") for word in command]
        dry = run(*words, "--dry-run")
        assert (dry.exit_code, len(dry.stderr.splitlines())) == (1, 1), dry.output
        assert mapping_of(server, news) == before
        assert run(*words).exit_code == 1


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
def test_a_pipeline(run, news, server):
    """The Elasticsearch of these tests has no Painless."""
    shown = run("export", "pipeline", news, "--install", "--name", news, "--use-as", "final")
    assert (shown.exit_code, f"would store pipeline {news}" in shown.stdout) == (0, True), shown.output
    assert news not in (server.request("GET", "/_ingest/pipeline", missing_ok=True) or {})
