"""Lookups of passages on real servers: texts inside texts, whatever surrounds them, sync and async."""

import random

import pytest

from es_simhash import (
    IncompleteSearchError,
    InvalidInputError,
    MappingError,
    build_mapping,
    document_fields,
    with_fingerprints,
)
from tests.servers.support import ONE_SHARD, put, send_lines


def words(seed, count):
    """Return so many invented words."""
    chance = random.Random(seed)
    return " ".join("".join(chance.choices("aeioulmnrst", k=chance.randint(3, 9))) for _ in range(count))


def han(seed, count):
    """Return so many characters of Chinese, in no sensible order."""
    return "".join(map(chr, random.Random(seed).choices(range(0x4E00, 0x5200), k=count)))


QUESTION = words(1, 120)
PART, RUN, SHORT = (" ".join(QUESTION.split()[start:end]) for start, end in ((10, 60), (20, 65), (70, 95)))
DOCUMENTS = {
    "whole": f"{words(2, 30)} {QUESTION.upper()} {words(3, 30)}",
    "part": PART,
    "run": f"{words(4, 80)} «{RUN}» {words(5, 200)}",
    "short": f"{words(6, 60)} {SHORT} {words(7, 60)}",
    "other": words(8, 100),
    "chinese": han(1, 400),
    "quoted": f"{han(2, 50)}“{han(1, 400)[100:190]}”{han(3, 500)}",
    "word": "bridge",
}


@pytest.fixture
def filled(server, index, simhash):
    """An index with passages and the documents."""
    simhash.create_index(index, text_field="body", passages=True, settings={**ONE_SHARD, "number_of_shards": 2})
    documents = [{"_id": id_, "body": text, "n": len(text)} for id_, text in DOCUMENTS.items()]
    assert {report.action for report in simhash.ingest(index, documents, on_duplicate=None)} == {"written"}
    server.request("POST", f"/{index}/_refresh")
    return index


def ids(found):
    return [overlap.id for overlap in found]


def test_texts_inside_texts(filled, simhash):
    """Documents that contain the text, stand in it, or share a long run are found, with the places in both texts."""
    found = simhash.find_passages(filled, QUESTION)
    assert ids(found) == ["whole", "part", "run"]
    whole, part, run = found
    assert (whole.contained, part.contains, found.complete) == (1.0, 1.0, True)
    assert run.contained < 0.8
    assert run.contains < 0.8
    [passage] = run.passages
    assert QUESTION[passage.start : passage.end] == RUN
    assert DOCUMENTS["run"][passage.other_start : passage.other_end] == passage.text == RUN
    numbers = {id_: {"n": len(text)} for id_, text in DOCUMENTS.items()}
    for shown in (
        simhash.find_passages(filled, QUESTION, source=["n"]),
        simhash.find_passages_of(filled, "part", source=["n"]),
    ):
        assert {overlap.id: overlap.source for overlap in shown} == {
            overlap.id: numbers[overlap.id] for overlap in shown
        }
    assert run.source is None
    assert simhash.find_passages(filled, QUESTION, source=True)[0].source["body"] == DOCUMENTS["whole"]
    assert ids(simhash.find_passages(filled, QUESTION, min_run=120)) == ["whole", "part", "run", "short"]
    assert ids(simhash.find_passages(filled, QUESTION, size=1)) == ["whole"]
    assert ids(simhash.find_passages(filled, QUESTION, exclude_ids=["whole"])) == ["part", "run"]
    shorter = {"range": {"n": {"lt": len(DOCUMENTS["whole"])}}}
    assert ids(simhash.find_passages(filled, QUESTION, filter=shorter)) == ["part"]
    others = [simhash.find_passages(filled, text) for text in (han(1, 400), "...")]
    assert [ids(found) for found in others] == [["chinese", "quoted"], []]
    assert ids(simhash.find_passages_of(filled, "part")) == ["whole", "run"]
    assert {row["other_start"] for row in found.to_dicts() if row["id"] == "whole"} == {len(words(2, 30)) + 1}
    with pytest.raises(InvalidInputError, match="no document 'nobody'"):
        simhash.find_passages_of(filled, "nobody")


def test_a_half_filled_index_is_refused(server, index, simhash):
    """Passages of an index with documents are looked up when a backfill has filled all; a new gap is noticed."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    put(server, index, [{"_id": id_, "body": text} for id_, text in DOCUMENTS.items()])
    list(simhash.backfill(index))
    with pytest.raises(MappingError, match=r"has no passages: add them with put_mapping\(index, passages=True\)"):
        simhash.find_passages(index, QUESTION)
    simhash.put_mapping(index, passages=True)
    with pytest.raises(IncompleteSearchError, match=r"run setup\(index\)"):
        simhash.find_passages(index, QUESTION)
    assert [fault.kind for fault in simhash.check(index)[0].faults] == ["without_passages"]
    list(simhash.backfill(index))
    assert ids(simhash.find_passages(index, QUESTION)) == ["whole", "part", "run"]
    [report] = simhash.check(index)
    assert (report.with_passages, report.faults) == (len(DOCUMENTS), ())
    # Another program writes fingerprints and no passages, as the ingest pipeline does.
    added = list(with_fingerprints([{"_id": "new", "body": DOCUMENTS["run"]}], text_field="body"))
    put(server, index, added)
    simhash.put_mapping(index)  # forget that all had passages a moment ago
    with pytest.raises(
        IncompleteSearchError, match="^documents with shared passages may be missing: 1 documents of"
    ) as caught:
        simhash.find_passages(index, QUESTION)
    partly = caught.value.results
    assert (ids(partly), partly.complete) == (["whole", "part", "run"], False)
    [fault] = simhash.check(index)[0].faults
    assert (fault.kind, fault.found) == ("without_passages", "1")
    assert list(simhash.follow(index, once=True, state_index=f"{index}-state"))[-1].written == 1
    server.request("POST", f"/{index}/_refresh")
    assert ids(simhash.find_passages(index, QUESTION)) == ["whole", "part", "new", "run"]


def test_an_alias_that_gets_another_index(server, index, simhash):
    """A rollover within the minute of remembered settings: a hit of an index that these do not name is compared too."""
    texts = {}
    for number in (1, 2):
        name = f"{index}-{number}"
        mapping = build_mapping(text_field="body", passages=True)
        server.request("PUT", f"/{name}", {"settings": ONE_SHARD, "mappings": mapping, "aliases": {index: {}}})
        texts[str(number)] = text = f"{words(number, 9)} {QUESTION}"
        put(server, name, [{"_id": str(number), "body": text, **document_fields(text, passages=True)}])
        assert sorted(ids(simhash.find_passages(index, QUESTION))) == sorted(texts)
    assert ids(simhash.find_passages_of(index, "2")) == ["1"]


def test_a_text_that_changes(server, filled, simhash):
    """An update through us brings new passages; one by another program leaves stale ones, which are noticed."""
    list(
        simhash.ingest(filled, [{"_op_type": "update", "_id": "run", "doc": {"body": words(9, 90)}}], on_duplicate=None)
    )
    list(simhash.ingest(filled, [{"_op_type": "update", "_id": "other", "doc": {"body": RUN}}], on_duplicate=None))
    send_lines(server, [{"update": {"_index": filled, "_id": "whole"}}, {"doc": {"body": words(10, 90)}}])
    server.request("POST", f"/{filled}/_refresh")
    found = simhash.find_passages(filled, QUESTION)
    assert "other" in ids(found)
    assert "whole" not in ids(found)
    assert [line.split("'")[1] for line in found.stale] == ["whole"]
    assert list(simhash.backfill(filled))[-1].changed == 1
    assert not simhash.find_passages(filled, QUESTION).stale


def test_a_text_that_cannot_be_read(server, index, simhash):
    """A text field that _source leaves out makes the answer incomplete, which is an error."""
    mappings = {"_source": {"excludes": ["body"]}, "properties": {"body": {"type": "text"}}}
    simhash.create_index(index, text_field="body", passages=True, mappings=mappings, settings=ONE_SHARD)
    documents = [{"_id": id_, "body": text} for id_, text in DOCUMENTS.items()]
    list(simhash.ingest(index, documents, on_duplicate=None))
    server.request("POST", f"/{index}/_refresh")
    with pytest.raises(IncompleteSearchError, match="was not compared: it has no text in body") as caught:
        simhash.find_passages(index, QUESTION)
    assert len(caught.value.reasons) == caught.value.results.candidates >= 3


def test_the_command(run, index, server, tmp_path):
    """It prints what was found, as a table and as JSON."""
    assert run("create", index, "-t", "body", "--passages").exit_code == 0
    put(server, index, list(with_fingerprints([{"_id": "a", "body": RUN}], text_field="body", passages=True)))
    path = tmp_path / "question.txt"
    path.write_text(QUESTION)
    shown = run("passages", index, "--file", path)
    assert (shown.exit_code, "1 document with shared passages" in shown.output) == (0, True), shown.output
    assert '"contains": 1.0' in run("passages", index, "--file", path, "--json").output
    assert "no documents" in run("passages", index, "--id", "a").output
    assert run("passages", index).exit_code == 2
