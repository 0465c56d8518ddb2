"""An ingest with a checkpoint goes on where it stopped: no document is left out, and none is written twice."""

import json
from collections import Counter

import pytest

from es_simhash import InvalidInputError
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


@pytest.mark.parametrize("more", [{}, {"max_delay": 0.5, "on_duplicate": None}], ids=["batches", "a queue"])
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
