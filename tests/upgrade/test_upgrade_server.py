"""
What an older version left is read by this one: an index, a plan with decisions, a removal, a position of a follower.

A folder here is named for the version that wrote it, and is never written again. For a new release,
``ES_SIMHASH_UPGRADE=write`` makes one more. A test of this version changes nothing but the name and the UUID of the
index in a plan, as the index is a new one.
"""

import contextlib
import gzip
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import es_simhash
from es_simhash import SimHashClient, removal_summary
from es_simhash.removal.removal_file import digest_lines
from tests.servers.fixtures import make_client
from tests.servers.removals import OTHER, TEXT, decide_file, outcomes
from tests.servers.support import ONE_SHARD, put, random_texts, read_all

FOLDER = Path(__file__).parent
IS_WRITING = os.environ.get("ES_SIMHASH_UPGRADE") == "write"
VERSIONS = sorted(each.name for each in FOLDER.iterdir() if each.is_dir() and each.name[0].isdigit())
INDEX, STATE = "test-upgrade", "test-upgrade-state"
CHINESE = "市政府周二批准在河上修建新大桥,预计明年春天动工,工程历时两年,总投资约三亿元,全市居民将从中受益。"
TEXTS = {
    "a": TEXT,
    "a1": TEXT.upper(),
    "a2": TEXT.replace("Tuesday", "Wednesday"),
    "b": OTHER,
    "b1": OTHER + "!",
    "b2": f"{OTHER} More of this tomorrow in the morning paper.",
    "c": CHINESE,
    "c1": CHINESE.replace(",", " "),
    **{f"z{n}": text for n, text in enumerate(random_texts(20, 62))},
}
# The settings of each scheme, and the rule.
SCHEMES = {
    "shingles": ({}, {"preset": "similar"}),
    "keywords": ({"top": 20}, {"max_distance": 12, "verify": 0.7}),
}


@pytest.fixture(params=[(version, name) for version in VERSIONS for name in SCHEMES], ids="-".join)
def folder(request):
    """What a version left for a scheme."""
    return FOLDER.joinpath(*request.param)


@pytest.fixture
def left(server, folder):
    """What it left as a dict; its index is there again, without a line of ours."""
    left = json.loads(gzip.decompress((folder / "index.json.gz").read_bytes()))
    server.remove(INDEX)
    server.request("PUT", f"/{INDEX}", {"mappings": left["mappings"], "settings": ONE_SHARD})
    put(server, INDEX, [{"_id": id_, **source} for id_, source in left["documents"].items()])
    yield left
    server.remove(INDEX)


def adopt(server, source, path):
    """Copy a removal to *path*, and name the present index in it."""
    shutil.copy(source, path)
    held = server.request("GET", f"/{INDEX}/_settings")[INDEX]["settings"]["index"]["uuid"]
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        [(header,)] = database.execute("SELECT header FROM removal").fetchall()
        header = header.replace(json.loads(header)["index_uuids"][INDEX], held)
        rows = database.execute("SELECT line FROM lines ORDER BY similarity, distance DESC, number").fetchall()
        sha256 = digest_lines(header, (line for (line,) in rows))
        database.execute("UPDATE removal SET header = ?, sha256 = ?", (header, sha256))
    return path


def test_an_index_answers_as_it_did(server, left, simhash):
    """Its lookups and groups are those of the version that wrote it; check finds nothing, reconcile changes nothing."""
    assert answers(simhash) == left["answers"]
    assert problems(simhash) == left["problems"]
    assert simhash.reconcile(INDEX).changed == 0
    records = simhash.ingest(INDEX, [{"_id": "new", "body": TEXT}])
    assert [record.action for record in records] == ["tagged"]
    server.request("POST", f"/{INDEX}/_refresh")
    assert read_all(server, INDEX)["new"]["simhash"]["duplicate_of"] == "a"


def test_a_plan_and_its_decisions_are_applied(server, left, folder, simhash, tmp_path):
    """What it planned goes, what people kept stays."""
    plan, removed = adopt(server, folder / "plan.db", tmp_path / "plan.db"), set(left["removed"])
    assert {record.id for record in simhash.apply_removal(plan, dry_run=True)} >= removed
    keep = [(INDEX, min(removed), None)]
    file = decide_file(tmp_path / "kept.json", removal_summary(plan)["plan"], keep)
    list(simhash.apply_removal(plan, decisions=[file]))
    assert left["documents"].keys() - read_all(server, INDEX).keys() == removed - {keep[0][1]}


def test_what_was_removed_comes_back(server, left, folder, simhash, tmp_path):
    """A removal that the version applied is restored, document by document, and its history is read."""
    applied = adopt(server, folder / "applied.db", tmp_path / "applied.db")
    for id_ in left["removed"]:
        server.request("DELETE", f"/{INDEX}/_doc/{id_}")
    server.request("POST", f"/{INDEX}/_refresh")
    restored = outcomes(simhash.restore(applied))
    assert restored == dict.fromkeys(left["removed"], ("restored", None))
    assert {id_: source["body"] for id_, source in read_all(server, INDEX).items()} == TEXTS
    assert simhash.reconcile(INDEX).changed == 0


def test_a_follower_goes_on(server, left, simhash):
    """A position of a follower of another index, which this one replaced, loses no document."""
    position = left["position"]
    server.request("PUT", f"/{STATE}", {"settings": ONE_SHARD})
    server.request("PUT", f"/{STATE}/_doc/{position['id']}", position["source"])
    put(server, INDEX, [{"_id": "new", "body": TEXT}])
    list(simhash.follow(INDEX, once=True, state_index=STATE))
    assert read_all(server, INDEX)["new"]["simhash"]["duplicate_of"] == "a"


def answers(simhash):
    """Return the lookups of each text, and the groups."""
    found = {
        id_: [[hit.id, hit.distance] for hit in simhash.find_near_dups(INDEX, text)] for id_, text in TEXTS.items()
    }
    groups = sorted(sorted(member.id for member in group.members) for group in simhash.groups(INDEX))
    return {"lookups": found, "groups": groups}


def problems(simhash):
    """Return what check finds wrong."""
    return [fault.kind for checked in simhash.check(INDEX) for fault in checked.faults]


@pytest.mark.skipif(not IS_WRITING, reason="a release writes its folder once, with ES_SIMHASH_UPGRADE=write")
@pytest.mark.parametrize("name", SCHEMES)
def test_write(opensearch, name):
    """Write what this version leaves."""
    folder = FOLDER / es_simhash.__version__ / name
    folder.mkdir(parents=True)
    server, simhash = opensearch, SimHashClient(make_client(opensearch))
    for index in (INDEX, STATE):
        server.remove(index)
    settings, rule = SCHEMES[name]
    scheme = es_simhash.get_scheme(name, **settings)
    simhash.create_index(INDEX, text_field="body", settings=ONE_SHARD, scheme=scheme)
    put(server, INDEX, [{"_id": id_, "body": text} for id_, text in TEXTS.items()])
    simhash.setup(INDEX, **rule)
    list(simhash.follow(INDEX, once=True, state_index=STATE))
    documents = read_all(server, INDEX)
    [(id_, source)] = read_all(server, STATE).items()
    left = {
        "mappings": server.request("GET", f"/{INDEX}/_mapping")[INDEX]["mappings"],
        "documents": documents,
        "answers": answers(simhash),
        "problems": problems(simhash),
        "position": {"id": id_, "source": source},
    }
    for file in ("plan.db", "applied.db"):
        simhash.plan_removal(INDEX, folder / file, max_share=1.0)
    list(simhash.apply_removal(folder / "applied.db"))
    left["removed"] = sorted(documents.keys() - read_all(server, INDEX).keys())
    assert left["removed"]
    (folder / "index.json.gz").write_bytes(gzip.compress(json.dumps(left, sort_keys=True).encode(), mtime=0))
    for index in (INDEX, STATE):
        server.remove(index)
