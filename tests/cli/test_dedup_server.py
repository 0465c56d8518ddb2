"""The commands reconcile, groups, plan, review and apply on real servers."""

import json
import re
from dataclasses import replace
from functools import wraps

import pytest

from es_simhash import SimHashClient, fingerprint, hamming_distance
from tests.servers.command_line import NEAR, TEXT, failed
from tests.servers.removals import archived
from tests.servers.support import put, read_all

TEXTS = {
    "a": NEAR,
    "b": NEAR.upper(),
    "c": TEXT,
    "d": "Rain is expected in the north until Friday evening.",
}
DISTANCE = hamming_distance(fingerprint(TEXTS["a"]), fingerprint(TEXTS["c"]))


@pytest.fixture
def plain(server, index):
    """An index with the documents, as somebody without es_simhash would have it."""
    put(server, index, [{"_id": key, "body": text} for key, text in TEXTS.items()])
    server.request("POST", f"/{index}/_refresh")
    return index


@pytest.fixture
def grouped(run, plain):
    """The same index with fingerprints, and groups up to the distance of its farthest copy."""
    assert 0 < DISTANCE <= 12
    result = run("setup", plain, "-t", "body", "-d", DISTANCE, "--verify", "0.7", "--yes")
    assert result.exit_code == 0, result.output
    return plain


def lines(result):
    """Return the JSON Lines of a command that succeeded."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_reconcile_and_groups(run, grouped, server):
    """Groups are printed with their canonical first; after the canonical is deleted another stands for them."""
    [group] = lines(run("groups", grouped, "--json"))
    assert (group["id"], [each["id"] for each in group["members"]]) == ("a", ["a", "b", "c"])
    shown = [line.split() for line in run("groups", grouped).stdout.splitlines()]
    assert shown[0] == ["documents", "bits", "id"]
    assert shown[2:] == [["3", "a"], ["0", "b"], [f"{DISTANCE}", "c"]]
    [again] = lines(run("reconcile", grouped, "--json"))
    assert (again["documents"], again["duplicates"], again["changed"]) == (4, 2, 0)
    server.request("DELETE", f"/{grouped}/_doc/a?refresh=true")
    [dry] = lines(run("reconcile", grouped, "--dry-run", "--json"))
    assert dry["changed"] == 2
    result = run("reconcile", grouped)
    assert f"{grouped}: 3 documents, 2 groups, 1 duplicate; 2 rewritten" in result.stdout
    server.request("POST", f"/{grouped}/_refresh")
    [group] = lines(run("groups", grouped, "--json"))
    assert (group["id"], [each["id"] for each in group["members"]]) == ("b", ["b", "c"])


def test_a_reconcile_that_others_overtake_exits_with_3(run, grouped, monkeypatch):
    reconcile = SimHashClient.reconcile

    @wraps(reconcile)
    def overtaken(*given, **how):
        return replace(reconcile(*given, **how), is_settled=False)

    monkeypatch.setattr(SimHashClient, "reconcile", overtaken)
    result = run("reconcile", grouped, "--json")
    assert (result.exit_code, json.loads(result.stderr)["error"]["kind"]) == (3, "unsettled"), result.output
    assert run("reconcile", grouped, "--dry-run").exit_code == 0


def test_fields_that_no_index_has(run, grouped):
    told = run("remove-fields", grouped, "--prefix", "nosuch", "--yes")
    assert (told.exit_code, "has nothing below 'nosuch'" in told.stderr) == (0, True), told.output


def test_a_plan_is_made_looked_at_and_applied(run, grouped, server, tmp_path):
    """Lines that no longer fit are kept, counted by kind, and the command exits 1."""
    plan = tmp_path / "removal.db"
    said = "will be refused: 2 of 4 documents would be removed, more than the share of 0.2: "
    for shown in (run("plan", grouped, "--out", plan, "--verify", 0.5), run("review", plan)):
        assert shown.exit_code == 0
        assert said in " ".join(shown.stdout.split())
        assert f"then: es-simhash apply {plan} --yes\n" in shown.stdout
    failed(run("plan", grouped, "--out", plan), f"{plan} exists already: give another name")
    apply = ("apply", plan, "--max-share", "1")
    server.request("POST", f"/{grouped}/_update/c?refresh=true", {"doc": {"body": "something else"}})
    shown = run(*apply)
    assert f"1 document of {grouped} would be deleted, and kept in {plan}; nothing changed" in shown.stdout
    assert f"error: {grouped}/c would be kept: its text, or a field that decided, was changed" in shown.stderr
    assert (
        "1 line would not be carried out (changed 1): run it again for what was refused, plan again for" in shown.stderr
    )
    plain = run(*apply, "--json")
    assert (shown.exit_code, plain.exit_code, json.loads(plain.stdout)["would_delete"]) == (3, 3, 1)
    assert sorted(read_all(server, grouped)) == ["a", "b", "c", "d"]
    result = run(*apply, "--yes")
    assert (result.exit_code, "changed 1" in result.stderr) == (3, True)
    assert f"1 document deleted, kept in {plan}" in result.stdout
    assert sorted(read_all(server, grouped)) == ["a", "c", "d"]
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
