"""What applying a plan with decisions keeps, on real servers; also after a kill, and with other decisions."""

import itertools
import json

import pytest

from es_simhash import GuardRailError, InvalidInputError, WrongTypeError
from es_simhash.removal import apply as apply_module
from es_simhash.removal.history import removal_history
from tests.servers.removals import (
    ALL,
    archived,
    copies,
    decide_file,
    fill,
    outcomes,
    read_plan,
    sources,
    take,
)

pytestmark = pytest.mark.parametrize("server", ["elasticsearch"], indirect=True)
KEPT = ("kept", "decided")
DELETED = ("deleted", None)


@pytest.fixture
def decide(plan, tmp_path):
    """Return a function that writes a file of decisions about the plan, which keeps documents by id."""
    minutes = itertools.count(10)

    def write(*ids, by="Ann", reason="other parties", name="decided", **changed):
        lines = {each.document.id: each.document.key for each in read_plan(plan).removals()}
        path = tmp_path / f"{name}.txt"
        at = f"2026-11-27T10:{next(minutes)}:00Z"
        decide_file(path, read_plan(plan).sha256, [lines[id_] for id_ in ids], by=by, reason=reason, at=at)
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))
        return path

    return write


def test_what_is_kept_stays_as_it_is(server, index, simhash, plan, decide):
    """It is neither archived nor deleted; the archive and the history say who approved the rest."""
    fill(server, index, simhash, copies(2))
    simhash.plan_removal(index, plan, **ALL)
    before, planned = sources(server, index), plan.read_bytes()
    decisions = decide("b0001", "s0000")
    dry = list(simhash.apply_removal(plan, decisions=[decisions], dry_run=True))
    assert {each.id: each.action for each in dry} == {
        "b0000": "would delete",
        "b0001": "kept",
        "s0000": "kept",
        "s0001": "would delete",
    }
    for refused, more in ((GuardRailError, {"max_share": 0.34}), (InvalidInputError, {"sha256": "0" * 64})):
        with pytest.raises(refused, match="4 of 6 documents|is not the plan that was approved"):
            list(simhash.apply_removal(plan, **more))
    assert (sources(server, index), plan.read_bytes()) == (before, planned)
    records = list(simhash.apply_removal(plan, decisions=[decisions], max_share=0.34))
    assert outcomes(records) == {"b0000": DELETED, "b0001": KEPT, "s0000": KEPT, "s0001": DELETED}
    [reason] = {each.reason for each in records if each.kind}
    assert reason == "it was decided to keep it: Ann: other parties"
    assert all(each.is_done for each in records)
    after = sources(server, index)
    assert set(after) == {"a", "r", "b0001", "s0000"}
    assert all(after[id_]["body"] == before[id_]["body"] for id_ in after)
    assert archived(plan).keys() == {"b0000", "s0001"}
    [removed] = removal_history("b0000", [plan]).removals
    assert removed.approved == (("Ann", "other parties"),)
    assert removed.deleted >= removed.at
    assert {each.action for each in simhash.restore(plan)} == {"restored"}
    assert {id_: each["body"] for id_, each in sources(server, index).items()} == {
        id_: each["body"] for id_, each in before.items()
    }


@pytest.mark.parametrize("narrowed", [{}, {"filter": {"match": {"body": "council"}}}])
def test_what_was_decided_before_is_not_planned(server, index, simhash, plan, decide, narrowed):
    """Also with a filter; the guard rails count without it, and what else is similar goes all the same."""
    fill(server, index, simhash, copies(2))
    simhash.plan_removal(index, plan, **ALL)
    earlier = plan.rename(plan.with_name("earlier.db"))
    for name in ("decided", "again"):  # what one person keeps, another one does not take away
        kept = {"decided": ["b0001"], "again": ["s0000", "b0001"]}[name]
        keys = [each.document.key for each in read_plan(earlier).removals() if each.document.id in kept]
        file = decide_file(plan.with_name(f"{name}.txt"), read_plan(earlier).sha256, keys, by=name)
        assert take(earlier, file)[-1].by == name
    twice = plan.with_name("twice.db")  # what two files keep is one document
    twice.write_bytes(earlier.read_bytes())
    made = simhash.plan_removal(index, plan, **ALL, **narrowed, after=[earlier, twice])
    assert made.unmet == 0
    header = read_plan(plan).header
    assert ({each.document.id for each in read_plan(plan).removals()}, made.count) == (
        ({"b0000"}, 1) if narrowed else ({"b0000", "s0001"}, 2)
    )
    assert made.left_out == {"decided": 2, **({"filtered": 1} if narrowed else {})}
    assert (header.decided, header.count) == (2, made.count)
    list(simhash.apply_removal(plan))
    assert {"b0001", "s0000"} <= sources(server, index).keys()
    server.request("DELETE", f"/{index}/_doc/b0001?refresh=true")
    assert simhash.plan_removal(index, **ALL, after=[earlier]).unmet == 1
    other = plan.with_name("other.db")
    for wrong in ("one.db", [decide()], [plan / "x"]):
        with pytest.raises(WrongTypeError if wrong == "one.db" else InvalidInputError):
            simhash.plan_removal(index, other, after=wrong)
    assert not other.exists()


def _killed():
    raise RuntimeError("killed")


@pytest.mark.filterwarnings("ignore:.* was deleted already")
def test_other_decisions_later(server, index, simhash, plan, decide, monkeypatch):
    """What was deleted stays deleted, whatever is kept now; what was only archived is kept; nothing is kept no more."""
    fill(server, index, simhash, copies(2))
    simhash.plan_removal(index, plan, **ALL)
    with monkeypatch.context() as patch:
        patch.setattr(apply_module, "delete_documents", lambda *_: _killed())
        with pytest.raises(RuntimeError, match="killed"):
            list(simhash.apply_removal(plan, decisions=[decide("s0000", "s0001")]))
    assert archived(plan).keys() == {"b0000", "b0001"}
    found = outcomes(simhash.apply_removal(plan, decisions=[decide("b0000", reason="")]))
    assert found == {"b0000": KEPT, "b0001": DELETED, "s0000": KEPT, "s0001": KEPT}
    found = outcomes(simhash.apply_removal(plan, decisions=[decide("b0001", by="Cid"), decide(by="Ann")]))
    assert found == {"b0000": KEPT, "b0001": DELETED, "s0000": KEPT, "s0001": KEPT}
    assert set(sources(server, index)) == {"a", "r", "b0000", "s0000", "s0001"}
    [removed] = removal_history("b0001", [plan]).removals
    assert removed.approved == (("Ann", "other parties"), ("Ann", ""))


@pytest.mark.filterwarnings("ignore:.* was deleted already")
def test_what_was_deleted_comes_back_if_its_canonical_is_gone(server, index, simhash, plan, decide):
    """Also if it is to be kept now: the last step of the earlier run may not have been taken."""
    fill(server, index, simhash, copies(1))
    simhash.plan_removal(index, plan, **ALL)
    list(simhash.apply_removal(plan, decisions=[decide()]))
    assert set(sources(server, index)) == {"a", "r"}
    server.request("DELETE", f"/{index}/_doc/a?refresh=true")
    found = outcomes(simhash.apply_removal(plan, decisions=[decide("b0000")]))
    assert found["b0000"] == ("restored", "canonical_missing")
    assert set(sources(server, index)) == {"r", "b0000"}
