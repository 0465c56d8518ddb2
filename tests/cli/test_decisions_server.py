"""The commands around decisions: plan, review, apply and history, on real servers; and what they refuse."""

import json
import shlex
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


def test_decisions_are_not_forgotten(run, news, server, tmp_path):
    """Where they lie beside the plan, also as a browser names a second file; those of another plan are no reason."""
    plan, archive = tmp_path / "my plan.jsonl", tmp_path / "removed.jsonl.gz"
    made = run("plan", news, "--out", plan, "--max-share", 1)
    beside = decide(tmp_path / "my plan.decisions.json", plan, "c")
    for shown in (made, run("review", plan), run("review", plan, "--html", tmp_path / "page.html")):
        assert shown.exit_code == 0, shown.output
        last = shlex.split(shown.stdout.splitlines()[-1].partition(": ")[2])
        assert last[:3] == ["es-simhash", "apply", str(plan)]
        assert last[-3:] == ["--decisions", str(beside), "--yes"]
    whole = beside.read_text()
    command = ("apply", plan, "--archive", archive)
    for name, text in ((beside.name, whole), ("my plan.decisions (1).json", whole), (beside.name, whole[:-3])):
        path = tmp_path / name
        beside.unlink(missing_ok=True)
        path.write_text(text)
        for more in ((), ("--yes",), ("--yes", "--sha256", "0" * 64)):
            line = failed(run(*command, *more))
            advice = f"pass --decisions {shlex.quote(str(path))}, or --decisions none to leave them out"
            assert line == f"error: {plan} has decisions in {path}: {advice}"
        path.unlink()
    assert not archive.exists()
    decide(beside, plan, "c", plan_sha256="0" * 64)
    assert run(*command).exit_code == 0
    decide(beside, plan, "c")
    done = run(*command, "--decisions", "none", "--yes")
    assert done.exit_code == 0, done.output
    assert sorted(read_all(server, news)) == ["a"]


def test_help_shows_how_a_plan_is_approved(run):
    for option in ("--decisions", "--sha256"):
        assert f"\n  {option} " in run("apply", "--help").stdout


def test_what_was_decided_is_not_planned_again(run, news, tmp_path):
    """It is counted by the plan, and in its review; a file that cannot be used is refused, and makes no plan."""
    plan, second = tmp_path / "removal.jsonl", tmp_path / "second.jsonl"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    decisions = [decide(tmp_path / f"{id_}.json", plan, id_) for id_ in "bc"]
    command = ("plan", news, "--out", second, "--max-share", 1, "--decisions", decisions[0])
    made = run(*command)
    assert (made.exit_code, made.stderr) == (0, ""), made.output
    assert "1 document of 3 would be removed" in made.stdout
    assert "left out: 1 decided to stay before" in made.stdout
    header, line, _ = map(json.loads, second.read_text().splitlines())
    assert (header["decided"], line["id"]) == (1, "c")
    assert "decided before: 1 stay by earlier decisions" in run("review", second).stdout
    both = run(*command, "--decisions", decisions[1], "--overwrite", "--json")
    assert {name: json.loads(both.stdout)[name] for name in ("count", "left_out")} == {
        "count": 0,
        "left_out": {"decided": 2},
    }
    assert "decided" not in json.loads(plan.read_text().splitlines()[0])
    second.unlink()
    decide(decisions[0], plan, "b", by="")
    assert failed(run(*command)).startswith(f"error: {decisions[0]} is not a file of decisions that can be used")
    assert not second.exists()


def test_decisions_of_an_earlier_run(run, news, server, tmp_path):
    """Given again without them, apply would delete what was decided to stay."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    decisions = decide(elsewhere / "removal.decisions.json", plan, "c")
    assert run("apply", plan, "--archive", archive, "--decisions", decisions, "--yes").exit_code == 0
    for more in ((), ("--yes",), ("--decisions", "none", "--yes")):
        said = failed(run("apply", plan, "--archive", archive, *more))
        assert f"{archive} was begun with the decisions of" in said
        assert "give these decisions again" in said
    assert sorted(read_all(server, news)) == ["a", "c"]
    assert run("apply", plan, "--archive", archive, "--decisions", decisions, "--yes").exit_code == 0


def test_what_was_decided_stays_at_once(run, news, server, tmp_path):
    """Plan and apply in one command, with the decisions about an earlier plan."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan).exit_code == 0
    decisions = decide(tmp_path / "removal.decisions.json", plan, "c")
    command = ("apply", news, "--archive", archive, "--decisions", decisions, "--max-share", 1)
    assert "1 document of" in run(*command).stdout
    assert f"1 document deleted, kept in {archive}" in run(*command, "--yes").stdout
    assert sorted(read_all(server, news)) == ["a", "c"]


def test_two_files_of_decisions(run, news, server, tmp_path):
    """For an INDEX both are kept; about one PLAN one file decides; none goes with no file."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    both = [each for id_ in "bc" for each in ("--decisions", decide(tmp_path / f"{id_}.json", plan, id_))]
    refused = run("apply", plan, "--archive", archive, *both, "--yes")
    assert (refused.exit_code, archive.exists()) == (2, False)
    assert f"one file decides about the plan {plan}: give --decisions once" in refused.stderr
    for command in (("plan", news), ("apply", news, "--archive", archive), ("apply", plan, "--archive", archive)):
        mixed = run(*command, "--decisions", "none", *both[:2])
        assert (mixed.exit_code, "none goes with no file" in mixed.stderr) == (2, True), mixed.output
    command = ("apply", news, "--archive", archive, *both, "--max-share", 1)
    assert "0 documents of" in (dry := run(*command).stdout)
    assert "; 2 stay by decision" in dry
    done = run(*command, "--yes")
    assert (done.exit_code, "0 documents deleted; 2 stay by decision" in done.stdout) == (0, True), done.output
    assert sorted(read_all(server, news)) == ["a", "b", "c"]


def test_how_many_stay_at_once(run, news, server, tmp_path):
    """Of apply INDEX: it says it, for people and for programs, also when it is given again."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan).exit_code == 0
    decisions = decide(tmp_path / "kept.json", plan, "c")
    command = ("apply", news, "--archive", archive, "--decisions", decisions, "--max-share", 1)
    assert json.loads(run(*command, "--quiet", "--json").stdout)["kept"] == {"decided": 1}
    *_, last = run(*command, "--yes", "--quiet", "--json").stdout.splitlines()
    assert (json.loads(last)["deleted"], json.loads(last)["kept"]) == (1, {"decided": 1})
    again = run(*command, "--yes")
    assert again.exit_code == 0
    assert f"{news} has no duplicates now but 1 kept by decision" in again.stderr
    assert "1 document of 2 would be removed" in run("plan", news, "--decisions", "none").stdout


def test_what_was_decided_while_a_plan_waits(run, news, server, tmp_path):
    """The files are read at each run; what the plan of the first would remove is refused, until it is planned anew."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan).exit_code == 0
    decisions = decide(tmp_path / "kept.json", plan, "b")
    command = ("apply", news, "--decisions", decisions, "--max-share", 1, "--yes", "--archive")
    server.request("PUT", f"/{news}/_settings", {"index.blocks.write": True})
    assert run(*command, archive).exit_code == 1
    server.request("PUT", f"/{news}/_settings", {"index.blocks.write": False})
    decide(decisions, plan, "b", "c")
    [waiting] = tmp_path.glob("*.plan")
    refused = failed(run(*command, archive))
    said = f"error: {waiting}, the plan of an earlier run, removes '{news}'/'c', which --decisions keeps"
    assert refused == f"{said}: give another archive, so that a new plan leaves it out"
    decisions.write_text("broken")
    assert "is not a file of decisions that can be used" in failed(run(*command, archive))
    decide(decisions, plan, "b", "c")
    assert "2 stay by decision" in run(*command, tmp_path / "other.jsonl.gz").stdout
    assert sorted(read_all(server, news)) == ["a", "b", "c"]
    decide(decisions, plan, "b")
    beside = decide(waiting.with_suffix(".decisions.json"), waiting, "c")
    assert f"{waiting} has newer decisions in {beside}" in failed(run(*command, archive))
    beside.unlink()
    assert "1 document deleted" in run(*command, archive).stdout
    assert sorted(read_all(server, news)) == ["a", "b"]


def test_older_decisions_are_refused(run, news, server, tmp_path):
    """Where a newer file of the same plan keeps more: the command that was printed names the first one."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    older = decide(tmp_path / "removal.decisions.json", plan, "b")
    newer = decide(tmp_path / "removal.decisions (1).json", plan, "b", "c")
    command = ("apply", plan, "--archive", archive, "--yes", "--decisions")
    advice = f"pass --decisions {shlex.quote(str(newer))}, or move it away"
    assert failed(run(*command, older)) == f"error: {plan} has newer decisions in {newer}: {advice}"
    newer.write_text("{")
    assert failed(run(*command, older)) == f"error: {plan} has newer decisions in {newer}: {advice}"
    assert sorted(read_all(server, news)) == ["a", "b", "c"]
    decide(newer, plan, "b", "c")
    assert "2 stay by decision" in run(*command, newer).stdout
    newer.unlink()
    assert "1 document deleted" in run(*command, older).stdout


def test_decisions_about_another_index_are_refused(run, news, server, tmp_path):
    """Also where an alias has moved; of several files, those that fit nothing are counted."""
    plan, alias, other = tmp_path / "removal.jsonl", f"{news}-alias", f"{news}-2"
    assert run("plan", news, "--out", plan).exit_code == 0
    decisions = decide(tmp_path / "kept.json", plan, "c")
    put(server, other, [{"_id": "a", "body": TEXT}, {"_id": "b", "body": TEXT.upper()}, {"_id": "c", "body": NEAR}])
    server.request("PUT", f"/{other}/_alias/{alias}")
    assert run("backfill", other, "-t", "body").exit_code == 0
    assert run("reconcile", other, "-d", 16, "--verify", "0.5").exit_code == 0
    said = f"the decisions are about '{news}', and not about {other}"
    for command in (("plan", other), ("plan", alias), ("apply", alias, "--archive", tmp_path / "a", "--yes")):
        assert said in failed(run(*command, "--max-share", 1, "--decisions", decisions))
    assert sorted(read_all(server, other)) == ["a", "b", "c"]
    assert run("plan", other, "--out", plan, "--overwrite").exit_code == 0
    both = ("--decisions", decisions, "--decisions", decide(tmp_path / "both.json", plan, "b"), "--max-share", 1)
    made = run("plan", alias, *both)
    assert "left out: 1 decided to stay before" in made.stdout
    said = "warning: 1 document of --decisions not met: of another index or routing, gone, or no duplicate\n"
    assert made.stderr == run("apply", alias, "--archive", tmp_path / "a", *both).stderr == said
    assert json.loads(run("plan", alias, *both, "--json", "--out", tmp_path / "third").stdout)["unmet"] == 1
    approved = decide(tmp_path / "all.json", plan)  # keeps nothing, so it is about no index
    assert "2 documents of 3 would be removed" in run("plan", alias, "--decisions", approved).stdout


def test_a_plan_is_not_replaced_with_its_decisions(run, news, server, tmp_path):
    """What was decided about it would be lost; another plan's file says how to go by it."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    command = ("plan", news, "--out", plan, "--max-share", 1, "--overwrite")
    assert run(*command).exit_code == 0
    beside = decide(tmp_path / "removal.decisions.json", plan, "c")
    before = plan.read_bytes()
    advice = f"pass --decisions {beside}, or --decisions none to leave them out"
    assert failed(run(*command)) == f"error: {plan} has decisions in {beside}: {advice}"
    assert plan.read_bytes() == before
    assert "left out: 1 decided to stay before" in run(*command, "--decisions", beside).stdout
    words = f"plan again without what it keeps (es-simhash plan INDEX --decisions {beside})"
    assert words in failed(run("apply", plan, "--archive", archive, "--decisions", beside, "--yes"))
    decide(beside, plan, "b")
    replaced = run(*command, "--decisions", "none")
    assert "2 documents of 3 would be removed" in replaced.stdout
    assert run("apply", plan, "--archive", archive, "--yes").exit_code == 0
    assert sorted(read_all(server, news)) == ["a"]


def test_each_who_approved_is_in_the_history(run, news, tmp_path):
    """Ann, a restore, and then Bob: both times are told."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    for by in ("Ann", "Bob"):
        decisions = decide(tmp_path / "mine.json", plan, "c", by=by)
        assert (
            "1 document deleted" in run("apply", plan, "--archive", archive, "--yes", "--decisions", decisions).stdout
        )
        assert run("restore", archive).exit_code == 0
    told = json.loads(run("history", "b", archive, "--json").stdout)["removals"]
    assert [(each["by"], each.get("again")) for [each] in told] == [("Ann", None), ("Bob", True)]


def test_a_second_deletion_is_in_the_history(run, news, server, tmp_path):
    """After a restore the archive gets no second line of the document, and still says when it went again."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    command = ("apply", plan, "--archive", archive, "--yes", "--decisions", decide(tmp_path / "mine.json", plan, "c"))
    for _ in range(2):
        done = run(*command)
        assert f"1 document deleted, kept in {archive}" in done.stdout, done.output
        size = archive.stat().st_size
        assert "1 by earlier runs" in run(*command).stdout
        assert archive.stat().st_size == size
        assert run("restore", archive).exit_code == 0
    assert sorted(read_all(server, news)) == ["a", "b", "c"]
    told = json.loads(run("history", "b", archive, "--json").stdout)["removals"]
    assert [(each["canonical"], each["by"], each.get("again")) for [each] in told] == [
        ("a", "Ann\x1b[31m", None),
        ("a", "Ann\x1b[31m", True),
    ]
    assert told[0][0]["at"] < told[1][0]["at"]
    lines = " ".join(run("history", "b", "--archive", archive).stdout.split())
    assert lines.count("was archived to be removed for a") == lines.count("was to be removed again for a") == 1
    assert archived(archive).keys() == {"b"}


def test_one_that_is_gone_among_others(run, news, server, tmp_path):
    """It is named; where all are gone, one sentence says it, and programs still get a record of each."""
    plan, archive = tmp_path / "removal.jsonl", tmp_path / "removed.jsonl.gz"
    assert run("plan", news, "--out", plan, "--max-share", 1).exit_code == 0
    server.request("DELETE", f"/{news}/_doc/b?refresh=true")
    dry = run("apply", plan, "--archive", archive)
    assert (dry.exit_code, dry.stdout.count("\n")) == (1, 1)
    assert f"error: {news}/b: it is gone already" in dry.stderr
    assert "1 line would not be carried out (gone 1): nothing is left to do for what is gone" in dry.stderr
    server.request("DELETE", f"/{news}/_doc/c?refresh=true")
    done = run("apply", plan, "--archive", archive, "--yes", "--json")
    assert (done.exit_code, len(done.stdout.splitlines())) == (1, 2)
    [told] = [json.loads(line)["error"] for line in done.stderr.splitlines()]
    assert (told["kinds"], told["message"].partition(":")[0]) == ({"missing": 2}, "all 2 are gone already")


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
    result = run("apply", news, "--archive", archive, "--sha256", "0")
    assert result.exit_code == 2
    assert f"--sha256 is for a PLAN in a file, and '{news}' is an INDEX" in result.stderr
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
