"""Plans of removal, and what applying them does to documents that others change, on real servers."""

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest

from es_simhash import GuardRailError, InvalidInputError, fingerprint, fingerprint_fields
from es_simhash.removal import apply as apply_module, guard_rails, make_plan
from es_simhash.removal.guard_rails import Excess, OneStays
from es_simhash.removal.may_delete import Comparer, digest_of
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from es_simhash.removal.review import Review
from tests.servers.command_line import invoke
from tests.servers.removals import (
    ALL,
    OTHER,
    TEXT,
    archived,
    copies,
    decide_file,
    file_size_limit,
    fill,
    leave_unfinished,
    outcomes,
    plan_again,
    read_plan,
    sources,
)
from tests.servers.support import ONE_SHARD, put, send_lines

CUT = TEXT.removesuffix(" and its use.")
on_one_product = pytest.mark.parametrize("server", ["opensearch"], indirect=True)
"""What a server decides differs in none of these."""


def described(plan):
    with Review(plan) as review:
        return review.facts()


def lines_of(plan):
    """Return the lines of a plan, by id."""
    return {each.document.id: each for each in read_plan(plan).removals()}


def test_a_plan_is_made_and_applied(server, index, simhash, plan):
    """What the plan names goes, is in the archive as it was, and the canonicals stay."""
    documents = copies(3) | {"b0001": CUT, "c": OTHER + " today", "z": "alone"}
    fill(server, index, simhash, documents)
    before = sources(server, index)
    made = simhash.plan_removal(index, plan, max_distance=12, verify=0.8, **ALL)
    assert (made.count, made.documents, made.path) == (7, 10, str(plan))
    assert sources(server, index) == before
    lines = lines_of(plan)
    assert {id_: each.canonical.id for id_, each in lines.items()} == {
        **{f"b{n:04d}": "a" for n in range(3)},
        **{f"s{n:04d}": "c" for n in range(3)},
        "r": "c",
    }
    similarities = [each.similarity for each in lines.values()]
    assert similarities == sorted(similarities)
    assert 0.8 <= similarities[0] < similarities[-1] == 1.0
    assert lines["b0000"].document.fields == {"body": TEXT.upper()}
    assert (made.without_fingerprint, made.ungrouped) == (0, 0)
    records = list(simhash.apply_removal(plan))
    assert [each.id for each in records] == list(lines)
    assert {each.action for each in records} == {"deleted"}
    assert sources(server, index) == {id_: before[id_] for id_ in ("a", "c", "z")}
    assert archived(plan) == {id_: before[id_] for id_ in lines}
    again = list(simhash.apply_removal(plan))
    assert {each.action for each in again} == {"deleted"}
    assert ({each.earlier for each in records}, {each.earlier for each in again}) == ({False}, {True})
    assert len(archived(plan)) == 7


def test_texts_decide_not_bits(server, index, simhash, plan):
    """A fingerprint that is no longer the text's, and texts that share bits alone, remove nothing."""
    fill(server, index, simhash, {"a": TEXT, "b": TEXT.upper(), "c": TEXT + "!"})
    send_lines(server, [{"update": {"_index": index, "_id": "b"}}, {"doc": {"body": OTHER}}])
    put(
        server,
        index,
        [{"_id": "d", "body": OTHER, **sources(server, index)["a"]} | {"body": "something else entirely"}],
    )
    put(server, index, [{"_id": "e", **sources(server, index)["a"], "body": None}])
    made = simhash.plan_removal(index, plan, max_distance=3, **ALL)
    assert (made.count, made.duplicates, made.left_out) == (1, 1, {"unreadable": 1})
    assert outcomes(simhash.apply_removal(plan)) == {"c": ("deleted", None)}
    with pytest.raises(InvalidInputError, match="a plan compares texts"):
        simhash.plan_removal(index, plan, verify=False)


@pytest.mark.parametrize(
    ("given", "gone", "short"), [({"verify": False}, ["b"], 2), ({"preset": "identical"}, ["b", "y", "z"], 0)], ids=str
)
def test_a_text_too_short_to_say_anything_goes_for_no_other(server, index, simhash, plan, given, gone, short):
    """Whatever found it, unless the rule asks for the same letters."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    texts = {"a": TEXT, "b": TEXT, "x": "N/A", "y": "N/A", "z": "n/a."}
    list(simhash.ingest(index, [{"_id": id_, "body": text} for id_, text in texts.items()], **given))
    made = simhash.plan_removal(index, plan, **ALL)
    assert (sorted(lines_of(plan)), made.left_out.get("too_short", 0)) == (gone, short)


@on_one_product
def test_without_text_fields_is_no_plan(server, index, simhash, plan):
    """Nothing says which texts to compare."""
    simhash.create_index(index, settings=ONE_SHARD)
    put(server, index, [{"_id": id_, **fingerprint_fields(7)} for id_ in "ab"])
    with pytest.raises(InvalidInputError, match="record it with setup"):
        simhash.plan_removal(index, plan, **ALL)
    assert not plan.exists()


def test_options_of_a_plan(server, index, simhash, plan):
    """Filter, limit and similarity leave lines out, the plan shows what is asked for, and nothing is recorded."""
    documents = {
        "a": {"body": TEXT, "lang": "en"},
        "b": {"body": TEXT.upper(), "lang": "en", "n": [1, 2], "by": {"city": "x" * 50}},
        "c": {"body": CUT, "lang": "en"},
        "d": {"body": TEXT + ".", "lang": "de"},
    }
    fill(server, index, simhash, documents, mappings={"properties": {"lang": {"type": "keyword"}}})
    options = {"max_distance": 12, **ALL}
    made = simhash.plan_removal(index, plan, filter={"term": {"lang": "en"}}, show=["by.city", "n"], **options)
    assert (made.count, made.left_out) == (2, {"filtered": 1})
    line = lines_of(plan)["b"]
    assert line.document.fields == {"body": TEXT.upper(), "by.city": "x" * 50, "n": [1, 2]}
    made = plan_again(simhash, index, plan, verify=0.99, **options)
    assert (set(lines_of(plan)), made.left_out) == ({"b", "d"}, {})
    made = plan_again(simhash, index, plan, limit=2, **options)
    assert (set(lines_of(plan)), made.left_out) == ({"b", "d"}, {"limit": 1})
    plan_again(simhash, index, plan, preset="identical", **ALL)
    assert set(lines_of(plan)) == {"b", "d"}
    assert read_plan(plan).header.grouping["similarity"] == 1.0
    assert "grouping" not in json.dumps(server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"])
    simhash.reconcile(index, max_distance=2)
    plan_again(simhash, index, plan, **options)
    assert read_plan(plan).header.grouping["max_distance"] == 12


def test_guard_rails(server, index, simhash, plan):
    """By the whole index: a plan is made and says it, the apply refuses it."""
    fill(server, index, simhash, copies(4) | {f"z{n}": " ".join(f"{w}{n}" for w in OTHER.split()) for n in range(40)})
    made = simhash.plan_removal(index, plan)
    assert (made.count, made.documents, made.excess) == (8, 50, None)
    made = plan_again(simhash, index, plan, max_share=0.1)
    assert made.excess == Excess(8, 50, 0.1)
    assert {"will be refused"} < described(plan).keys()
    for dry_run in (True, False):
        with pytest.raises(GuardRailError, match=r"allow it with max_share=0\.16$") as caught:
            list(simhash.apply_removal(plan, dry_run=dry_run))
        assert caught.value.excess == made.excess
    with pytest.raises(InvalidInputError, match="max_share"):
        list(simhash.apply_removal(plan, max_share=1.1))
    assert len(list(simhash.apply_removal(plan, max_share=0.16, dry_run=True))) == 8
    server.request("DELETE", f"/{index}/_doc/z0?refresh=true")
    with pytest.raises(GuardRailError) as caught:
        list(simhash.apply_removal(plan))
    assert caught.value.excess == Excess(8, 49, 0.1)
    assert archived(plan) == {}
    found = outcomes(simhash.apply_removal(plan, max_share=1))
    assert set(found.values()) == {("deleted", None)}


EDITED = {
    "a": {"body": f"{TEXT} {OTHER}", "title": "Bridge", "date": "2026-01-02"},
    "same": {"body": f"{TEXT} {OTHER}".upper(), "title": "bridge!", "date": "2026-01-03"},
    "cut": {"body": TEXT, "title": TEXT, "date": "2026-01-01"},
    "tit": {"body": f"{TEXT} {OTHER}", "title": "Ferries", "date": "2026-01-04"},
    "num": {"body": f"{TEXT} {OTHER}".replace("a thousand", "a hundred"), "date": "2026-01-05"},
    "few": {"body": f"{TEXT} {OTHER} dpa", "title": "Bridge", "date": "2026-01-06"},
    "rew": {"body": f"{TEXT} {OTHER} Nobody had expected so many cars.", "title": "Bridge", "date": "2026-01-07"},
}


def test_only_what_loses_nothing_goes(server, index, simhash, plan):
    """By default; a class can be asked for, and a person can decide about a line; what is held back is shown."""
    fill(server, index, simhash, EDITED)
    options = {"verify": 0.5, "max_distance": 64, "canonical": "id", **ALL}
    made = simhash.plan_removal(index, plan, **options)
    losses = {"title": 1, "same": 1, "contained": 1, "numbers": 1, "few": 1, "rewritten": 1}
    assert (dict(made.losses), made.count, made.held, made.kept_is_shorter) == (losses, 2, 4, 2)
    assert [(line.document.id, line.loss) for line in made.examples] == [
        ("tit", "title"),
        ("num", "numbers"),
        ("rew", "rewritten"),
        ("few", "few"),
    ]
    assert "2 lose nothing by going; 1 have a title of their own (--also title)" in made.loss_words
    assert made.advice == (
        "2 of those held back have all that stays for them, and more: --canonical longest lets them stay",
        "in 1 of 2 the newer one by date goes: --canonical -date lets the latest stay",
    )
    assert set(outcomes(simhash.apply_removal(plan, dry_run=True))) == {"same", "cut"}
    with pytest.raises(InvalidInputError, match="also"):
        plan_again(simhash, index, plan, also=["same"])
    made = plan_again(simhash, index, plan, also=["few", "numbers"], **options)
    assert (made.count, made.held) == (4, 2)
    decided = decide_file(plan.with_name("d"), made.sha256, [(index, "few", None)], [(index, "rew", None)])
    found = outcomes(simhash.apply_removal(plan, decisions=[decided]))
    assert found == {**dict.fromkeys(("same", "cut", "num", "rew"), ("deleted", None)), "few": ("kept", "decided")}
    assert sources(server, index).keys() == {"a", "few", "tit"}


@on_one_product
def test_parts_of_a_whole_lose_nothing_of_each_other(server, index, simhash, plan):
    """Each line is judged against the document that stays, and never against one that goes."""
    parts = [TEXT, OTHER, "Two ships came in from the south, and nobody knew where they had been."]
    documents = {"a": " ".join(parts), "b": " ".join(parts[:2]), "c": " ".join(parts[1:]), "d": parts[0] + " Really."}
    fill(server, index, simhash, documents)
    for canonical in ("id", "longest"):
        made = plan_again(simhash, index, plan, verify=0.2, max_distance=64, canonical=canonical, **ALL)
        assert made.count == 2
        assert set(outcomes(simhash.apply_removal(plan, dry_run=True))) == {"b", "c"}


def test_an_index_that_was_replaced(server, index, simhash, plan):
    """Another index of that name is not the one that was planned for, whatever its documents say; nor is none."""
    documents = copies(1)
    fill(server, index, simhash, documents)
    simhash.plan_removal(index, plan, **ALL)
    server.request("DELETE", f"/{index}")
    records = list(simhash.apply_removal(plan))
    assert {each.kind for each in records} == {"index_replaced"}
    fill(server, index, simhash, documents)
    records = list(simhash.apply_removal(plan))
    assert {each.kind for each in records} == {"index_replaced"}
    assert sources(server, index).keys() == documents.keys()


@on_one_product
def test_a_full_disk_deletes_nothing(server, index, sync_simhash, plan, monkeypatch):
    """The error names the file; with room again the same command goes on."""
    fill(server, index, sync_simhash, copies(20))
    sync_simhash.plan_removal(index, plan, **ALL)
    monkeypatch.setattr(apply_module, "BATCH_DOCUMENTS", 3)
    with file_size_limit(plan.stat().st_size + 4_096), pytest.raises(InvalidInputError, match=f"{plan} cannot be"):
        list(sync_simhash.apply_removal(plan))
    there = sources(server, index)
    assert {"a", "r"} <= there.keys()
    assert copies(20).keys() - there.keys() <= archived(plan).keys()
    assert {each.action for each in sync_simhash.apply_removal(plan)} == {"deleted"}
    assert sources(server, index).keys() == {"a", "r"}


@on_one_product
def test_long_documents_are_taken_a_few_at_a_time(server, index, sync_simhash, plan, monkeypatch):
    """As many as fit in memory, by the last ones; of those that are deleted, short ones are not counted."""
    fill(server, index, sync_simhash, {f"{n:02d}": f"{TEXT} " * 200 for n in range(9)} | copies(5))
    compare, compared = Comparer.compare, []

    def noted(self, pairs, items):
        compared.append(len(pairs))
        return compare(self, pairs, items)

    monkeypatch.setattr(Comparer, "compare", noted)
    monkeypatch.setattr(make_plan, "CHARACTERS", 100_000)
    monkeypatch.setattr(make_plan, "FIRST", 2)
    sync_simhash.plan_removal(index, plan, **ALL)
    assert (sum(compared), compared[:2]) == (19, [2, 3])
    carry_out, taken = apply_module._Batch.carry_out, []

    def counted(self, server, lines):
        taken.append(sum(bool(each.document.cut) for each in lines.values()))
        return carry_out(self, server, lines)

    monkeypatch.setattr(apply_module._Batch, "carry_out", counted)
    monkeypatch.setattr(apply_module, "BATCH_CHARACTERS", 50_000)
    assert {each.action for each in sync_simhash.apply_removal(plan)} == {"deleted"}
    assert [each for each in taken if each] == [1, 3, 3, 1]
    assert sources(server, index).keys() == {"00", "r"}


@on_one_product
def test_one_process_at_a_time(server, index, sync_simhash, plan, monkeypatch):
    """The second is refused; so is a reader, which would see what is not whole."""
    fill(server, index, sync_simhash, copies(2))
    sync_simhash.plan_removal(index, plan, **ALL)
    monkeypatch.setattr(apply_module, "BATCH_DOCUMENTS", 1)
    applied = sync_simhash.apply_removal(plan)
    next(applied)
    for second in (sync_simhash.apply_removal, sync_simhash.restore):
        with pytest.raises(InvalidInputError, match="is used by"):
            list(second(plan))
    command = [sys.executable, "-m", "es_simhash", "review", str(plan)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, "is used by another run" in found.stderr) == (1, True)
    assert len(list(applied)) == 3
    assert not plan.with_name(f"{plan.name}-journal").exists()


def test_fields_to_show_are_found(server, index, simhash, plan):
    """By their names, in the mapping or in documents; what is asked for is shown instead, and a title in any case."""
    documents = {
        id_: {"body": TEXT, "Headline": f"h {id_}", "url": f"u/{id_}", "published_at": "2026-01-01"} for id_ in "abc"
    }
    fill(server, index, simhash, documents, mappings={"dynamic": False})
    made = simhash.plan_removal(index, plan, **ALL)
    header = read_plan(plan).header
    assert header.shown == {"Headline": "title", "url": "url", "published_at": "date"}
    assert (dict(made.losses), made.count) == ({"title": 2}, 0)
    plan_again(simhash, index, plan, show=["url"], also=["title"], **ALL)
    assert outcomes(simhash.apply_removal(plan)) == dict.fromkeys("bc", ("deleted", None))
    assert read_plan(plan).header.shown == {"url": "url", "Headline": "title"}


@on_one_product
def test_a_plan_that_others_wrote_deletes_what_its_texts_allow(server, index, simhash, plan):
    """Its digest is right, and it says that nothing is lost; what does not fit the index is not deleted."""
    texts = {"a": TEXT, "b": TEXT, "c": f"{OTHER} {OTHER}"}
    fill(server, index, simhash, {id_: {"body": text, "lang": "en"} for id_, text in texts.items()})
    simhash.plan_removal(index, plan, **ALL)
    with RemovalFile(plan) as made:
        [planned], own = made.removals(), made.header
    before = sources(server, index)
    other = {"id": "c", "digest": digest_of(before["c"], dict.fromkeys(own.decided_by[index], False))}
    others_fields = "compares other fields than those of the text"
    for header, line, found in (
        ({"text_fields": {index: ("lang",)}}, {}, others_fields),
        ({"prefix": "other"}, {}, others_fields),
        ({"index_uuids": {index: "x"}}, {}, ("kept", "index_replaced")),
        ({}, {"digest": "0" * 32}, ("kept", "changed")),
        ({}, {"routing": "other"}, ("kept", "changed")),
        ({}, other, ("kept", "not_allowed")),
        ({}, {}, ("deleted", None)),
    ):
        assert sources(server, index) == before
        plan.unlink()
        with PlanWriter(plan) as writer:
            writer.add(replace(planned, document=replace(planned.document, seq_no=9_999, **line)))
            writer.finish(replace(own, **header))
        with pytest.raises(InvalidInputError, match=found) if found == others_fields else nullcontext():
            assert list(outcomes(simhash.apply_removal(plan)).values()) == [found]
    assert sources(server, index).keys() == {"a", "c"}


@on_one_product
def test_more_indices_than_a_request_can_name(server, index, simhash, plan):
    """Their names are longer than the first line of a request may be: all of the removal, and its undoing."""
    names = [f"{index}-{'x' * 200}-{number:02d}" for number in range(20)]
    mappings = {"properties": {"source": {"type": "keyword"}}}
    for number, name in enumerate(names):
        simhash.create_index(name, text_field="body", settings=ONE_SHARD, mappings=mappings)
        own = {"body": TEXT, "source": "s", **fingerprint_fields(fingerprint(TEXT))}
        put(server, name, [{"_id": f"d{number:02d}", **own}])
    server.request("POST", "/_aliases", {"actions": [{"add": {"index": f"{index}-*", "alias": f"{index}-all"}}]})
    simhash.reconcile(f"{index}-all", max_distance=3)
    made = simhash.plan_removal(f"{index}-all", plan, filter={"term": {"source": "s"}}, **ALL)
    assert (made.count, made.documents) == (19, 20)
    assert {each.action for each in simhash.apply_removal(plan, dry_run=True)} == {"would delete"}
    assert {each.action for each in simhash.apply_removal(plan)} == {"deleted"}
    assert {each.action for each in simhash.restore(plan)} == {"restored"}
    assert len(sources(server, f"{index}-all")) == 20
    for name in names[:10]:
        server.remove(name)


@on_one_product
def test_commands_go_on_after_a_kill(server, index, simhash, plan):
    """Also where the file has a journal: whoever opens it next takes the change back, a reader too."""
    fill(server, index, simhash, copies(2))
    before = sources(server, index)
    simhash.plan_removal(index, plan, **ALL)
    for command, expected in (
        (["apply", plan, "--yes"], {"a": before["a"], "r": before["r"]}),
        (["restore", plan], before),
    ):
        for arguments in (["review", plan], [*command, "--url", server.url]):
            leave_unfinished(plan)
            with pytest.warns(UserWarning, match="its unfinished change is undone"):
                assert invoke(arguments).exit_code == 0
        assert sources(server, index) == expected


@on_one_product
def test_no_plan_takes_a_large_group(server, index, simhash, plan, monkeypatch):
    """Of many duplicates none goes, unless that is allowed."""
    monkeypatch.setattr(guard_rails, "FEWEST_LARGE", 5)
    fill(server, index, simhash, {f"p{number}": TEXT for number in range(7)})
    made = simhash.plan_removal(index, plan, **ALL)
    assert made.large_group == OneStays("p0", 6, 7)
    for dry_run in (True, False):
        with pytest.raises(GuardRailError, match=r"6 of 7 documents would go for one, 'p0'.*large_groups=True"):
            list(simhash.apply_removal(plan, dry_run=dry_run))
    assert len(list(simhash.apply_removal(plan, large_groups=True, dry_run=True))) == 6
