"""An update that creates its ``upsert`` writes another document than its ``doc``, and that is the one decided about."""

import pytest

from tests.servers.support import ONE_SHARD, put, random_texts, read_all, stored_groups

DOC, UPSERT, OTHER = random_texts(3, 5)
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


def update(id_="x", *, doc=None, upsert=UPSERT, **rest):
    """Return an update that creates a document with the text *upsert*."""
    parts = {} if doc is None else {"doc": doc}
    return {"_op_type": "update", "_id": id_, **parts, "upsert": {"body": upsert, "n": 0}, **rest}


def groups_of(server, index):
    server.request("POST", f"/{index}/_refresh")
    return stored_groups(read_all(server, index))


@pytest.mark.parametrize("verify", [False, 0.8])
@pytest.mark.parametrize("parts", [{"doc": {"body": DOC}}, {"doc": {"n": 1}}, SCRIPT], ids=["text", "none", "script"])
def test_its_group_is_that_of_its_text(server, filled, simhash, parts, verify):
    """Later ones find it: in the same batch, and in another."""
    ways = {"max_distance": 3, "verify": verify}
    simhash.reconcile(filled, regroup=True, **ways)
    copies = [{"_id": "y", "body": UPSERT}, {"_id": "z", "body": DOC}]
    reports = list(simhash.ingest(filled, [update(**parts), *copies], **ways))
    assert [(each.canonical, each.reason, each.fingerprinted) for each in reports[:1]] == [("u", None, True)]
    assert [each.canonical for each in reports] == ["u", "u", "d"]
    assert [each.action for each in simhash.ingest(filled, [{"_id": "w", "body": UPSERT}], **ways)] == ["tagged"]
    assert groups_of(server, filled) == {"d": "d", "u": "u", "o": "o", "x": "u", "y": "u", "z": "d", "w": "u"}
    assert read_all(server, filled)["x"]["simhash"]["duplicate_of"] == "u"
    assert simhash.reconcile(filled, dry_run=True).changed == 0


def test_one_without_features_is_a_group_by_itself(server, filled, simhash):
    """Else a search that folds groups would fold all such documents into one."""
    reports = list(simhash.ingest(filled, [update(id_, doc={"body": DOC}, upsert="…") for id_ in ("x", "y")], **WAYS))
    assert [(each.id, each.reason) for each in reports] == [("x", None), ("y", None)]
    assert groups_of(server, filled) == {"d": "d", "u": "u", "o": "o", "x": "x", "y": "y"}


@pytest.mark.parametrize("parts", [{"doc": {"body": DOC}}, SCRIPT], ids=["text", "script"])
def test_its_copies_are_one_group_where_nothing_else_is_near(server, filled, simhash, parts):
    new, _ = random_texts(2, 77)
    actions = [update(**parts, upsert=new), {"_id": "y", "body": DOC}, update(doc={"n": 2}), {"_id": "z", "body": new}]
    reports = list(simhash.ingest(filled, actions, **WAYS))
    # It is decided about after the batch, so its copy in the same batch comes first.
    assert [each.canonical for each in reports] == ["z", "d", None, "z"]
    [again] = simhash.ingest(filled, [{"_id": "w", "body": new}], **WAYS)
    found = groups_of(server, filled)
    assert (again.action, len({found[id_] for id_ in "xzw"})) == ("tagged", 1)


def test_a_document_that_exists_gets_the_partial_one(server, filled, simhash):
    put(server, filled, [{"_id": "x", "body": OTHER}])
    [report] = simhash.ingest(filled, [update(doc={"body": DOC})], **WAYS)
    assert (report.canonical, groups_of(server, filled)["x"]) == ("d", "d")
    assert read_all(server, filled)["x"]["body"] == DOC


def test_written_again_in_the_same_batch(server, filled, simhash):
    actions = [update(doc={"body": DOC}), {"_id": "x", "body": OTHER}, update("v", **SCRIPT), update("v", doc={"n": 4})]
    reports = list(simhash.ingest(filled, actions, **WAYS))
    assert reports[1].canonical == "o"
    assert groups_of(server, filled)["x"] == "o"
    assert (reports[2].canonical, reports[2].reason, reports[3].reason) == ("u", None, None)
    assert groups_of(server, filled)["v"] == "u"


def test_the_same_text_in_both_takes_one_write(server, filled, simhash):
    [report] = simhash.ingest(filled, [update(doc={"body": UPSERT})], **WAYS)
    assert (report.action, report.canonical) == ("tagged", "u")
    assert server.request("GET", f"/{filled}/_doc/x")["_version"] == 1


@pytest.mark.parametrize("batch", [1, None])
def test_its_copies_are_in_its_group(server, filled, simhash, batch):
    """Where both have the same text: in its batch, and in the next."""
    new, _ = random_texts(2, 78)
    actions = [update(doc={"body": new}, upsert=new), {"_id": "y", "body": new}, {"_id": "z", "body": new}]
    reports = list(simhash.ingest(filled, actions, batch=batch, **WAYS))
    assert [report.canonical for report in reports] == ["x", "x", "x"]
    assert simhash.reconcile(filled, dry_run=True).changed == 0


def test_what_a_script_or_the_partial_document_makes_is_no_upsert(server, filled, simhash):
    """With these the server does not write the text of ``upsert``."""
    if server.product == "elasticsearch":
        pytest.skip("this server has no Painless")
    both = {"body": DOC}
    scripted = update("s", script={"source": "ctx._source.body = 'a bridge'"}, scripted_upsert=True)
    first, second = simhash.ingest(filled, [update(doc=both, doc_as_upsert=True), scripted], **WAYS)
    assert (first.canonical, second.canonical) == ("d", None)
    assert "a script may change the text" in second.reason
    documents = read_all(server, filled)
    assert (documents["x"]["body"], documents["x"]["simhash"]["group"]) == (DOC, "d")
    assert "group" not in documents["s"].get("simhash", {})


def test_without_groups_the_report_tells_of_the_document_written(server, filled, simhash):
    """A reason that is only true of the script or of the partial document is not given where neither was used."""
    put_first = [{"_id": "old", "body": DOC}]
    actions = [*put_first, update(**SCRIPT), update("old", **SCRIPT), update("n", doc={"n": 1}, upsert=7)]
    _, created, scripted, bad = simhash.ingest(filled, actions, on_duplicate=None)
    assert (created.reason, created.fingerprinted) == (None, True)
    assert server.product == "elasticsearch" or "fingerprint is left" in scripted.reason
    assert "not text" in bad.reason
