"""Plans of removal, and what applying them does to documents that others change, on real servers."""

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from es_simhash import GuardRailError, InvalidInputError
from es_simhash.removal import apply as apply_module, guard_rails, make_plan
from es_simhash.removal.guard_rails import Excess, OneStays
from es_simhash.removal.may_delete import Comparer, digest_of
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from tests.servers.removals import (
    ALL,
    DELETED,
    OTHER,
    TEXT,
    archived,
    change,
    copies,
    decide_file,
    file_size_limit,
    fill,
    outcomes,
    plan_again,
    read_plan,
    sources,
)
from tests.servers.support import ON_BOTH, ONE_SHARD, put

CUT = TEXT.removesuffix(" and its use.")


def lines_of(plan):
    """Return the lines of a plan, by id."""
    return {each.document.id: each for each in read_plan(plan).lines}


@ON_BOTH
def test_a_plan_is_made_and_applied(server, index, simhash, plan):
    """What the plan names goes, is in the archive as it was, and the canonicals stay."""
    documents = copies(3) | {"b0001": CUT, "c": OTHER + " today", "z": "alone"}
    fill(server, index, simhash, documents)
    before = sources(server, index)
    made = simhash.plan_removal(index, plan, max_distance=12, verify=0.8, **ALL)
    assert (made.count, made.documents, made.path) == (7, 10, str(plan))
    assert sources(server, index) == before
    lines = lines_of(plan)
    names = {**dict.fromkeys("b", "a"), **dict.fromkeys("sr", "c")}
    assert {id_: each.canonical.id for id_, each in lines.items()} == {id_: names[id_[0]] for id_ in lines}
    similarities = [each.similarity for each in lines.values()]
    assert similarities == sorted(similarities)
    assert 0.8 <= similarities[0] < similarities[-1] == 1.0
    assert lines["b0000"].document.fields == {"body": TEXT.upper()}
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
    change(server, index, "b", body=OTHER)
    own = sources(server, index)["a"]
    put(server, index, [own | {"_id": "d", "body": "something else entirely"}, own | {"_id": "e", "body": None}])
    made = simhash.plan_removal(index, plan, max_distance=3, **ALL)
    assert (made.count, made.duplicates, made.left_out) == (1, 1, {"unreadable": 1})
    assert outcomes(simhash.apply_removal(plan)) == {"c": DELETED}
    with pytest.raises(InvalidInputError, match="a plan compares texts"):
        simhash.plan_removal(index, plan, verify=False)
    simhash.create_index(f"{index}-x", settings=ONE_SHARD)  # nothing says which texts to compare
    with pytest.raises(InvalidInputError, match="record it with setup"):
        simhash.plan_removal(f"{index}-x", plan.with_name("x"))
    assert not plan.with_name("x").exists()


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


def test_options_of_a_plan(server, index, simhash, plan):
    """Filter and similarity leave lines out, the plan shows what is asked for, and nothing is recorded."""
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
    plan_again(simhash, index, plan, preset="identical", **ALL)
    assert read_plan(plan).header.grouping["similarity"] == 1.0
    assert "grouping" not in json.dumps(server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"])
    simhash.reconcile(index, max_distance=2)
    plan_again(simhash, index, plan, **options)
    assert read_plan(plan).header.grouping["max_distance"] == 12


def test_guard_rails(server, index, simhash, plan, monkeypatch):
    """By the whole index: a plan is made and says it, the apply refuses it. Of many duplicates of one none goes."""
    fill(server, index, simhash, copies(4) | {f"z{n}": " ".join(f"{w}{n}" for w in OTHER.split()) for n in range(40)})
    made = simhash.plan_removal(index, plan)
    assert (made.count, made.documents, made.excess, made.large_group) == (8, 50, None, None)
    made = plan_again(simhash, index, plan, max_share=0.1)
    assert made.excess == Excess(8, 50, 0.1)
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
    monkeypatch.setattr(guard_rails, "FEWEST_LARGE", 4)
    made = plan_again(simhash, index, plan, **ALL)
    assert made.large_group == OneStays("a", 4, 49)
    for dry_run in (True, False):
        with pytest.raises(GuardRailError, match=r"4 of 49 documents would go for one, 'a'.*large_groups=True"):
            list(simhash.apply_removal(plan, dry_run=dry_run))
    assert set(outcomes(simhash.apply_removal(plan, large_groups=True)).values()) == {DELETED}


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
    assert found == {**dict.fromkeys(("same", "cut", "num", "rew"), DELETED), "few": ("kept", "decided")}
    assert sources(server, index).keys() == {"a", "few", "tit"}


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


def test_long_documents_are_taken_a_few_at_a_time(server, index, sync_simhash, plan, monkeypatch):
    """As many as fit in memory, by the last ones; of those that are deleted, short ones are not counted."""
    fill(server, index, sync_simhash, {f"{n:02d}": f"{TEXT} " * 200 for n in range(9)} | copies(5))
    compare, carry_out, compared, taken = Comparer.compare, apply_module._Batch.carry_out, [], []

    def noted(self, pairs, items):
        compared.append(len(pairs))
        return compare(self, pairs, items)

    def counted(self, server, lines):
        taken.append(sum(bool(each.document.cut) for each in lines.values()))
        return carry_out(self, server, lines)

    monkeypatch.setattr(Comparer, "compare", noted)
    monkeypatch.setattr(apply_module._Batch, "carry_out", counted)
    monkeypatch.setattr(make_plan, "CHARACTERS", 100_000)
    monkeypatch.setattr(make_plan, "FIRST", 2)
    monkeypatch.setattr(apply_module, "BATCH_CHARACTERS", 50_000)
    sync_simhash.plan_removal(index, plan, **ALL)
    assert (sum(compared), compared[:2]) == (19, [2, 3])
    assert {each.action for each in sync_simhash.apply_removal(plan)} == {"deleted"}
    assert [each for each in taken if each] == [1, 3, 3, 1]


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
    assert outcomes(simhash.apply_removal(plan)) == dict.fromkeys("bc", DELETED)
    assert read_plan(plan).header.shown == {"url": "url", "Headline": "title"}


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
        ({}, {}, DELETED),
    ):
        assert sources(server, index) == before
        plan.unlink()
        with PlanWriter(plan) as writer:
            writer.add(replace(planned, document=replace(planned.document, seq_no=9_999, **line)))
            writer.finish(replace(own, **header))
        with pytest.raises(InvalidInputError, match=found) if found == others_fields else nullcontext():
            assert list(outcomes(simhash.apply_removal(plan)).values()) == [found]
    assert sources(server, index).keys() == {"a", "c"}
    server.request("DELETE", f"/{index}")
    assert list(outcomes(simhash.apply_removal(plan)).values()) == [("kept", "index_replaced")]
