"""What voids a line of a plan, and what does not: a plan may wait for days, and others write meanwhile."""

import gzip
import json
from collections import Counter

import pytest

from es_simhash.groups.rule import LONGEST
from es_simhash.removal import apply_flow as apply_module
from es_simhash.removal.history import find_history
from es_simhash.removal.plan_file import read_plan
from tests.servers.removals import ALL, OTHER, TEXT, archived, copies, fill, outcomes, sources
from tests.servers.support import ONE_SHARD, put

KEYWORD = {"type": "keyword"}
MAPPINGS = {
    "properties": {
        "source": {"type": "text", "fields": {"raw": KEYWORD}},
        "lang": {**KEYWORD, "copy_to": "place"},
        "place": KEYWORD,
        "published": {"type": "date"},
        "agency": KEYWORD,
        "kind": KEYWORD,
        "views": {"type": "long"},
    }
}
COMMON = {"source": "x", "lang": "en", "published": "2026-01-01T00:00:00Z", "agency": "ab", "kind": "news", "views": 1}
DECIDES = {
    "canonical": ["agency:ab>*", "published"],
    "per": "place",
    "within": ("published", "7d"),
    "protect": "source.raw",
    "filter": {"term": {"kind": "news"}},
}
LONG = "This sentence is beyond the beginning that a plan shows. "


def change(server, index, id_, **fields):
    """Change fields of a document, as another program does, without a refresh."""
    server.request("POST", f"/{index}/_update/{id_}", {"doc": fields})


def fill_news(server, index, simhash, **more):
    """Two pairs of documents that all options of a plan allow to be duplicates; the texts differ late."""
    documents = {"a": LONG * 200 + TEXT, "b": LONG * 200 + TEXT.upper(), "c": OTHER, "d": OTHER + "!"}
    fill(
        server, index, simhash, {id_: {"body": body, **COMMON} for id_, body in documents.items()}, mappings=MAPPINGS,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize("id_", ["a", "b"])
@pytest.mark.parametrize(
    ("fields", "is_void"),
    [
        ({"body": LONG * 200 + TEXT + " And more."}, True),
        ({"lang": "de"}, True),
        ({"published": "2026-01-02T00:00:00Z"}, True),
        ({"agency": "cd"}, True),
        ({"source": "y"}, True),
        ({"kind": "sport"}, "b"),  # the filter says which duplicates go, not what they are duplicates of
        ({"views": 2, "new": {"field": [1.5]}}, False),
        ({"body": [LONG * 200 + TEXT.upper()], "lang": ["en", None]}, "a"),
        ({"simhash": {"group": "q", "duplicate_of": "q", "distance": 9, "at": "2026-01-03T00:00:00Z"}}, False),
    ],
)
def test_what_decided_voids_a_line(server, index, simhash, plan, archive, id_, fields, is_void):
    """A change of it, of either document, and of that line alone; not of a counter, and not of our group fields."""
    fill_news(server, index, simhash)
    made = simhash.plan_removal(index, plan, max_distance=12, max_field_chars=100, **DECIDES, **ALL)
    assert made.count == 2
    change(server, index, id_, **fields)
    is_void = is_void is True or is_void == id_
    expected = {"b": ("kept", "changed" if id_ == "b" else "canonical_changed") if is_void else ("deleted", None)}
    dry = outcomes(simhash.apply_removal(plan, archive=archive, dry_run=True))
    assert dry["b"][1] == expected["b"][1]
    server.request("POST", f"/{index}/_refresh")
    before = sources(server, index)
    found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert found == expected | {"d": ("deleted", None)}
    kept = {"a", "c"} | ({"b"} if is_void else set())
    assert sources(server, index).keys() == kept
    assert archived(archive) == {each: before[each] for each in before.keys() - kept}


def test_without_verification_the_fingerprint_decides(server, index, simhash, plan, archive):
    """With it, the texts were compared, and another fingerprint says nothing of them."""
    for number, verify in enumerate((False, 0.8)):
        name = f"{index}-{number}"
        fill(server, name, simhash, copies(1))
        assert simhash.plan_removal(name, plan, verify=verify, **ALL).count == 2
        change(server, name, "b0000", simhash={"fingerprint": "00000000000000ff"})
        found = outcomes(simhash.apply_removal(plan, archive=archive.with_name(name)))
        assert found == {"b0000": ("deleted", None) if verify else ("kept", "changed"), "s0000": ("deleted", None)}


def test_our_own_writes_void_nothing(server, index, simhash, plan, archive):
    """A reconcile, tags, a run of follow and the apply of another plan."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, passages=True)
    put(server, index, [{"_id": id_, "body": text} for id_, text in copies(2).items()])
    list(simhash.backfill(index))
    other = plan.with_name("other")
    assert simhash.plan_removal(index, plan, filter={"ids": {"values": ["b0000", "b0001"]}}, **ALL).count == 2
    assert simhash.plan_removal(index, other, **ALL).count == 4
    versions = {each.document.id: each.document.version for each in read_plan(plan).removals()}
    simhash.reconcile(index, canonical=LONGEST)
    list(simhash.tag_duplicates(index))
    list(simhash.tag_duplicates(index, contained=0.95))
    put(server, index, [{"_id": "b0002", "body": TEXT}])
    *_, last = simhash.follow(index, once=True, state_index=f"{index}-state")
    assert (last.written, last.regrouped >= 1) == (1, True)
    hits = server.request("GET", f"/{index}/_search?seq_no_primary_term=true&size=50")["hits"]["hits"]
    now = {hit["_id"]: (hit["_seq_no"], hit["_primary_term"]) for hit in hits}
    assert all(now[id_] != version for id_, version in versions.items())
    found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert found == dict.fromkeys(("b0000", "b0001"), ("deleted", None))
    found = outcomes(simhash.apply_removal(other, archive=archive.with_name("other.gz")))
    assert found == {
        **dict.fromkeys(("b0000", "b0001"), ("kept", "missing")),
        **dict.fromkeys(("s0000", "s0001"), ("deleted", None)),
    }
    assert sources(server, index).keys() == {"a", "r", "b0002"}


def test_a_document_that_its_alias_hides_now_stays(server, index, simhash, plan, archive):
    """What a name does not show is not deleted, nor is anything deleted for it."""
    fill_news(server, index, simhash)
    alias = {"index": index, "alias": f"{index}-x", "filter": {"range": {"views": {"lte": 1}}}}
    server.request("POST", "/_aliases", {"actions": [{"add": alias}]})
    assert simhash.plan_removal(f"{index}-x", plan, **ALL).count == 2
    change(server, index, "b", views=2)
    change(server, index, "c", views=2)
    found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert found == {"b": ("kept", "changed"), "d": ("kept", "canonical_changed")}
    change(server, index, "b", views=0)
    change(server, index, "c", views=-1)
    assert outcomes(simhash.apply_removal(plan, archive=archive)) == dict.fromkeys("bd", ("deleted", None))


def lines_of(archive):
    """Return the lines of an archive, read by nothing of ours."""
    return [json.loads(line) for line in gzip.decompress(archive.read_bytes()).splitlines()]


class Killed(BaseException):
    """What ends a run as a kill would, as far as the files and the server can tell."""


def meddle(monkeypatch, what, *, times=1):
    """Do *what* after the documents were read and archived, and before they are deleted."""
    delete = apply_module.delete_documents
    left = Counter(times=times)

    def first(versions, done):
        left["times"] -= 1
        if left["times"] >= 0:
            what()
        yield from delete(versions, done)

    monkeypatch.setattr(apply_module, "delete_documents", first)


def test_the_archive_has_the_last_source_after_a_kill(server, index, simhash, plan, archive, monkeypatch):
    """A document that was archived, and then written before the next run deleted it, is archived again."""
    for number in (1, 2):
        fill(server, f"{index}-{number}", simhash, {f"{id_}{number}": text for id_, text in copies(1).items()})
    names = [f"{index}-{number}" for number in (1, 2)]
    assert simhash.plan_removal(names, plan, max_distance=3, **ALL).count == 6
    with monkeypatch.context() as patch:
        meddle(patch, lambda: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            list(simhash.apply_removal(plan, archive=archive))
    assert len(lines_of(archive)) == 6
    change(server, names[1], "a2", views=7)
    change(server, names[1], "s00002", views=8)
    server.request("POST", f"/{names[1]}/_refresh")
    before = {id_: source for name in names for id_, source in sources(server, name).items()}
    found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert set(found.values()) == {("deleted", None)}
    lines = lines_of(archive)
    assert [(each["_id"], each.get("again")) for each in lines[6:]] == [
        (id_, True) for id_ in (each for each in found if each in ("a2", "s00002"))
    ]
    assert all(each["together"] == names for each in (lines[0], lines[6]))
    # The last line of a document counts, once.
    again = outcomes(simhash.apply_removal(plan, archive=archive))
    assert (again, len(lines_of(archive))) == (found, 8)
    [[removed]] = find_history("a2", [archive]).removals
    assert removed.at == lines[6 if lines[6]["_id"] == "a2" else 7]["at"]
    told = list(simhash.restore(archive))
    assert Counter(each.id for each in told) == Counter(list(found))
    assert {each.action for each in told} == {"restored"}
    now = {id_: source for name in names for id_, source in sources(server, name).items()}
    assert now == before
    assert now["s00002"]["views"] == 8


def test_a_document_that_is_written_before_it_is_deleted(server, index, simhash, plan, archive, monkeypatch):
    """It is read, judged and archived again; only so often, and then the same command goes on."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)
    views = Counter()

    def count():
        views["b0000"] += 1
        change(server, index, "b0000", views=views["b0000"])

    with monkeypatch.context() as patch:
        meddle(patch, count, times=100)
        found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert found == {"b0000": ("kept", "conflict"), "s0000": ("deleted", None)}
    assert sources(server, index)["b0000"]["views"] == views["b0000"] == apply_module.ROUNDS
    with monkeypatch.context() as patch:
        meddle(patch, count, times=2)
        found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert found == dict.fromkeys(("b0000", "s0000"), ("deleted", None))
    own = [each["_source"].get("views") for each in lines_of(archive) if each["_id"] == "b0000"]
    assert own == [None, *range(1, views["b0000"] + 1)]
    assert {each.id for each in simhash.restore(archive)} == {"b0000", "s0000"}
    assert sources(server, index)["b0000"]["views"] == views["b0000"]


def test_a_canonical_that_is_written_at_the_last_moment(server, index, simhash, plan, archive, monkeypatch):
    """Another counter is no reason to bring its duplicate back, and another text is."""
    for number, fields in enumerate(({"views": 9}, {"body": OTHER})):
        name = f"{index}-{number}"
        fill(server, name, simhash, copies(1))
        simhash.plan_removal(name, plan, **ALL)
        with monkeypatch.context() as patch:
            meddle(patch, lambda name=name, fields=fields: change(server, name, "a", **fields))
            found = outcomes(simhash.apply_removal(plan, archive=archive.with_name(name)))
        assert found["b0000"] == (("restored", "canonical_changed") if number else ("deleted", None))
        # What came back stays as long as its canonical is another one.
        again = outcomes(simhash.apply_removal(plan, archive=archive.with_name(name)))
        assert again["b0000"] == (("kept", "canonical_changed") if number else ("deleted", None))
        assert ("b0000" in sources(server, name)) == bool(number)


def test_a_large_number_and_nulls(server, index, simhash, plan, archive):
    """Numbers are compared by every digit; a null, or an array of one value, is no change."""
    mappings = {"properties": {"n": {"type": "long"}}}
    number = 2**53
    documents = {id_: {"body": text, "n": number} for id_, text in copies(1).items()}
    fill(server, index, simhash, documents, mappings=mappings)
    simhash.plan_removal(index, plan, canonical="n", **ALL)
    change(server, index, "b0000", n=number + 1)
    change(server, index, "s0000", n=[number, None], huge=None)
    found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert found == {"b0000": ("kept", "changed"), "s0000": ("deleted", None)}


def test_a_document_with_another_routing_value_is_another_one(server, index, simhash, plan, archive):
    """A shard keeps both under one id, and a restore would write the wrong one."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)
    source = sources(server, index)["b0000"]
    server.request("DELETE", f"/{index}/_doc/b0000")
    server.request("PUT", f"/{index}/_doc/b0000?routing=other&refresh=true", source)
    found = outcomes(simhash.apply_removal(plan, archive=archive))
    assert found == {"b0000": ("kept", "changed"), "s0000": ("deleted", None)}
    assert sources(server, index)["b0000"] == source
