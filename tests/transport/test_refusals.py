"""The table of refusals: how each looks on both products, how often it is sent again, and what is said at last."""

from contextlib import nullcontext

import elastic_transport
import opensearchpy
import pytest

from es_simhash.errors import IncompleteSearchError, InvalidInputError
from es_simhash.transport import refusals
from es_simhash.transport.answers import NO_COPY, Gap, check_whole, find_gaps
from es_simhash.transport.conversation import attempt, changing, halves, rounds
from es_simhash.transport.protocol import Call
from es_simhash.transport.refusals import Row
from tests.transport.by_hand import SCRIPTED, ServerError, carry_out, scripted

ROWS = {name: row for name, row in vars(refusals).items() if isinstance(row, Row)}
FAILED = Gap("shards_failed", 1, 2, "illegal_argument_exception: unable to fetch fields from _source field")
LOOKS = [
    ("BUSY", ServerError(429, "es_rejected_execution_exception: rejected execution of TimedRunnable")),
    ("BUSY", ServerError(429, "rejected_execution_exception: cancelled task with id")),
    ("BUSY", ServerError(503, "cluster_block_exception: state not recovered / initialized")),
    ("BUSY", ServerError(502, "Bad Gateway")),
    ("BUSY NO_SHARD VIEW_ENDED", ServerError(503, "no_shard_available_action_exception")),
    ("BUSY NO_SHARD", ServerError(503, "Search rejected due to missing shards [[news][0]]")),
    ("", ServerError(429, "cluster_block_exception: index [news] blocked by: disk usage exceeded flood-stage")),
    ("", ServerError(503, "too_many_buckets_exception: Trying to create too many buckets")),
    ("", ServerError(500, "null_pointer_exception")),
    ("CHANGED_MEANWHILE", ServerError(409, "version_conflict_engine_exception")),
    ("VIEW_ENDED", ServerError(404, "search_context_missing_exception: No search context found for id [7]")),
    ("VIEW_ENDED", [Gap("shards_failed", 1, 2, "search_context_missing_exception: No search context found")]),
    ("CLOSED", ServerError(400, "index_closed_exception: closed")),
    ("NO_SLICE", [Gap("shards_failed", 1, 2, "illegal_argument_exception: field _id not found")]),
    ("NO_ORDER", ServerError(400, "No mapping found for [_shard_doc] in order to sort on")),
    ("NO_SOURCE", [FAILED]),
    ("NO_SCRIPT", ServerError(400, "illegal_argument_exception: cannot execute [inline] scripts")),
    ("NO_SCRIPT", ServerError(500, "[script] queries cannot be executed when 'search.allow_expensive_queries'")),
    ("NO_SCRIPT", {"type": "illegal_argument_exception", "reason": "script_lang not supported [painless]"}),
    ("TOO_LARGE", ServerError(413, "Request Entity Too Large")),
    ("SPOILT", ServerError(400, "action_request_validation_exception: id is too long")),
    ("SHARD_GONE", {"type": "engine_closed_exception", "reason": "engine is closed"}),
    ("NO_OPTION", ServerError(400, "parsing_exception: Unknown key for a VALUE_STRING in [search_pipeline]")),
    ("NO_OPTION", ServerError(400, "contains unrecognized parameter: [_source_exclude_vectors]")),
    (
        "NOT_MARKED",
        ServerError(400, "No mapping found for [simhash.settings_5baa6d2dec108a8b] in order to sort"),
    ),
    ("NOT_MARKED", ServerError(400, "Can't load fielddata on [simhash.retired] because fielddata is unsupp")),
    ("MAPPING_FULL", ServerError(400, "Limit of total fields [1000] has been exceeded")),
    ("", ConnectionError("script search_pipeline _shard_doc")),
]


@pytest.mark.parametrize(("names", "refusal"), LOOKS)
def test_how_a_refusal_looks(names, refusal):
    """A row is met by what both products say, and by nothing else; what has no status is no refusal."""
    assert {name for name, row in ROWS.items() if row.meets(refusal)} == set(names.split())


def test_every_row_is_met():
    """And says what is done: a row that nothing meets is no reason to send a request again."""
    assert {name for names, _ in LOOKS for name in names.split()} == ROWS.keys()
    assert all(
        row.change and row.at_last and (row.attempts > 1 or row.change.startswith("nothing: ")) for row in ROWS.values()
    )


@pytest.mark.parametrize(
    ("refusal", "sent"),
    [
        (ServerError(429, "full"), refusals.BUSY.attempts),
        (ServerError(503, "no_shard_available_action_exception"), refusals.NO_SHARD.attempts),
        (ServerError(400, "script"), 1),
        (ConnectionError("gone"), 1),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_a_patient_port_waits_for_what_passes(refusal, sent, together):
    """With waits that grow, however it is asked; the refusal comes out at last. Any other port asks once."""

    def ask(port):
        call = Call("search", {"body": {}})
        return port.together([call]) if together else attempt(port.send(call))

    run = carry_out(ask(scripted().patient), lambda _: refusal)
    assert (run.result, len(run.calls)) == ([refusal] if together else refusal, sent)
    assert run.waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0][: sent - 1]
    assert len(carry_out(ask(scripted()), lambda _: refusal).calls) == 1


@pytest.mark.parametrize("api", ["bulk", "close_point_in_time"])
def test_what_may_not_be_sent_twice_is_sent_once(api):
    """Also by a patient port: who sends it knows what became of it."""
    full = ServerError(429, "full")
    assert carry_out(attempt(scripted().patient.send(Call(api))), lambda _: full).calls == [Call(api)]


@pytest.mark.parametrize("row", [refusals.BUSY, refusals.CHANGED_MEANWHILE])
def test_rounds_end_where_nothing_is_done(row):
    """As often as the row says without progress; each item that is done begins the count anew."""
    sent = []

    async def send(waiting):
        sent.append(len(waiting))
        return waiting[1:] if len(sent) == 3 else waiting

    left = carry_out(rounds(SCRIPTED, "ab", send, row), lambda _: {}).result
    assert (left, len(sent)) == ("b", 3 + row.attempts - 1)


def test_halves_until_one_is_alone():
    """Each part has the answer of its own request, in order."""

    async def send(parts):
        if len(parts) > 1 and 3 in parts:
            raise ServerError(413)
        return len(parts)

    splits = refusals.is_of_one
    found = carry_out(halves(SCRIPTED, range(5), ServerError(413), send=send, splits=splits), lambda _: {}).result
    assert [(list(parts), answer) for parts, answer in found] == [([0, 1], 2), ([2], 1), ([3], 1), ([4], 1)]


@pytest.mark.parametrize("refusal", [ServerError(400, "script"), [Gap("shards_failed", 1, 2, "script_exception")]])
def test_what_is_asked_changes_as_long_as_something_can(refusal):
    """A refusal of the whole request comes out at last, one of some shards stays in the answer."""
    left = ["first", "second"]

    async def work():
        if isinstance(refusal, Exception):
            raise refusal
        return refusal

    changes = {refusals.NO_SCRIPT: lambda: bool(left and left.pop())}
    assert carry_out(attempt(changing(work, changes, list)), lambda _: {}).result == refusal
    assert not left


SILENT, SOME_FAILED = "{} of 3 shards did not answer: they have no active copy", "{} of 3 shards failed"
CAUSED = {"failures": [{}, {"reason": {"type": "t", "reason": "r"}}]}


@pytest.mark.parametrize(
    ("shards", "more", "said"),
    [
        ({"total": 3, "successful": 3, "failed": 0}, {}, []),
        ({"total": 3, "failed": 0}, {}, []),
        ({"total": 3, "successful": 2, "failed": 0}, {}, [SILENT.format(1)]),
        ({"total": 3, "successful": 0}, {}, [SILENT.format(3)]),
        ({"total": 3, "successful": 2, "failed": 1, **CAUSED}, {}, [f"{SOME_FAILED.format(1)}: t: r"]),
        ({"total": 3, "successful": 1, "failed": 1}, {}, [SOME_FAILED.format(1), SILENT.format(1)]),
        ({"total": 3, "failed": 2}, {}, [SOME_FAILED.format(2)]),
        ({"total": 0, "successful": 0, "failed": 0}, {}, ["no shard was searched: no open index matches"]),
        ({}, {}, ["the answer does not say which shards it covers"]),
        ({"failed": 1}, {}, ["the answer does not say which shards it covers", "1 of 0 shards failed"]),
        (None, {"timed_out": True}, ["the answer does not say which shards it covers", "the search timed out"]),
        ({"total": 3, "successful": 3}, {"terminated_early": True}, ["the search was terminated early"]),
    ],
)
def test_what_an_answer_may_lack(shards, more, said):
    """By the counts of its shards, each reason in one sentence; a kind that means nothing can be ignored."""
    gaps = find_gaps({"_shards": shards, **more})
    assert list(map(str, gaps)) == said
    for gap in gaps:
        assert find_gaps({"_shards": shards, **more}, ignore=[gap.kind]) == [other for other in gaps if other != gap]
    with pytest.raises(IncompleteSearchError) if said else nullcontext():
        check_whole(gaps)


@pytest.mark.parametrize(
    ("error", "unreachable", "unwritable", "lost"),
    [
        (opensearchpy.ConnectionError("N/A", "refused", OSError()), True, False, True),
        (opensearchpy.ConnectionError("N/A", "refused", TypeError()), True, False, True),
        (opensearchpy.ConnectionTimeout("TIMEOUT", "late", OSError()), True, False, True),
        (opensearchpy.SSLError("N/A", "self-signed", OSError()), False, False, True),
        (opensearchpy.SerializationError({}, TypeError("set")), False, True, True),
        (opensearchpy.NotFoundError(404, "index_not_found_exception", {}), False, False, False),
        (elastic_transport.ConnectionError("refused"), True, False, True),
        (elastic_transport.TlsError("self-signed"), False, False, True),
        (elastic_transport.SerializationError("x", errors=(TypeError("set"),)), False, True, True),
        (elastic_transport.SerializationError("x", errors=(ValueError("no JSON"),)), False, False, True),
        (ConnectionError("of another library"), False, False, True),
        (ServerError(503, "es_rejected_execution_exception"), False, False, True),
        (InvalidInputError("never sent"), False, False, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_became_of_a_request(error, unreachable, unwritable, lost):
    """By the classes of both clients: whether a server was there, whether anything was sent, whether it was done."""
    found = refusals.is_unreachable(error), refusals.is_unwritable(error), refusals.may_be_lost(error)
    assert found == (unreachable, unwritable, lost)


@pytest.mark.parametrize(
    ("refusal", "kind", "passes"),
    [
        (429, "es_rejected_execution_exception", True),
        (429, "cluster_block_exception", False),
        (409, "version_conflict_engine_exception", False),
        (None, "", False),
        (ServerError(503, "no_shard_available_action_exception"), "", True),
        (ServerError(400, "parsing_exception"), "", False),
    ],
)
def test_what_passes_by_itself(refusal, kind, passes):
    """By the status and the kind of one operation, or by the exception of a request."""
    assert refusals.is_passing(refusal, kind) is passes


@pytest.mark.parametrize(
    ("gap", "is_missing"),
    [
        (Gap("shards_silent", 1, 2), True),
        (Gap("shards_missing"), True),
        (Gap("shards_failed", 1, 2, NO_COPY), True),
        (FAILED, False),
    ],
)
def test_a_shard_that_has_no_copy_is_missing(gap, is_missing):
    """A shard that fails is there."""
    assert gap.is_missing_shard is is_missing


@pytest.mark.parametrize(("types", "field"), [("SORTED, NUMERIC", "simhash.distance"), ("SORTED", None)])
def test_a_number_that_is_masked_is_named(types, field):
    """By doc values of the type that the server expects, and cannot read."""
    said = f"unexpected docvalues type NUMERIC for field 'simhash.distance' (expected one of [{types}])"
    assert refusals.masked_field(ServerError(400, said)) == field
