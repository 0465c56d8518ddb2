"""What an archive has of documents that others write and delete, and that the server refuses to delete."""

from collections import Counter
from contextlib import nullcontext

import pytest

from es_simhash.errors import InvalidInputError, WritesRefusedError
from es_simhash.removal import apply as apply_module
from tests.servers.removals import (
    ALL,
    DELETED,
    OTHER,
    TEXT,
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

PLANTED = """INSERT INTO archived SELECT {}, line, name, id, routing, canonical_name, canonical_id, distance, created,
text, begin, length - 1, digest FROM archived WHERE number = 1"""


@pytest.fixture
def before(server, index, simhash, plan):
    """The documents of an index, and a plan for the two duplicates among them."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)
    return sources(server, index)


@pytest.mark.parametrize(
    ("statement", "is_kept"),
    [
        ("UPDATE texts SET data = zeroblob(9)", False),
        (PLANTED.format(9), False),
        (PLANTED.format(2**63 - 1), True),  # what is archived anew is not the last one
    ],
)
def test_nothing_goes_that_the_file_does_not_give_back(server, index, simhash, before, plan, statement, is_kept):
    """A text that was archived by an earlier run, and is damaged since, is archived anew, or its document stays."""
    for method in (simhash.apply_removal, simhash.restore):
        assert len(list(method(plan))) == 2
    id_ = lines_of(plan)[0]["_id"]
    damage(plan, statement)
    found = outcomes(simhash.apply_removal(plan))
    both = dict.fromkeys(("b0000", "s0000"), DELETED)
    assert found == both | ({id_: ("kept", "unarchived")} if is_kept else {})
    assert sources(server, index).keys() == before.keys() - {each for each in both if found[each] == DELETED}
    with pytest.raises(InvalidInputError, match="is damaged") if is_kept else nullcontext():
        list(simhash.restore(plan))
    assert sources(server, index).keys() == before.keys()


def test_a_text_that_is_lost_does_not_keep_others_from_coming_back(server, index, simhash, plan, monkeypatch):
    """The canonical of both is gone; one was deleted by an earlier run, and its text is damaged since."""
    fill(server, index, simhash, {"a": TEXT, "b": TEXT.upper(), "c": TEXT.lower()})
    simhash.plan_removal(index, plan, **ALL)
    source = sources(server, index)["b"]
    list(simhash.apply_removal(plan))
    server.request("PUT", f"/{index}/_doc/b?refresh=true", source)
    damage(plan, "UPDATE archived SET digest = zeroblob(16) WHERE id = 'c'")
    meddle(monkeypatch, lambda: server.request("DELETE", f"/{index}/_doc/a"))
    found = outcomes(simhash.apply_removal(plan))
    assert found == {"b": ("restored", "canonical_missing"), "c": ("deleted", "unarchived")}


def test_what_was_copied_elsewhere_was_deleted_all_the_same(server, index, simhash, before, plan):
    """A new run knows it, and looks whether its canonical is there: a change since is no reason to bring it back."""
    simhash.create_index(f"{index}-other", text_field="body")
    list(simhash.apply_removal(plan))
    assert {each.action for each in simhash.restore(plan, index=f"{index}-other")} == {"restored"}
    change(server, index, "a", body=OTHER)
    assert outcomes(simhash.apply_removal(plan)) == dict.fromkeys(("b0000", "s0000"), DELETED)
    server.request("DELETE", f"/{index}/_doc/a")
    assert outcomes(simhash.apply_removal(plan))["b0000"] == ("restored", "canonical_missing")
    assert {each.action for each in simhash.restore(plan, index=index)} == {"exists", "restored"}
    assert [kind for id_, kind in events_of(plan) if id_ == "s0000"][-2:] == ["copied", "restored"]


def test_a_document_that_is_written_before_it_is_deleted(server, index, simhash, before, plan, monkeypatch):
    """It is read, judged and archived again; only so often, and then the same command goes on."""
    views = Counter()

    def count():
        views["b0000"] += 1
        change(server, index, "b0000", views=views["b0000"])

    for times, outcome in ((100, ("kept", "conflict")), (2, DELETED)):
        with monkeypatch.context() as patch:
            meddle(patch, count, times=times)
            assert outcomes(simhash.apply_removal(plan)) == {"b0000": outcome, "s0000": DELETED}
    assert views["b0000"] == apply_module.ROUNDS + 2
    own = [each["_source"].get("views") for each in lines_of(plan) if each["_id"] == "b0000"]
    assert own == [None, *range(1, views["b0000"] + 1)]
    assert {each.id for each in simhash.restore(plan)} == {"b0000", "s0000"}
    assert sources(server, index)["b0000"]["views"] == views["b0000"]


def test_what_another_program_deleted_does_not_come_back(server, index, simhash, before, plan, monkeypatch):
    """Its archived state is older than the one that was deleted; also where its canonical goes, too."""
    read, attempts = apply_module.judge, []

    def write():
        attempts.append(len(attempts))
        if len(attempts) == 1:  # the version that was archived is there no more
            change(server, index, "b0000", views=1)
        elif len(attempts) == 2:
            server.request("DELETE", f"/{index}/_doc/a")

    async def read_then(*args, **options):
        if len(attempts) == 1:
            server.request("DELETE", f"/{index}/_doc/b0000")
        return await read(*args, **options)

    with monkeypatch.context() as patch:
        meddle(patch, write, times=100)
        patch.setattr(apply_module, "judge", read_then)
        assert outcomes(simhash.apply_removal(plan)) == {"b0000": ("kept", "missing"), "s0000": DELETED}
    assert outcomes(simhash.apply_removal(plan)) == {"b0000": ("kept", "canonical_missing"), "s0000": DELETED}
    assert sources(server, index).keys() == {"r"}


def test_what_a_run_left_is_noted_as_kept(server, index, simhash, before, plan, monkeypatch):
    """Refused, or back in step 4: whoever deletes it then, it was not this removal."""
    server.request("PUT", f"/{index}/_settings", {"index.blocks.write": True})
    with pytest.raises(WritesRefusedError, match="takes no writes now"):
        list(simhash.apply_removal(plan))
    server.request("PUT", f"/{index}/_settings", {"index.blocks.write": None})
    assert Counter(kind for _, kind in events_of(plan)) == {"archived": 2, "kept": 2}
    with monkeypatch.context() as patch:
        meddle(patch, lambda: server.request("DELETE", f"/{index}/_doc/r"))
        assert outcomes(simhash.apply_removal(plan)) == {"b0000": DELETED, "s0000": ("restored", "canonical_missing")}
    assert Counter(kind for _, kind in events_of(plan)) == {"archived": 4, "kept": 3, "deleted": 2}
    server.request("DELETE", f"/{index}/_doc/s0000")
    assert outcomes(simhash.apply_removal(plan)) == {"b0000": DELETED, "s0000": ("kept", "canonical_missing")}
    assert sources(server, index).keys() == {"a"}
    assert {each.action for each in simhash.restore(plan)} == {"restored"}
    assert sources(server, index).keys() == before.keys() - {"r"}


def test_a_canonical_that_cannot_be_read_afterwards(server, index, simhash, before, plan, monkeypatch):
    """Nobody knows whether it is there: what was deleted for it comes back."""

    async def unreadable(_server, documents):
        return {each.key: {"error": {"type": "es_rejected_execution_exception"}} for each in documents}

    with monkeypatch.context() as patch:
        patch.setattr(apply_module, "read_planned", unreadable)
        found = outcomes(simhash.apply_removal(plan))
    assert found == dict.fromkeys(("b0000", "s0000"), ("restored", "unreadable"))
    assert sources(server, index).keys() == before.keys()
