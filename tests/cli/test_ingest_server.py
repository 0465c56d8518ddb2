"""The command ingest on real servers: what it writes, what it leaves out, and its report."""

import json
import subprocess

import pytest

from tests.servers.command_line import OTHER, PROGRAM, TEXT, failed
from tests.servers.support import read_all


def test_bad_lines_cost_nothing_else(run, index, server, tmp_path):
    """What cannot be read or is refused is named, on stderr and in the report; all the rest is written."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"n": {"type": "integer"}}}})
    assert run("create", index, "--existing", "-t", "body", "--yes").exit_code == 0
    lines = [
        json.dumps({"_id": "1", "body": TEXT}),
        "{broken",
        json.dumps({"_id": "2", "n": "no number", "body": TEXT}),
        json.dumps({"_id": "3", "body": "half a character: \ud800"}),
        json.dumps({"_id": "4", "body": "a NUL \x00 in it"}),
        json.dumps({"_id": "x" * 600, "body": TEXT}),
        json.dumps({"_id": "\ud800", "body": TEXT}),
        json.dumps({"_id": 'quote " / slash ü', "body": TEXT}),
        json.dumps({"_id": "5", "body": 5}),
        json.dumps([{"body": TEXT}]),
        json.dumps({"_id": "6", "body": None}),
        json.dumps({"_id": "7", "_op_type": "delete", "_index": "elsewhere", "body": TEXT}),
        json.dumps({"_index": "elsewhere", "_id": "8", "_source": {"body": TEXT}}),
        json.dumps({"_id": "9", "body": "!!!"}),
        json.dumps({"_id": "10", "simhash": "taken", "body": TEXT}),
    ]
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    arguments = ["ingest", index, tmp_path / "bad.jsonl", "--on-duplicate", "none", "--json"]
    result = run(*arguments, "--report", tmp_path / "report.jsonl")
    assert result.exit_code == 3
    report = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    actions = {line["line"]: line["action"] for line in report}
    assert sorted(actions) == list(range(1, 16)), result.output
    held = read_all(server, index)
    written = {line for line, action in actions.items() if action == "written"}
    assert {1, 5, 8, 9, 11, 13, 14} <= written
    assert {line for line, action in actions.items() if action == "unreadable"} == {2, 4, 6, 7, 10}
    assert actions[3] == "refused"
    assert {"1", "4", 'quote " / slash ü', "5", "6", "8", "9"} <= set(held)
    assert len(held) == len(written)
    assert "simhash" not in held["5"]
    assert "simhash" not in held["9"]
    summary = json.loads(result.stdout)
    assert (summary["written"], summary["unreadable"]) == (len(written), 5)
    said = [json.loads(line) for line in result.stderr.splitlines()]
    assert {key for each in said for key in each} == {"error", "warning"}
    assert any(
        f"{tmp_path / 'bad.jsonl'} line 2: not JSON" in each.get("error", {}).get("message", "") for each in said
    )
    assert server.request("GET", "/elsewhere", missing_ok=True) is None


def test_the_next_command_sees_what_this_one_wrote(run, index, server, tmp_path):
    """Each command that writes makes it visible at its end, also in an index that never refreshes by itself."""
    server.request("PUT", f"/{index}", {"settings": {"index": {"refresh_interval": -1}}})
    assert run("create", index, "--existing", "-t", "body", "--yes").exit_code == 0
    lines = "".join(
        json.dumps({"_id": key, "body": text}) + "\n" for key, text in zip("abcd", [TEXT] * 2 + [OTHER] * 2)
    )

    def seen(*names):
        stats = json.loads(run("report", index, "--json").stdout)
        return [stats[name] for name in names]

    assert run("ingest", index, "-", "--on-duplicate", "none", stdin=lines).exit_code == 0
    assert seen("documents", "duplicates") == [4, 0]
    assert run("reconcile", index).exit_code == 0
    assert seen("documents", "duplicates") == [4, 2]
    archive = tmp_path / "removal.db"
    assert run("plan", index, "--out", archive, "--max-share", 1).exit_code == 0
    applied = run("apply", archive, "--yes")
    assert applied.exit_code == 0, applied.output
    assert seen("documents", "duplicates") == [2, 0]
    assert run("restore", archive).exit_code == 0
    assert seen("documents", "duplicates") == [4, 2]
    assert run("remove-fields", index, "--yes").exit_code == 0
    assert run("setup", index, "-t", "body", "--yes").exit_code == 0
    assert seen("documents", "fingerprinted") == [4, 4]


def test_a_field_that_seems_to_hold_the_id_is_named(run, index, server, tmp_path):
    """Else nobody sees why the ids of the file find nothing; ids from the content were asked for."""
    (tmp_path / "new.jsonl").write_text(json.dumps({"title": "bridge", "ID": "a", "body": TEXT}) + "\n", "utf-8")
    arguments = ("ingest", index, tmp_path / "new.jsonl", "--create", "-t", "body")
    told = "the lines have no _id, so the documents get new ids: --id-field ID takes theirs"
    assert told in run(*arguments).stderr
    assert told not in run(*arguments, "--content-ids").stderr + run(*arguments, "--id-field", "ID").stderr
    assert "a" in read_all(server, index)


def test_a_new_index_maps_no_field_of_the_grouping(server, run, index):
    """Nothing is created, and the way is said; an order that needs no field is recorded."""
    arguments = ("ingest", index, "-", "--create", "-t", "body", "--canonical", "longest")
    line = json.dumps({"_id": "1", "body": TEXT, "source": "a"})
    for grouping in (("--per", "source"), ("--within", "published:7d"), ("--canonical", "-published")):
        said = f"maps no field for {grouping[0]}"
        failed(run(*arguments, *grouping, stdin=line), said, "es-simhash create --mappings FILE")
    assert server.request("GET", f"/{index}", missing_ok=True) is None
    assert run(*arguments, stdin=line).exit_code == 0


def test_a_misspelt_text_field_is_told(run, index, server):
    """Before the index is created. Where a few lines have the field, those that lack it are no fault of the command."""
    ingest = ("ingest", index, "-", "--create", "-t", "body")
    good, other = json.dumps({"_id": "1", "body": TEXT}), json.dumps({"other": TEXT}) + "\n"
    told = run(*ingest[:-1], "boddy", stdin=good)
    failed(told, "none of 1 line has a field 'boddy'", "nothing was created", "with one of 'body'")
    failed(run(*ingest, stdin=other * 500 + good), "none of 500 lines", "'other'")
    assert server.request("GET", f"/{index}", missing_ok=True) is None
    assert run(*ingest, stdin=other * 9 + good).exit_code == 0
    assert len(read_all(server, index)) == 10


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_the_keywords_scheme_with_a_dictionary_of_ones_own(run, index, server, tmp_path, monkeypatch):
    """The index records the digest; with the file lookups work, without it or with another they are refused."""
    (tmp_path / "words.txt").write_text("临江地铁 1000 n\n", encoding="utf-8")
    (tmp_path / "other.txt").write_text("滨海新城 1000 n\n", encoding="utf-8")
    text = "临江地铁六号线开通试运营，线路西起高新区科技园站，东至滨海新城站。"
    (tmp_path / "x.jsonl").write_text(json.dumps({"_id": "1", "body": text}))
    files = ["--set", f"dictionary={tmp_path / 'words.txt'}"]
    chosen = ["--scheme", "keywords", "--set", "top=50", "--preprocess", "numbers", *files]
    made = run("create", index, "-t", "body", *chosen)
    assert made.exit_code == 0, made.output
    monkeypatch.setenv("ES_SIMHASH_FILES", f"dictionary={tmp_path / 'words.txt'}")
    made = run("ingest", index, tmp_path / "x.jsonl")
    assert made.exit_code == 0, made.output
    server.request("POST", f"/{index}/_refresh")
    assert [each["id"] for each in json.loads(run("find", index, text, "--json").stdout)["near_dups"]] == ["1"]
    # In processes of their own: this one has read the dictionary already.
    for files, given, code, said in (
        ("", ["find", index, text], 1, "give ES_SIMHASH_FILES=dictionary=PATH"),
        ("dictionary=other.txt", ["find", index, text], 1, "needs the dictionary"),
    ):
        monkeypatch.setenv("ES_SIMHASH_FILES", files)
        command = [*PROGRAM, *given, "--url", server.url]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_no_document_is_said(run, news, tmp_path):
    """With 0: what a nightly job is given may have nothing new."""
    (tmp_path / "empty.csv").write_text("_id,body\n")
    (tmp_path / "empty.jsonl").write_text("\n")
    for words, said in (
        (["ingest", news, tmp_path / "empty.csv"], "empty.csv"),
        (["find", news, "--input", tmp_path / "empty.jsonl"], "empty.jsonl"),
        (["ingest", news, "-"], "stdin"),
    ):
        result = run(*words, stdin="")
        assert (result.exit_code, f"{said}\n" in result.stderr.partition("warning: no document in ")[2]) == (0, True)


def test_a_report_that_cannot_be_written_ends_with_the_counts(run, news, tmp_path):
    line = json.dumps({"_id": "new", "body": TEXT})
    result = run("ingest", news, "-", "--report", "/dev/full", stdin=line)
    assert (result.exit_code, "1 document written" in result.stdout) == (1, True)
    assert result.stderr.endswith("cannot use '/dev/full': No space left on device\n")


def test_what_speaks_against_an_ingest_names_the_way(run, news, index):
    line = json.dumps({"_id": "d", "body": TEXT})
    other = ["--preset", "similar", "--no-verify", "--canonical", "n:a>*"]
    for name, options, *parts in (
        (news, other, "is grouped by", "es-simhash reconcile INDEX --regroup"),
        (news, ["-t", "title"], "--text-field 'title' differs from 'body', which"),
        (f"{index}-none", [], "no such index", "es-simhash create INDEX --text-field FIELD makes it"),
    ):
        failed(run("ingest", name, "-", *options, stdin=line), *parts)
