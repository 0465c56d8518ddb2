"""What a removal took comes back: each document as it was, only where it is missing, and in its group."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from urllib.request import Request, urlopen

import pytest

from es_simhash import fingerprint, fingerprint_fields
from es_simhash.client.dialects import ELASTICSEARCH
from es_simhash.client.port import finish
from es_simhash.removal import regroup
from es_simhash.removal.records import Archived
from es_simhash.removal.removal_file import RemovalFile, digest_lines
from es_simhash.removal.sqlite_file import DamagedError
from es_simhash.transport.protocol import Call, Key
from tests.servers.archives import AT, delete, put_raw, raw_source, source_of, write_archive
from tests.servers.fixtures import make_client
from tests.servers.removals import ALL, TEXT, damage, fill, lines_of, read_plan
from tests.servers.support import ON_BOTH, put, read_all, stored_groups, texts

BODY = "The café council approved the new bridge over the river on Tuesday after a long debate about its cost."
ODD = [
    '{"body": "BODY", "odd": {"a": 1.10, "b": 1E400, "c": 12345678901234567890123, "d": -0.0}}',
    '{ "body":"BODY" ,"odd":{"s": "\\u00fc \\ud83d\\ude00 \\/ tab\\t", "z":1,"a":[1.0,1,1e0]},\t"b" : null}',
    '{"odd": {"k": true, "": {"": []}, "s": "北京 ニュース"}, "body": ["BODY"]}',
]


@ON_BOTH
def test_every_document_comes_back_byte_for_byte(server, made, simhash, plan):
    """Id, routing and every byte of ``_source``: numbers, escapes, order and white space; in the file as well."""
    own = json.dumps(fingerprint_fields(fingerprint(BODY)))
    put_raw(server, made, "a", json.dumps({"body": BODY, **json.loads(own)}))
    keys = [(f"id/{n} ü\u202e", "r ö" if n == 1 else None) for n in range(3)]
    for (id_, routing), source in zip(keys, ODD, strict=True):
        put_raw(server, made, id_, f"{source[:-1].replace('BODY', BODY)}, {own[1:]}", routing)
    before = [raw_source(server, made, *key) for key in keys]
    simhash.plan_removal(made, plan, **ALL)
    assert {each.id: each.action for each in simhash.apply_removal(plan)} == {id_: "deleted" for id_, _ in keys}
    server.request("POST", f"/{made}/_refresh")
    assert read_all(server, made).keys() == {"a"}
    archived = {line["_id"]: line for line in lines_of(plan)}
    assert [archived[id_]["text"].encode() for id_, _ in keys] == before
    assert [archived[id_]["canonical"]["id"] for id_, _ in keys] == ["a"] * 3
    assert [each.action for each in simhash.restore(plan, dry_run=True)] == ["would restore"] * 3
    assert read_all(server, made).keys() == {"a"}
    records = list(simhash.restore(plan))
    assert {(each.action, each.index, each.id, each.routing) for each in records} == {
        ("restored", made, *key) for key in keys
    }
    assert [raw_source(server, made, *key) for key in keys] == before
    assert [each.action for each in simhash.restore([plan])] == ["exists"] * 3


def sign(path):
    """Write the digest that belongs to what is in the file now."""
    with closing(sqlite3.connect(path)) as database:
        [header] = database.execute("SELECT header FROM removal").fetchone()
        lines = [line for (line,) in database.execute("SELECT line FROM lines ORDER BY number")]
    damage(path, "UPDATE removal SET sha256 = :sha256", sha256=digest_lines(header, iter(lines)))


def test_a_file_from_elsewhere_does_what_its_plan_says(server, index, simhash, plan):
    """Of rows and lines about other indices, none counts: nothing is created or deleted there."""
    other = f"{index}-other"
    for name in (index, other):
        fill(server, name, simhash, {"a": TEXT, "b": TEXT.upper(), "c": TEXT.lower()})
    simhash.plan_removal(index, plan, **ALL)
    numbers = {each.document.id: number for number, each in enumerate(read_plan(plan).lines)}
    for name, id_, number in ((other, "x", numbers["b"]), (index, "x", 0), (index, "c", numbers["b"]), (index, "b", 9)):
        with RemovalFile(plan, writes=True) as removal:
            removal.append([Archived(name, id_, None, source_of(TEXT), Key(index, "a"), number)], [], AT)
        with pytest.raises(DamagedError):
            list(simhash.restore(plan))
    damage(
        plan,
        "DELETE FROM archived",
        "UPDATE lines SET line = json_replace(line, '$.index', :other, '$.canonical.index', :other)",
        other=other,
    )
    sign(plan)
    with pytest.raises(DamagedError, match=f"names the index '{other}', which is none of the plan"):
        list(simhash.apply_removal(plan))
    assert [read_all(server, name).keys() for name in (index, other)] == [{"a", "b", "c"}] * 2


def test_a_plan_whose_header_is_lost_names_no_index(server, made, sync_simhash, tmp_path):
    """Then the user names it."""
    path = write_archive(tmp_path / "removed.db", [(made, "b", None, source_of("one two three"), "c")])
    damage(path, "UPDATE removal SET header = '?'")
    for options, wanted in (({}, ("refused", "unplanned")), ({"index": made}, ("restored", None))):
        records = []
        with pytest.raises(DamagedError):
            records.extend(sync_simhash.restore(path, **options))
        assert [(each.action, each.kind) for each in records] == [wanted]


def test_the_prefix_is_that_of_the_removal(server, index, simhash, make_simhash, plan):
    """Whatever that of the client is: for what is checked, and for the groups that are put right."""
    other = make_simhash(prefix="words_hash")
    fill(server, index, other, {"a": TEXT, "b": TEXT.upper()})
    other.reconcile(index)
    before = read_all(server, index)
    assert before["b"]["words_hash"]["duplicate_of"] == "a"
    other.plan_removal(index, plan, **ALL)
    assert [each.action for each in simhash.apply_removal(plan)] == ["deleted"]
    assert [each.action for each in simhash.restore(plan)] == ["restored"]
    assert read_all(server, index) == before


def test_line_breaks_between_values(server, made, simhash, tmp_path):
    """They become blanks, and nothing that stands on a line of its own is carried out."""
    action = json.dumps({"delete": {"_index": made, "_id": "stays"}})
    source = f'{{\r\n  "body" : "one two three",\n  "odd": {{"a": [\n{action}\n], "n": 1.10\r}}\n}}\n'
    for id_ in ("stays", "goes", "last"):  # no line of a bulk request could have them
        url, headers = f"{server.url}/{made}/_doc/{id_}?refresh=true", {"Content-Type": "application/json"}
        urlopen(Request(url, source.encode(), headers, method="PUT")).close()  # noqa: S310 -- the test's own server
    before = raw_source(server, made, "goes")
    assert before.decode().count("\n") > 3
    rows = [(made, each, None, before.decode(), "c") for each in ("goes", "last")]
    path = write_archive(tmp_path / "removed.db", rows)
    delete(server, made, ["goes", "last"])
    assert [each.action for each in simhash.restore(path)] == ["restored"] * 2
    assert set(read_all(server, made)) == {"stays", "goes", "last"}
    assert raw_source(server, made, "goes") == before.replace(b"\r", b" ").replace(b"\n", b" ")
    assert [each.action for each in simhash.restore([path])] == ["exists"] * 2


@pytest.mark.parametrize("most", [10, 1_000])
def test_groups_are_right_afterwards(server, index, simhash, tmp_path, monkeypatch, most):
    """Whichever documents were removed, canonicals too, the groups are what they were before."""
    monkeypatch.setattr(regroup, "MOST_IDS", most)  # after a large restore all groups are judged
    simhash.create_index(index, text_field="body")
    documents = [{"_id": f"d{n:03d}", "body": text} for n, text in enumerate(texts(40, edits=2))]
    assert len(list(simhash.ingest(index, documents, verify=False))) == 40
    simhash.reconcile(index)
    first = read_all(server, index)
    removed = [id_ for n, id_ in enumerate(sorted(first)) if n % 3 != 1]
    rows = [(index, id_, None, json.dumps(first[id_]), "canonical") for id_ in removed]
    path = write_archive(tmp_path / "removed.db", rows)
    delete(server, index, removed)
    simhash.reconcile(index)
    assert {each.action for each in simhash.restore(path)} == {"restored"}
    now = read_all(server, index)
    assert stored_groups(now) == stored_groups(first)
    assert simhash.reconcile(index).changed == 0
    bare = lambda source: {name: value for name, value in source.items() if name != "simhash"}  # noqa: E731
    assert {id_: bare(source) for id_, source in now.items()} == {id_: bare(source) for id_, source in first.items()}


def test_indices_that_no_line_names_are_regrouped_too(server, index, simhash, plan):
    """A document may belong to a canonical that came meanwhile, into an index that was planned with its own."""
    names = [f"{index}-{n}" for n in range(3)]
    for name, id_ in zip(names, "cba"):
        fill(server, name, simhash, {id_: TEXT if id_ != "a" else "something else of other words"})
    simhash.reconcile(names, canonical="id")
    assert simhash.plan_removal(names, plan, **ALL).count == 1
    assert [each.id for each in simhash.apply_removal(plan)] == ["c"]
    # The canonical of all is now in the index that has neither the document nor the canonical it was removed for.
    put(server, names[2], [{"_id": "a", "body": TEXT}])
    list(simhash.backfill(names[2]))
    simhash.reconcile(names)
    assert [each.action for each in simhash.restore(plan)] == ["restored"]
    assert stored_groups(read_all(server, f"{index}-*")) == dict.fromkeys("abc", "a")


@pytest.mark.parametrize("server", ["elasticsearch"], indirect=True)
def test_vectors_come_back(server, index, simhash, plan):
    """Elasticsearch leaves them out of what it answers, and rounds them when it is asked for them."""
    properties = {"v": {"type": "dense_vector", "dims": 3}, "o": {"properties": {"s": {"type": "sparse_vector"}}}}
    simhash.create_index(index, text_field="body", mappings={"properties": properties})
    documents = [
        {"_id": id_, "body": TEXT, "v": [1.5, n + 0.5, 7.5], "o": {"s": {"x": 0.3, "y": n + 0.5}}}
        for n, id_ in enumerate("ab", 2)
    ]
    assert [each.kind for each in simhash.ingest(index, documents)] == [None] * 2
    assert simhash.plan_removal(index, plan, **ALL).count == 1
    assert [(each.action, each.id) for each in simhash.apply_removal(plan)] == [("deleted", "b")]
    [line] = lines_of(plan)
    assert line["_source"]["v"] == pytest.approx([1.5, 3.5, 7.5])
    assert line["_source"]["o"]["s"] == pytest.approx({"x": 0.3, "y": 3.5}, rel=0.01)
    for action in ("restored", "exists"):
        assert [each.action for each in simhash.restore(plan)] == [action]
    server.request("POST", f"/{index}/_refresh")
    for field in ("v", "o.s"):
        assert server.request("POST", f"/{index}/_count", {"query": {"exists": {"field": field}}})["count"] == 2


def test_a_server_that_does_not_know_an_option_is_asked_without_it(elasticsearch):
    """Elasticsearch before 9.2 refuses the option for vectors; so does any version an option that does not exist."""
    dialect = replace(ELASTICSEARCH, source_options={"_source_exclude_nonsense": "false"})
    body = {"docs": [{"_index": "no-such-index", "_id": "a"}]}
    with make_client(elasticsearch) as client:
        [item] = finish(dialect.call(client, Call("mget", {"body": body}, raw_source=True)))["docs"]
    assert item["_id"] == "a"


def test_tags_are_undone(server, index, simhash):
    """The group fields and the recorded grouping go; fingerprints, texts and _meta stay, and another rule may come."""
    simhash.create_index(index, text_field="body")
    documents = [{"_id": f"d{n:03d}", "body": text} for n, text in enumerate(texts(12, edits=1))]
    assert len(list(simhash.ingest(index, documents, on_duplicate=None))) == 12
    before = read_all(server, index)
    meta = server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"]
    assert simhash.reconcile(index, max_distance=2).duplicates > 0
    # One that another program wrote with dotted keys.
    dotted = {"body": "x y z", "simhash.group": "q", "simhash.duplicate_of": "q", "n": 1}
    put(server, index, [{"_id": "dotted", **dotted}])
    removed = simhash.remove_fields(index, groups_only=True)
    assert (removed.documents, removed.failures, removed.indices) == (13, (), (index,))
    now = read_all(server, index)
    rest = now.pop("dotted")
    assert {name: value for name, value in rest.items() if value is not None} == {"body": "x y z", "n": 1}
    for source in now.values():
        source["simhash"] = {name: value for name, value in source["simhash"].items() if value is not None}
    assert now == before
    assert server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"] == meta
    assert simhash.remove_fields(index, groups_only=True).documents == 0
    assert simhash.reconcile(index, max_distance=5).is_settled


def test_the_command(server, made, run, tmp_path):
    """Counts, the outcome of each document in the report, and exit codes; what is no removal restores nothing."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(4)]
    path, bad, report = write_archive(tmp_path / "removed.db", rows), tmp_path / "no", tmp_path / "report.jsonl"
    bad.write_text('{"_id": 1}\n')
    result = run("restore", path, bad)
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1), result.stderr
    result = run("restore", path, "--dry-run", "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents"]) == (0, {"would restore": 4})
    put_raw(server, made, "d3", '{"body": "another"}')
    result = run("restore", path, "--report", report, "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents"]) == (3, {"restored": 3, "differs": 1})
    assert len(result.stderr.splitlines()) == 2  # the document, and how many
    assert [json.loads(line)["action"] for line in report.read_text().splitlines()] == ["restored"] * 3 + ["differs"]
    assert run("restore", path).stdout.splitlines()[0].startswith("4 documents: ")
