"""``es-simhash ingest`` of files and pipes: stopped, killed and continued, on real servers."""

import gzip
import json
import signal
import subprocess
from collections import Counter

import pytest

from es_simhash import build_component_template, build_index_template
from tests.servers.command_line import PROGRAM, stop
from tests.servers.proxy import signalling_proxy
from tests.servers.support import read_all, texts

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


@pytest.mark.parametrize("server", ["elasticsearch"], indirect=True)
def test_a_killed_ingest_is_run_again(server, index, run, tmp_path):
    """Killed at a known request, run again, and again: the groups are those of an ingest that nobody killed."""
    path = tmp_path / "0.jsonl"
    path.write_text("".join(json.dumps({"n": n, "body": text}) + "\n" for n, text in enumerate(texts(150, edits=9))))
    how = ["--create", "-t", "body", "--max-distance", "12", "--batch", "30", "--id-field", "n", "--op-type", "create"]
    results, counts = [], []
    for name, runs in ((f"{index}-calm", 1), (index, 2)):
        if name == index:
            kill(server, 4, "ingest", name, str(path), *how)
        for _ in range(runs):
            result = run("ingest", name, path, *how, "--json")
            assert result.exit_code == 0, result.output
            counts.append(json.loads(result.stdout))
        found = read_all(server, name)
        results.append({source["n"]: (id_, source["simhash"]["group"]) for id_, source in found.items()})
        assert len(results[-1]) == len(found)
    first, rest, last = counts
    assert len({group for _, group in results[0].values()}) > 15
    assert results[1] == results[0]
    written = len(results[0])
    assert first["written"] == written
    assert (last["written"], last["unchanged"], last["updated"]) == (0, written, 0)
    assert 0 < rest["written"] < written
    assert rest["unchanged"] == written - rest["written"]


@pytest.fixture
def rolling(opensearch, index):
    """A data stream with our fields."""
    name = f"{index}-app"
    template = build_index_template([f"{index}-*"], component=index, priority=9001) | {"data_stream": {}}
    opensearch.request("PUT", f"/_component_template/{index}", build_component_template(text_field="body"))
    opensearch.request("PUT", f"/_index_template/{index}", template)
    opensearch.request("PUT", f"/_data_stream/{name}")
    yield name
    opensearch.remove(index)
    opensearch.request("DELETE", f"/_index_template/{index}")
    opensearch.request("DELETE", f"/_component_template/{index}")


def kill(server, number, *arguments):
    """Run a command that is killed after the bulk request *number*."""
    with signalling_proxy(server.url, "_bulk", number, signal.SIGKILL) as proxy:
        command = [*PROGRAM, *arguments, "--url", proxy.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            proxy.pid = process.pid
            proxy.began.set()
            process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_killed_ingest_is_run_again_after_a_rollover(server, rolling, run, tmp_path):
    """Killed, with a rollover after it: no line is written to a second index."""
    path = write(tmp_path / "news.jsonl", range(200), timestamp=True)
    arguments = ["ingest", rolling, str(path), "--batch", "40", "--content-ids", "--op-type", "create"]
    kill(server, 4, *arguments)
    server.request("POST", f"/{rolling}/_rollover", {})
    result = run(*arguments, "--json")
    assert result.exit_code == 3, result.output  # two lines are no documents
    server.request("POST", f"/{rolling}/_refresh")
    hits = server.request("POST", f"/{rolling}/_search", {"size": 1_000})["hits"]["hits"]
    assert Counter(hit["_source"]["n"] for hit in hits) == Counter(range(200))
    assert len({hit["_index"] for hit in hits}) == 2
    counts = json.loads(result.stdout)
    assert counts["written"] + counts["unchanged"] == 200
    assert (counts["unreadable"], counts["refused"]) == (2, 0)


def test_a_stopped_ingest_names_the_line(server, made, run, tmp_path):
    """What was read is finished first, so that what it names goes on without a gap and without a double."""
    path = write(tmp_path / "news.jsonl", range(700))
    command = ("ingest", made, str(path), "--batch", "50")
    said = stop(server, "_bulk", 2, signal.SIGINT, *command)
    skipped = int(said.rpartition("; run it again with --skip ")[2])
    assert 100 <= skipped < 707
    assert str(path) in said
    held = read_all(server, made)
    assert Counter(source["n"] for source in held.values()) == Counter(range(len(held)))
    result = run(*command, "--skip", skipped)
    assert result.exit_code in (0, 3), result.output
    found = read_all(server, made)
    assert Counter(source["n"] for source in found.values()) == Counter(range(700))


def test_lines_that_exist(server, made, run, tmp_path):
    """With --op-type create: an equal document is no failure, another one is."""
    path = tmp_path / "news.jsonl"
    path.write_text('{"_id": "a", "body": "one text of a few words"}\n{"_id": "b", "body": "another text, of words"}\n')
    assert run("ingest", made, path, "--op-type", "create").exit_code == 0
    result = run("ingest", made, path, "--op-type", "create", "--json")
    assert (result.exit_code, json.loads(result.stdout)["unchanged"]) == (0, 2)
    path.write_text('{"_id": "a", "body": "a new text of a few words"}\n')
    assert run("ingest", made, path, "--op-type", "create").exit_code == 3
    assert read_all(server, made)["a"]["body"] == "one text of a few words"


UNREADABLE = {
    "gbk.csv": "id,正文\n1,港务局周一早上把柜台搬到了二楼。\n".encode("gb18030"),
    "array.jsonl": b'[{"id": 1, "body": "x"}, {"id": 2, "body": "y"}]\n',
    "empty.jsonl": b"",
}


def test_a_file_without_a_readable_line_leaves_nothing(server, index, run, tmp_path):
    """No index and no recorded rule: the next try may be of another kind."""
    ingest = ["ingest", index, "--create", "-t", "body"]
    for name, content in UNREADABLE.items():
        (tmp_path / name).write_bytes(content)
        result = run(*ingest, tmp_path / name)
        assert result.exit_code == 3 * bool(content), result.output
        assert f"{index} was not created" in result.stderr
        assert len(result.stderr.splitlines()) <= 2
    result = run(*ingest, write(tmp_path / "good.jsonl", range(3)), "--preset", "similar")
    assert result.exit_code == 0, result.output
    assert len(read_all(server, index)) == 3


def test_an_index_records_no_rule_for_a_file_that_cannot_be_read(made, run, tmp_path):
    (tmp_path / "x.jsonl").write_bytes(UNREADABLE["array.jsonl"])
    result = run("ingest", made, tmp_path / "x.jsonl", "--report", tmp_path / "report")
    assert result.exit_code == 3, result.output
    assert [json.loads(line)["action"] for line in (tmp_path / "report").read_text().splitlines()] == ["unreadable"]
    assert run("ingest", made, write(tmp_path / "good.jsonl", range(3)), "--preset", "similar").exit_code == 0
