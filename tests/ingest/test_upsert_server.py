"""An update that creates its ``upsert`` writes another document than its ``doc``, and that is the one decided about."""

import pytest

from tests.servers.support import ONE_SHARD, put, random_texts, read_all, stored_groups

DOC, UPSERT, OTHER, NEW = random_texts(4, 5)
WAYS = {"max_distance": 3, "verify": False}
SCRIPT = {"script": {"source": "ctx._source.n = 1"}}


@pytest.fixture
def simhash(make_simhash):
    return make_simhash()


@pytest.fixture
def filled(server, index, simhash):
    """An index in which "d" has the text of each update, and "u" that of its upsert; nothing else is near."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    found = [{"_id": "d", "body": DOC}, {"_id": "u", "body": UPSERT}, {"_id": "o", "body": OTHER}]
    list(simhash.ingest(index, found, **WAYS))
    server.request("POST", f"/{index}/_refresh")
    return index


def update(id_="x", *, upsert=UPSERT, **rest):
    """Return an update that creates a document with the text *upsert*."""
    return {"_op_type": "update", "_id": id_, "upsert": {"body": upsert, "n": 0}, **rest}


BY_DOC = {"doc": {"body": DOC}}
Y, Z = ({"_id": id_, "body": text} for id_, text in (("y", UPSERT), ("z", DOC)))
COPIES = [{"_id": id_, "body": NEW} for id_ in "yz"]
SCENES = {
    # Later ones find it: in the same batch, and in another.
    "a text": ([update(**BY_DOC), Y, Z], "uud", {"x": "u", "y": "u", "z": "d"}),
    "no text": ([update(doc={"n": 1}), Y, Z], "uud", {"x": "u", "y": "u", "z": "d"}),
    "script": ([update(**SCRIPT), Y, Z], "uud", {"x": "u", "y": "u", "z": "d"}),
    # Else a search that folds groups would fold all such documents into one.
    "without features": ([update(id_, upsert="…", **BY_DOC) for id_ in "xy"], "..", {"x": "x", "y": "y"}),
    # It is decided about after the batch, so its copy in the same batch comes first.
    "nothing near": ([update(upsert=NEW, **BY_DOC), Z, update(doc={"n": 2}), *COPIES[:1]], "yd.y", {"x": "y"}),
    "a script, nothing near": ([update(upsert=NEW, **SCRIPT), *COPIES[:1]], "yy", {"x": "y"}),
    "written again": ([update(**BY_DOC), {"_id": "x", "body": OTHER}], ".o", {"x": "o"}),
    "updated again": ([update(**SCRIPT), update(doc={"n": 4})], "u.", {"x": "u"}),
    "the same text": ([update(upsert=NEW, doc={"body": NEW}), *COPIES], "xxx", {"x": "x", "y": "x", "z": "x"}),
}


@pytest.mark.parametrize(("actions", "told", "groups"), SCENES.values(), ids=SCENES)
def test_its_group_is_that_of_its_text(server, filled, simhash, actions, told, groups):
    """As its report says, where that is given here; later ones find it, and no group has to be corrected."""
    reports = list(simhash.ingest(filled, actions, **WAYS))
    assert {report.reason for report in reports} == {None}
    assert [report.canonical for report, group in zip(reports, told, strict=True) if group != "."] == [
        *told.replace(".", "")
    ]
    server.request("POST", f"/{filled}/_refresh")
    assert stored_groups(read_all(server, filled)).items() >= groups.items()
    held = read_all(server, filled)["x"]["body"]
    again = list(simhash.ingest(filled, [{"_id": "w", "body": held}], **WAYS))
    assert [report.canonical for report in again] == [None if held == "…" else groups["x"]]
    assert simhash.reconcile(filled, dry_run=True).changed == 0


def test_a_document_that_exists_gets_the_partial_one(server, filled, simhash):
    """And where both have one text, one write suffices."""
    put(server, filled, [{"_id": "x", "body": OTHER}])
    both = update("both", doc={"body": UPSERT})
    reports = list(simhash.ingest(filled, [update(**BY_DOC), both], **WAYS))
    assert [(report.action, report.canonical) for report in reports] == [("tagged", "d"), ("tagged", "u")]
    assert read_all(server, filled)["x"]["body"] == DOC
    assert server.request("GET", f"/{filled}/_doc/both")["_version"] == 1


def test_what_a_script_or_the_partial_document_makes_is_no_upsert(server, filled, simhash):
    """With these the server does not write the text of ``upsert``."""
    if server.product == "elasticsearch":
        pytest.skip("this server has no Painless")
    scripted = update("s", script={"source": "ctx._source.body = 'a bridge'"}, scripted_upsert=True)
    first, second = simhash.ingest(filled, [update(doc_as_upsert=True, **BY_DOC), scripted], **WAYS)
    assert (first.canonical, second.canonical) == ("d", None)
    assert "a script may change the text" in second.reason
    documents = read_all(server, filled)
    assert (documents["x"]["body"], documents["x"]["simhash"]["group"]) == (DOC, "d")
    assert "group" not in documents["s"].get("simhash", {})


def test_without_groups_the_report_tells_of_the_document_written(server, filled, simhash):
    """A reason that is only true of the script or of the partial document is not given where neither was used."""
    actions = [{"_id": "old", "body": DOC}, update(**SCRIPT), update("old", **SCRIPT)]
    actions.append(update("n", doc={"n": 1}, upsert=7))
    _, created, scripted, bad = simhash.ingest(filled, actions, on_duplicate=None)
    assert (created.reason, created.fingerprinted) == (None, True)
    assert server.product == "elasticsearch" or "fingerprint is left" in scripted.reason
    assert "not text" in bad.reason
