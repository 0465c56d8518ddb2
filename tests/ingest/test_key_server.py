"""A key beside the fingerprint, on real servers: what it joins, what it may not remove, and what cannot be one."""

import random

import pytest

from es_simhash import MappingError
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import reconcile
from tests.ingest.test_verified_server import MAPPINGS, make_bare, make_documents
from tests.servers.batches import ingest_in_batches
from tests.servers.support import ONE_SHARD, put, read_all, send_lines, texts

RULE = {"max_distance": 20, "verify": 0.7, "key": ("url.raw",)}


def create(simhash, index, **more):
    mappings = {"properties": {**MAPPINGS["properties"], **more}}
    simhash.create_index(index, text_field="body", settings={**ONE_SHARD, "refresh_interval": "-1"}, mappings=mappings)


@pytest.mark.parametrize(
    "options",
    [
        {"lookups": "memory"},
        {"within": ("published", "1d")},
        {"key": ["published", "crawl"], "within": ("published", "1d")},
    ],
)
def test_what_others_changed_is_mended_by_ids(server, index, simhash, client, call, options):
    """Keys that plain updates changed, documents that others wrote: the same as if all groups were judged."""
    create(simhash, index)
    documents = make_bare(make_documents(200, seed=5), seed=5)
    rule = {"max_distance": 2, "verify": False, "key": ("url.raw",)} | options  # few documents are near others
    ingest_in_batches(client, call, index, documents[:120], batch=30, in_flight=50, **rule)
    simhash.reconcile(index)
    chance, changed, lines = random.Random(7), [], []
    for each in documents[:120:9]:
        doc = {"url": chance.choice(["u0", "u1", "u2", None]), "crawl": chance.choice([1, 2])}
        lines += [{"update": {"_index": index, "_id": each["_id"]}}, {"doc": doc}]
        changed.append(each["_id"])
    for each in documents[160:180]:
        lines += [{"index": {"_index": index, "_id": each["_id"]}}, {"url": each.get("url"), "crawl": 1}]
        changed.append(each["_id"])
    send_lines(server, lines)
    list(simhash.ingest(index, documents[120:160]))
    ids = [*changed, *(each["_id"] for each in documents[120:160])]
    report = simhash._run(reconcile(simhash._server(), index, GroupingRequest(), ids=ids))
    assert report.changed > 0
    assert (simhash.reconcile(index).changed, simhash.reconcile(index, since="2026-01-01").changed) == (0, 0)
    assert simhash.reconcile(index).is_settled


@pytest.mark.parametrize("rule", [{"verify": 0.7}, {"verify": False, "max_distance": 3}])
def test_no_plan_takes_a_document_for_its_key(server, index, simhash, tmp_path, rule):
    """Near ones go, whatever their key; the others stay, and are counted."""
    create(simhash, index)
    one, other, third = (texts(1, seed=seed)[0] for seed in (1, 2, 3))
    documents = [
        {"_id": "a", "body": one, "url": "u"},
        {"_id": "b", "body": other, "url": "u"},
        {"_id": "c", "body": "", "url": "u"},
        {"_id": "d", "body": one, "url": "other"},
        {"_id": "e", "body": one, "url": "u"},
        {"_id": "f", "body": third, "url": "v"},
        {"_id": "g", "url": "v"},
        {"_id": "h", "url": "w"},
        {"_id": "i", "url": "w", "body": texts(1, seed=9)[0]},
    ]
    reports = list(simhash.ingest(index, documents, key="url.raw", **rule))
    assert [each.canonical for each in reports] == [*"aaaaaffhh"]
    assert [each.reason for each in reports] == [None, "key", "key", None, "key", None, "key", None, "key"]
    assert [each.distance for each in reports[2:]] == [None, 0, 0, 0, None, 0, None]
    assert simhash.reconcile(index).changed == 0
    made = simhash.plan_removal(index, tmp_path / "removal.db", max_share=1)
    assert (made.count, made.duplicates, made.left_out) == (2, 6, {"key": 4})
    list(simhash.apply_removal(tmp_path / "removal.db"))
    assert sorted(read_all(server, index)) == [*"abcfghi"]
    made = simhash.plan_removal(index, tmp_path / "none.db", max_share=1)
    assert (made.count, made.left_out) == (0, {"key": 4})
    assert simhash.reconcile(index).changed == 0
    assert not [each for each in simhash.check_sample(index).findings if each.kind == "lost_canonicals"]


def test_what_cannot_be_a_key(index, simhash):
    """A text names its subfield; a fraction has no exact value. Nothing is recorded."""
    create(simhash, index, price={"type": "float"}, low={"type": "keyword", "null_value": "none"})
    for key, said in {
        "url": "field 'url' of index .* is mapped as 'text': only a keyword or .* can be a key: name 'url.raw'",
        "price": "is mapped as 'float': only a keyword or a whole number or a date or a boolean can be a key",
        "low": "with a normalizer",
        "missing": "is not mapped",
    }.items():
        with pytest.raises(MappingError, match=said):
            list(simhash.ingest(index, [], key=key))
    assert simhash.check(index)[0].grouping is None


@pytest.mark.parametrize("on_duplicate", ["tag", "skip"])
def test_a_refused_document_keeps_nobody_of_its_key_out(server, index, simhash, on_duplicate):
    """Those after it in the batch are decided again."""
    create(simhash, index)
    one, other, third = (texts(1, seed=seed)[0] for seed in (1, 2, 3))
    documents = [
        {"_id": "a", "body": one, "url": "u", "n": "no number"},
        {"_id": "b", "body": other, "url": "u"},
        {"_id": "c", "body": third, "url": "u"},
    ]
    reports = list(simhash.ingest(index, documents, on_duplicate=on_duplicate, **RULE))
    done = "tagged" if on_duplicate == "tag" else "skipped"
    assert [(each.action, each.canonical) for each in reports] == [("refused", None), ("written", "b"), (done, "b")]
    assert simhash.reconcile(index).changed == 0


def test_what_another_program_wrote_is_tagged_by_its_key(server, index, simhash):
    """Also where only its id is known."""
    create(simhash, index)
    one, other = (texts(1, seed=seed)[0] for seed in (1, 2))
    list(simhash.ingest(index, [{"_id": "a", "body": one, "url": "u"}], **RULE))
    put(server, index, [{"_id": "b", "body": other, "url": ["u"]}, {"_id": "c", "body": other, "url": "v"}])
    reports = list(simhash.tag_written(index, ["b", "c"]))
    assert [(each.canonical, each.reason) for each in reports] == [("a", "key"), ("c", None)]
