"""``es-simhash ingest`` of files and pipes: stopped, killed and continued, on real servers."""

import gzip
import json
import signal
import subprocess
from collections import Counter

import pytest

from es_simhash import build_component_template, build_index_template
from tests.servers.command_line import PROGRAM, failed, stop
from tests.servers.proxy import signalling_proxy
from tests.servers.support import read_all

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost, part {}."


def write(path, numbers, *, timestamp=False):
    """Write a document without an id for each number, and a line that is none after every hundredth."""
    more = {"@timestamp": "2026-01-01T00:00:00Z"} if timestamp else {}
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        for number in numbers:
            file.write(json.dumps({"n": number, "body": TEXT.format(number), **more}) + "\n")
            if number % 100 == 99:
                file.write("not json\n")
    return path


@pytest.fixture
def made(index, run):
    result = run("create", index, "-t", "body")
    assert result.exit_code == 0, result.output
    return index


@pytest.mark.parametrize("more", [[], ["--on-duplicate", "none", "--op-type", "create"]], ids=["tag", "create"])
def test_a_killed_ingest_goes_on(server, made, run, tmp_path, more):
    """Killed twice at known requests: every line is in the index once, and in the report once."""
    files = [write(tmp_path / "0.jsonl", range(600)), write(tmp_path / "1.jsonl.gz", range(600, 900))]
    report = tmp_path / "report"
    arguments = ["ingest", made, *map(str, files), "--checkpoint", str(tmp_path / "checkpoint"), "--batch", "100"]
    arguments += ["--report", str(report), *more]
    for number in (7, 3):
        kill(server, number, *arguments)
    result = run(*arguments, "--json")
    assert result.exit_code == 1, result.output  # nine lines are no documents
    assert "going on after" in result.stderr
    found = read_all(server, made)
    assert Counter(source["n"] for source in found.values()) == Counter(range(900))
    counts = json.loads(result.stdout)
    assert counts["written"] + counts["unchanged"] == 900
    assert (counts["unreadable"], counts["refused"]) == (9, 0)
    lines = Counter((each["file"], each["line"]) for each in map(json.loads, report.read_text().splitlines()))
    assert len(lines) == 909
    assert set(lines.values()) == {1}
    again = run(*arguments)
    assert again.exit_code == 1
    assert "everything is written" in again.stderr


@pytest.fixture
def rolling(server, index):
    """A name that rolls over, to indices with our fields: a data stream, or an alias where there are none."""
    server.request("PUT", f"/_component_template/{index}", build_component_template(text_field="body"))
    template = build_index_template([f"{index}-*"], component=index, priority=9001)
    name = f"{index}-app"
    if server.product == "opensearch":
        server.request("PUT", f"/_index_template/{index}", template | {"data_stream": {}})
        server.request("PUT", f"/_data_stream/{name}")
    else:  # the embedded Elasticsearch has no data streams
        server.request("PUT", f"/_index_template/{index}", template)
        server.request("PUT", f"/{index}-000001", {"aliases": {name: {"is_write_index": True}}})
    yield name
    server.remove(index)
    server.request("DELETE", f"/_index_template/{index}")
    server.request("DELETE", f"/_component_template/{index}")


def kill(server, number, *arguments):
    """Run a command that is killed after the bulk request *number*."""
    with signalling_proxy(server.url, "_bulk", number, signal.SIGKILL) as proxy:
        command = [*PROGRAM, *arguments, "--url", proxy.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            proxy.pid = process.pid
            proxy.began.set()
            process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL


def test_a_killed_ingest_goes_on_after_a_rollover(server, rolling, run, tmp_path):
    """Killed twice, with a rollover after each time: no line is written to a second index, with ids or without."""
    path = write(tmp_path / "news.jsonl", range(500), timestamp=True)
    arguments = ["ingest", rolling, str(path), "--checkpoint", str(tmp_path / "checkpoint"), "--batch", "100"]
    # A data stream only takes what is created.
    is_stream = server.product == "opensearch"
    arguments += ["--op-type", "create"] if is_stream else ["--id-field", "n", "--on-duplicate", "none"]
    for _ in range(2):
        kill(server, 2, *arguments)
        server.request("POST", f"/{rolling}/_rollover", {})
    result = run(*arguments, "--json")
    assert result.exit_code == 1, result.output  # five lines are no documents
    server.request("POST", f"/{rolling}/_refresh")
    hits = server.request("POST", f"/{rolling}/_search", {"size": 1_000})["hits"]["hits"]
    assert Counter(hit["_source"]["n"] for hit in hits) == Counter(range(500))
    assert len({hit["_index"] for hit in hits}) == 3
    counts = json.loads(result.stdout)
    assert counts["written"] + counts["unchanged"] == 500
    assert (counts["unreadable"], counts["refused"]) == (5, 0)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_ingest_names_the_line(server, made, run, tmp_path, sent):
    """What was read is finished first, so that what it names goes on without a gap and without a double."""
    path = write(tmp_path / "news.jsonl", range(700))
    said, again = stop(server, "_bulk", 2, sent, "ingest", made, str(path), "--batch", "50")
    skipped = int(again[again.index("--skip") + 1])
    assert 100 <= skipped < 707
    assert str(path) in said
    held = read_all(server, made)
    assert Counter(source["n"] for source in held.values()) == Counter(range(len(held)))
    result = run(*again)
    assert result.exit_code in (0, 1), result.output
    found = read_all(server, made)
    assert Counter(source["n"] for source in found.values()) == Counter(range(700))


def test_a_checkpoint_that_cannot_be_used(made, run, tmp_path):
    path = write(tmp_path / "news.jsonl", range(3))
    checkpoint = ["--checkpoint", tmp_path / "checkpoint"]
    assert run("ingest", made, "-", *checkpoint, stdin="{}").exit_code == 2
    assert run("ingest", made, path, *checkpoint, "--skip", 1).exit_code == 2
    assert run("ingest", made, path, *checkpoint, "--limit", 2).exit_code == 0
    for arguments, word in (
        ([path, *checkpoint, "--content-ids"], "content_ids"),
        ([path, path, *checkpoint], "files"),
        ([path, "--checkpoint", path], "no checkpoint"),
    ):
        failed(run("ingest", made, *arguments), word)
    assert run("ingest", made, path, *checkpoint).exit_code == 0
    write(path, range(4))
    failed(run("ingest", made, path, *checkpoint), "has changed")


@pytest.mark.parametrize("is_alias", [False, True])
def test_a_checkpoint_of_another_index_is_refused(server, index, run, tmp_path, is_alias):
    """An index that was deleted and made again lacks what the checkpoint says was written; nothing is written to it."""
    path = write(tmp_path / "news.jsonl", range(3))
    concrete = f"{index}-own" if is_alias else index

    def make():
        assert run("create", concrete, "-t", "body").exit_code == 0
        if is_alias:
            server.request("PUT", f"/{concrete}/_alias/{index}", {"is_write_index": True})

    make()
    arguments = ["ingest", index, path, "--checkpoint", tmp_path / "checkpoint", "--json"]
    assert run(*arguments, "--limit", 2).exit_code == 0
    server.request("DELETE", f"/{concrete}")
    for _ in ("gone", "made again"):
        result = run(*arguments)
        assert result.exit_code == 1
        [line] = result.stderr.splitlines()
        assert json.loads(line)["error"]["kind"] == "InvalidInputError"
        if not server.request("GET", f"/{concrete}", missing_ok=True):
            make()
    assert read_all(server, concrete) == {}
    server.request("DELETE", f"/{concrete}")


def test_lines_that_exist(server, made, run, tmp_path):
    """With --op-type create: an equal document is no failure, another one is."""
    path = tmp_path / "news.jsonl"
    path.write_text('{"_id": "a", "body": "one text of a few words"}\n{"_id": "b", "body": "another text, of words"}\n')
    assert run("ingest", made, path, "--op-type", "create").exit_code == 0
    result = run("ingest", made, path, "--op-type", "create", "--json")
    assert (result.exit_code, json.loads(result.stdout)["unchanged"]) == (0, 2)
    path.write_text('{"_id": "a", "body": "a new text of a few words"}\n')
    assert run("ingest", made, path, "--op-type", "create").exit_code == 1
    assert read_all(server, made)["a"]["body"] == "one text of a few words"


UNREADABLE = {
    "gbk.csv": "id,正文\n1,港务局周一早上把柜台搬到了二楼。\n".encode("gb18030"),
    "array.jsonl": b'[{"id": 1, "body": "x"}, {"id": 2, "body": "y"}]\n',
    "pandas.csv": b",id,body\n0,1,x\n",
    "answer.jsonl": b'{"took": 1, "hits": {"hits": [{"_id": "1", "_source": {"body": "x"}}]}}\n',
    "bulk.jsonl": b'{"index": {}}\n{"body": "x"}\n',
    "empty.jsonl": b"",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_without_a_readable_line_leaves_nothing(server, index, run, tmp_path, name):
    """No index, no recorded rule and no checkpoint: the next try may be of another kind."""
    (tmp_path / name).write_bytes(UNREADABLE[name])
    good = write(tmp_path / "good.jsonl", range(3))
    checkpoint = tmp_path / "checkpoint"
    ingest = ["ingest", index, "--create", "-t", "body", "--checkpoint", checkpoint]
    result = run(*ingest, tmp_path / name)
    assert result.exit_code == bool(UNREADABLE[name]), result.output
    assert f"{index} was not created" in result.stderr
    assert len(result.stderr.splitlines()) <= 2
    assert not checkpoint.exists()
    piped = run(*ingest[:-2], "-", stdin=UNREADABLE[name])
    assert f"{index} was not created" in piped.stderr
    result = run(*ingest, good, "--preset", "similar")
    assert result.exit_code == 0, result.output
    assert len(read_all(server, index)) == 3


def test_an_index_records_no_rule_for_a_file_that_cannot_be_read(made, run, tmp_path):
    (tmp_path / "x.jsonl").write_bytes(UNREADABLE["array.jsonl"])
    result = run("ingest", made, tmp_path / "x.jsonl", "--report", tmp_path / "report")
    assert result.exit_code == 1, result.output
    assert [json.loads(line)["action"] for line in (tmp_path / "report").read_text().splitlines()] == ["unreadable"]
    assert run("ingest", made, write(tmp_path / "good.jsonl", range(3)), "--preset", "similar").exit_code == 0
