"""
The commands backfill, reconcile, groups, pairs and dedupe on real servers.
"""

import csv
import io
import json

import pytest

from es_simhash import fingerprint, hamming_distance, to_hex
from tests.servers.removals import archived
from tests.servers.support import put, read_all

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
TEXTS = {
    "a": TEXT,
    "b": TEXT.upper(),
    "c": TEXT.replace("long", "very long"),
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
    assert run("backfill", plain, "-t", "body").exit_code == 0
    result = run("reconcile", plain, "-d", DISTANCE, "--verify", "0.7")
    assert result.exit_code == 0, result.output
    return plain


def lines(result):
    """Return the JSON Lines of a command that succeeded."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_backfill(run, plain, server, tmp_path):
    """A dry run changes nothing; then every document has its fingerprint, and a second run finds nothing to do."""
    [report] = lines(run("backfill", plain, "-t", "body", "--dry-run", "--json"))
    assert (report["seen"], report["changed"]) == (4, 4)
    assert all("simhash" not in source for source in read_all(server, plain).values())
    checkpoint = tmp_path / "checkpoint"
    result = run("backfill", plain, "-t", "body", "--checkpoint", checkpoint, "--slices", 1)
    assert result.exit_code == 0, result.output
    assert f"{plain}: 4 documents compared, 4 changed, 0 of them stale" in result.stdout
    found = read_all(server, plain)
    assert {key: source["simhash"]["fingerprint"] for key, source in found.items()} == {
        key: to_hex(fingerprint(text)) for key, text in TEXTS.items()
    }
    [report] = lines(run("backfill", plain, "--json"))
    assert (report["seen"], report["changed"], report["failures"]) == (4, 0, [])


def test_backfill_that_groups(run, plain, server):
    """Documents equal to another are told by one command."""
    result = run("backfill", plain, "-t", "body", "--group")
    assert result.exit_code == 0, result.output
    assert read_all(server, plain)["b"]["simhash"]["duplicate_of"] == "a"


def test_backfill_without_a_text_field(run, plain):
    """The index has no fields of ours, and nobody says what they are to be made from."""
    result = run("backfill", plain)
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith(f"error: index '{plain}' has no 'simhash' fields: ")


def test_reconcile_and_groups(run, grouped, server):
    """Groups are printed with their canonical first; after the canonical is deleted another stands for them."""
    [group] = lines(run("groups", grouped, "--json"))
    assert (group["id"], [each["id"] for each in group["members"]]) == ("a", ["a", "b", "c"])
    assert f"a  3 documents\n   0  b\n  {DISTANCE:>2}  c\n" in run("groups", grouped).stdout
    [again] = lines(run("reconcile", grouped, "--json"))
    assert (again["documents"], again["duplicates"], again["changed"]) == (4, 2, 0)
    server.request("DELETE", f"/{grouped}/_doc/a?refresh=true")
    [dry] = lines(run("reconcile", grouped, "--dry-run", "--json", "--threads", "1", "--memory", "1MiB"))
    assert dry["changed"] == 2
    result = run("reconcile", grouped)
    assert f"{grouped}: 3 documents, 2 groups, 1 duplicate; 2 rewritten" in result.stdout
    server.request("POST", f"/{grouped}/_refresh")
    [group] = lines(run("groups", grouped, "--json"))
    assert (group["id"], [each["id"] for each in group["members"]]) == ("b", ["b", "c"])


def test_pairs(run, grouped, server):
    """Each pair once, as JSON Lines or CSV; and between two indices."""
    expected = {("a", "b", 0), ("a", "c", DISTANCE), ("b", "c", DISTANCE)}
    found = lines(run("pairs", grouped, "-d", DISTANCE, "--threads", "1", "--memory", "1MiB"))
    assert {(*sorted((each["id"], each["other_id"])), each["distance"]) for each in found} == expected
    rows = list(csv.DictReader(io.StringIO(run("pairs", grouped, "-d", 0, "--format", "csv").stdout)))
    assert [sorted((row["id"], row["other_id"])) for row in rows] == [["a", "b"]]
    assert {row["index"] for row in rows} == {grouped}
    other = f"{grouped}-archive"
    put(server, other, [{"_id": "x", "body": TEXT}])
    assert run("backfill", other, "-t", "body").exit_code == 0
    server.request("POST", f"/{other}/_refresh")
    found = lines(run("pairs", grouped, "--against", other, "-d", 0))
    assert {(each["id"], each["other_id"], each["other_index"]) for each in found} == {
        ("a", "x", other),
        ("b", "x", other),
    }


def test_dedupe(run, grouped, server, tmp_path):
    """Without --yes nothing changes; with it duplicates go, the canonical stays, and an archive is kept."""
    options = ("--action", "delete", "--verify", "0.5")
    result = run("dedupe", grouped, *options)
    assert result.exit_code == 0, result.output
    assert f"2 duplicates found, nothing changed; next: es-simhash dedupe {grouped} --plan FILE" in result.stdout
    assert sorted(read_all(server, grouped)) == ["a", "b", "c", "d"]
    archive = tmp_path / "removed.jsonl.gz"
    result = run("dedupe", grouped, *options, "--yes", "--archive", archive)
    assert result.exit_code == 1
    assert "2 of 4 documents" in result.stderr
    result = run("dedupe", grouped, *options, "--yes", "--archive", archive, "--max-share", 0.5)
    assert result.exit_code == 0, result.output
    assert "2 documents deleted" in result.stdout
    assert sorted(read_all(server, grouped)) == ["a", "d"]
    assert {id_: source["body"] for id_, source in archived(archive).items()} == {key: TEXTS[key] for key in "bc"}


def test_a_plan_is_made_looked_at_and_applied(run, grouped, server, tmp_path):
    """Lines that no longer fit are kept, counted by kind, and the command exits 1."""
    plan, archive = tmp_path / "plan.jsonl", tmp_path / "removed.jsonl.gz"
    options = ("--verify", 0.5, "--max-share", 1, "--show", "body")
    result = run("dedupe", grouped, "--plan", plan, *options)
    assert result.exit_code == 0, result.output
    assert f"{plan}: 2 documents of 4 would be removed, nothing changed" in result.stdout
    [made] = lines(run("dedupe", grouped, "--plan", plan, *options, "--limit", 1, "--json"))
    assert (made["count"], made["left_out"]) == (1, {"limit": 1})
    assert run("dedupe", grouped, "--plan", plan, *options).exit_code == 0
    server.request("POST", f"/{grouped}/_update/c?refresh=true", {"doc": {"body": "something else"}})
    result = run("dedupe", "--apply", plan, "--archive", archive)
    assert result.exit_code == 1
    assert "changed 1" in result.stderr
    assert f"1 document deleted, kept in {archive}" in result.stdout
    assert sorted(read_all(server, grouped)) == ["a", "c", "d"]
    records = [
        json.loads(line) for line in run("dedupe", "--apply", plan, "--archive", archive, "--json").stdout.splitlines()
    ]
    assert {each["id"]: (each["action"], each["kind"]) for each in records} == {
        "b": ("deleted", None),
        "c": ("kept", "changed"),
    }
    assert archived(archive).keys() == {"b"}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("INDEX", "--action", "delete", "--yes"),
        ("INDEX", "--archive", "ARCHIVE"),
        ("INDEX", "--yes", "--archive", "ARCHIVE"),
        ("INDEX", "--max-share", 1),
        ("INDEX", "--plan", "PLAN", "--yes"),
        ("INDEX", "--plan", "PLAN", "--archive", "ARCHIVE"),
        ("INDEX", "--apply", "PLAN", "--archive", "ARCHIVE"),
        ("--apply", "PLAN"),
        ("--apply", "PLAN", "--archive", "ARCHIVE", "--max-share", 1),
    ],
)
def test_options_of_dedupe_that_do_not_go_together(run, index, tmp_path, arguments):
    """Nothing is asked of the server, and no file is made."""
    names = {"INDEX": index, "PLAN": tmp_path / "plan", "ARCHIVE": tmp_path / "archive"}
    result = run("dedupe", *(names.get(each, each) for each in arguments))
    assert result.exit_code == 2, result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"no plan", b'{"format": "es-simhash-plan", "version": 9}\n{}\n'])
def test_a_plan_that_cannot_be_used(run, tmp_path, data):
    """One line that names the file."""
    plan = tmp_path / "plan"
    plan.write_bytes(data)
    result = run("dedupe", "--apply", plan, "--archive", tmp_path / "archive")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith(f"error: {plan}")
    assert not (tmp_path / "archive").exists()


@pytest.mark.parametrize("command", [["reconcile"], ["groups"], ["pairs"], ["dedupe"], ["backfill", "-t", "body"]])
def test_an_index_that_is_not_there(run, index, command):
    """One line that names it."""
    result = run(command[0], index, *command[1:])
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert index in line


def test_an_archive_is_never_written_over(run, grouped, tmp_path):
    """By no option that names a file; nor is a plan or an input, but by another plan."""
    plan, archive = tmp_path / "plan", tmp_path / "removed.jsonl.gz"
    options = ("--verify", 0.5, "--max-share", 1)
    assert run("dedupe", grouped, "--plan", plan, *options).exit_code == 0
    assert run("dedupe", "--apply", plan, "--archive", archive).exit_code == 0
    documents = tmp_path / "documents.jsonl"
    documents.write_text('{"_id": "e", "body": "text"}\n', encoding="utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for arguments in (
        ("dedupe", grouped, "--plan", archive),
        ("restore", archive, "--dry-run", "--report", archive),
        ("restore", archive, "--dry-run", "--report", plan),
        ("review", plan, "--html", archive),
        ("review", plan, "--html", plan),
        ("ingest", grouped, documents, "--report", archive),
        ("ingest", grouped, documents, "--report", documents),
        ("dedupe", "--apply", plan, "--archive", plan),
    ):
        result = run(*arguments)
        assert result.exit_code in (1, 2), result.output
        assert "give the" in result.stderr
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_advice_fits_what_was_refused(run, grouped, server, tmp_path):
    """A server that refuses may allow it later; what others deleted needs no other plan for this reason."""
    plan, archive = tmp_path / "plan", tmp_path / "removed.jsonl.gz"
    assert run("dedupe", grouped, "--plan", plan, "--verify", 0.5, "--max-share", 1).exit_code == 0
    server.request("PUT", f"/{grouped}/_settings", {"index.blocks.write": True})
    result = run("dedupe", "--apply", plan, "--archive", archive)
    assert result.exit_code == 1
    assert "run the same command again" in result.stderr
    assert "plan again" not in result.stderr
    server.request("PUT", f"/{grouped}/_settings", {"index.blocks.write": False})
    assert run("dedupe", "--apply", plan, "--archive", archive).exit_code == 0
