"""A document that nothing is near goes straight through: it is decided, written and reported as by the long way."""

import datetime as dt
import json

from hypothesis import example, given, strategies as st

from es_simhash import fingerprint
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.reading import IngestOptions, IngestSizes
from es_simhash.mapping.fields import our_fields, our_fields_json
from tests.ingest.ingesting import A, B, C, D, filled, is_writing
from tests.transport.by_hand import carry_out, scripted
from tests.transport.fake_server import INDEX

# Near each other by steps, so that a text is often near two that are not near each other.
WORDS = f"{A} {B} {C} {D}".split()
STEPS = [
    " ".join([f"w{n}" if n % 12 in changed else word for n, word in enumerate(WORDS)])
    for changed in ((), (3,), (9,), (3, 9), (3, 7), (1, 9), (1, 3, 9, 7), (0, 1), (5, 6), (0, 6))
]
TEXTS = [*STEPS, A, B, B.replace("three", "four"), "another text altogether", "", "a"]
IDS = ["a0", "a1", "b", "c"]

whole = st.fixed_dictionaries(
    {"_id": st.sampled_from([None, None, None, *IDS]), "body": st.sampled_from(STEPS) | st.sampled_from(TEXTS)},
    optional={"n": st.sampled_from([1, "é\u2028", None, dt.date(2026, 1, 1), {"x": [1.5, True]}])},
)
updates = st.builds(
    lambda id_, text: {"_op_type": "update", "_id": id_, "doc": {"body": text}},
    st.sampled_from(IDS),
    st.sampled_from(TEXTS),
)


def numbered(documents):
    """Return *documents* with ids, some of them as lines of JSON."""
    named = [each if each["_id"] else {**each, "_id": f"n{n}"} for n, each in enumerate(documents)]
    return [json.dumps(each) if each.get("n") == 1 else each for each in named]


streams = st.lists(whole | whole | whole | updates, max_size=20).map(numbered)
ways = st.fixed_dictionaries(
    {
        "on_duplicate": st.sampled_from(["tag", "skip", None]),
        "op_type": st.just("index"),
        "batch": st.integers(1, 8),
        "sizes": st.builds(IngestSizes, in_flight=st.sampled_from([1, 3, 100]), first=st.just(8)),
    }
)
rules = st.fixed_dictionaries(
    {"max_distance": st.sampled_from([4, 8, 14])},
    optional={"verify": st.sampled_from([False, 0.5])},
)
refusals = st.dictionaries(
    st.sampled_from([*IDS, "n0", "n1", "n2", "n5", "n8"]),
    st.sampled_from([[400], [503], [400, None], [429, 429, 400]]),
    max_size=3,
)


def outcome(documents, way, rule, refused, *, is_straight):
    """Return what was told and what the index holds, apart from moments."""
    store, waiting = filled(), {id_: list(statuses) for id_, statuses in refused.items()}

    def refuse(header):
        statuses = waiting.get(header["_id"], [])
        return statuses.pop(0) if statuses else None

    store.refuse = refuse
    port = scripted()
    port.writes_standard_json = is_straight
    grouping = GroupingRequest(**rule) if way["on_duplicate"] else GroupingRequest()
    run = carry_out(ingest(port, INDEX, documents, IngestOptions(**way, grouping=grouping)), store)
    for each in store.docs.values():
        if isinstance(own := each["source"].get("simhash"), dict):
            own.pop("at", None)
    sources = {id_: each["source"] for id_, each in store.docs.items()}
    return repr(run.error), [each.to_dict() for each in run.emitted], sources


# The third is near both, which are not near each other: the first one counts, though only that goes straight.
@example(
    [
        {"_id": "p", "body": STEPS[2]},
        {"_id": "q", "body": STEPS[4], "n": dt.date(2026, 1, 1)},
        {"_id": "r", "body": STEPS[3]},
    ],
    {"on_duplicate": "tag", "batch": 2},
    {"max_distance": 8, "verify": False},
    {},
)
@given(streams, ways, rules, refusals)
def test_the_straight_way_does_what_the_long_way_does(documents, way, rule, refused):
    """Whatever else is in the stream, and whatever is refused."""
    straight, long = (outcome(documents, way, rule, refused, is_straight=each) for each in (True, False))
    assert straight == long


@given(st.integers(0, 2**64 - 1), st.booleans())
def test_our_fields_as_text(number, value):
    """They are those that other documents get."""
    assert json.loads("{" + our_fields_json(number, value=value) + "}") == our_fields(number, value=value)


def test_what_goes_straight():
    """Otherwise the first test compares the long way with itself."""
    port = scripted()
    documents = [{"_id": "b", "body": B}, {"_id": "a2", "body": A}, {"_id": "c", "body": C, "n": 1}]
    store = filled()
    run = carry_out(ingest(port, INDEX, documents, IngestOptions()), store)
    [bulk] = [call for call in run.calls if is_writing(call)]
    bodies = bulk.arguments["body"][1::2]
    assert [isinstance(each, str) for each in bodies] == [True, False, True]
    assert json.loads(bodies[2])["simhash"]["fingerprint"] == f"{fingerprint(C):016x}"
