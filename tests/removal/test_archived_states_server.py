"""What an archive has of documents that others write and delete, and that the server refuses to delete."""

from collections import Counter
from contextlib import nullcontext

import pytest

from es_simhash.errors import InvalidInputError, WritesRefusedError
from es_simhash.removal import apply as apply_module
from es_simhash.removal.history import removal_history
from tests.servers.removals import (
    ALL,
    TEXT,
    Killed,
    change,
    copies,
    damage,
    events_of,
    fill,
    lines_of,
    meddle,
    outcomes,
    sources,
)

on_one_product = pytest.mark.parametrize("server", ["elasticsearch"], indirect=True)


@on_one_product
def test_the_archive_has_the_last_source_after_a_kill(server, index, simhash, plan, monkeypatch):
    """A document that was archived, and then written before the next run deleted it, is archived again."""
    for number in (1, 2):
        fill(server, f"{index}-{number}", simhash, {f"{id_}{number}": text for id_, text in copies(1).items()})
    names = [f"{index}-{number}" for number in (1, 2)]
    assert simhash.plan_removal(names, plan, max_distance=3, **ALL).count == 6
    with monkeypatch.context() as patch:
        meddle(patch, lambda: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            list(simhash.apply_removal(plan))
    assert len(lines_of(plan)) == 6
    change(server, names[1], "a2", views=7)
    change(server, names[1], "s00002", views=8)
    server.request("POST", f"/{names[1]}/_refresh")
    before = {id_: source for name in names for id_, source in sources(server, name).items()}
    found = outcomes(simhash.apply_removal(plan))
    assert set(found.values()) == {("deleted", None)}
    again = ("a2", "s00002")
    assert [each["_id"] for each in lines_of(plan)[6:]] == [id_ for id_ in found if id_ in again]
    assert sorted(events_of(plan)) == sorted(
        (id_, kind) for id_ in found for kind in ("archived", "archived", "deleted")
    )
    # The last text of a document counts, once.
    again = outcomes(simhash.apply_removal(plan))
    assert (again, len(lines_of(plan))) == (found, 8)
    [removed] = removal_history("a2", [plan]).removals
    assert removed.deleted > removed.at
    told = list(simhash.restore(plan))
    assert Counter(each.id for each in told) == Counter(list(found))
    assert {each.action for each in told} == {"restored"}
    now = {id_: source for name in names for id_, source in sources(server, name).items()}
    assert now == before
    assert now["s00002"]["views"] == 8


PLANTED = """INSERT INTO archived SELECT {}, line, name, id, routing, canonical_name, canonical_id, distance, created,
text, begin, length - 1, digest FROM archived WHERE number = 1"""


@pytest.mark.parametrize(
    ("statement", "is_kept"),
    [
        ("UPDATE texts SET data = zeroblob(9)", False),
        (PLANTED.format(9), False),
        (PLANTED.format(2**63 - 1), True),  # what is archived anew is not the last one
    ],
)
def test_nothing_goes_that_the_file_does_not_give_back(server, index, simhash, plan, statement, is_kept):
    """A text that was archived by an earlier run, and is damaged since, is archived anew, or its document stays."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)
    before = sources(server, index)
    for method in (simhash.apply_removal, simhash.restore):
        assert len(list(method(plan))) == 2
    id_ = lines_of(plan)[0]["_id"]
    damage(plan, statement)
    found = outcomes(simhash.apply_removal(plan))
    both = dict.fromkeys(("b0000", "s0000"), ("deleted", None))
    assert found == both | ({id_: ("kept", "unarchived")} if is_kept else {})
    server.request("POST", f"/{index}/_refresh")
    assert sources(server, index).keys() == before.keys() - {each for each in both if found[each][0] == "deleted"}
    with pytest.raises(InvalidInputError, match="is damaged") if is_kept else nullcontext():
        list(simhash.restore(plan))
    assert {id_: each["body"] for id_, each in sources(server, index).items()} == {
        id_: each["body"] for id_, each in before.items()
    }


@on_one_product
def test_a_text_that_is_lost_does_not_keep_others_from_coming_back(server, index, simhash, plan, monkeypatch):
    """The canonical of both is gone; one was deleted by an earlier run, and its text is damaged since."""
    fill(server, index, simhash, {"a": TEXT, "b": TEXT.upper(), "c": TEXT.lower()})
    simhash.plan_removal(index, plan, **ALL)
    source = sources(server, index)["b"]
    list(simhash.apply_removal(plan))
    server.request("PUT", f"/{index}/_doc/b?refresh=true", source)
    damage(plan, "UPDATE archived SET digest = zeroblob(16) WHERE id = 'c'")
    with monkeypatch.context() as patch:
        meddle(patch, lambda: server.request("DELETE", f"/{index}/_doc/a"))
        found = outcomes(simhash.apply_removal(plan))
    assert found == {"b": ("restored", "canonical_missing"), "c": ("deleted", "unarchived")}


@on_one_product
def test_what_was_copied_elsewhere_was_deleted_all_the_same(server, index, simhash, plan):
    """A new run knows it, and looks at its canonical."""
    fill(server, index, simhash, copies(1))
    simhash.create_index(f"{index}-other", text_field="body")
    simhash.plan_removal(index, plan, **ALL)
    list(simhash.apply_removal(plan))
    assert {each.action for each in simhash.restore(plan, index=f"{index}-other")} == {"restored"}
    assert outcomes(simhash.apply_removal(plan)) == dict.fromkeys(("b0000", "s0000"), ("deleted", None))
    server.request("DELETE", f"/{index}/_doc/a")
    assert outcomes(simhash.apply_removal(plan))["b0000"] == ("restored", "canonical_missing")
    assert {each.action for each in simhash.restore(plan, index=index)} == {"exists", "restored"}
    assert Counter(kind for id_, kind in events_of(plan) if id_ == "s0000")["restored"] == 1


def test_a_document_that_is_written_before_it_is_deleted(server, index, simhash, plan, monkeypatch):
    """It is read, judged and archived again; only so often, and then the same command goes on."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)
    views = Counter()

    def count():
        views["b0000"] += 1
        change(server, index, "b0000", views=views["b0000"])

    with monkeypatch.context() as patch:
        meddle(patch, count, times=100)
        found = outcomes(simhash.apply_removal(plan))
    assert found == {"b0000": ("kept", "conflict"), "s0000": ("deleted", None)}
    assert sources(server, index)["b0000"]["views"] == views["b0000"] == apply_module.ROUNDS
    with monkeypatch.context() as patch:
        meddle(patch, count, times=2)
        found = outcomes(simhash.apply_removal(plan))
    assert found == dict.fromkeys(("b0000", "s0000"), ("deleted", None))
    own = [each["_source"].get("views") for each in lines_of(plan) if each["_id"] == "b0000"]
    assert own == [None, *range(1, views["b0000"] + 1)]
    assert {each.id for each in simhash.restore(plan)} == {"b0000", "s0000"}
    assert sources(server, index)["b0000"]["views"] == views["b0000"]


@pytest.mark.parametrize("is_earlier", [False, True])
def test_what_another_program_deleted_does_not_come_back(server, index, simhash, plan, monkeypatch, is_earlier):
    """Its archived state is older than the one that was deleted; also where its canonical goes, too."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)

    def delete(*ids):
        for id_ in ids:
            server.request("DELETE", f"/{index}/_doc/{id_}")

    attempts = Counter()

    def write():
        attempts["all"] += 1
        if attempts["all"] == 1 or is_earlier:  # the version that was archived is there no more
            change(server, index, "b0000", views=attempts["all"])
        elif attempts["all"] == 2:
            delete("a")

    read = apply_module.judge

    async def read_then(*args, **options):
        if attempts["all"] == 1 and not is_earlier:
            delete("b0000")
        return await read(*args, **options)

    with monkeypatch.context() as patch:
        meddle(patch, write, times=100)
        patch.setattr(apply_module, "judge", read_then)
        found = outcomes(simhash.apply_removal(plan))
    assert found == {"b0000": ("kept", "conflict" if is_earlier else "missing"), "s0000": ("deleted", None)}
    if is_earlier:
        delete("b0000", "a")
    again = outcomes(simhash.apply_removal(plan))
    assert again == {"b0000": ("kept", "canonical_missing"), "s0000": ("deleted", None)}
    assert "b0000" not in sources(server, index)


def test_what_a_run_left_is_noted_as_kept(server, index, simhash, plan, monkeypatch):
    """Refused, changed, or back in step 4: whoever deletes it then, it was not this removal."""
    fill(server, index, simhash, copies(2))
    simhash.plan_removal(index, plan, **ALL)
    before = sources(server, index)
    server.request("PUT", f"/{index}/_settings", {"index.blocks.write": True})
    try:
        with pytest.raises(WritesRefusedError, match="takes no writes now"):
            list(simhash.apply_removal(plan))
    finally:
        server.request("PUT", f"/{index}/_settings", {"index.blocks.write": None})
    assert Counter(kind for _, kind in events_of(plan)) == {"archived": 4, "kept": 4}
    with monkeypatch.context() as patch:
        meddle(patch, lambda: server.request("DELETE", f"/{index}/_doc/r"))
        found = outcomes(simhash.apply_removal(plan))
    assert found["s0000"] == found["s0001"] == ("restored", "canonical_missing")
    assert Counter(kind for _, kind in events_of(plan)) == {"archived": 8, "kept": 6, "deleted": 4}
    server.request("DELETE", f"/{index}/_doc/s0001")
    again = outcomes(simhash.apply_removal(plan))
    assert (again["s0000"], again["s0001"]) == (("kept", "canonical_missing"), ("kept", "canonical_missing"))
    assert {each: again[each] for each in ("b0000", "b0001")} == dict.fromkeys(("b0000", "b0001"), ("deleted", None))
    server.request("POST", f"/{index}/_refresh")
    assert sources(server, index).keys() == {"a", "s0000"}
    assert {each.id: each.action for each in simhash.restore(plan)} == {
        "b0000": "restored", "b0001": "restored", "s0000": "exists", "s0001": "restored",
    }  # fmt: skip
    assert {id_: each["body"] for id_, each in sources(server, index).items()} == {
        id_: each["body"] for id_, each in before.items() if id_ != "r"
    }
