"""Bulk requests: what is refused for load is sent again, what is refused for good is told, nothing is lost."""

import copy
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from es_simhash import InvalidInputError
from es_simhash.transport.conversation import LONGEST_WAIT_SECONDS
from es_simhash.transport.refusals import ATTEMPTS
from es_simhash.writes.bulk import Bulk, compare_created, send_bulk
from es_simhash.writes.operations import Operation, to_operation
from tests.transport.by_hand import ServerError, carry_out, scripted


def operations(count):
    return [Operation("index", {"_index": "i", "_id": str(n)}, {"n": n}) for n in range(count)]


def send(sent, answer):
    """Carry *sent* out; return the outcomes, the ids of each request, and the waits in seconds."""
    requests = []

    def store(call):
        requests.append([line["index"]["_id"] for line in call.arguments["body"][::2]])
        return answer(len(requests) - 1, requests[-1])

    run = carry_out(send_bulk(scripted(), sent), store)
    return run.result, requests, run.waits


def done(ids, statuses=None, type_="t"):
    statuses = statuses or {}
    items = []
    for each in ids:
        status = statuses.get(each, 201)
        error = {} if status < 400 else {"error": {"type": type_, "reason": f"status {status}"}}
        items.append({"index": {"_index": "i", "_id": each, "status": status, **error}})
    return {"items": items}


def test_nothing_is_no_request():
    """An empty bulk request is refused by servers."""
    assert send([], None) == ([], [], [])


@pytest.mark.parametrize("status", [429, 503])
def test_only_what_was_refused_for_load_is_sent_again(status):
    """After waits that do not grow, as long as something is taken."""
    outcomes, requests, waits = send(
        operations(4),
        lambda n, ids: done(ids, {"1": status, "3": status} if n == 0 else {"3": status} if n == 1 else {}),
    )
    assert all(each.is_done for each in outcomes)
    assert [each.id for each in outcomes] == ["0", "1", "2", "3"]
    assert requests == [["0", "1", "2", "3"], ["1", "3"], ["3"]]
    assert 0 < waits[0] == waits[1]


# What a server with a full disk answers, whose shard has failed.
NO_SHARD = [(404, "shard_not_found_exception"), (500, "already_closed_exception")]


@pytest.mark.parametrize(("status", "type_"), NO_SHARD)
def test_a_shard_that_failed_says_nothing_of_a_document(status, type_):
    """What it refused is sent again, and hinders every write if it stays so."""
    sent = operations(2)
    outcomes, requests, _ = send(sent, lambda n, ids: done(ids, {} if n else dict.fromkeys(ids, status), type_))
    assert [each.is_done for each in outcomes] == [True, True]
    assert requests == [["0", "1"]] * 2
    outcomes, requests, _ = send(sent, lambda _, ids: done(ids, dict.fromkeys(ids, status), type_))
    assert [each.hindrance for each in outcomes] == ["busy", "busy"]
    assert len(requests) == ATTEMPTS


@pytest.mark.parametrize(("status", "type_"), NO_SHARD)
def test_a_delete_on_a_shard_that_failed_is_not_done(status, type_):
    """Not even where an answer was lost before it: the document may be there still."""
    answers = iter([503, *[status] * ATTEMPTS])

    def answer(_):
        error = {"type": type_, "reason": "no such shard"}
        return {"items": [{"delete": {"_index": "i", "_id": "1", "status": next(answers), "error": error}}]}

    [outcome] = carry_out(send_bulk(scripted(), [Operation("delete", {"_index": "i", "_id": "1"})]), answer).result
    assert (outcome.is_done, outcome.hindrance) == (False, "busy")


@pytest.mark.parametrize("status", [429, 503])
def test_a_request_refused_whole_is_sent_again(status):
    """As if each of its operations had been."""
    outcomes, requests, waits = send(operations(2), lambda n, ids: ServerError(status) if n < 2 else done(ids))
    assert all(each.is_done for each in outcomes)
    assert (len(requests), len(waits)) == (3, 2)
    assert 0 < waits[0] < waits[1]


def test_a_queue_that_takes_one_at_a_time():
    """As long as something is taken, there is no end to trying, and no wait grows."""
    count = 3 * ATTEMPTS
    outcomes, requests, waits = send(operations(count), lambda _, ids: done(ids, dict.fromkeys(ids[1:], 429)))
    assert all(each.is_done for each in outcomes)
    assert len(requests) == count
    assert set(waits) == {waits[0]}


def test_an_end_to_trying():
    """What is still refused then is told with its status; the rest is written."""
    outcomes, requests, waits = send(operations(2), lambda _, ids: done(ids, {"1": 429}))
    assert [each.status for each in outcomes] == [201, 429]
    assert (len(requests), len(waits)) == (ATTEMPTS, ATTEMPTS - 1)
    assert waits == sorted(waits)
    assert max(waits) == LONGEST_WAIT_SECONDS


@pytest.mark.parametrize(
    ("status", "text"), [(413, "too large"), (400, "action_request_validation_exception: id is too long")]
)
def test_a_request_refused_for_one_operation_is_halved(status, text):
    """Until that one is alone; its outcome is the refusal, and the others are written once."""
    written = []

    def answer(_, ids):
        if "5" in ids:
            return ServerError(status, text)
        written.extend(ids)
        return done(ids)

    outcomes, _, waits = send(operations(9), answer)
    assert [each.status for each in outcomes] == [201] * 5 + [status] + [201] * 3
    assert [each.id for each in outcomes] == [str(n) for n in range(9)]
    assert sorted(written) == list("01234678")
    assert waits == []


def test_load_in_a_half_is_tried_again():
    """Halving and waiting do not get in each other's way."""
    outcomes, _, waits = send(
        operations(4), lambda n, ids: ServerError(413) if len(ids) > 2 else ServerError(429) if n == 1 else done(ids)
    )
    assert all(each.is_done for each in outcomes)
    assert len(waits) == 1


@pytest.mark.parametrize(
    "error", [ServerError(401), ServerError(400, "parse"), ServerError(500), ConnectionError("gone")]
)
def test_any_other_failure_is_the_clients_own(error):
    """The very object."""
    with pytest.raises(type(error)) as caught:
        send(operations(3), lambda *_: error)
    assert caught.value is error


@pytest.mark.parametrize(
    ("action", "operation"),
    [
        ({"_id": "1", "version": 3, "a": 1}, Operation("index", {"_index": "i", "_id": "1"}, {"version": 3, "a": 1})),
        (
            {"_op_type": "create", "_index": "j", "routing": "r", "_source": {"a": 1}},
            Operation("create", {"_index": "j", "routing": "r"}, {"a": 1}),
        ),
        (
            {"_op_type": "update", "_id": "1", "_routing": "r", "retry_on_conflict": 3, "doc": {"a": 1}},
            Operation("update", {"_index": "i", "_id": "1", "routing": "r", "retry_on_conflict": 3}, {"doc": {"a": 1}}),
        ),
        (
            {"_id": "1", "_if_seq_no": 4, "_if_primary_term": 1, "a": 1},
            Operation("index", {"_index": "i", "_id": "1", "if_seq_no": 4, "if_primary_term": 1}, {"a": 1}),
        ),
        (
            {"_op_type": "update", "_id": "1", "_retry_on_conflict": 3, "doc": {"a": 1}},
            Operation("update", {"_index": "i", "_id": "1", "retry_on_conflict": 3}, {"doc": {"a": 1}}),
        ),
        ({"_op_type": "delete", "_id": "1", "_source": {}}, Operation("delete", {"_index": "i", "_id": "1"})),
        ({"_id": None, "a": 1}, Operation("index", {"_index": "i"}, {"a": 1})),
    ],
)
def test_actions_as_the_helpers_take_them(action, operation):
    """Metadata to the first line, the rest to the second; the action is not changed."""
    before = copy.deepcopy(action)
    assert to_operation(action, "i") == operation
    assert len(operation.lines("simhash")) == (1 if operation.kind == "delete" else 2)
    assert action == before


@pytest.mark.parametrize("action", ["text", None, {"_op_type": "upsert"}])
def test_what_is_no_action_is_refused(action):
    """With what to give."""
    with pytest.raises(InvalidInputError, match="give"):
        to_operation(action, "i")


def test_a_document_that_a_pipeline_drops_is_not_done():
    """The server answers with status 200 and no sequence number; an update that changes nothing has one."""
    dropped = {"index": {"_index": "i", "_id": "0", "status": 200, "result": "noop"}}
    same = {"update": {"_index": "i", "_id": "1", "status": 200, "result": "noop", "_seq_no": 7, "_primary_term": 1}}
    outcomes, requests, _ = send(operations(2), lambda _, ids: {"items": [dropped, same]})
    assert [(each.is_done, each.is_dropped) for each in outcomes] == [(False, True), (True, False)]
    assert len(requests) == 1


class Documents:
    """
    An index that carries operations out in order, and answers each of them as *trouble* says, until its end.
    ``"busy"``: refused with 429; ``"unsure"``: carried out, and answered with 503. *rename*: what a pipeline makes of
    an id.
    """

    def __init__(self, trouble=(), *, rename=lambda id_: id_, held=()):
        self.docs = dict(held)
        self.trouble = iter(trouble)
        self.rename = rename
        self.requests = []

    def carry_out(self, flow):
        run = carry_out(flow, self)
        self.waits = run.waits
        return run.result

    def __call__(self, call):
        if call.api == "mget":
            asked = [each["_id"] for each in call.arguments["body"]["docs"]]
            return {"docs": [{"found": each in self.docs, "_source": self.docs.get(each)} for each in asked]}
        lines, items = iter(call.arguments["body"]), []
        for line in lines:
            [(kind, header)] = line.items()
            items.append(self._item(kind, header, None if kind == "delete" else next(lines)))
        self.requests.append([(kind, item["_id"]) for each in items for kind, item in each.items()])
        return {"items": items}

    def _item(self, kind, header, body):
        id_ = self.rename(header["_id"])
        trouble = next(self.trouble, None)
        status = 429 if trouble == "busy" else self.write(kind, id_, body)
        status = 503 if trouble == "unsure" else status
        error = {"error": {"type": "t", "reason": "r"}} if status >= 400 and status != 404 else {}
        return {kind: {"_index": "i", "_id": id_, "status": status, "result": "x", **error}}

    def write(self, kind, id_, body):
        if body == {"is": "malformed"}:
            return 400
        if kind == "create" and id_ in self.docs:
            return 409
        if kind in ("update", "delete") and id_ not in self.docs:
            return 404
        if kind == "delete":
            del self.docs[id_]
        else:
            self.docs[id_] = {**self.docs[id_], **body["doc"]} if kind == "update" else body
        return 200


@st.composite
def operation_lists(draw):
    found = []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["index", "create", "update", "delete"]))
        field = draw(st.sampled_from("ab"))
        body = draw(st.sampled_from([{field: number}, {"is": "malformed"}]))
        body = None if kind == "delete" else {"doc": {field: number}} if kind == "update" else body
        found.append(Operation(kind, {"_index": "i", "_id": draw(st.sampled_from("12"))}, body))
    return found


@given(operation_lists(), st.lists(st.sampled_from([None, "busy", "unsure"]), max_size=8))
def test_operations_on_one_document_keep_their_order(sent, trouble):
    """Whatever was refused for load, the index ends as if all had gone out one by one, and reports that as done."""
    one_by_one = Documents()
    statuses = [one_by_one.write(each.kind, each.header["_id"], each.body) for each in sent]
    index = Documents(trouble)
    outcomes = index.carry_out(send_bulk(scripted(), sent))
    assert index.docs == one_by_one.docs
    for operation, status, outcome in zip(sent, statuses, outcomes, strict=True):
        if status == 200 and operation.kind in ("index", "update"):
            assert outcome.is_done, operation


def test_an_update_waits_for_what_it_changes():
    """It goes out in a request of its own, after what comes before it on the same document, and nothing else waits."""
    sent = [
        Operation("index", {"_index": "i", "_id": "1"}, {"a": 1}),
        Operation("update", {"_index": "i", "_id": "1"}, {"doc": {"b": 2}}),
        Operation("index", {"_index": "i", "_id": "2"}, {"a": 3}),
    ]
    index = Documents(["busy"])
    outcomes = index.carry_out(send_bulk(scripted(), sent))
    assert index.requests == [[("index", "1"), ("index", "2")], [("index", "1")], [("update", "1")]]
    assert index.docs == {"1": {"a": 1, "b": 2}, "2": {"a": 3}}
    assert [each.id for each in outcomes] == ["1", "1", "2"]


@pytest.mark.parametrize("kind", ["index", "create"])
def test_a_document_without_an_id_is_written_once(kind):
    """However often its answer is lost: it gets an id, and is created."""
    sent = [Operation(kind, {"_index": "i"}, {"n": n}) for n in range(3)]
    index = Documents(["unsure", None, "busy", "unsure", "unsure"])
    outcomes = index.carry_out(send_bulk(scripted(), sent))
    assert sorted(each["n"] for each in index.docs.values()) == [0, 1, 2]
    assert all(each.is_done for each in outcomes)
    assert [index.docs[each.id]["n"] for each in outcomes] == [0, 1, 2]
    assert all(each.header == {"_index": "i"} for each in sent)


def test_an_id_that_a_pipeline_chooses():
    """A document indexed replaces the one that has that id; one created is refused. The outcome names that id."""
    held = {"p": {"n": 0}}
    index = Documents(rename=lambda id_: "p", held=held)
    [outcome] = index.carry_out(send_bulk(scripted(), [Operation("index", {"_index": "i"}, {"n": 1})]))
    assert (outcome.is_done, outcome.id, index.docs, index.waits) == (True, "p", {"p": {"n": 1}}, [])
    index = Documents(rename=lambda id_: "p", held=held)
    [outcome] = index.carry_out(send_bulk(scripted(), [Operation("create", {"_index": "i"}, {"n": 1})]))
    assert (outcome.status, index.docs) == (409, held)


def test_a_delete_whose_answer_was_lost_is_done():
    """Sent again it finds nothing."""
    index = Documents(["unsure"], held={"1": {}})
    [outcome] = index.carry_out(send_bulk(scripted(), [Operation("delete", {"_index": "i", "_id": "1"})]))
    assert (outcome.is_done, index.docs) == (True, {})


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_script_that_may_have_run_is_not_sent_again(status, is_whole):
    """Only a 429 says that nothing was done; with ``if_seq_no`` the server runs a script once, whatever is sent."""
    header = {"_index": "i", "_id": "1"}
    sent = [
        Operation("update", header, {"script": "ctx._source.n += 1"}),
        Operation("update", {**header, "_id": "2", "if_seq_no": 3, "if_primary_term": 1}, {"script": "x"}),
        Operation("update", {**header, "_id": "3"}, {"doc": {"n": 1}}),
    ]
    bulk = Bulk(sent, repeats_scripts=False)
    refused = ServerError(status) if is_whole else done("123", dict.fromkeys("123", status))
    again = "123" if status == 429 else "23"
    run = carry_out(bulk.finish(scripted(), refused), lambda _: done(again))
    assert [each.is_done for each in run.result] == [status == 429, True, True]
    assert run.result[0].status == (201 if status == 429 else status)
    assert len(run.calls) == 1


OWN = {"fingerprint": "00", "group": "a", "at": "2026-01-01T00:00:00.000Z"}
LATER = OWN | {"group": "b", "at": "2026-01-02T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("sent", "found", "is_unsure", "kinship"),
    [
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": OWN}, False, "ours"),
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": OWN}, True, "ours"),
        # The same moment with another content: another document of the same batch, or a pipeline's change.
        ({"n": 1, "simhash": OWN}, {"n": 2, "simhash": OWN}, False, "other"),
        ({"n": 1, "simhash": OWN}, {"n": 1, "by": "pipeline", "simhash": OWN}, True, "ours"),
        # Another moment: somebody wrote it before, whatever became of our attempt.
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": LATER}, True, "same"),
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": LATER}, False, "same"),
        ({"n": 1, "simhash": OWN}, {"n": 2, "simhash": LATER}, True, "other"),
        ({"n": 1, "simhash": OWN}, {"n": 1}, True, "other"),
        # No moment: an equal document may be anybody's, unless an answer was lost.
        ({"n": 1}, {"n": 1}, True, "ours"),
        ({"n": 1}, {"n": 1}, False, "same"),
        ({"n": 1}, {"n": 2}, True, "other"),
        ({"n": (1, 2)}, {"n": [1, 2]}, True, "ours"),
        # What cannot be compared is another document.
        ({"n": datetime(2026, 1, 1, tzinfo=UTC)}, {"n": "2026-01-01T00:00:00Z"}, True, "other"),
        ('{"n": 1}', {"n": 1}, True, "other"),
    ],
)
def test_kinship(sent, found, is_unsure, kinship):
    assert compare_created(sent, found, prefix="simhash", is_unsure=is_unsure) == kinship
