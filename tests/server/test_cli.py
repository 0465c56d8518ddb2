"""
The command line on real servers: what it does, what it prints, and one line for whatever goes wrong.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from es_simhash import SimHashClient, fingerprint, get_scheme, hamming_distance, to_hex
from tests.docs.test_mappings import FILES, parse_console
from tests.server.conftest import make_client

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
NEAR = TEXT.replace("long", "very long")
OTHER = "Rain is expected in the north, with strong winds along the coast until Friday evening."


@pytest.fixture
def news(run, index, tmp_path, server):
    """An index with three documents, two of them near-duplicates of each other."""
    path = tmp_path / "news.jsonl"
    texts = {"a": TEXT, "b": NEAR, "c": OTHER}
    path.write_text("".join(json.dumps({"key": key, "body": text}) + "\n" for key, text in texts.items()))
    result = run("ingest", index, path, "--create", "-t", "body", "--id-field", "key", "-d", 12)
    assert result.exit_code == 0, result.output
    server.request("POST", f"/{index}/_refresh")
    return index


def failed(result, *parts):
    """Check that a command failed with one line on stderr that has all *parts* in it, and return the line."""
    assert result.exit_code == 1, result.output
    [line] = [line for line in result.stderr.splitlines() if not line.startswith("created ")]
    assert line.startswith("error: ")
    for part in parts:
        assert part in line
    return line


def documents(server, index):
    """Return every document of an index by id."""
    server.request("POST", f"/{index}/_refresh")
    hits = server.request("POST", f"/{index}/_search", {"size": 1000})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def test_ingested_documents_carry_their_fingerprint(run, news, server):
    """Everything in the file is in the index as it was, with the fingerprint of its text."""
    held = documents(server, news)
    assert {key: source["body"] for key, source in held.items()} == {"a": TEXT, "b": NEAR, "c": OTHER}
    assert held["a"]["simhash"]["fingerprint"] == to_hex(fingerprint(TEXT))
    [report] = json.loads(run("check", news, "--json").stdout)
    assert (report["ready"], report["documents"], report["fingerprinted"]) == (True, 3, 3)
    assert (report["text_fields"], report["max_distance"]) == (["body"], 12)


def test_find_by_text_file_fingerprint_and_id(run, news, tmp_path):
    """Every way of asking gives the same near-duplicates; a document asked for is not its own."""
    distance = hamming_distance(fingerprint(TEXT), fingerprint(NEAR))
    assert 0 < distance <= 12
    (tmp_path / "text").write_text(TEXT)
    for arguments, stdin in (
        ([TEXT], None),
        (["-"], TEXT),
        (["--file", tmp_path / "text"], None),
        (["--fingerprint", to_hex(fingerprint(TEXT))], None),
    ):
        found = json.loads(run("find", news, *arguments, "--json", stdin=stdin).stdout)
        assert found["complete"] is True
        assert [(each["id"], each["distance"]) for each in found["near_dups"]] == [("a", 0), ("b", distance)]
    [other] = json.loads(run("find", news, "--id", "a", "--json").stdout)["near_dups"]
    assert other["id"] == "b"


def test_find_prints_a_table(run, news):
    """One row for each near-duplicate, with the fields asked for; nothing found is said in words."""
    result = run("find", news, TEXT, "--source", "body,key", "--filter", '{"ids": {"values": ["a", "b"]}}')
    assert "2 near-duplicates within 12 bits" in result.stdout
    assert NEAR in result.stdout
    nothing = run("find", news, "quite another text", "-d", 0)
    assert (nothing.stdout, nothing.stderr) == ("no near-duplicates within 0 bits\n", "")
    assert "has no features" in run("find", news, "...").stderr


def test_find_many_answers_each_line(run, news, tmp_path):
    """Texts and documents give a line each, in order; one that cannot be asked does not keep the others waiting."""
    path = tmp_path / "questions.jsonl.gz"
    lines = [json.dumps(TEXT), json.dumps({"body": OTHER}), "{broken", json.dumps({"body": 7}), "3", '{"title": "x"}']
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    result = run("find", news, "--input", path, "--size", 1)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["line"] for each in answers] == [1, 2, 3, 4, 5, 6]
    assert [[found["id"] for found in each.get("near_dups", [])] for each in answers] == [["a"], ["c"], [], [], [], []]
    assert ["error" in each for each in answers] == [False, False, True, True, True, False]
    failed(result, "3 lines of 6 failed")


def test_find_many_in_more_than_one_batch(run, news, tmp_path):
    """Hundreds of lines give hundreds of answers, in order."""
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps(OTHER if n % 2 else TEXT) + "\n" for n in range(250)))
    answers = [json.loads(line) for line in run("find", news, "--input", path).stdout.splitlines()]
    assert [each["near_dups"][0]["id"] for each in answers] == ["a", "c"] * 125


def test_bad_lines_cost_nothing_else(run, index, server, tmp_path):
    """What cannot be read or is refused is named, on stderr and in the report; all the rest is written."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"n": {"type": "integer"}}}})
    assert run("create", index, "--existing", "-t", "body").exit_code == 0
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
    arguments = ["--on-duplicate", "none", "--report", tmp_path / "report.jsonl", "--json"]
    result = run("ingest", index, tmp_path / "bad.jsonl", *arguments)
    assert result.exit_code == 1
    report = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    actions = {line["line"]: line["action"] for line in report}
    assert sorted(actions) == list(range(1, 16)), result.output
    held = documents(server, index)
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
    assert f"error: {tmp_path / 'bad.jsonl'} line 2: not JSON" in result.stderr
    assert "warning: " in result.stderr
    assert server.request("GET", "/elsewhere", missing_ok=True) is None


@pytest.mark.parametrize("policy", ["tag", "skip", "none"])
def test_near_duplicates_are_handled_as_asked(run, index, server, tmp_path, policy):
    """A document equal to one before is tagged with it, left out, or written like any other; the report says which."""
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"_id": key, "body": TEXT}) + "\n" for key in "abc"))
    arguments = ["--create", "-t", "body", "--on-duplicate", policy, "--report", tmp_path / "report", "--json"]
    result = run("ingest", index, tmp_path / "x.jsonl", *arguments)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    report = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    held = documents(server, index)
    action = {"tag": "tagged", "skip": "skipped", "none": "written"}[policy]
    assert [line["action"] for line in report] == ["written", action, action]
    assert sorted(held) == (["a"] if policy == "skip" else ["a", "b", "c"])
    assert (summary["written"], summary["fingerprinted"]) == (len(held), len(held))
    if policy == "none":
        assert "group" not in held["b"]["simhash"]
    else:
        assert [(line["canonical"], line["distance"]) for line in report[1:]] == [("a", 0), ("a", 0)]
    if policy == "tag":
        assert held["c"]["simhash"]["duplicate_of"] == "a"


def test_csv_stdin_and_limit(run, index, server):
    """Rows of a CSV file from stdin are documents, as many as the limit says."""
    content = f'id,body\n1,"{TEXT}"\n2,"{OTHER}"\n3,"too many"\n'
    result = run(
        "ingest", index, "-", "--format", "csv", "--create", "-t", "body", "--id-field", "id", "--limit", 2,
        stdin=content,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert f"{index}: 2 documents written, 2 with a fingerprint" in result.stdout
    assert sorted(documents(server, index)) == ["1", "2"]


def test_a_misspelt_text_field_is_told(run, index, tmp_path):
    """Every document is written, and the user hears that none can be found."""
    (tmp_path / "x.jsonl").write_text(json.dumps({"body": TEXT}))
    result = run("ingest", index, tmp_path / "x.jsonl", "--create", "-t", "boddy")
    assert result.exit_code == 0
    assert "no document has a fingerprint: " in result.stderr


def test_an_ingest_can_be_repeated(run, news, tmp_path):
    """--create leaves an index that exists as it is, and documents with ids replace themselves."""
    result = run("ingest", news, tmp_path / "news.jsonl", "--create", "-t", "body", "--id-field", "key")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(run("check", news, "--json").stdout)[0]["max_distance"] == 12


def test_more_lines_than_a_bulk_request_holds(run, index, server, tmp_path):
    """Thousands of documents, a few of them broken: each line has exactly one report, and counts agree."""
    lines = [json.dumps({"body": f"{TEXT} {n}"}) if n % 100 else "{" for n in range(2300)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    result = run(
        "ingest", index, tmp_path / "x.jsonl", "--create", "-t", "body", "--report", tmp_path / "report", "--json"
    )
    summary = json.loads(result.stdout)
    assert (summary["written"], summary["unreadable"], len(summary["failures"])) == (2277, 23, 10)
    assert "and 13 more" in result.stderr
    report = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    assert sorted(line["line"] for line in report) == list(range(1, 2301))
    server.request("POST", f"/{index}/_refresh")
    assert server.request("GET", f"/{index}/_count")["count"] == 2277


def test_create_check_and_remove(run, index, server, tmp_path):
    """An index made by the command works, and after remove nothing of ours is in it."""
    (tmp_path / "own.json").write_text(json.dumps({"mappings": {"properties": {"title": {"type": "keyword"}}}}))
    made = run("create", index, "-t", "body", "-d", 8, "--mappings", tmp_path / "own.json",
               "--settings", '{"number_of_shards": 1}', "--scheme", "words", "--json")  # fmt: skip
    assert json.loads(made.stdout)["scheme"]["name"] == "words"
    failed(run("create", index, "-t", "body"), index, "choose another name")
    (tmp_path / "x.jsonl").write_text(json.dumps({"_id": "1", "title": "t", "body": TEXT}))
    assert run("ingest", index, tmp_path / "x.jsonl").exit_code == 0
    table = run("check", index).stdout
    assert "words-1" in table
    failed(run("remove", index), "pass --yes")
    assert json.loads(run("remove", index, "--yes", "--json").stdout)["documents"] == 1
    assert documents(server, index)["1"].get("simhash") is None
    mapping = server.request("GET", f"/{index}/_mapping")[index]["mappings"]
    assert "es_simhash" not in mapping.get("_meta", {})
    after = run("check", index)
    assert after.exit_code == 1
    assert f"warning: {index}: " in after.stderr


def test_another_scheme_is_refused(run, news):
    """Both schemes are named, and nothing is searched or written."""
    failed(run("find", news, TEXT, "--scheme", "words"), get_scheme("shingles").id, "words")
    failed(run("ingest", news, "-", "--scheme", "words", stdin="{}"), get_scheme("shingles").id, "words")


def test_the_keywords_scheme_with_a_dictionary_of_ones_own(run, index, server, tmp_path):
    """The index records the digest; with the file lookups work, without it or with another they are refused."""
    (tmp_path / "words.txt").write_text("临江地铁 1000 n\n", encoding="utf-8")
    (tmp_path / "other.txt").write_text("滨海新城 1000 n\n", encoding="utf-8")
    text = "临江地铁六号线开通试运营，线路西起高新区科技园站，东至滨海新城站。"
    (tmp_path / "x.jsonl").write_text(json.dumps({"_id": "1", "body": text}))
    files = ["--dictionary", tmp_path / "words.txt"]
    made = run("ingest", index, tmp_path / "x.jsonl", "--create", "-t", "body", *files)
    assert made.exit_code == 0, made.output
    server.request("POST", f"/{index}/_refresh")
    assert [each["id"] for each in json.loads(run("find", index, text, *files, "--json").stdout)["near_dups"]] == ["1"]
    failed(run("find", index, text, "--dictionary", tmp_path / "other.txt"), "keywords-1")
    # In a process of its own: this one has read the dictionary already.
    without = subprocess.run(
        [*PROGRAM, "find", index, text, "--url", server.url], check=False, capture_output=True, text=True
    )
    assert without.returncode == 1
    assert "dictionary" in without.stderr


def test_dev_tools_text_is_taken_by_the_server(server, index):
    """Every request of the generated text works, under names of this test's own."""
    text = FILES[f"{server.product}/devtools.txt"].replace("my-index", index).replace("/es-simhash", f"/{index}")
    text = text.replace('"es-simhash"', f'"{index}"')
    try:
        for request, body in parse_console(text):
            method, path = request.split()
            server.request(method, f"/{path}", body)
        server.request("PUT", f"/{index}-more")
        held = server.request("GET", f"/{index}-more/_mapping")[f"{index}-more"]["mappings"]
        assert held["properties"]["simhash"]["properties"]["block3"]["type"] == "keyword"
        assert held["_meta"]["es_simhash"]["simhash"]["scheme"]["name"] == "shingles"
    finally:
        server.request("DELETE", f"/_index_template/{index}", missing_ok=True)
        server.request("DELETE", f"/_component_template/{index}", missing_ok=True)


def test_a_printed_query_finds_the_candidates(run, news, server):
    """What query prints can be sent as it is."""
    body = json.loads(run("query", TEXT, "-d", 12, "--no-scripts").stdout)
    hits = server.request("POST", f"/{news}/_search", body)["hits"]["hits"]
    assert {"a", "b"} <= {hit["_id"] for hit in hits}


def test_the_product_is_told_without_cluster_rights(run, news, server, monkeypatch):
    """Detection and --product agree, and the wrong product is noticed by the client, not by a traceback."""
    for product in ("auto", server.product):
        monkeypatch.setenv("ES_SIMHASH_PRODUCT", product)
        assert run("check", news).exit_code == 0
    if server.product == "opensearch":
        failed(run("check", news, "--product", "elasticsearch"), "--product")


def test_missing_index(run, index):
    """Each command says that there is none, and what to do."""
    failed(run("find", index, TEXT), index, "es-simhash create")
    failed(run("check", index), index)
    failed(run("remove", index, "--yes"), index)
    failed(run("ingest", index, "-", stdin="{}"), index)
    failed(run("find", f"{index}-*", TEXT), "check the index name")


def test_closed_index(run, news, server):
    """The message says to open it."""
    server.request("POST", f"/{news}/_close")
    failed(run("find", news, TEXT), news, "open")
    result = run("check", news)
    assert result.exit_code == 1
    assert "open it" in result.stderr


@pytest.mark.usefixtures("impatient")
def test_red_index(run, server, index):
    """A shard without any copy is an error in every command that reads, never a smaller answer."""
    settings = {"index.routing.allocation.require._name": "nobody"}
    server.request("PUT", f"/{index}?wait_for_active_shards=0", {"settings": settings})
    assert run("create", index, "--existing", "-t", "body").exit_code == 0
    failed(run("find", index, TEXT), "all shards failed", "_cat/shards")
    for command in (["groups", index], ["pairs", index], ["dedupe", index], ["reconcile", index],
                    ["backfill", index], ["remove", index, "--yes"], ["tune", index], ["check", index]):  # fmt: skip
        result = run(*command, "--timeout", 1)
        assert result.exit_code == 1, (command, result.output)
        assert result.stderr.startswith(("error: ", "warning: ")), (command, result.output)
        assert "unexpected" not in result.stderr


def test_a_text_field_that_no_document_has(run, server, index):
    """The first backfill refuses it and records nothing, so that the right name works at once."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"body": {"type": "text"}}}})
    server.request("PUT", f"/{index}/_doc/1?refresh=true", {"body": TEXT})
    failed(run("backfill", index, "-t", "boddy"), "'boddy'", "check the name")
    assert run("backfill", index, "-t", "body").exit_code == 0
    server.request("POST", f"/{index}/_refresh")
    assert json.loads(run("check", index, "--json").stdout)[0]["text_fields"] == ["body"]


def test_read_only_index(run, news, server, tmp_path):
    """Documents are refused and counted, none is lost silently, and lookups go on."""
    server.request("PUT", f"/{news}/_settings", {"index.blocks.write": True})
    try:
        result = run("ingest", news, tmp_path / "news.jsonl", "--id-field", "key")
        assert result.exit_code == 1
        assert "block" in result.stderr
        assert run("find", news, TEXT).exit_code == 0
    finally:
        server.request("PUT", f"/{news}/_settings", {"index.blocks.write": False})


def test_an_index_without_our_fields(run, index, server):
    """The message says how to add them."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"body": {"type": "text"}}}})
    failed(run("find", index, TEXT), index, "simhash")
    assert run("check", index).exit_code == 1


def test_server_down(run, index):
    """No traceback, and the address that was tried."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        failed(run("find", index, TEXT, "--url", url), f"cannot reach {url}", "--url")
        failed(run("find", index, TEXT, "--url", url, "--product", "opensearch"), f"cannot reach {url}")


def test_a_login_in_the_url_is_never_shown(run, news, server, monkeypatch):
    """Not by messages, by a traceback, or by the demo."""
    url = server.url.replace("://", "://elastic:hunter%232@")
    assert json.loads(run("check", news, "--url", url, "--json").stdout)[0]["ready"]
    demo = run("demo", "--url", url, "--json")
    down = run("find", news, TEXT, "--url", "http://elastic:hunter2@127.0.0.1:1", "--product", server.product)
    failed(down, "cannot reach http://127.0.0.1:1")
    monkeypatch.setenv("ES_SIMHASH_DEBUG", "1")
    debug = run("find", f"{news}-no", TEXT, "--url", url)
    shown = "".join(traceback.format_exception(debug.exception)) + repr(debug.exception)
    for text in (demo.output, down.output, shown):
        assert text
        assert "hunter" not in text
        assert "aHVudGVy" not in text


def test_no_representation_of_a_client_has_its_password(server):
    """Neither ours nor that of a connection, whatever the client library prints of itself."""
    with make_client(server) as plain:
        library = type(plain)
    with library([server.url.replace("://", "://elastic:hunter2@")]) as client:
        assert "hunter2" not in repr(SimHashClient(client))


HOSTILE = "\x1b[2J\x9b31m\u202e\u2028x\ny"


def test_documents_cannot_control_the_terminal(run, index, server, tmp_path):
    """Ids, names of fields, texts and what a server says about them are shown with escapes, in every command."""
    hidden = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
    mappings = tmp_path / "own.json"
    mappings.write_text(json.dumps({"properties": {"n": {"type": "integer"}}}))
    assert run("create", index, "-t", "body", "-d", 12, "--mappings", mappings).exit_code == 0
    documents = [{"_id": f"{HOSTILE}{n}", "body": text, "title": HOSTILE} for n, text in enumerate([TEXT, NEAR])]
    documents += [{"_id": f"{HOSTILE}bad", "n": HOSTILE, "body": OTHER}, {"_id": "{}", "body": {HOSTILE: HOSTILE}}]
    source = tmp_path / "x\x1b.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in documents) + f'"{HOSTILE[:1]}')
    results = [run("ingest", index, source, "--no-verify")]
    server.request("POST", f"/{index}/_refresh")
    results += [
        run("find", index, TEXT, "--source", "title"),
        run("find", index, TEXT, "--source", "title", "--json"),
        run("find", index, "--id", f"{HOSTILE}0"),
        run("find", index, "--id", f"{HOSTILE}no"),
        run("find", f"{index}{HOSTILE}", TEXT),
        run("query", "--id", f"{HOSTILE}0", "--console", "--index", f"{index}{HOSTILE}"),
        run("reconcile", index),
        run("groups", index),
        run("groups", index, "--json"),
        run("pairs", index),
        run("dedupe", index),
        run("explain", "--index", index, f"{HOSTILE}0", f"{HOSTILE}1"),
        run("explain", HOSTILE, f"{HOSTILE}word"),
        run("check", index),
        run("doctor", index),
    ]
    assert results[0].exit_code == 1
    assert "\\x1b[2J\\x9b31m\\u202e" in results[1].stdout
    assert "2 documents" in results[8].stdout
    for number, result in enumerate(results):
        assert result.output
        assert not hidden.search(result.output), number


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://host:port", "http://[::1"])
def test_urls_that_cannot_be(run, index, url):
    """The URL is named."""
    failed(run("check", index, "--url", url), "cannot be used")


def test_logins_that_cannot_be(run, index, monkeypatch):
    """Half a login, or two, are refused before anything is sent."""
    monkeypatch.setenv("ES_SIMHASH_USER", "u")
    failed(run("check", index), "ES_SIMHASH_PASSWORD")
    monkeypatch.setenv("ES_SIMHASH_API_KEY", "k")
    failed(run("check", index), "unset one of them")
    monkeypatch.delenv("ES_SIMHASH_USER")
    monkeypatch.setenv("ES_SIMHASH_CA_FILE", "/no/such/file")
    failed(run("check", index), "ES_SIMHASH_CA_FILE")


def test_tls_to_a_server_without(run, index, server):
    """https:// where the server speaks plain HTTP is told apart from a server that is down."""
    failed(run("check", index, "--url", server.url.replace("http:", "https:")), "http://")


def test_the_demo_leaves_nothing_behind(run, server):
    """On a server of one's own it finds what the corpus plants, and deletes its index."""
    result = run("demo", "--url", server.url, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    status = {copy["id"]: copy["status"] for copy in report["copies"]}
    assert status["listing-zh-01-fullwidth"] == "found"
    assert "LOST" not in status.values()
    assert server.request("GET", "/es-simhash-demo-*", missing_ok=True) == {}


def test_the_demo_reads_well(run, server):
    """Groups, differing words, misses with reasons, and commands to copy."""
    result = run("demo", "--url", server.url)
    assert result.exit_code == 0, result.output
    for part in ("news-zh-01-typo", "{+", "-]", "What was missed, and why", "On your own index", "--text-field"):
        assert part in result.stdout


PROGRAM = [sys.executable, "-c", "from es_simhash.cli import main; main()"]


def test_a_closed_pipe_is_quiet(news, server, tmp_path):
    """A reader that has seen enough is no error, and nothing is printed about it."""
    (tmp_path / "many.jsonl").write_text((json.dumps(TEXT) + "\n") * 3000)
    command = [*PROGRAM, "find", news, "--input", str(tmp_path / "many.jsonl"), "--url", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_is_quiet(news, server):
    """An interrupt ends with 130, without a traceback, and says how far it came."""
    command = [*PROGRAM, "ingest", news, "-", "--url", server.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(1200):
            process.stdin.write(json.dumps({"body": TEXT}).encode() + b"\n")
        process.stdin.flush()
        while server.request("GET", f"/{news}/_count")["count"] < 3 or not _has_started(server, news):
            pass
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        message = process.stderr.read().decode()
    assert process.returncode == 130
    assert "Traceback" not in message


def _has_started(server, index):
    server.request("POST", f"/{index}/_refresh")
    return server.request("GET", f"/{index}/_count")["count"] > 3


def test_serve_keeps_its_data(server, tmp_path):
    """A document written to a served server is there after it was stopped and started again."""
    if server.pid is None:
        pytest.skip("needs the embedded servers")
    command = [*PROGRAM, "serve", "--product", server.product, "--data", str(tmp_path / "data"), "--port", "0"]
    for expected in ([], [{"n": 1}]):
        with subprocess.Popen(
            [*command, "--heap", "512m", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
        ) as process:
            try:
                served = type(server)(server.product, "", json.loads(process.stdout.readline())["url"])
                found = served.request("POST", "/kept/_search?ignore_unavailable=true")["hits"]["hits"]
                assert [hit["_source"] for hit in found] == expected
                served.request("PUT", "/kept/_doc/1?refresh=true", {"n": 1})
            finally:
                process.send_signal(signal.SIGINT)
                message = process.stderr.read().decode()
        assert process.returncode == 0, message
        assert "stopped; the data are kept" in message
    assert Path(tmp_path / "data").is_dir()
