"""Ingest that tags or skips documents which add nothing to one of the index, on real servers, sync and async."""

import json

import pytest

from es_simhash import IncompleteSearchError, InvalidInputError, MappingError, with_fingerprints
from tests.ingest.test_estates_server import only_opensearch
from tests.passages.test_passages_server import han, words
from tests.removal.test_contained_server import ARTICLE, CHAIN, DOCUMENTS, GONE, MAIL, fill, tags
from tests.servers.archives import raw_source
from tests.servers.support import ONE_SHARD, put, read_all, send_lines

OLD = {id_: DOCUMENTS[id_] for id_ in ("article", "half", "chain3", "equal1", "chinese")}
NEW = {id_: DOCUMENTS[id_] for id_ in DOCUMENTS if id_ not in OLD}


@pytest.fixture
def filled(server, index, simhash):
    """An index with passages and the documents that contain others."""
    return fill(server, index, simhash, OLD)


def write(simhash, index, documents, policy="skip", **options):
    """Ingest *documents*, id to text or source; return the reports by id."""
    sources = [{"_id": id_, **({"body": each} if isinstance(each, str) else each)} for id_, each in documents.items()]
    return {each.id: each for each in simhash.ingest(index, sources, on_duplicate=policy, contained=0.95, **options)}


def found(reports):
    """Return id to id of the container."""
    return {id_: each.contained_in.id for id_, each in reports.items() if each.contained_in is not None}


def test_what_adds_nothing_is_skipped(server, filled, simhash):
    """Also Chinese, equal text and what stands in the last of a chain; the report has the container as data."""
    reports = write(simhash, filled, NEW)
    assert found(reports) == GONE
    assert {id_ for id_, each in reports.items() if each.action == "skipped"} == set(GONE)
    assert set(read_all(server, filled)) == DOCUMENTS.keys() - GONE.keys()
    assert reports["teaser"].to_dict() == {
        "position": 0,
        "id": "teaser",
        "index": filled,
        "action": "skipped",
        "reason": None,
        "fingerprinted": False,
        "contained_in": {"id": "article", "index": filled, "share": 1.0},
    }


def test_what_adds_nothing_is_tagged(server, filled, simhash):
    """As by tags, which changes nothing then; a document with another text loses its tag, one written again not."""
    reports = write(simhash, filled, NEW, "tag")
    assert (found(reports), tags(server, filled)) == (GONE, GONE)
    assert {reports[id_].action for id_ in ("teaser", "mail")} == {"written"}
    assert {each.id: each.canonical for each in simhash.tag_contained(filled, contained=0.95, dry_run=True)} == GONE
    again = write(simhash, filled, {"mail": MAIL, "teaser": words(30, 50)}, "tag")
    assert found(again) == {"mail": "half"}
    assert tags(server, filled) == {id_: GONE[id_] for id_ in GONE if id_ != "teaser"}


def test_a_tag_in_a_document_that_was_given_as_text(server, filled, simhash):
    """Its other values go on as that text."""
    text = '{"_id": "teaser", "n": 1.10, "body": "BODY"}'.replace("BODY", NEW["teaser"])
    [report] = simhash.ingest(filled, [text], contained=0.95)
    assert report.contained_in.id == "article"
    assert b'"n": 1.10' in raw_source(server, filled, "teaser")


def test_a_tagged_document_contains_nothing(server, index, simhash):
    """It may go: what stands in it is written, unless one that stays contains it too."""
    fill(server, index, simhash, {"chain3": CHAIN})
    longer = " ".join(CHAIN.split()[:80])
    assert found(write(simhash, index, {"chain2": longer}, "tag")) == {"chain2": "chain3"}
    inner = {"chain1": " ".join(longer.split()[:40])}
    assert found(write(simhash, index, inner)) == {"chain1": "chain3"}
    server.request("DELETE", f"/{index}/_doc/chain3?refresh=true")
    assert found(write(simhash, index, inner)) == {}


def test_its_own_old_version_contains_nothing(server, filled, simhash):
    """A document that is cut is written; what stands in it is compared with the text that the index will show."""
    cut, end = " ".join(ARTICLE.split()[:150]), " ".join(ARTICLE.split()[140:])
    reports = write(simhash, filled, {"article": cut, "teaser": DOCUMENTS["teaser"], "end": end})
    assert (found(reports), reports["end"].action) == ({"teaser": "article"}, "written")
    assert read_all(server, filled)["article"]["body"] == cut


@pytest.mark.parametrize("policy", ["tag", "skip"])
@pytest.mark.parametrize("batch", [1, 3, 500])
def test_what_the_same_run_wrote_is_compared(server, index, simhash, batch, policy):
    """In batches before and in the same batch; of a later batch nobody knows yet. No refresh but ours shows it."""
    fill(server, index, simhash, {})
    server.request("PUT", f"/{index}/_settings", {"index.refresh_interval": -1})
    documents = {"long": ARTICLE, "teaser": DOCUMENTS["teaser"], "more": ARTICLE[:100] + words(9, 20)}
    later = {"chain2": DOCUMENTS["chain2"], "chain1": DOCUMENTS["chain1"], "chain3": CHAIN, "end": ARTICLE[-500:]}
    expected = {"teaser": "long", "chain1": "chain2", "end": "long"}
    if batch > 1:  # the longer one comes last of the same batch
        expected |= {"chain1": "chain3", "chain2": "chain3"}
    reports = write(simhash, index, {**documents, **later}, policy, batch=batch)
    assert found(reports) == expected
    assert {each.contained_in.index for each in reports.values() if each.contained_in} == {index}
    server.request("POST", f"/{index}/_refresh")
    there = set(read_all(server, index))
    assert there == reports.keys() - (expected.keys() if policy == "skip" else set())
    assert tags(server, index) == (expected if policy == "tag" else {})
    shown = simhash.tag_contained(index, contained=0.95, dry_run=True)
    left = {each.id: each.canonical for each in shown if each.action == "would tag"}
    complete = {"teaser": "long", "chain1": "chain3", "chain2": "chain3", "end": "long"}
    assert left == {id_: complete[id_] for id_ in complete if id_ in there}


@pytest.mark.parametrize("policy", ["tag", "skip"])
@pytest.mark.parametrize("batch", [1, 500])
def test_a_container_of_the_same_run_that_is_refused(server, index, simhash, batch, policy):
    """What stands in it is written, without a tag: the index has no such text."""
    fill(server, index, simhash, {}, mappings={"properties": {"day": {"type": "date"}}})
    documents = {
        "long": {"body": ARTICLE, "day": "never"},
        "teaser": DOCUMENTS["teaser"],
        "chain3": CHAIN,
        "chain1": DOCUMENTS["chain1"],
    }
    reports = write(simhash, index, documents, policy, batch=batch)
    assert {id_: each.action for id_, each in reports.items() if id_ in ("long", "teaser")} == {
        "long": "refused",
        "teaser": "written",
    }
    assert found(reports) == {"chain1": "chain3"}
    assert tags(server, index) == ({"chain1": "chain3"} if policy == "tag" else {})
    assert set(read_all(server, index)) == {"teaser", "chain3"} | ({"chain1"} if policy == "tag" else set())


@only_opensearch
@pytest.mark.parametrize("policy", ["tag", "skip"])
def test_a_container_of_the_same_run_whose_text_a_pipeline_changes(server, index, simhash, policy):
    """What the index has of it is read before a document counts as contained."""
    fill(server, index, simhash, {})
    processor = {"set": {"field": "body", "value": words(40, 200), "if": "ctx.cut == true"}}
    server.request("PUT", f"/_ingest/pipeline/{index}", {"processors": [processor]})
    server.request("PUT", f"/{index}/_settings", {"index.default_pipeline": index})
    documents = {"teaser": DOCUMENTS["teaser"], "long": {"body": ARTICLE, "cut": True}}
    try:
        reports = write(simhash, index, documents, policy)
        assert (found(reports), tags(server, index)) == ({}, {})
        assert set(read_all(server, index)) == {"teaser", "long"}
    finally:
        server.request("PUT", f"/{index}/_settings", {"index.default_pipeline": None})
        server.request("DELETE", f"/_ingest/pipeline/{index}")


def test_what_cannot_be_known_is_written(server, filled, simhash):
    """A container without a text, or with another text than that of its passages."""
    send_lines(
        server,
        [
            {"update": {"_index": filled, "_id": "article"}},
            {"doc": {"body": 7}},
            {"update": {"_index": filled, "_id": "chinese"}},
            {"doc": {"body": han(9, 400)}},
        ],
    )
    reports = write(simhash, filled, NEW)
    assert found(reports) == {id_: GONE[id_] for id_ in GONE if id_ not in ("teaser", "excerpt")}
    assert {reports[id_].action for id_ in ("teaser", "excerpt")} == {"written"}


def test_what_the_grouping_keeps_apart(server, index, simhash):
    """Documents with another value of per do not contain each other; a common passage hides no container."""
    notice = words(11, 60)
    mappings = {"properties": {"lang": {"type": "keyword"}}}
    others = {f"n{number:02}": {"body": f"{words(100 + number, 30)} {notice}", "lang": "en"} for number in range(30)}
    old = {**others, "z": {"body": f"{ARTICLE} {notice}", "lang": "en"}}
    fill(server, index, simhash, old, mappings=mappings)
    text = f"{' '.join(ARTICLE.split()[150:])} {notice}"
    new = {"same": {"body": text, "lang": "en"}, "other": {"body": text, "lang": "de"}, "none": text}
    assert found(write(simhash, index, new, per="lang")) == {"same": "z"}


def test_indices_and_arguments_that_are_refused(server, index, simhash):
    """As for tags, before anything is written; an empty index is complete."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    with pytest.raises(MappingError, match="has no passages"):
        write(simhash, index, NEW)
    put(server, index, list(with_fingerprints([{"_id": "old", "body": ARTICLE}], text_field="body")))
    simhash.put_mapping(index, passages=True)
    with pytest.raises(IncompleteSearchError, match="when it had documents: backfill it"):
        write(simhash, index, NEW)
    list(simhash.backfill(index))
    assert write(simhash, index, {"teaser": NEW["teaser"]})["teaser"].action == "skipped"
    assert set(read_all(server, index)) == {"old"}
    for options in ({"on_duplicate": "replace"}, {"on_duplicate": None}, {"on_duplicate": lambda *_: "skip"}):
        with pytest.raises(InvalidInputError, match="contained does not go with on_duplicate"):
            list(simhash.ingest(index, [], contained=0.95, **options))
    with pytest.raises(InvalidInputError, match=r"contained 0.5 is out of range"):
        list(simhash.ingest(index, [], contained=0.5))


def test_the_command(run, server, filled, tmp_path):
    """The report has the container, and the counts are those of the actions."""
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"_id": id_, "body": NEW[id_]}) + "\n" for id_ in NEW))
    begun = ["--on-duplicate", "skip", "--checkpoint", tmp_path / "checkpoint"]
    arguments = [*begun, "--contained", "0.95", "--report", tmp_path / "report", "--json"]
    result = run("ingest", filled, tmp_path / "new.jsonl", *arguments)
    assert result.exit_code == 0, result.output
    report = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    assert {each["id"]: each["contained_in"]["id"] for each in report if "contained_in" in each} == GONE
    summary = json.loads(result.stdout)
    assert (summary["skipped"], summary["contained"], summary["written"]) == (6, 6, len(NEW) - 6)
    other = run("ingest", filled, tmp_path / "new.jsonl", *begun)
    assert (other.exit_code != 0, "was begun with contained 0.95, not None" in other.output) == (True, True)
    refused = run("ingest", filled, tmp_path / "new.jsonl", "--contained", "0.5")
    assert (refused.exit_code, "--contained" in refused.output) == (1, True)
    refused = run("ingest", filled, tmp_path / "new.jsonl", "--contained", "0.9", "--on-duplicate", "none")
    assert refused.exit_code == 2 or "contained does not go with" in refused.output
