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


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"_id": "1", "_index": "news", "body": TEXT, "n": 1}, {"simhash": fields(TEXT)}),
        ({"_id": "1", "_source": {"body": TEXT}}, {"_source": {"body": TEXT, "simhash": fields(TEXT)}}),
        # Nothing is kept of a text that is gone, as in documents that were read from an index.
        ({"body": "", "simhash": {**fields(TEXT), "group": "g"}, "simhash.block0": "abcd"}, {"body": ""}),
    ],
)
@pytest.mark.parametrize("operation", [{}, {"_op_type": "create"}])
def test_a_document_gets_one_nested_object(given, made, operation):
    """Everything else stays as it is, metadata included."""
    kept = {name: value for name, value in given.items() if name.partition(".")[0] != "simhash"}
    assert helped(operation | given) == [operation | kept | made]


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
        assert body["simhash"]["fingerprint"] == fields(body["body"])["fingerprint"]


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


DELETE = {"_op_type": "delete", "_id": "1"}
SCRIPTS = ["ctx._source.n += 1", {"source": "x", "params": {"n": 1}}, {"id": "stored"}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (DELETE, None),
        *(({"body": text}, None) for text in ("", "  \n\t", "…!?--", "🎉🎉", None)),
        *(({"_id": "x", "body": value}, "'body'") for value in (42, 1.5, True, {"en": TEXT}, ["a", 7])),
        *((thing, "") for thing in (None, 3, ("a", "b"), "not json", b"\xff", "3", "[1, 2]", "{", "[" * 100_000)),
        ('{"n": ' + "1" * 5_000 + "}", ""),
        ('{"body": "one", "body": "two"}', "'body' stands twice"),
        ({"body": TEXT, "simhash": "mine"}, "choose another prefix"),
        *(({"_op_type": "update", "_id": "1", "script": script}, "left as it was") for script in SCRIPTS),
    ],
)
def test_what_gets_no_fields_is_passed_on(given, said):
    """Documents around it get theirs; what is wrong is reported with its place, id and reason, and nothing else is."""
    problems = []
    first, found, last = helped({"body": TEXT}, given, {"body": TEXT}, on_problem=problems.append)
    assert found == given
    assert first == last == {"body": TEXT, "simhash": fields(TEXT)}
    id_ = given.get("_id") if isinstance(given, dict) else None
    assert [(problem.position, problem.id) for problem in problems] == [(1, id_)] * (said is not None)
    assert all(said in problem.reason and "recursion" not in problem.reason for problem in problems)


def test_a_delete_as_json_text_is_a_delete():
    """The helpers would index the text as a document."""
    assert helped(json.dumps(DELETE)) == [DELETE]


def test_problems_are_logged_where_nobody_listens(caplog):
    """A warning, with the id."""
    helped({"_id": "x", "body": 1})
    assert "'x'" in caplog.text


def test_another_prefix():
    """The prefix is the caller's to choose."""
    [action] = helped({"body": TEXT}, prefix="body_hash", value=False)
    assert set(action["body_hash"]) == {"fingerprint", "block0", "block1", "block2", "block3"}


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
    update = {"_op_type": "update", "_id": "1", "doc": {"body": "the of and to in the of and"}}
    [action] = helped(update, scheme="keywords", passages=True)
    own = action["doc"]["simhash"]
    assert set(own) == set(FINGERPRINTED) | set(GROUPED)
    assert [name for name in own if own[name] is not None] == ["passages"]


def test_an_upsert_is_a_whole_document():
    """It gets a fingerprint of its own, beside that of the doc."""
    [action] = helped({"_op_type": "update", "_source": {"doc": {"body": TEXT}, "upsert": {"body": OTHER}}})
    assert action["_source"]["doc"]["simhash"] == {**fields(TEXT), **NOTHING_ELSE}
    assert action["_source"]["upsert"]["simhash"] == fields(OTHER)


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
    """More documents than a batch, of mixed kinds, come out one for one and in order, and none waits for the last."""
    kinds = (lambda n: {"_id": n, "body": TEXT}, lambda n: {"_id": n}, lambda n: {"_op_type": "delete", "_id": n})
    endless = (kinds[n % 3](n) for n in itertools.count())
    finished = with_fingerprints(endless, text_field="body")
    assert [action["_id"] for action in itertools.islice(finished, 1203)] == list(range(1203))


def test_what_came_before_a_broken_source_is_passed_on():
    """The source's own error follows, unchanged."""

    def source():
        yield {"_id": "1", "body": TEXT}
        raise OSError("disk gone")

    finished = with_fingerprints(source(), text_field="body")
    assert next(finished)["simhash"] == fields(TEXT)
    with pytest.raises(OSError, match="disk gone"):
        next(finished)


def test_an_async_source_gives_an_async_iterator():
    """For ``async_bulk``."""

    async def source():
        for n in range(3):
            yield {"_id": n, "body": TEXT}

    async def collect():
        return [action async for action in with_fingerprints(source(), text_field="body")]

    assert [action["simhash"] for action in asyncio.run(collect())] == [fields(TEXT)] * 3


def test_wrong_arguments_are_refused_before_anything_is_read():
    """At the call, not at the first document."""
    for options in ({"text_field": ["a", "a"]}, {"scheme": "nonsense"}, {"prefix": "it's"}, {"id_from": "content"}):
        with pytest.raises(InvalidInputError):
            with_fingerprints(iter(()), **{"text_field": "body", **options})
