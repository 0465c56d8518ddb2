"""Tags under trouble: a failure, an end or another writer at every step, and what records say."""

import random

import pytest

from es_simhash import build_mapping, fingerprint_fields
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import reconcile
from es_simhash.mapping.fields import document_fields
from es_simhash.removal.plan_options import PlanOptions
from es_simhash.removal.tags import tag_contained
from tests.transport.by_hand import CLOSES, Cancelled, ServerError, carry_out, scripted
from tests.transport.fake_server import INDEX, FakeServer

# A failure here leaves open what nobody can name, or could not close.
NAMELESS = (*CLOSES, "open_point_in_time")
OPTIONS = PlanOptions(contained=0.95, max_share=1.0)


def words(seed, count):
    chance = random.Random(seed)
    return " ".join("".join(chance.choices("aeioulmnrst", k=5)) for _ in range(count))


LONG = words(1, 120)
TEXTS = {"long": LONG, "part": " ".join(LONG.split()[20:70]), "first": LONG[:300], "other": words(2, 60)}
RIGHT = {"part": "long", "first": "long"}


def make_store():
    """A server with the documents, of which one has a tag that is wrong."""
    store = FakeServer(mapping=build_mapping(text_field="body", passages=True))
    for id_, text in TEXTS.items():
        store.put(id_, {"body": text} | document_fields(text, passages=True))
    store.source("other")["simhash"]["contained_in"] = "nothing"
    store.refresh(INDEX)
    return store


def tags(store):
    own = {id_: each["source"]["simhash"].get("contained_in") for id_, each in store.docs.items()}
    return {id_: tag for id_, tag in own.items() if tag is not None}


def tag(store, **trouble):
    return carry_out(tag_contained(scripted(), INDEX, OPTIONS, dry_run=False), store, **trouble)


def test_tags_are_written_and_removed():
    """And the records say so; a second run changes nothing."""
    store = make_store()
    run = tag(store)
    assert {each.id: each.action for each in run.emitted} == dict.fromkeys(RIGHT, "tagged") | {"other": "untagged"}
    assert (tags(store), store.open) == (RIGHT, {})
    versions = {id_: each["version"] for id_, each in store.docs.items()}
    tag(store)
    assert {id_: each["version"] for id_, each in store.docs.items()} == versions


@pytest.mark.parametrize("failure", [ServerError(503), ServerError(None)], ids=str)
def test_a_failure_at_any_request(failure):
    """No tag is wrong that was not there before, nothing stays open, and the next run completes."""
    for number in range(len(tag(make_store()).calls)):
        store = make_store()
        run = tag(store, fail_at=number, failure=failure)
        assert tags(store).items() <= RIGHT.items() | {("other", "nothing")}
        assert store.open == {} or run.hit in NAMELESS
        tag(store)
        assert tags(store) == RIGHT


def test_a_caller_who_goes_away_at_any_step():
    """The same."""
    for step in range(tag(make_store()).steps):
        store = make_store()
        tag(store, cancel_at=step, failure=Cancelled())
        assert tags(store).items() <= RIGHT.items() | {("other", "nothing")}
        assert store.open == {}


@pytest.mark.parametrize(("changed", "unseen"), [("part", 0), ("long", 2)])
def test_a_text_that_another_program_changes_meanwhile(changed, unseen):
    """No tag is written for a text that was changed before; the longer one is read once more before the write."""

    def change(store):
        store.put(changed, {**store.source(changed), "body": words(9, 60)})

    for number in range(len(tag(make_store()).calls)):
        store = make_store()
        run = tag(store, meddle_at=number, meddle=change)
        written = run.apis.index("bulk")
        assert number > written - unseen or tags(store).get("part") is None


@pytest.mark.parametrize("broken", ["part", "long"])
def test_a_document_that_cannot_be_read_now(broken):
    """It is not tagged, and nothing is tagged for it."""
    store = make_store()
    store.broken.add(broken)
    tag(store)
    assert tags(store) == ({"first": "long"} if broken == "part" else {})


@pytest.mark.parametrize("id_", ["b", "urn: b", "i/c: d"])
def test_a_refused_tag_is_reported_whatever_the_id(id_):
    """No sentence is taken apart: an id may hold what separates its parts."""
    store = FakeServer({"a": fingerprint_fields(7), id_: fingerprint_fields(7)})
    store.refuse = lambda header: 400 if header["_id"] == id_ else None
    run = carry_out(reconcile(scripted(), INDEX, GroupingRequest(verify=False)), store)
    [failure] = run.result.failures
    assert (failure.id, failure.status) == (id_, 400)
    assert "duplicate_of" not in store.source(id_)["simhash"]
