"""The commands around decisions: plan, review, apply and history, on real servers; and what they refuse."""

import json
from html import unescape

import pytest

from tests.servers.command_line import NEAR, TEXT, failed
from tests.servers.removals import archived
from tests.servers.support import put, read_all


@pytest.fixture
def news(run, server, index):
    """An index of which b and c are duplicates of a."""
    put(server, index, [{"_id": "a", "body": TEXT}, {"_id": "b", "body": TEXT.upper()}, {"_id": "c", "body": NEAR}])
    server.request("POST", f"/{index}/_refresh")
    assert run("backfill", index, "-t", "body").exit_code == 0
    assert run("reconcile", index, "-d", 16, "--verify", "0.5").exit_code == 0
    return index


def decide(path, plan, *ids, **changed):
    """Write a file of decisions that keeps *ids*."""
    [*lines, last] = map(json.loads, plan.read_text().splitlines())
    keep = [{name: each[name] for name in ("index", "id", "routing")} for each in lines[1:] if each["id"] in ids]
    head = {"format": "es-simhash-decisions", "version": 1, "plan_sha256": last["sha256"], "by": "Ann\x1b[31m"}
    path.write_text(json.dumps(head | {"reason": "another bridge", "keep": keep} | changed))
    return path


def test_a_plan_is_approved_and_applied(run, news, server, tmp_path):
    """What the commands print leads from one to the next; what is kept does not make the exit code 1."""
    plan, page, archive = (tmp_path / name for name in ("removal.jsonl", "page.html", "removed.jsonl.gz"))
    made = run("plan", news, "--out", plan, "--max-share", 1)
    assert made.exit_code == 0, made.output
    sha256 = json.loads(plan.read_text().splitlines()[-1])["sha256"]
    assert f"sha256: {sha256}" in made.stdout
    shown = run("review", plan, "--html", page)
    assert f"sha256: {sha256}" in shown.stdout
    assert json.loads(run("review", plan, "--json").stdout)["plan"] == sha256
    assert "SHA-256" in run("review", plan).stdout
    words = unescape(page.read_text()).replace("<span>", "").replace("</span>", "")
    assert "es-simhash apply removal.jsonl --archive removed.jsonl.gz --decisions removal.decisions.json --yes" in words
    decisions = decide(tmp_path / "removal.decisions.json", plan, "c")
    command = ("apply", plan, "--archive", archive, "--decisions", decisions, "--sha256", sha256)
    dry = run(*command)
    assert (dry.exit_code, dry.stderr) == (0, ""), dry.output
    assert (
        f"1 document of {news} would be deleted, and kept in {archive}; 1 stays by decision; nothing changed"
        in dry.stdout
    )
    assert json.loads(run(*command, "--json").stdout)["kept"] == {"decided": 1}
    done = run(*command, "--yes")
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert "kept  c  duplicate of a" in done.stdout
    assert "by decision" in done.stdout
    assert f"1 document deleted, kept in {archive}; 1 stays by decision" in done.stdout
    assert sorted(read_all(server, news)) == ["a", "c"]
    assert archived(archive).keys() == {"b"}
    *_, last = run(*command, "--yes", "--quiet", "--json").stdout.splitlines()
    done = {name: json.loads(last)[name] for name in ("deleted", "deleted_earlier", "kept")}
    assert done == {"deleted": 0, "deleted_earlier": 1, "kept": {"decided": 1}}
    told = run("history", "b", "--archive", archive).stdout
    assert "approved by Ann\\x1b[31m: another bridge" in " ".join(told.split())
    [[removed]] = json.loads(run("history", "b", "--archive", archive, "--json").stdout)["removals"]
    assert (removed["by"], removed["reason"]) == ("Ann\x1b[31m", "another bridge")
    assert run("restore", archive).exit_code == 0
    assert sorted(read_all(server, news)) == ["a", "b", "c"]


def test_what_was_not_approved_is_refused(run, news, server, tmp_path):
    """In one line, with nothing deleted and no archive."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    command = ("apply", plan, "--archive", archive, "--yes")
    wrong = decide(tmp_path / "wrong.json", plan, "b", by="")
    for options, said in (
        (("--decisions", wrong), "'by' is empty, and must say who decides"),
        (("--decisions", decide(tmp_path / "other.json", plan, plan_sha256="0")), "decides about another plan"),
        (("--decisions", plan), "is not a file of decisions that can be used"),
        (("--sha256", "0" * 64), f"{plan} is not the plan that was approved"),
    ):
        result = run(*command, *options)
        assert (result.exit_code, result.stdout) == (1, "")
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert run(*command, "--decisions", tmp_path / "none").exit_code == 2
    for option, value in (("--decisions", wrong), ("--sha256", "0")):
        result = run("apply", news, "--archive", archive, option, value)
        assert result.exit_code == 2
        assert f"{option} is for a PLAN in a file, and '{news}' is an INDEX" in result.stderr
    assert not archive.exists()
    assert sorted(read_all(server, news)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "INDEX", "--yes"),
        ("plan", "INDEX", "--overwrite"),
        ("plan", "INDEX", "--archive", "ARCHIVE"),
        ("apply", "INDEX"),
        ("apply", "INDEX", "--yes"),
        ("apply", "PLAN", "--archive", "ARCHIVE", "--preset", "near"),
        ("tag",),
        ("tag", "INDEX", "--max-share", 1),
        ("tag", "INDEX", "--archive", "ARCHIVE"),
        ("reconcile", "INDEX", "--yes"),
        ("reconcile", "INDEX", "--regroup", "--dry-run", "--yes"),
        ("create", "INDEX", "--yes"),
        ("create", "INDEX", "--existing", "--dry-run"),
        ("pipeline", "INDEX", "-t", "body", "--dry-run"),
    ],
)
def test_options_that_do_not_go_together(run, index, tmp_path, arguments):
    names = {"INDEX": index, "PLAN": tmp_path / "plan.jsonl", "ARCHIVE": tmp_path / "archive"}
    result = run(*(names.get(each, each) for each in arguments))
    assert result.exit_code == 2, result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"no plan", b'{"format": "es-simhash-plan", "version": 9}\n{}\n'])
def test_a_plan_that_cannot_be_used(run, tmp_path, data):
    plan = tmp_path / "plan"
    plan.write_bytes(data)
    line = failed(run("apply", plan, "--archive", tmp_path / "archive", "--yes"))
    assert line.startswith(f"error: {plan}")
    assert not (tmp_path / "archive").exists()
