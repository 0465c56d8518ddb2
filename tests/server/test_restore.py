"""
What a removal took comes back: each document as it was, only where it is missing, and in its group.

The archives are written here as a removal writes them; what a removal itself does has tests of its own.
"""

from __future__ import annotations

import gzip
import json
import urllib.request
from dataclasses import replace
from urllib.parse import quote
from warnings import catch_warnings

import pytest

from es_simhash import fingerprint_fields
from es_simhash.client.dialects import ELASTICSEARCH
from es_simhash.errors import InvalidInputError
from es_simhash.flows.protocol import Call
from es_simhash.flows.removal import regroup
from es_simhash.hashing import fingerprint
from es_simhash.index.keys import Key
from es_simhash.index.mapping import build_mapping
from es_simhash.removal.archive import read_archive
from es_simhash.removal.archive_writer import ArchiveWriter
from es_simhash.removal.records import Archived
from tests.server.support import expected_groups, put, read_all, send_lines, stored_groups, texts

PLAN = "0" * 64
AT = "2026-11-22T00:00:00.000Z"


def raw_source(server, index, id_, routing=None):
    """Return the bytes of a document's ``_source``."""
    more = "" if routing is None else f"?routing={quote(routing)}"
    with urllib.request.urlopen(f"{server.url}/{index}/_source/{quote(id_, safe='')}{more}") as answer:  # noqa: S310
        return answer.read()


def put_raw(server, index, id_, source, routing=None):
    """Index a document whose ``_source`` has exactly this text."""
    header = {"index": {"_index": index, "_id": id_} | ({} if routing is None else {"routing": routing})}
    body = f"{json.dumps(header)}\n{source}\n".encode()
    answer = server.request("POST", "/_bulk?refresh=true", body)
    assert not answer["errors"], answer


def write_archive(path, lines, at=AT):
    """Archive ``(index, id, routing, source, canonical)`` lines, three a batch."""
    archived = [
        Archived(index, id_, routing, source, Key(index, canonical), PLAN, at)
        for index, id_, routing, source, canonical in lines
    ]
    with ArchiveWriter(path, PLAN) as writer:
        for begin in range(0, len(archived), 3):
            writer.append(archived[begin : begin + 3])
    return path


def delete(server, index, ids):
    """Delete documents as another program would."""
    send_lines(server, [{"delete": {"_index": index, "_id": id_}} for id_ in ids])


@pytest.fixture
def made(server, index):
    """An index with our mapping."""
    mapping = build_mapping(text_field="body")
    mapping["properties"] |= {"body": {"type": "text"}, "odd": {"type": "object", "enabled": False}}
    server.request("PUT", f"/{index}", {"mappings": mapping})
    return index


def source_of(text, **more):
    """Return a source with its fingerprint."""
    return json.dumps({"body": text, **more, **fingerprint_fields(fingerprint(text))})


ODD = [
    '{"body": "one two three four", "odd": {"a": 1.10, "b": 1E400, "c": 12345678901234567890123, "d": -0.0}}',
    '{ "body":"caf\\u00e9 \\ud83d\\ude00 \\/ tab\\t" ,"odd":{"z":1,"a":[1.0,1,1e0]},\t"b" : null}',
    '{"body": "北京 ニュース", "odd": {"k": true, "": {"": []}}}',
]


def test_every_document_comes_back_byte_for_byte(server, made, simhash, tmp_path):
    """Id, routing and every byte of ``_source``: numbers, escapes, order and white space."""
    rows = [(made, f"id/{n} ü\u202e", "r ö" if n == 1 else None, source, "c") for n, source in enumerate(ODD)]
    for index, id_, routing, source, _ in rows:
        put_raw(server, index, id_, source, routing)
    before = [raw_source(server, index, id_, routing) for index, id_, routing, *_ in rows]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    for index, id_, routing, *_ in rows:
        more = {} if routing is None else {"routing": routing}
        send_lines(server, [{"delete": {"_index": index, "_id": id_, **more}}])
    assert [each.action for each in simhash.restore(path, dry_run=True)] == ["would restore"] * 3
    assert read_all(server, made) == {}
    records = list(simhash.restore(path))
    assert [(each.action, each.id, each.index, each.routing) for each in records] == [
        ("restored", id_, made, routing) for _, id_, routing, *_ in rows
    ]
    assert [raw_source(server, index, id_, routing) for index, id_, routing, *_ in rows] == before
    assert [each.action for each in simhash.restore([path])] == ["exists"] * 3


def test_what_is_there_is_not_changed(server, made, simhash, tmp_path):
    """A document with the same fields exists, whatever our own fields say; another one differs."""
    path = write_archive(
        tmp_path / "removed.jsonl.gz",
        [
            (made, "same", None, source_of("one two three", n=1), "c"),
            (made, "other", None, source_of("one two three", n=1), "c"),
            (made, "gone", None, source_of("one two three", n=1), "c"),
        ],
    )
    put_raw(server, made, "same", '{"n": 1, "body": "one two three"}')
    put_raw(server, made, "other", '{"n": 2, "body": "one two three"}')
    wanted = {"same": "exists", "other": "differs", "gone": "would restore"}
    assert {each.id: each.action for each in simhash.restore(path, dry_run=True)} == wanted
    records = {each.id: each for each in simhash.restore(path)}
    assert {id_: each.action for id_, each in records.items()} == wanted | {"gone": "restored"}
    assert [each.is_done for each in records.values()] == [True, False, True]
    assert raw_source(server, made, "other") == b'{"n": 2, "body": "one two three"}'


@pytest.mark.parametrize("rule", ["star", "connected"])
def test_groups_are_right_afterwards(server, index, simhash, tmp_path, rule):
    """Whichever documents were removed, canonicals too, the groups are what they were before."""
    simhash.create_index(index, text_field="body")
    documents = [{"_id": f"d{n:03d}", "body": text} for n, text in enumerate(texts(60, edits=2))]
    for _ in simhash.ingest(index, documents, verify=False, rule=rule):
        pass
    simhash.reconcile(index)
    first = read_all(server, index)
    removed = [id_ for n, id_ in enumerate(sorted(first)) if n % 3 != 1]
    rows = [(index, id_, None, json.dumps(first[id_]), first[id_]["simhash"]["group"]) for id_ in removed]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    delete(server, index, removed)
    simhash.reconcile(index)
    reports = []
    records = list(simhash.restore(path, on_regrouped=lambda names, done: reports.append((names, done))))
    assert {each.action for each in records} == {"restored"}
    now = read_all(server, index)
    assert stored_groups(now) == stored_groups(first)
    [(names, done)] = reports
    assert names == (index,)
    assert done.is_settled
    assert simhash.reconcile(index).changed == 0
    bare = lambda source: {name: value for name, value in source.items() if name != "simhash"}  # noqa: E731
    assert {id_: bare(source) for id_, source in now.items()} == {id_: bare(source) for id_, source in first.items()}


def test_indices_that_no_line_names_are_regrouped_too(server, index, simhash, tmp_path):
    """A document may belong to a canonical that came meanwhile, into an index that was planned with its own."""
    names = [f"{index}-{n}" for n in range(3)]
    for name in names:
        simhash.create_index(name, text_field="body", settings={"number_of_shards": 1, "number_of_replicas": 0})
    text = " ".join(f"word{n}" for n in range(40))
    for name, id_ in zip(names, "cba"):
        put(server, name, [{"_id": id_, "body": text if id_ != "a" else "something else of other words", "n": 1}])
    for name in names:
        list(simhash.backfill(name))
    simhash.reconcile(names)
    plan, archive = tmp_path / "plan.jsonl", tmp_path / "removed.jsonl.gz"
    assert simhash.plan_removal(names, plan, max_share=1.0).count == 1
    assert [each.id for each in simhash.apply_removal(plan, archive=archive)] == ["c"]
    assert [each.together for each in read_archive(archive)] == [tuple(names)]
    # The canonical of all is now in the index that has neither the document nor the canonical it was removed for.
    put(server, names[2], [{"_id": "a", "body": text}])
    list(simhash.backfill(names[2]))
    simhash.reconcile(names)
    reports = []
    assert [each.action for each in simhash.restore(archive, on_regrouped=lambda *each: reports.append(each))] == [
        "restored"
    ]
    assert [each[0] for each in reports] == [tuple(names)]
    assert stored_groups(read_all(server, f"{index}-*")) == dict.fromkeys("abc", "a")


def test_an_interrupted_restore_is_run_again(server, index, simhash, tmp_path, monkeypatch):
    """What was there already is regrouped as well; here all groups are judged, as after a large restore."""
    monkeypatch.setattr(regroup, "FEW", 0)
    simhash.create_index(index, text_field="body")
    documents = [{"_id": f"d{n:03d}", "body": text} for n, text in enumerate(texts(20, edits=1))]
    for _ in simhash.ingest(index, documents, verify=False):
        pass
    first = read_all(server, index)
    rows = [(index, id_, None, json.dumps(source), "c") for id_, source in first.items()]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    delete(server, index, list(first))
    # Half of it came back, and the process was killed before any group was written.
    for index_, id_, _, source, _ in rows[::2]:
        own = json.loads(source)
        for name in ("group", "duplicate_of", "distance"):
            own["simhash"].pop(name, None)
        put_raw(server, index_, id_, json.dumps(own))
    assert {each.action for each in simhash.restore(path)} == {"restored", "exists"}
    now = read_all(server, index)
    assert stored_groups(now) == expected_groups(now, 3)


def test_an_index_that_is_gone_is_not_made_again(server, made, index, simhash, tmp_path):
    """Its documents are refused by name, and go elsewhere if that is asked for."""
    lost = f"{index}-lost"
    rows = [(lost, "a", None, source_of("one two three"), "c"), (made, "b", None, source_of("four five six"), "c")]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    records = list(simhash.restore(path))
    assert [(each.id, each.action, each.kind) for each in records] == [
        ("a", "refused", "index_missing"),
        ("b", "restored", None),
    ]
    assert server.request("GET", f"/{lost}", missing_ok=True) is None
    records = list(simhash.restore(path, index=made))
    assert [(each.id, each.action, each.index) for each in records] == [("a", "restored", made), ("b", "exists", made)]


def test_an_alias_of_that_name_is_not_written_through(server, made, index, simhash, tmp_path):
    """Only the caller may name an alias; then its write index gets the documents."""
    alias, other = f"{index}-alias", f"{index}-2"
    server.request("PUT", f"/{other}", {"mappings": build_mapping(text_field="body")})
    actions = [
        {"add": {"index": made, "alias": alias}},
        {"add": {"index": other, "alias": alias, "is_write_index": True}},
    ]
    server.request("POST", "/_aliases", {"actions": actions})
    path = write_archive(tmp_path / "removed.jsonl.gz", [(alias, "a", None, source_of("one two three"), "c")])
    [record] = simhash.restore(path)
    assert (record.action, record.kind) == ("refused", "index_missing")
    [record] = simhash.restore(path, index=alias)
    assert (record.action, record.index) == ("restored", other)


def test_fingerprints_of_another_scheme_stay_out(server, made, index, simhash, tmp_path):
    """In an index that was made again, or that the caller names, a fingerprint must be the scheme's own."""
    other = f"{index}-other"
    server.request("PUT", f"/{other}", {"mappings": build_mapping(text_field="body", scheme="words")})
    plain = f"{index}-plain"
    server.request("PUT", f"/{plain}", {})
    path = write_archive(
        tmp_path / "removed.jsonl.gz",
        [
            (made, "a", None, source_of("one two three four five"), "c"),
            (other, "b", None, source_of("one two three four five"), "c"),
            (plain, "c", None, source_of("one two three four five"), "c"),
        ],
        at="2020-01-01T00:00:00.000Z",
    )
    records = list(simhash.restore(path))
    assert [(each.action, each.kind) for each in records] == [
        ("restored", None),
        ("refused", "other_scheme"),
        ("refused", "unmapped"),
    ]
    assert read_all(server, other) == {} == read_all(server, plain)
    assert {each.kind for each in simhash.restore(path, index=other)} == {"other_scheme"}
    # The age of the index says nothing: it may be older than the archive, or come from a snapshot.
    path = write_archive(
        tmp_path / "later.jsonl.gz",
        [
            (made, "d", None, source_of("six seven eight nine ten"), "c"),
            (other, "e", None, source_of("six seven eight nine ten"), "c"),
            (other, "stale", None, source_of("six seven").replace("six", "another"), "c"),
        ],
        at="2999-01-01T00:00:00.000Z",
    )
    kinds = [each.kind for each in simhash.restore(path, index=other, dry_run=True)]
    assert kinds == ["other_scheme", "other_scheme", None]
    assert [each.kind for each in simhash.restore(path)] == [None, "other_scheme", None]
    assert set(read_all(server, other)) == {"stale"}


def test_a_data_stream(opensearch, index, tmp_path, sync_client_of):
    """A document of a backing index goes to the stream, once, also after a rollover."""
    server, simhash = opensearch, sync_client_of(opensearch)
    stream = f"{index}-stream"
    template = {
        "index_patterns": [f"{stream}*"],
        "priority": 300,
        "data_stream": {},
        "template": {"mappings": build_mapping(text_field="body")},
    }
    server.request("PUT", f"/_index_template/{index}", template)
    try:
        server.request("PUT", f"/_data_stream/{stream}")
        documents = []
        for n, text in enumerate(texts(9, edits=1)):
            documents += [{"create": {"_index": stream, "_id": f"d{n}"}}]
            documents += [json.loads(source_of(text, **{"@timestamp": "2026-01-01T00:00:00Z"}))]
        send_lines(server, documents)
        first = read_all(server, stream)
        [backing] = server.request("GET", f"/{stream}/_mapping")
        rows = [(backing, id_, None, json.dumps(source), "d0") for id_, source in first.items()]
        path = write_archive(tmp_path / "removed.jsonl.gz", rows)
        delete(server, backing, ["d1", "d2", "d3"])
        assert (
            sorted(each.action for each in simhash.restore(path, dry_run=True))
            == ["exists"] * 6 + ["would restore"] * 3
        )
        assert [each.action for each in simhash.restore(path)].count("restored") == 3
        assert read_all(server, stream) == first
        delete(server, backing, ["d4"])
        server.request("POST", f"/{stream}/_rollover")
        assert [(each.id, each.index == backing) for each in simhash.restore(path) if each.action == "restored"] == [
            ("d4", False)
        ]
        assert {each.action for each in simhash.restore(path)} == {"exists"}
        assert read_all(server, stream) == first
    finally:
        server.request("DELETE", f"/_data_stream/{stream}")
        server.request("DELETE", f"/_index_template/{index}")


def test_an_archive_that_was_cut_off(server, made, simhash, run, tmp_path):
    """Whole lines of the end are put back, and the rest is not said to be there."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(6)]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    with pytest.warns(UserWarning, match="may be missing"):
        records = list(simhash.restore(path))
    assert [each.id for each in records][:3] == ["d0", "d1", "d2"]
    assert len(records) < 6
    with catch_warnings(action="default"):
        result = run("restore", path, "--dry-run", "--json")
    assert (result.exit_code, set(json.loads(result.stdout)["documents"])) == (1, {"exists"})
    assert "may be missing" in result.stderr
    path.write_bytes(whole[:-4])
    with pytest.warns(UserWarning, match="only their checksum"):
        records = list(simhash.restore(path))
    assert {each.id for each in records} == set(read_all(server, made)) == {f"d{n}" for n in range(6)}
    with catch_warnings(action="default"):
        assert run("restore", path, "--dry-run").exit_code == 0


def test_a_damaged_archive_restores_nothing(server, made, simhash, tmp_path):
    """Not even the lines, or the archives, before the damage."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(3)]
    good = write_archive(tmp_path / "good.jsonl.gz", rows)
    bad = tmp_path / "bad.jsonl.gz"
    bad.write_bytes(good.read_bytes() + gzip.compress(b'{"_id": "x"}\n'))
    with pytest.raises(InvalidInputError, match="line 4"):
        list(simhash.restore([good, bad]))
    assert read_all(server, made) == {}


def test_pipelines_are_left_out(opensearch, index, tmp_path, sync_client_of):
    """The default pipeline of an index changed the document when it was written first."""
    server, simhash = opensearch, sync_client_of(opensearch)
    server.request("PUT", f"/_ingest/pipeline/{index}", {"processors": [{"set": {"field": "seen", "value": 2}}]})
    try:
        body = {"settings": {"default_pipeline": index}, "mappings": build_mapping(text_field="body")}
        server.request("PUT", f"/{index}", body)
        source = source_of("one two three", seen=1)
        path = write_archive(tmp_path / "removed.jsonl.gz", [(index, "a", None, source, "c")])
        assert [each.action for each in simhash.restore(path)] == ["restored"]
        assert raw_source(server, index, "a") == source.encode()
    finally:
        server.request("DELETE", f"/{index}")
        server.request("DELETE", f"/_ingest/pipeline/{index}")


def test_a_final_pipeline_is_noticed(opensearch, index, tmp_path, sync_client_of):
    """It cannot be left out, so what it changed is not said to be restored."""
    server, simhash, made = opensearch, sync_client_of(opensearch), index
    server.request("PUT", f"/{index}", {"mappings": build_mapping(text_field="body")})
    steps = [{"set": {"field": "seen", "value": 2, "if": "ctx.n != 1"}}]
    server.request("PUT", f"/_ingest/pipeline/{index}", {"processors": steps})
    server.request("PUT", f"/{made}/_settings", {"index.final_pipeline": index})
    try:
        rows = [(made, f"d{n}", None, source_of(f"one two three {n}", n=n), "c") for n in range(2)]
        path = write_archive(tmp_path / "removed.jsonl.gz", rows)
        records = list(simhash.restore(path))
        assert [(each.action, each.kind) for each in records] == [("differs", "pipeline"), ("restored", None)]
        assert [each.is_done for each in records] == [False, True]
    finally:
        server.request("DELETE", f"/{index}")
        server.request("DELETE", f"/_ingest/pipeline/{index}")


def test_vectors_come_back(server, index, simhash, tmp_path):
    """Elasticsearch leaves them out of what it answers, and rounds them when it is asked for them."""
    simhash.create_index(index, text_field="body")
    is_elasticsearch = server.product == "elasticsearch"  # in OpenSearch the fields are plain numbers here
    if is_elasticsearch:
        properties = {"v": {"type": "dense_vector", "dims": 3}, "o": {"properties": {"s": {"type": "sparse_vector"}}}}
        server.request("PUT", f"/{index}/_mapping", {"properties": properties})
    text = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
    documents = [
        {"_id": id_, "body": text, "v": [1.5, n + 0.5, 7.5], "o": {"s": {"x": 0.3, "y": n + 0.5}}}
        for n, id_ in enumerate("ab", 2)
    ]
    written = list(simhash.ingest(index, documents))
    assert [(each.kind, each.reason) for each in written] == [(None, None)] * 2
    plan, archive = tmp_path / "plan.jsonl", tmp_path / "removed.jsonl.gz"
    made = simhash.plan_removal(index, plan, max_share=1.0)
    assert made.count == 1, made
    [record] = simhash.apply_removal(plan, archive=archive)
    assert (record.action, record.id) == ("deleted", "b")
    [line] = read_archive(archive)
    held = json.loads(line.source)
    assert held["v"] == pytest.approx([1.5, 3.5, 7.5])
    assert held["o"]["s"] == pytest.approx({"x": 0.3, "y": 3.5}, rel=0.01)
    assert [each.action for each in simhash.restore(archive)] == ["restored"]
    assert [each.action for each in simhash.restore(archive)] == ["exists"]
    if is_elasticsearch:
        for field in ("v", "o.s"):
            query = {"query": {"exists": {"field": field}}}
            server.request("POST", f"/{index}/_refresh")
            assert server.request("POST", f"/{index}/_search", query)["hits"]["total"]["value"] == 2


def test_a_server_that_does_not_know_an_option_is_asked_without_it(elasticsearch):
    """Elasticsearch before 9.2 refuses the option for vectors; so does any version an option that does not exist."""
    from tests.server.conftest import make_client

    dialect = replace(ELASTICSEARCH, source_options={"_source_exclude_nonsense": "false"})
    client = make_client(elasticsearch)
    try:
        client.cluster.health()
        body = {"docs": [{"_index": "no-such-index", "_id": "a"}]}
        [item] = dialect.call(client, Call("mget", {"body": body}, raw_source=True))["docs"]
        assert item["_id"] == "a"
    finally:
        client.close()


@pytest.fixture
def sync_client_of():
    """Return a function that makes a sync client of ours for a server."""
    from es_simhash import SimHashClient
    from tests.server.conftest import make_client

    clients = []

    def make(server):
        clients.append(make_client(server))
        return SimHashClient(clients[-1])

    yield make
    for client in clients:
        client.close()


def test_the_command(server, made, run, tmp_path):
    """Counts, the outcome of each document in the report, and exit codes."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(4)]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    result = run("restore", path, "--dry-run", "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents"]) == (0, {"would restore": 4})
    put_raw(server, made, "d3", '{"body": "another"}')
    report = tmp_path / "report.jsonl"
    result = run("restore", path, "--report", report, "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents"]) == (1, {"restored": 3, "differs": 1})
    assert len(result.stderr.splitlines()) == 1
    assert [json.loads(line)["action"] for line in report.read_text().splitlines()] == ["restored"] * 3 + ["differs"]
    result = run("restore", path)
    assert result.stdout.splitlines()[0].startswith("4 documents: ")
    (tmp_path / "no").write_text('{"_id": 1}\n')
    result = run("restore", tmp_path / "no")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)


def test_no_line_of_an_archive_is_lost_between_batches(server, made, simhash, tmp_path, monkeypatch):
    """More lines than a batch, and lines too long to share one."""
    from es_simhash.flows.removal import restore

    monkeypatch.setattr(restore, "BATCH", 4)
    monkeypatch.setattr(restore, "BATCH_CHARACTERS", 2_000)
    rows = [(made, f"d{n:02d}", None, source_of("x " * (900 if n % 5 == 0 else 2) + str(n)), "c") for n in range(23)]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    assert [each.id for each in simhash.restore(path)] == [row[1] for row in rows]
    assert len(read_all(server, made)) == 23
    assert len(list(read_archive(path))) == 23


def test_a_removal_is_undone(server, index, simhash, run, tmp_path):
    """Plan, apply, restore: every document is as it was, and the index has the groups it had."""
    simhash.create_index(index, text_field="body")
    documents = [{"_id": f"d{n:03d}", "body": text, "n": n} for n, text in enumerate(texts(80, edits=1))]
    for _ in simhash.ingest(index, documents):
        pass
    simhash.reconcile(index)
    first = read_all(server, index)
    plan, archive = tmp_path / "plan.jsonl", tmp_path / "removed.jsonl.gz"
    made = simhash.plan_removal(index, plan, max_share=1.0)
    records = list(simhash.apply_removal(plan, archive=archive))
    assert made.count == len(records) > 10
    assert set(read_all(server, index)) == {id_ for id_, source in first.items() if source["simhash"]["group"] == id_}
    assert [each.action for each in simhash.restore(archive)] == ["restored"] * made.count
    assert read_all(server, index) == first
    assert [each.action for each in simhash.restore(archive)] == ["exists"] * made.count
    assert run("review", plan).exit_code == 0
    asked = records[0]
    [[step]] = json.loads(run("history", asked.id, "--archive", archive, "--json").stdout)["removals"]
    assert (step["canonical"], step["distance"]) == (asked.canonical, asked.distance)


def test_tags_are_undone(server, index, simhash):
    """The group fields and the recorded grouping go; fingerprints, texts and _meta stay, and another rule may come."""
    simhash.create_index(index, text_field="body")
    documents = [{"_id": f"d{n:03d}", "body": text} for n, text in enumerate(texts(12, edits=1))]
    for _ in simhash.ingest(index, documents, on_duplicate=None):
        pass
    before = read_all(server, index)
    meta = server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"]
    assert {each.action for each in simhash.dedupe(index, action="tag", dry_run=False, max_distance=2)} == {"tagged"}
    assert read_all(server, index) != before
    # One that another program wrote with dotted keys.
    dotted = {"body": "x y z", "simhash.group": "q", "simhash.duplicate_of": "q", "n": 1}
    put(server, index, [{"_id": "dotted", **dotted}])
    removed = simhash.remove(index, groups_only=True)
    assert (removed.documents, removed.failures, removed.indices) == (13, (), (index,))
    now = read_all(server, index)
    rest = now.pop("dotted")
    assert {name: value for name, value in rest.items() if value is not None} == {"body": "x y z", "n": 1}
    for source in now.values():
        source["simhash"] = {name: value for name, value in source["simhash"].items() if value is not None}
    assert now == before
    assert server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"] == meta
    assert simhash.remove(index, groups_only=True).documents == 0
    assert simhash.reconcile(index, max_distance=5, rule="connected").is_settled


def test_our_own_files_are_no_documents(server, made, run, simhash, tmp_path):
    """An ingest of an archive, a plan or a report writes nothing, and says what to do with it."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(4)]
    archive = write_archive(tmp_path / "removed.jsonl.gz", rows)
    put(
        server,
        made,
        [{"_id": "a", **json.loads(source_of("one two"))}, {"_id": "b", **json.loads(source_of("one two"))}],
    )
    plan = tmp_path / "plan.jsonl"
    assert simhash.plan_removal(made, plan, max_share=1.0).count == 1
    report = tmp_path / "report.jsonl"
    good = tmp_path / "good.jsonl"
    good.write_text(json.dumps({"_id": "new", "body": "another text"}) + "\n")
    assert run("ingest", made, good, "--report", report).exit_code == 0
    other = tmp_path / "deduped.jsonl"
    records = [each.to_dict() for each in simhash.dedupe(made, action="delete")]
    other.write_text("".join(json.dumps(each) + "\n" for each in records))
    before = read_all(server, made)
    for path in (archive, plan, report, other):
        result = run("ingest", made, path)
        assert result.exit_code == 1, result.output
        assert "restore" in result.stderr
        assert len(result.stderr.splitlines()) == 1
    lines = [json.loads(line) for line in gzip.decompress(archive.read_bytes()).splitlines()]
    for documents in (lines, [json.loads(plan.read_text().splitlines()[1])], records):
        with pytest.raises(InvalidInputError, match="document 0 is a line of"):
            list(simhash.ingest(made, documents))
    assert read_all(server, made) == before
