"""Commands on an index that is missing, closed, red, read-only or not ours: one line says what to do."""

import json

import pytest

from es_simhash import get_scheme
from tests.servers.command_line import TEXT, failed
from tests.servers.support import put


def test_another_scheme_is_refused(run, news):
    """Both schemes are named, and nothing is searched or written."""
    failed(run("setup", news, "--scheme", "keywords"), get_scheme("shingles").id, "keywords")


def test_closed_index(run, news, server, index):
    """It is named, also among others."""
    closed = f"{index}-closed"
    server.request("PUT", f"/{closed}")
    server.request("POST", f"/{closed}/_close")
    for command in ("find", "passages", "groups", "report", "plan", "reconcile", "setup", "tune"):
        text = [TEXT] if command in ("find", "passages") else []
        result = run(command, f"{news},{closed}", *text)
        said = f"error: index {closed}: closed: open the index" in result.stderr.splitlines()[-1]
        assert (result.exit_code, said) == (1, True), (command, result.output)
    failed(run("ingest", closed, "-", stdin="{}"), f"index {closed}: closed")
    failed(run("export", "dashboards", closed, "--check"), f"index {closed}: closed")


@pytest.mark.usefixtures("impatient")
def test_red_index(run, server, index, monkeypatch):
    """A shard without any copy is an error in every command that reads, never a smaller answer."""
    settings = {"index.routing.allocation.require._name": "nobody"}
    server.request("PUT", f"/{index}?wait_for_active_shards=0", {"settings": settings})
    assert run("create", index, "--existing", "-t", "body", "--yes").exit_code == 0
    failed(run("find", index, TEXT), "all shards failed", "_cat/shards")
    monkeypatch.setenv("ES_SIMHASH_TIMEOUT", "1")
    for command in ("groups", "plan", "setup", "check"):
        result = run(command, index)
        assert result.exit_code == 1, (command, result.output)
        gaps = [line for line in result.stderr.splitlines() if line.startswith(("error: ", "warning: "))]
        assert gaps, (command, result.output)
        assert "unexpected" not in result.stderr


@pytest.mark.parametrize("block", ["read_only_allow_delete", "write"])
def test_read_only_index(run, news, server, tmp_path, block):
    """Whatever writes says what to do in the same words and fails; refused documents are counted; lookups go on."""
    (tmp_path / "more.jsonl").write_text(json.dumps({"key": "more", "body": TEXT}) + "\n", encoding="utf-8")
    done, open_ = tmp_path / "done.db", tmp_path / "open.db"
    for plan, more in ((done, ["--yes"]), (open_, [])):
        assert run("ingest", news, "-", stdin=json.dumps({"_id": plan.name, "body": TEXT})).exit_code == 0
        assert run("plan", news, "--out", plan, "--max-share", "1").exit_code == 0
        assert run("apply", plan, "--max-share", "1", *more).exit_code == 0
    put(server, news, [{"_id": "new", "body": TEXT}])
    server.request("PUT", f"/{news}/_settings", {f"index.blocks.{block}": True})
    try:
        for command in (
            ["ingest", news, tmp_path / "more.jsonl", "--id-field", "key"],
            ["remove-fields", news, "--yes"],
            ["setup", news, "--yes"],
            ["restore", done],
            *([] if block.endswith("delete") else [["apply", open_, "--yes", "--max-share", "1"]]),
        ):
            result = run(*command)
            said = "remove the block, or make room on the disk, and run it again" in result.stderr
            assert (result.exit_code, said, "];" in result.stderr) == (1, True, False), result.output
        assert run("find", news, TEXT).exit_code == 0
    finally:
        server.request("PUT", f"/{news}/_settings", {f"index.blocks.{block}": None})


def test_an_index_without_our_fields(run, index, server, tmp_path, monkeypatch):
    """Whatever needs them names the one command that adds and fills them, and that one names the text fields."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"body": {"type": "text"}}}})
    monkeypatch.setenv("COLUMNS", "300")
    way = "es-simhash setup INDEX --text-field FIELD"
    failed(run("find", index, TEXT), f"has no 'simhash' fields: add and fill them with {way}")
    page = tmp_path / "report.html"
    for name in ("plan", "report", f"report --out {page}", "groups", "reconcile", "check", "check --sample 9"):
        result = run(*name.split(), index)
        assert result.exit_code == 1, result.output
        assert way in " ".join(result.output.split()), (name, result.output)
    failed(run("setup", index), "give --text-field FIELD (mapped as text: body)")
    assert "(default)" not in run("check", index).stdout
    assert run("setup", index, "-t", "body", "--yes").exit_code == 0
    failed(run("setup", index, "-t", "titel"), "take the fingerprints out with es-simhash remove-fields INDEX first")
    failed(run("setup", index, "--time-field", "publishd"), "field 'publishd' of index", "is not mapped")
    assert run("remove-fields", index, "--yes").exit_code == 0
    assert run("setup", index, "-t", "title").exit_code == 0
