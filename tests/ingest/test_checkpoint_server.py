"""An ingest with a checkpoint goes on where it stopped: no document is left out, and none is written twice."""

import json
from collections import Counter

import pytest

from es_simhash import InvalidInputError, WritesRefusedError
from tests.servers.support import read_all, texts

TEXTS = texts(250, seed=9)


def documents(stop=None):
    """Yield documents without an id, and one that is none."""
    for number, text in enumerate(TEXTS[:stop]):
        yield "no document" if number == 120 else json.dumps({"n": number, "body": text})


@pytest.fixture
def made(index, sync_simhash):
    sync_simhash.create_index(index, text_field="body")
    return index


@pytest.mark.parametrize("more", [{}, {"on_duplicate": None}], ids=["grouped", "not grouped"])
def test_it_goes_on(server, made, simhash, tmp_path, more):
    """Each run has more documents than the one before; what was reported is in the index, each document once."""
    arguments = {"checkpoint": tmp_path / "checkpoint", "batch": 40, **more}
    reports = []
    for stop in (100, 220, None):
        reports += simhash.ingest(made, documents(stop), **arguments)
    assert [each.position for each in reports] == list(range(250))
    assert [each.position for each in reports if each.action == "refused"] == [120]
    assert list(simhash.ingest(made, documents(), **arguments)) == []
    found = read_all(server, made)
    assert Counter(source["n"] for source in found.values()) == Counter({*range(250)} - {120})
    assert {each.id for each in reports if each.id} == set(found)


def test_what_nobody_read_is_sent_again(server, made, sync_simhash, tmp_path):
    """Stopped in the middle of a batch: its documents are sent again, with the same ids."""
    checkpoint = tmp_path / "checkpoint"
    stream = sync_simhash.ingest(made, documents(), checkpoint=checkpoint, batch=40)
    first = [next(stream) for _ in range(50)]
    stream.close()
    rest = list(sync_simhash.ingest(made, documents(), checkpoint=checkpoint, batch=40))
    assert (rest[0].position, rest[0].id) == (40, first[40].id)
    assert len(read_all(server, made)) == 249


def test_another_purpose_or_index_is_refused(server, made, sync_simhash, tmp_path):
    arguments = {"checkpoint": tmp_path / "checkpoint"}
    next(stream := sync_simhash.ingest(made, documents(), **arguments))
    with pytest.raises(InvalidInputError, match="used by another run"):
        list(sync_simhash.ingest(made, documents(), **arguments))
    stream.close()
    with pytest.raises(
        InvalidInputError, match="on_duplicate 'tag', not 'skip': give the same options, or another che"
    ):
        list(sync_simhash.ingest(made, documents(), **arguments, on_duplicate="skip"))
    server.request("DELETE", f"/{made}")
    sync_simhash.create_index(made, text_field="body")
    with pytest.raises(InvalidInputError, match="replaced by another index since .* the documents whole"):
        list(sync_simhash.ingest(made, documents(), **arguments))
    assert read_all(server, made) == {}


BLOCKS = ["index.blocks.write", "index.blocks.read_only_allow_delete"]


def block(server, index, name, *, on):
    server.request("PUT", f"/{index}/_settings", {name: on or None})


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", BLOCKS)
def test_what_a_block_refuses_is_not_done(server, made, simhash, tmp_path, name):
    """The run ends, and the next one, when the block is gone, writes all that is missing."""
    arguments = {"checkpoint": tmp_path / "checkpoint", "batch": 40}
    list(simhash.ingest(made, documents(100), **arguments))
    block(server, made, name, on=True)
    with pytest.raises(WritesRefusedError) as refused:
        list(simhash.ingest(made, documents(), **arguments))
    assert refused.value.index == made
    assert refused.value.kind == "blocked"
    block(server, made, name, on=False)
    reports = list(simhash.ingest(made, documents(), **arguments))
    assert [each.position for each in reports if each.hindrance is None] == list(range(100, 250))
    assert Counter(each["n"] for each in read_all(server, made).values()) == Counter({*range(250)} - {120})


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", BLOCKS)
def test_the_command_goes_on_after_a_block(server, index, run, tmp_path, name):
    """The same command twice: an error that names the block, and then every line."""
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(json.dumps({"n": n, "body": text}) + "\n" for n, text in enumerate(TEXTS)))
    command = ("ingest", index, path, "--create", "-t", "body", "--checkpoint", tmp_path / "c", "--batch", 50)
    limited = run(*command, "--limit", 90)
    assert limited.exit_code == 0, limited.output
    block(server, index, name, on=True)
    refused = run(*command, "--report", tmp_path / "report")
    assert refused.exit_code == 1
    assert "takes no writes now" in refused.stderr
    assert "cluster_block_exception" in refused.stderr
    block(server, index, name, on=False)
    done = run(*command, "--report", tmp_path / "report", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["refused"] == 0
    assert sorted(each["n"] for each in read_all(server, index).values()) == list(range(250))
    assert run(*command).exit_code == 0
