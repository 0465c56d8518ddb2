"""The commands around decisions: plan, review, apply and history, on real servers; and what they refuse."""

import json
import re
import shlex

import pytest

from tests.servers.command_line import NEAR, TEXT, failed
from tests.servers.removals import archived, decide_file, read_plan
from tests.servers.support import put, read_all

CUT = TEXT.removesuffix(".")


@pytest.fixture
def news(run, server, index):
    """An index of which b and c are duplicates of a."""
    put(server, index, [{"_id": "a", "body": NEAR}, {"_id": "b", "body": NEAR.upper()}, {"_id": "c", "body": CUT}])
    server.request("POST", f"/{index}/_refresh")
    assert run("setup", index, "-t", "body", "-d", 16, "--verify", "0.5", "--yes").exit_code == 0
    return index


def decide(path, plan, *ids, by="Ann\x1b[31m", at=10, **changed):
    """Write a file of decisions that keeps *ids*."""
    found = read_plan(plan)
    keep = [each.document.key for each in found.removals() if each.document.id in ids]
    decide_file(path, found.sha256, keep, by=by, reason="another bridge", at=f"2026-11-27T{at}:00:00Z")
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    return path


@pytest.fixture
def plan(run, news, tmp_path):
    """A removal with a plan for b and c."""
    path = tmp_path / "removal.db"
    made = run("plan", news, "--out", path, "--max-share", 1)
    assert made.exit_code == 0, made.output
    assert f"sha256: {read_plan(path).sha256}" in made.stdout
    return path


def test_a_plan_is_approved_and_applied(run, news, server, plan, tmp_path, monkeypatch):
    """What the commands print leads from one to the next; what is kept does not make the exit code 1."""
    page, sha256 = tmp_path / "page.html", read_plan(plan).sha256
    shown = run("review", plan, "--html", page)
    assert f"sha256: {sha256}" in shown.stdout
    assert json.loads(run("review", plan, "--json").stdout)["plan"] == sha256
    assert "SHA-256" in run("review", plan).stdout
    assert 'data-file="removal.decisions.json"' in page.read_text()
    assert "es-simhash" not in page.read_text().replace("es-simhash-decisions", "")
    decisions = decide(tmp_path / "removal.decisions.json", plan, "c")
    for printed in (shown, run("review", plan)):
        *_, then, decided = printed.stdout.splitlines()
        assert then == f"then: es-simhash apply {plan} --yes"
        assert shlex.split(decided.partition(": ")[2]) == ["--decisions", str(decisions)]
    command = ("apply", plan, "--sha256", sha256)
    assert "was not taken in: give it by --decisions FILE, or" in failed(run(*command, "--yes"))
    before, dry = plan.read_bytes(), run(*command, "--decisions", decisions)
    assert (dry.exit_code, dry.stderr) == (0, ""), dry.output
    assert f"1 document of {news} would be deleted, and kept in {plan}; 1 stays by decision; nothing" in dry.stdout
    assert json.loads(run(*command, "--json", "--decisions", decisions).stdout)["kept"] == {"decided": 1}
    assert plan.read_bytes() == before
    done = run(*command, "--yes", "--decisions", decisions)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert re.search("\nkept +c +a ", done.stdout)
    assert "1 stay and 0 go after all, by Ann" in " ".join(run("review", plan).stdout.split())
    [told] = json.loads(run("review", plan, "--json").stdout)["decisions"]
    assert (told["by"], told["keep"]) == ("Ann\x1b[31m", [{"index": news, "id": "c", "routing": None}])
    assert f"1 document deleted, kept in {plan}; 1 stays by decision" in done.stdout
    assert sorted(read_all(server, news)) == ["a", "c"]
    assert archived(plan).keys() == {"b"}
    [last] = run(*command, "--yes", "--quiet", "--json").stdout.splitlines()
    done = {name: json.loads(last)[name] for name in ("deleted", "deleted_earlier", "kept")}
    assert done == {"deleted": 0, "deleted_earlier": 1, "kept": {"decided": 1}}
    monkeypatch.setenv("COLUMNS", "300")
    told = run("history", "b", plan).stdout
    assert "Ann\\x1b[31m: another bridge" in " ".join(told.split())
    assert run("restore", plan).exit_code == 0
    assert sorted(read_all(server, news)) == ["a", "b", "c"]
    after = ("plan", news, "--max-share", 1, "--after", plan)
    assert "left out: 1 kept by people before" in run(*after).stdout
    server.request("DELETE", f"/{news}/_doc/c?refresh=true")
    assert run(*after).stderr.startswith("warning: 1 document kept before, and not met now: ")


def test_what_is_held_back_is_shown_and_decided(run, server, index, tmp_path):
    """Three of each class, and what takes them in; no command that is printed removes more than the plan."""
    laws = [{"_id": f"{n}", "body": TEXT, "title": f"Law {n}"} for n in range(5)]
    put(server, index, laws)
    assert run("setup", index, "-t", "body", "--yes").exit_code == 0
    path = tmp_path / "removal.db"
    made = run("plan", index, "--out", path, "--max-share", 1)
    assert "0 documents of 5 would be removed" in made.stdout
    assert "4 repeat another: 0 lose nothing by going; 4 have a title of their own (--also title)" in made.stdout
    shown = [
        f"  title: {n}, for which 0 would stay: title: [-Law {n}-] {{+Law 0+}}" in made.stdout for n in range(1, 5)
    ]
    assert sum(shown) == 3
    assert "nothing goes as it is: decide on the page, or plan with --also\n" in made.stdout
    lines = run("plan", index, "--max-share", 1, "--json").stdout.splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["held back"] * 4
    assert "0 documents deleted" in run("apply", path, "--yes").stdout
    review = run("review", path)
    assert "then: " not in review.stdout
    assert f"100 %  {index}/1 is held back, 0 stays" in review.stdout
    assert "title: what goes has a title of its own" in review.stdout
    found = read_plan(path)
    decided = decide_file(tmp_path / "d.json", found.sha256, [], [(index, "3", None)], by="Ann")
    done = run("apply", path, "--yes", "--decisions", decided)
    assert "1 document deleted" in done.stdout, done.output
    assert json.loads(run("history", "3", path, "--json").stdout)["removals"][0]["approved"][0][0] == "Ann"
    also = run("plan", index, "--also", "title,few", "--max-share", 1, "--json")
    assert {json.loads(line)["id"] for line in also.stdout.splitlines()} == {"1", "2", "4"}
    server.request("DELETE", f"/{index}")
    gone = run("restore", path)
    assert gone.exit_code == 3, gone.output
    assert gone.stderr.endswith("error: 1 document not restored (index_missing 1)\n")


def test_a_removal_that_cannot_be_used(run, tmp_path):
    path, data = tmp_path / "removal.db", b"SQLite format 3\0" * 9
    path.write_bytes(data)
    for command in (["apply", path, "--yes"], ["review", path], ["restore", path], ["history", "a", path]):
        assert failed(run(*command)).startswith(f"error: {path}")
    assert path.read_bytes() == data
