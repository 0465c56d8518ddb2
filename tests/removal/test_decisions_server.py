"""What applying a plan with decisions keeps, on real servers; also after a kill, and with other decisions."""

import itertools

import pytest

from es_simhash import GuardRailError, InvalidInputError, WrongTypeError
from es_simhash.removal import apply as apply_module
from es_simhash.removal.history import removal_history
from tests.servers.removals import ALL, DELETED, archived, copies, decide_file, fill, outcomes, read_plan, sources, take

pytestmark = pytest.mark.filterwarnings("ignore:.* was deleted already")
KEPT = ("kept", "decided")


@pytest.fixture
def before(server, index, simhash, plan):
    """The documents of an index, and a plan for the four duplicates among them."""
    fill(server, index, simhash, copies(2))
    simhash.plan_removal(index, plan, **ALL)
    return sources(server, index)


@pytest.fixture
def decide(plan, tmp_path):
    """Return a function that writes a file of decisions about the plan, which keeps documents by id."""
    minutes = itertools.count(10)

    def write(*ids, by="Ann", reason="other parties"):
        lines = {each.document.id: each.document.key for each in read_plan(plan).lines}
        at = f"2026-11-27T10:{next(minutes)}:00Z"
        keep = [lines[id_] for id_ in ids]
        return decide_file(tmp_path / "decided.txt", read_plan(plan).sha256, keep, by=by, reason=reason, at=at)

    return write


def test_what_is_kept_stays_as_it_is(server, index, simhash, plan, before, decide):
    """It is neither archived nor deleted, and no part of the share that may go; only of the plan that was approved."""
    planned, decisions = plan.read_bytes(), decide("b0001", "s0000")
    dry = list(simhash.apply_removal(plan, decisions=[decisions], dry_run=True))
    would = {"b0000": "would delete", "b0001": "kept", "s0000": "kept", "s0001": "would delete"}
    assert {each.id: each.action for each in dry} == would
    for refused, more in ((GuardRailError, {"max_share": 0.34}), (InvalidInputError, {"sha256": "0" * 64})):
        with pytest.raises(refused, match="4 of 6 documents|is not the plan that was approved"):
            list(simhash.apply_removal(plan, **more))
    assert (sources(server, index), plan.read_bytes()) == (before, planned)
    records = list(simhash.apply_removal(plan, decisions=[decisions], max_share=0.34))
    assert outcomes(records) == {"b0000": DELETED, "b0001": KEPT, "s0000": KEPT, "s0001": DELETED}
    assert {each.reason for each in records if each.kind} == {"it was decided to keep it: Ann: other parties"}
    assert all(each.is_done for each in records)
    assert sources(server, index).keys() == {"a", "r", "b0001", "s0000"}
    assert archived(plan).keys() == {"b0000", "s0001"}


@pytest.mark.parametrize("narrowed", [{}, {"filter": {"match": {"body": "council"}}}])
def test_what_was_decided_before_is_not_planned(server, index, simhash, plan, before, decide, narrowed):
    """Also with a filter; the guard rails count without it, and what else is similar goes all the same."""
    for ids in (["s0000", "b0001"], ["b0001"]):  # what one person keeps, another one does not take away
        take(plan, decide(*ids))
    earlier, twice = plan.rename(plan.with_name("earlier.db")), plan.with_name("twice.db")
    twice.write_bytes(earlier.read_bytes())  # what two files keep is one document
    made = simhash.plan_removal(index, plan, **ALL, **narrowed, after=[earlier, twice])
    going = {"b0000"} if narrowed else {"b0000", "s0001"}
    assert ({each.document.id for each in read_plan(plan).lines}, made.count) == (going, len(going))
    assert (made.left_out, made.unmet) == ({"decided": 2, **({"filtered": 1} if narrowed else {})}, 0)
    assert read_plan(plan).header.decided == 2
    server.request("DELETE", f"/{index}/_doc/b0001?refresh=true")
    assert simhash.plan_removal(index, **ALL, after=[earlier]).unmet == 1
    for wrong, error in (("one.db", WrongTypeError), ([decide()], InvalidInputError)):
        with pytest.raises(error):
            simhash.plan_removal(index, plan.with_name("other.db"), after=wrong)
    assert not plan.with_name("other.db").exists()


def test_other_decisions_later(server, index, simhash, plan, before, decide, monkeypatch):
    """
    What was only archived is kept; what was deleted stays deleted, whatever is kept now, and comes back if its
    canonical is gone: the last step of the earlier run may not have been taken.
    """

    def killed(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(apply_module, "delete_documents", killed)
        with pytest.raises(RuntimeError, match="killed"):
            list(simhash.apply_removal(plan, decisions=[decide("s0000", "s0001")]))
    assert archived(plan).keys() == {"b0000", "b0001"}
    wanted = {"b0000": KEPT, "b0001": DELETED, "s0000": KEPT, "s0001": KEPT}
    assert outcomes(simhash.apply_removal(plan, decisions=[decide("b0000", reason="")])) == wanted
    assert outcomes(simhash.apply_removal(plan, decisions=[decide("b0001", by="Cid")])) == wanted
    assert sources(server, index).keys() == before.keys() - {"b0001"}
    [removed] = removal_history("b0001", [plan]).removals
    assert removed.approved == (("Ann", "other parties"), ("Ann", ""))
    server.request("DELETE", f"/{index}/_doc/a?refresh=true")
    assert outcomes(simhash.apply_removal(plan))["b0001"] == ("restored", "canonical_missing")
    assert sources(server, index).keys() == before.keys() - {"a"}
