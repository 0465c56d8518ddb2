"""The commands reconcile, groups, plan, review, apply, restore and history on real servers; and what they refuse."""

import json
import re
import shlex
from dataclasses import replace
from functools import wraps

import pytest

from es_simhash import SimHashClient, fingerprint, hamming_distance
from tests.servers.command_line import NEAR, OTHER, TEXT, failed
from tests.servers.removals import archived, decide_file, read_plan
from tests.servers.support import put, read_all

DISTANCE = hamming_distance(fingerprint(NEAR), fingerprint(TEXT))


@pytest.fixture
def news(run, server, index):
    """An index of which b and c are duplicates of a."""
    texts = {"a": NEAR, "b": NEAR.upper(), "c": TEXT, "d": OTHER}
    put(server, index, [{"_id": key, "body": text} for key, text in texts.items()])
    server.request("POST", f"/{index}/_refresh")
    assert 0 < DISTANCE <= 12
    assert run("setup", index, "-t", "body", "-d", DISTANCE, "--verify", "0.5", "--yes").exit_code == 0
    return index


def lines(result):
    """Return the JSON Lines of a command that succeeded."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def decide(path, plan, *ids, by="Ann\x1b[31m", at=10, **changed):
    """Write a file of decisions that keeps *ids*."""
    found = read_plan(plan)
    keep = [each.document.key for each in found.lines if each.document.id in ids]
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
    assert sorted(read_all(server, news)) == ["a", "c", "d"]
    assert archived(plan).keys() == {"b"}
    [last] = run(*command, "--yes", "--quiet", "--json").stdout.splitlines()
    done = {name: json.loads(last)[name] for name in ("deleted", "deleted_earlier", "kept")}
    assert done == {"deleted": 0, "deleted_earlier": 1, "kept": {"decided": 1}}
    monkeypatch.setenv("COLUMNS", "300")
    told = run("history", "b", plan).stdout
    assert "Ann\\x1b[31m: another bridge" in " ".join(told.split())
    assert run("restore", plan).exit_code == 0
    assert sorted(read_all(server, news)) == ["a", "b", "c", "d"]
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


def test_reconcile_and_groups(run, news, server):
    """Groups are printed with their canonical first; after the canonical is deleted another stands for them."""
    [group] = lines(run("groups", news, "--json"))
    assert (group["id"], [each["id"] for each in group["members"]]) == ("a", ["a", "b", "c"])
    shown = [line.split() for line in run("groups", news).stdout.splitlines()]
    assert shown[0] == ["documents", "bits", "id"]
    assert shown[2:] == [["3", "a"], ["0", "b"], [f"{DISTANCE}", "c"]]
    [again] = lines(run("reconcile", news, "--json"))
    assert (again["documents"], again["duplicates"], again["changed"]) == (4, 2, 0)
    server.request("DELETE", f"/{news}/_doc/a?refresh=true")
    [dry] = lines(run("reconcile", news, "--dry-run", "--json"))
    assert dry["changed"] == 2
    result = run("reconcile", news)
    assert f"{news}: 3 documents, 2 groups, 1 duplicate; 2 rewritten" in result.stdout
    server.request("POST", f"/{news}/_refresh")
    [group] = lines(run("groups", news, "--json"))
    assert (group["id"], [each["id"] for each in group["members"]]) == ("b", ["b", "c"])


def test_a_reconcile_that_others_overtake_exits_with_3(run, news, monkeypatch):
    reconcile = SimHashClient.reconcile

    @wraps(reconcile)
    def overtaken(*given, **how):
        return replace(reconcile(*given, **how), is_settled=False)

    monkeypatch.setattr(SimHashClient, "reconcile", overtaken)
    result = run("reconcile", news, "--json")
    assert (result.exit_code, json.loads(result.stderr)["error"]["kind"]) == (3, "unsettled"), result.output
    assert run("reconcile", news, "--dry-run").exit_code == 0


def test_a_plan_is_made_looked_at_and_applied(run, news, server, tmp_path):
    """Lines that no longer fit are kept, counted by kind, and the command exits 1."""
    plan = tmp_path / "removal.db"
    said = "will be refused: 2 of 4 documents would be removed, more than the share of 0.2: "
    for shown in (run("plan", news, "--out", plan), run("review", plan)):
        assert shown.exit_code == 0
        assert said in " ".join(shown.stdout.split())
        assert f"then: es-simhash apply {plan} --yes\n" in shown.stdout
    failed(run("plan", news, "--out", plan), f"{plan} exists already: give another name")
    apply = ("apply", plan, "--max-share", "1")
    server.request("POST", f"/{news}/_update/c?refresh=true", {"doc": {"body": "something else"}})
    shown = run(*apply)
    assert f"1 document of {news} would be deleted, and kept in {plan}; nothing changed" in shown.stdout
    assert f"error: {news}/c would be kept: its text, or a field that decided, was changed" in shown.stderr
    assert (
        "1 line would not be carried out (changed 1): run it again for what was refused, plan again for" in shown.stderr
    )
    plain = run(*apply, "--json")
    assert (shown.exit_code, plain.exit_code, json.loads(plain.stdout)["would_delete"]) == (3, 3, 1)
    assert sorted(read_all(server, news)) == ["a", "b", "c", "d"]
    result = run(*apply, "--yes")
    assert (result.exit_code, "changed 1" in result.stderr) == (3, True)
    assert f"1 document deleted, kept in {plan}" in result.stdout
    assert sorted(read_all(server, news)) == ["a", "c", "d"]
    assert archived(plan).keys() == {"b"}
    # What is done is not left to do, and not done once more.
    records = [json.loads(line) for line in run(*apply, "--yes", "--json").stdout.splitlines()]
    assert {record["id"]: (record["action"], record["kind"], record.get("earlier", False)) for record in records} == {
        "b": ("deleted", None, True),
        "c": ("kept", "changed", False),
    }
    before = plan.read_bytes()
    again = run(*apply, "--yes")
    assert f"0 documents deleted, 1 by earlier runs, kept in {plan}\n" in again.stdout
    assert not re.search("^deleted ", again.stdout, re.MULTILINE)
    failed(run("restore", plan, "--dry-run", "--report", plan), "give another")
    assert plan.read_bytes() == before
