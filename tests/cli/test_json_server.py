"""Every command that answers, with --json: what it prints is JSON, and so is what it says of a failure."""

import json

import pytest

from es_simhash.cli.app import each_command
from tests.docs.json_page import COMMANDS as ANSWERING, find_unknown, find_unprinted
from tests.servers.command_line import OTHER, TEXT
from tests.servers.support import put

COMMANDS = [name for name, _ in each_command()]
# They run without an end, or make an index of their own.
ELSEWHERE = {"mcp", "serve"}
# What only some answers have: routing, failures, findings, what is odd about groups, apply --quiet, lines of stdin, and
# rules that measure by words, or go by values.
UNUSUAL = {
    "near-duplicate": ["routing", "similarity", "containment", "numbers", "unverified"],
    "rejected": ["routing", "unverified"],
    "rule": ["measure", "unit", "numbers", "per", "within"],
    "failure": ["kind", "index", "id", "reason", "status", "file", "line"],
    "finding": ["severity", "topic", "message", "advice", "kind", "values"],
    "steps": ["step", "preprocess", "texts", "found", "found_after"],
    "removed": ["routing", "kept", "restored", "approved"],
    "overlap": ["routing", "source"],
    "outcome": ["routing", "earlier"],
    "groups": ["canonicals", "unreadable"],
    "groups---pairs": ["routing", "other_routing", "similarity", "unverified"],
    "apply": ["deleted", "deleted_earlier"],
    "fingerprint": ["line"],
}
READING = {"check", "find", "passages", "groups", "report", "review", "history", "explain", "tune", "fingerprint"}


def _values(text):
    """Return the JSON values of an output: one, or one a line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def _check(result, code, kinds=()):
    """Check the exit code and the kinds of the errors; return the fields of the errors and what was printed."""
    said = [next(iter(json.loads(line).items())) for line in result.stderr.splitlines()]
    assert {name for name, _ in said} <= {"error", "warning", "note"}
    assert all(found["message"] and "\n" not in found["message"] for _, found in said)
    errors = [found for name, found in said if name == "error"]
    assert (result.exit_code, [each["kind"] for each in errors]) == (code, [*kinds]), result.output
    return errors, _values(result.stdout)


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_every_answer_is_json(run, index, server, tmp_path, monkeypatch):
    """Also where nothing is wrong, each message beside the answer is an object; a pipe gets the same, and sentences."""
    lines = [
        {"_id": id_, "body": text, "source": "x"} for id_, text in {"a": TEXT, "b": TEXT.upper(), "c": OTHER}.items()
    ]
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    (tmp_path / "queries").write_text("council\n")
    plan = tmp_path / "removal.db"
    commands = [
        ["create", index, "-t", "body", "-d", "12", "--passages"],
        ["ingest", index, tmp_path / "news.jsonl", "--no-verify"],
        ["check", index],
        ["find", index, TEXT, "--source", "source"],
        ["find", index, f"{TEXT[:75]} {OTHER[:9]}", "--preset", "near", "-d", "64", "--source", "source"],
        ["passages", index, TEXT],
        ["setup", index, "--yes"],
        ["follow", index, "--once", "--state-index", f"{index}-state"],
        ["reconcile", index],
        ["groups", index],
        ["groups", index, "--pairs"],
        ["report", index],
        ["report", index, "--queries", tmp_path / "queries"],
        ["plan", index],
        ["plan", index, "--out", plan, "--max-share", "1"],
        ["review", plan],
        ["apply", plan],
        ["apply", plan, "--yes"],
        ["history", "b", plan],
        ["restore", plan],
        ["explain", index, "a", "b"],
        ["check", index, "--sample", "10"],
        ["tune", index, "--sample", "3"],
        ["report", index, "--out", tmp_path / "report.html"],
        ["fingerprint", TEXT],
        ["explain", TEXT, "another text"],
        ["export", "mapping", "-t", "body"],
        ["export", "pipeline", "-t", "body"],
        ["export", "pipeline", index, "--install"],
        ["export", "search-template"],
        ["find", index, "--id", "a", "--query", "kql", "-d", "8"],
        ["export", "dashboards", index, "--check"],
        ["remove-fields", index, "--yes"],
    ]
    used = {" ".join(each[:2]) if each[0] == "export" else each[0] for each in commands}
    assert used == {*COMMANDS} - ELSEWHERE
    answers = {}
    for each in commands:
        answer = run(*each, "--json")
        server.request("POST", f"/{index}/_refresh", missing_ok=True)
        printed = _check(answer, 0)[1]
        assert printed, each
        name = "export pipeline" if "--install" in each else "groups --pairs" if "--pairs" in each else each[0]
        assert name not in ANSWERING or find_unknown(name, printed) == [], each
        answers.setdefault(name, []).extend(printed)
        if each[0] in READING and "--query" not in each:
            with monkeypatch.context() as patch:
                patch.setenv("TTY_COMPATIBLE", "0")
                piped = run(*each)
            assert [found.keys() for found in _values(piped.stdout)] == [found.keys() for found in printed], each
            assert not piped.stderr.startswith("{")
    assert find_unprinted({name: answers[name] for name in {*ANSWERING} & answers.keys()}) == UNUSUAL


def test_every_failure_is_json(run, news, index, server, tmp_path):
    """A failed command has one error; parts that failed have one each, with the fields of the failure."""
    missing = f"{index}-missing"
    for name in ("check", "follow", "reconcile", "groups", "plan", "remove-fields"):
        [failure], printed = _check(run(name, missing, "--json"), 1, ["server"])
        assert missing in failure["message"]
        assert printed == []
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"_id": "d", "body": "one two three"}\n{broken\n{"_id": "e", "body": {"no": "text"}}\n')
    errors, [summary] = _check(run("ingest", news, bad, "--json"), 3, ["unreadable", "refused"])
    assert [(each["line"], each["id"]) for each in errors] == [(2, None), (3, "e")]
    assert [each["kind"] for each in summary["failures"]] == ["unreadable", "refused"]
    asked = tmp_path / "asked.jsonl"
    asked.write_text(f'{json.dumps(TEXT)}\n7\n"..."\n{{"title": "x"}}\n')
    errors, answers = _check(run("find", news, "--input", asked, "--json"), 3, ["lines_failed"])
    assert (errors[0]["number"], answers[1]["error"]["kind"]) == (1, "InvalidInputError")
    assert [each["no_fingerprint"]["kind"] for each in answers[2:]] == ["no_features"] * 2
    warning = json.loads(run("find", news, " ", "--json").stderr)["warning"]
    assert (warning["kind"], warning["scheme"]) == ("no_features", "shingles-3")
    put(server, news, [{"_id": "f", "body": 7}])
    server.request("POST", f"/{news}/_refresh")
    [failure], [summary] = _check(run("setup", news, "--yes", "--json"), 3, ["unusable"])
    assert (failure["index"], failure["id"]) == (news, "f")
    assert summary["filled"]["failures"] == [{name: failure[name] for name in summary["filled"]["failures"][0]}]
