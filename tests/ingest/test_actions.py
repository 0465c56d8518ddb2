"""The ingest helper: what comes out for each kind of action, and that nothing given is changed."""

import asyncio
import copy
import importlib
import itertools
import json

import pytest

from es_simhash import InvalidInputError, document_fields, with_fingerprints
from es_simhash.mapping.fields import FINGERPRINTED, GROUPED

TEXT = "The council approved the new bridge over the river on Tuesday."
NOTHING_ELSE = {"passages": None, "error": None}
OTHER = "Shares fell sharply after the company cut its forecast for the year."


def helped(*actions, text_field="body", **options):
    """Return what comes out for *actions*, having checked that they were not changed."""
    before = copy.deepcopy(actions)
    finished = list(with_fingerprints(actions, text_field=text_field, **options))
    assert list(before) == list(actions)
    return finished


def fields(text, **options):
    return document_fields(text, **options)["simhash"]


def test_a_plain_document_gets_one_nested_object():
    """Everything else stays as it is, metadata included."""
    [action] = helped({"_id": "1", "_index": "news", "body": TEXT, "n": 1})
    assert action == {"_id": "1", "_index": "news", "body": TEXT, "n": 1, "simhash": fields(TEXT)}


def again_and_again(shape):
    """Yield one dict each time, with the values of the next document."""
    body, action = {}, {}
    for number in range(3):
        body |= {"body": f"{TEXT} {number}", "n": number}
        action |= shape(f"d{number}", body)
        yield action


@pytest.mark.parametrize(
    "shape",
    [
        lambda id_, body: {"_id": id_, **body},
        lambda id_, body: {"_id": id_, "_source": body},
        lambda id_, body: {"_op_type": "update", "_id": id_, "doc": body},
    ],
)
def test_one_dict_given_again_is_each_document(shape):
    """As the clients' helpers take it, which write each action at once."""
    finished = list(with_fingerprints(again_and_again(shape), text_field="body"))
    bodies = [each.get("_source", each.get("doc", each)) for each in finished]
    assert [(each["_id"], body["n"]) for each, body in zip(finished, bodies)] == [("d0", 0), ("d1", 1), ("d2", 2)]
    for body in bodies:
        assert body["simhash"]["fingerprint"] == document_fields(body["body"])["simhash"]["fingerprint"]


@pytest.mark.parametrize("operation", ["index", "create"])
def test_the_document_under_source_gets_the_object(operation):
    """An action with ``_source`` keeps its shape."""
    [action] = helped({"_op_type": operation, "_id": "1", "_source": {"body": TEXT}})
    assert action == {"_op_type": operation, "_id": "1", "_source": {"body": TEXT, "simhash": fields(TEXT)}}


OWN = json.dumps(fields(TEXT))
UPDATE = (
    '"doc": {"body": "%s", "n": 1.10%s}, "upsert": {"body": "%s", "n": 2.50%s}, "script": {"params": {"n": 3.0}%s}}'
)


@pytest.mark.parametrize(
    ("text", "header", "sent"),
    [
        ('{"body": "%s", "n": 1.10}', {}, '{"body": "%s", "n": 1.10, "simhash": OWN}'),
        ('{"simhash": {"fingerprint": "0000000000000007"},"n": 1.10, "body": "%s"}', {},
         '{"simhash": OWN, "n": 1.10, "body": "%s"}'),
        ('{"simhash.error": "7", "n": 1.10, "body": "%s"}', {}, '{"n": 1.10, "body": "%s", "simhash": OWN}'),
        ('{"version": 1.10,\n"body": "%s"}\n', {}, '{"version": 1.10, "body": "%s", "simhash": OWN}'),
        ('{"_id": "1", "routing": "r", "n": 1.10, "body": "%s"}', {"_id": "1", "routing": "r"},
         '{"n": 1.10, "body": "%s", "simhash": OWN}'),
        ('{"_op_type": "create", "_source": {"n": 1.10, "body": "%s"}}', {"_op_type": "create"},
         '{"n": 1.10, "body": "%s", "simhash": OWN}'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("convert", [str, str.encode])
def test_a_document_as_json_text_goes_on_as_that_text(text, header, sent, convert):
    """With our object put in, in place of an earlier one; the helpers send it as it is."""
    [action] = helped(convert(text % TEXT))
    assert action == {**header, "_source": (sent % TEXT).replace("OWN", OWN)}
    assert json.loads(action["_source"])["simhash"] == fields(TEXT)
    assert helped(action) == [action]


@pytest.mark.parametrize("source", ["%s", '"_source": {%s}'])
def test_an_update_as_json_text_goes_on_as_that_text(source):
    """The partial document, the whole one and the script, also through the helpers of both clients."""
    given = UPDATE % (TEXT, "", TEXT, "", ', "source": "x()"')
    own = f', "simhash": {OWN}'
    whole = own[:-1] + ', "passages": null, "error": null}'
    sent = "{" + UPDATE % (TEXT, whole, TEXT, own, ', "source": "x()"')
    text = '{"_op_type": "update", "_id": "1", %s}' % (source % given[:-1])
    [action] = helped(text, on_problem=lambda _: None)
    for helpers in ("elasticsearch.helpers.actions", "opensearchpy.helpers.actions"):
        expand = importlib.import_module(helpers).expand_action
        assert expand(action) == ({"update": {"_id": "1"}}, sent)


def test_a_key_that_stands_twice_is_told():
    """The text goes on as it is, and the server refuses it, as it does without us."""
    problems, text = [], '{"body": "one", "body": "two"}'
    assert helped(text, on_problem=problems.append) == [text]
    assert "'body' stands twice" in problems[0].reason


def test_a_delete_is_passed_on_as_it_is():
    """The very object, not a copy."""
    action = {"_op_type": "delete", "_id": "1"}
    assert helped(action)[0] == action


def test_a_delete_as_json_text_is_a_delete():
    """The helpers would index the text as a document."""
    action = {"_op_type": "delete", "_id": "1"}
    assert helped(json.dumps(action)) == [action]


@pytest.mark.parametrize("text", ["{", '{"n": ' + "1" * 5_000 + "}", "[" * 100_000, b"\xff", "3"])
def test_json_text_that_cannot_be_read_is_passed_on(text):
    """Reported, and no harm to the documents around it."""
    problems = []
    first, second, third = helped({"body": TEXT}, text, {"body": TEXT}, on_problem=problems.append)
    assert (first, second) == (third, text)
    [problem] = problems
    assert (problem.position, "recursion" in problem.reason) == (1, False)


@pytest.mark.parametrize("text", ["", "  \n\t", "…!?--", "🎉🎉", None])
def test_a_text_without_features_gets_no_fields(text):
    """So it matches nothing; and nothing is reported, for nothing is wrong."""
    problems = []
    assert helped({"body": text}, on_problem=problems.append) == [{"body": text}]
    assert problems == []


def test_a_fingerprint_of_an_earlier_text_is_taken_out():
    """Nor its group: documents read from an index and written again keep nothing of a text that is gone."""
    old = {"body": "", "simhash": {**fields(TEXT), "group": "g"}, "simhash.block0": "abcd"}
    assert helped(old) == [{"body": ""}]


@pytest.mark.parametrize("value", [42, 1.5, True, {"en": TEXT}, ["a", 7]])
def test_what_is_no_text_is_reported_and_passed_on(value):
    """The document is not lost, and the report names position, id and field."""
    problems = []
    [action] = helped({"_id": "x", "body": value}, on_problem=problems.append)
    assert action == {"_id": "x", "body": value}
    assert [(p.position, p.id) for p in problems] == [(0, "x")]
    assert "'body'" in problems[0].reason


def test_problems_are_logged_where_nobody_listens(caplog):
    """A warning, with the id."""
    helped({"_id": "x", "body": 1})
    assert "'x'" in caplog.text


@pytest.mark.parametrize("thing", [None, 3, "not json", b"\xff", ("a", "b"), "[1, 2]"])
def test_what_is_no_document_is_reported_and_passed_on(thing):
    """The server, or the client's helper, then says what it thinks of it."""
    problems = []
    assert list(with_fingerprints([thing], text_field="body", on_problem=problems.append)) == [thing]
    assert len(problems) == 1


def test_another_prefix():
    """The prefix is the caller's to choose."""
    [action] = helped({"body": TEXT}, prefix="body_hash", value=False)
    assert set(action["body_hash"]) == {"fingerprint", "block0", "block1", "block2", "block3"}


def test_a_clash_with_the_users_own_field_is_reported():
    """Their field stays; the document goes on without a fingerprint."""
    problems = []
    [action] = helped({"body": TEXT, "simhash": "mine"}, on_problem=problems.append)
    assert action == {"body": TEXT, "simhash": "mine"}
    assert "choose another prefix" in problems[0].reason


@pytest.mark.parametrize(
    ("doc", "text_field", "ours", "problem"),
    [
        # The server merges objects: a null takes the place of what another text may have left there.
        ({"body": TEXT}, "body", {**fields(TEXT), **NOTHING_ELSE}, ""),
        ({"body": None}, "body", None, ""),
        ({"body": "?!"}, "body", None, ""),
        ({"article": None}, "article.body", None, ""),
        ({"views": 3}, "body", ..., ""),
        ({"article": {"views": 3}}, "article.body", ..., ""),
        # The other half is not at hand.
        ({"title": "New"}, ["title", "body"], None, "backfill"),
    ],
)
def test_an_update_changes_our_fields_as_it_changes_the_text(doc, text_field, ours, problem):
    """They are changed, cleared, or left as they are."""
    problems = []
    update = {"_op_type": "update", "_id": "1", "doc": doc}
    [action] = helped(update, text_field=text_field, on_problem=problems.append)
    assert action == update | {"doc": doc if ours is ... else {**doc, "simhash": ours}}
    assert [problem in each.reason for each in problems] == [True] * bool(problem)


def test_an_update_to_a_text_with_passages_and_no_fingerprint():
    """The server merges objects: what is not stated stays, so everything is."""
    [action] = helped(
        {"_op_type": "update", "_id": "1", "doc": {"body": "the of and to in the of and"}},
        scheme="keywords",
        passages=True,
    )
    own = action["doc"]["simhash"]
    assert set(own) == set(FINGERPRINTED) | set(GROUPED)
    assert [name for name in own if own[name] is not None] == ["passages"]


def test_an_upsert_is_a_whole_document():
    """It gets a fingerprint of its own, beside that of the doc."""
    [action] = helped({"_op_type": "update", "_source": {"doc": {"body": TEXT}, "upsert": {"body": OTHER}}})
    assert action["_source"]["doc"]["simhash"] == {**fields(TEXT), **NOTHING_ELSE}
    assert action["_source"]["upsert"]["simhash"] == fields(OTHER)


@pytest.mark.parametrize("script", ["ctx._source.n += 1", {"source": "x", "params": {"n": 1}}, {"id": "stored"}])
def test_a_script_is_passed_on(script):
    """And reported, so that a backfill can repair what it leaves."""
    problems = []
    [action] = helped({"_op_type": "update", "_id": "1", "script": script}, on_problem=problems.append)
    assert action["script"] == script
    assert "left as it was" in problems[0].reason


def test_ids_for_documents_without():
    """Documents get an id of their own, wherever it stands; those that have one, updates and deletes are left alone."""
    given = [
        {"body": TEXT},
        {"_op_type": "create", "_index": "i", "_source": {"body": TEXT}},
        {"_id": None, "body": 7},
        json.dumps({"body": TEXT}),
        {"_id": "mine", "body": TEXT},
        {"_id": 0, "body": TEXT},
        {"_op_type": "update", "doc": {"n": 1}},
        {"_op_type": "delete"},
        "no document",
    ]
    plain = helped(*given, on_problem=lambda _: None)
    found = helped(*given, on_problem=lambda _: None, id_from="random")
    ids = [each["_id"] for each in found[:4]]
    assert len(set(ids)) == 4
    assert [{**each, "_id": id_} for each, id_ in zip(plain[:4], ids, strict=True)] == found[:4]
    assert found[4:] == plain[4:]


def test_order_and_number_survive_any_batching():
    """More documents than a batch, of mixed kinds, come out one for one and in order."""
    actions = [
        {"_id": str(n), "body": f"{TEXT} {n}"} if n % 3 else {"_op_type": "delete", "_id": str(n)} for n in range(1203)
    ]
    assert [action["_id"] for action in helped(*actions)] == [str(n) for n in range(1203)]


def test_what_came_before_a_broken_source_is_passed_on():
    """The source's own error follows, unchanged."""

    def source():
        yield {"_id": "1", "body": TEXT}
        raise OSError("disk gone")

    finished = with_fingerprints(source(), text_field="body")
    assert next(finished)["simhash"] == fields(TEXT)
    with pytest.raises(OSError, match="disk gone"):
        next(finished)


def test_constant_memory_over_an_endless_source():
    """Nothing waits for the end of the source."""
    finished = with_fingerprints(({"n": n, "body": TEXT} for n in itertools.count()), text_field="body")
    assert [next(finished)["n"] for _ in range(1000)] == list(range(1000))


def test_an_async_source_gives_an_async_iterator():
    """For ``async_bulk``."""

    async def source():
        for n in range(3):
            yield {"_id": n, "body": TEXT}

    async def collect():
        return [action async for action in with_fingerprints(source(), text_field="body")]

    assert [action["simhash"] for action in asyncio.run(collect())] == [fields(TEXT)] * 3


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"text_field": ""}, InvalidInputError, "text_field"),
        ({"text_field": []}, InvalidInputError, "text_field"),
        ({"text_field": ["a", "a"]}, InvalidInputError, "each once"),
        ({"text_field": [1]}, TypeError, "text_field"),
        ({"text_field": "body", "scheme": "nonsense"}, InvalidInputError, "nonsense"),
        ({"text_field": "body", "prefix": "a.b"}, InvalidInputError, "without dots"),
        ({"text_field": "body", "prefix": "it's"}, InvalidInputError, "prefix"),
        ({"text_field": "body", "id_from": "content"}, InvalidInputError, "id_from"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_read(options, error, words):
    """At the call, not at the first document."""
    with pytest.raises(error, match=words):
        with_fingerprints(iter(()), **options)
