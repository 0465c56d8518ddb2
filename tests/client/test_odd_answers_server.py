"""What no search server answers: one error that says what came from where, and never the login."""

import asyncio
import base64
import json
import logging
import traceback
from urllib.parse import quote

import elasticsearch
import opensearchpy
import pytest

from es_simhash import SimHashError
from es_simhash.client.answer_shapes import is_answer
from es_simhash.client.async_port import AsyncioServer
from es_simhash.client.dialects import ELASTICSEARCH, OPENSEARCH, find_dialect
from es_simhash.client.port import BlockingServer, finish
from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.pages import View
from es_simhash.transport.protocol import Call
from es_simhash.transport.secrets import Secrets
from tests.servers.canned import canned_server, zipped
from tests.servers.command_line import invoke

LIBRARIES = (elasticsearch, opensearchpy)
COUNTED = {"size": 0, "aggs": {"n": {"value_count": {"field": "f"}}}, "query": {"match_all": {}}}
NAMED = {"name": "n"}
# One request of each kind, with what its answers go by.
CALLS = [
    Call("bulk", {"body": [{"delete": {"_index": "i", "_id": "1"}}]}),
    Call("create_index", {"index": "i", "body": {}}),
    Call("field_caps", {"index": "i", "fields": ["f"]}),
    Call("get_alias", {"index": "i"}),
    Call("get_data_stream", NAMED),
    Call("get_mapping", {"index": "i"}),
    Call("get_pipeline", {"id": "n"}),
    Call("get_settings", {"index": "i"}),
    Call("index_stats", {"index": "i", "metric": "docs", "level": "shards"}),
    Call("mget", {"body": {"docs": [{"_index": "i", "_id": "1"}]}}),
    Call("mget", {"body": {"docs": [{"_index": "i", "_id": "1"}]}}, raw_source=True),
    Call("msearch", {"body": [{"index": "i"}, COUNTED]}),
    Call("open_point_in_time", {"index": "i", "keep_alive": "1m"}),
    Call("put_mapping", {"index": "i", "body": {}}),
    Call("put_pipeline", {"id": "n", "body": {"processors": []}}),
    Call("put_settings", {"index": "i", "body": {"x": 1}}),
    Call("refresh", {"index": "i"}),
    Call("search", {"index": "i", "body": COUNTED}),
    Call("simulate_pipeline", {"body": {"docs": []}}),
    # What is read of these may be absent.
    Call("close_point_in_time", {"body": {"id": "p"}}),
    Call("simulate_index", NAMED),
    Call("simulate_template", {"body": {"index_patterns": ["i"]}}),
]
SOME_CALLS = [call for call in CALLS if call.api in ("bulk", "mget", "msearch", "search")]
LENIENT = {"close_point_in_time", "simulate_index", "simulate_template"}
REFUSED = {"error": {"type": "x", "reason": "no", "root_cause": []}, "status": 400}
WHOLE = {"total": 1, "successful": 1, "failed": 0}
ODD = {
    "a page": b"<html><body>Sign in</body></html>",
    "null": b"null",
    "nothing": b"",
    "a list": b"[]",
    "a number": b"17",
    "a text": b'"hits"',
    "truncated": b'{"hits": {"hits": [',
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "too deep": b'{"a":' + b"[" * 100_000,
    "a refusal": json.dumps(REFUSED).encode(),
    "parts of a wrong kind": json.dumps(
        dict.fromkeys(("hits", "docs", "items", "responses", "fields", "_shards", "acknowledged", "pit_id", "i"), 1)
        | {"data_streams": {}, "index_templates": "x", "id": 7}
    ).encode(),
}


def outcomes(url, library, calls, *, is_async, **options):
    """Return what becomes of each of *calls*: its answer, or its exception."""
    if not is_async:
        with library_client(library)(url, **options) as client:
            server = BlockingServer(client, find_dialect(client))
            return finish(server.together(calls, concurrency=1))

    async def work():
        async with library_client(library, "Async")(url, **options) as client:
            return await AsyncioServer(client, find_dialect(client)).together(calls, concurrency=1)

    return asyncio.run(work())


def library_client(library, kind=""):
    return getattr(library, f"{kind}Elasticsearch" if library is elasticsearch else f"{kind}OpenSearch")


@pytest.fixture(scope="module")
def canned():
    with canned_server() as server:
        yield server


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request):
    return request.param


# Not by its name, by which parallel workers would take a test for one of that server.
@pytest.fixture(params=LIBRARIES, ids=["elastic", "opensearchpy"])
def library(request):
    return request.param


def test_an_odd_answer_to_any_request(canned, library, is_async):
    """One error for all of them, which names the server, the request, and what came."""
    for odd in ("a page", "truncated", "not UTF-8", "a list") if is_async else ODD:
        canned.give(ODD[odd])
        calls = CALLS if odd in ("a page", "parts of a wrong kind") else SOME_CALLS
        found = outcomes(canned.url, library, calls, is_async=is_async)
        for call, error in zip(calls, found, strict=True):
            assert type(error) is SimHashError, (odd, call.api, error)
            assert str(error).startswith(f"{canned.url} answers, but not as a search server does: to {call.api}")
            assert len(str(error)) < 600
        assert "Sign in" in str(found[0]) or odd != "a page"


NO_PARTS = {"items": [], "docs": [], "responses": []}
NO_PLACE, NO_TOTAL = {"hits": {"hits": [{"_id": "1"}]}}, {"_shards": WHOLE, "hits": {"hits": []}}


@pytest.mark.parametrize(
    ("calls", "answer"),
    [
        *((CALLS, odd) for odd in (None, [], 17, "hits", REFUSED)),
        *((SOME_CALLS, odd) for odd in (NO_PARTS, NO_PLACE, NO_TOTAL)),
    ],
)
def test_what_is_no_answer_to_any_request(calls, answer):
    """Each part of one belongs to an operation, a document or a search; a hit says where it is."""
    assert [call.api for call in calls if is_answer(call, answer)] == []


def test_an_answer_that_cannot_be_unpacked(canned, library, is_async):
    canned.give(b"no gzip at all", content_encoding="gzip")
    for error in outcomes(canned.url, library, SOME_CALLS, is_async=is_async, max_retries=0):
        assert type(error) is SimHashError, error
    canned.give(zipped(b"{}"), content_encoding="gzip")
    for error in outcomes(canned.url, library, SOME_CALLS, is_async=is_async, max_retries=0):
        assert isinstance(error, (SimHashError, dict, *CONNECTION_ERRORS)), error


CONNECTION_ERRORS = (elasticsearch.ConnectionError, opensearchpy.ConnectionError)


def test_an_odd_refusal(canned, library, is_async):
    """An error of the client or of ours, but no failure of either to read it."""
    for body in (b"null", b"[]", b"<html>", b'{"error": []}', b'{"error": {"root_cause": null}}'):
        canned.give(body, status=400)
        for error in outcomes(canned.url, library, SOME_CALLS, is_async=is_async):
            module = type(error).__module__.partition(".")[0]
            assert module in ("elasticsearch", "opensearchpy", "es_simhash"), repr(error)


def test_an_answer_without_shards_is_a_gap():
    """It says nothing of the documents that it may lack; a point in time need not, because its searches do."""
    answer = {"id": "p", "pit_id": "p", "hits": {"hits": []}}
    assert is_answer(Call("search", {"body": {}}), answer)
    assert is_answer(Call("open_point_in_time", {"index": "i", "keep_alive": "1m"}), answer)
    assert find_gaps(answer) == [Gap("unsaid")]
    assert not View(answer, 1).gaps


PLACE = {"_index": "i", "_id": "1"}
PAGE = {"_shards": WHOLE, "timed_out": False, "hits": {"total": {"value": 1}, "hits": [PLACE]}}
COUNTED_PAGE = {**PAGE, "aggregations": {"n": {}}}


@pytest.mark.parametrize(
    ("body", "good", "wrong"),
    [
        ({}, PAGE, {"_shards": {"total": 1, "successful": 1}}),
        ({}, PAGE, {"_shards": {**WHOLE, "failed": "0"}}),
        ({}, PAGE, {"timed_out": None}),
        ({}, PAGE, {"hits": {"hits": [{"_id": "1"}]}}),
        ({}, PAGE, {"hits": {"hits": [{"_index": "i"}]}}),
        ({"track_total_hits": True}, PAGE, {"hits": {"hits": [PLACE]}}),
        (COUNTED, COUNTED_PAGE, {"aggregations": {}}),
        (COUNTED, {**PAGE, "_shards": dict.fromkeys(WHOLE, 0)}, {"_shards": WHOLE}),
    ],
)
def test_a_search_that_lacks_what_was_asked_for(body, good, wrong):
    """Alone, or as a part of a multi-search; where no index matches, nothing is counted."""
    alone, together = Call("search", {"body": body}), Call("msearch", {"body": [{}, body]})
    assert is_answer(alone, good)
    assert is_answer(together, {"responses": [good]})
    assert not is_answer(alone, good | wrong)
    assert not is_answer(together, {"responses": [good | wrong]})


@pytest.mark.parametrize("wrong", [{"_id": "2"}, {"_source": None}, {"_source": "null"}, {"_source": "[]"}])
def test_an_item_of_another_document_or_without_its_source(wrong):
    """Such a source would be archived in place of the document."""
    call = Call("mget", {"body": {"docs": [{"_id": "1"}]}}, raw_source=True)
    whole = {**PLACE, "found": True, "_source": '{"body": "x"}'}
    assert is_answer(call, {"docs": [whole]})
    assert not is_answer(call, {"docs": [whole | wrong]})


PASSWORD = {"Authorization": f"Basic {base64.b64encode(b'elastic:hunt/er#2 pw').decode()}"}
KEY = {"Authorization": f"ApiKey {base64.b64encode(b'theid:the+secret=key').decode()}"}
LOGINS = {
    "password": {**PASSWORD, "X-Api-Key": "s3cr3t-of-the-gateway"},
    "key": {**KEY, "X-Api-Key": "first-of-words second-of-words"},
    "bearer": {"Authorization": "Bearer abc.DEF-ghi_123"},
    "cookies": {"Cookie": "session=the-first-one; other=the-next-one"},
    "pair": PASSWORD,
    "requests": PASSWORD,
}
WORDS = (
    "hunt/er#2 pw", "the+secret=key", "abc.DEF-ghi_123", "s3cr3t-of-the-gateway", "first-of-words", "second-of-words",
    "the-first-one", "the-next-one",
)  # fmt: skip


def repeated(headers):
    """Return what a careless server makes of the *headers* of a request: as they are, and in other forms."""
    values = [value for name, value in headers.items() if name.lower() in ("authorization", "cookie", "x-api-key")]
    tokens = [value.rpartition(" ")[2] for value in values]
    pairs = [base64.b64decode(token).decode() for token in tokens if token.endswith("=") or len(token) % 4 == 0]
    secrets = [pair.partition(":")[2] for pair in pairs if ":" in pair]
    every = [*values, *tokens, *pairs, *secrets]
    return every + [quote(value, safe="") for value in every]


def forms_of(login):
    held = [word for word in WORDS if any(word in form for form in repeated(login))]
    tokens = [value.rpartition(" ")[2] for value in login.values()]
    return {*held, *tokens, *(quote(word, safe="") for word in held)}


@pytest.mark.parametrize(("login", "is_async"), [*((login, False) for login in LOGINS), ("pair", True), ("key", True)])
@pytest.mark.parametrize("status", [200, 400])
def test_the_login_is_never_repeated(canned, library, is_async, login, status, caplog):
    """In no error, its notes, its traceback, its cause, nor in what is said of parts of an answer."""
    caplog.set_level(logging.DEBUG, "es_simhash")
    headers = LOGINS[login]
    how = {"headers": headers}
    if login in ("pair", "requests"):
        how = {"basic_auth" if library is elasticsearch else "http_auth": ("elastic", WORDS[0])}
    if login == "requests" and library is opensearchpy and not is_async:
        how["connection_class"] = opensearchpy.RequestsHttpConnection

    def refuse(path, sent):
        reason = {"type": "x", "reason": " ".join(repeated(sent))}
        failed = {"total": 1, "successful": 0, "failed": 1, "failures": [{"reason": reason}]}
        body = {"error": {**reason, "root_cause": [reason]}, "status": status}
        if status == 200:
            body = {"_shards": failed, "timed_out": False, "hits": {"hits": []}, "aggregations": {"n": {"value": 0}}}
            item = {"_index": "i", "_id": "1", "status": 429, "error": reason}
            parts = {"_bulk": {"errors": True, "items": [{"delete": item}]}, "_mget": {"docs": [item]}}
            parts["_msearch"] = {"responses": [body]}
            body = next((part for word, part in parts.items() if word in path), body)
        return json.dumps(body).encode()

    canned.give(b"", status=status)
    canned.echoes = refuse
    try:
        found = outcomes(canned.url, library, CALLS, is_async=is_async, **how, max_retries=0)
    finally:
        canned.echoes = None
    for call, outcome in zip(CALLS, found, strict=True):
        said = json.dumps(outcome) if isinstance(outcome, dict) else "".join(traceback.format_exception(outcome))
        said += str(vars(outcome).values()) if isinstance(outcome, Exception) and library is opensearchpy else ""
        said += caplog.text
        assert "***" in said or call.api in LENIENT or status == 200, call.api
        for form in forms_of(headers):
            assert form not in said, (call.api, form)


ERRORS = (elasticsearch.ApiError, elasticsearch.TransportError, opensearchpy.OpenSearchException)
COMMANDS = (
    "find i text", "passages i text", "explain i a b", "groups i", "check i", "report i", "tune i", "setup i --yes",
    "create i -t body", "ingest i -", "follow i --once", "reconcile i", "plan i", "remove-fields i --yes",
    "export pipeline i --install --yes", "export dashboards i --check",
)  # fmt: skip
GIVEN = {
    "password": {"ES_SIMHASH_USER": "elastic", "ES_SIMHASH_PASSWORD": WORDS[0]},
    "key": {"ES_SIMHASH_API_KEY": f"theid:{WORDS[1]}"},
    "url": {},
}


@pytest.mark.parametrize(
    ("product", "given", "status"),
    [
        ("auto", "password", 400),
        ("elasticsearch", "password", 200),
        ("opensearch", "key", 200),
        ("opensearch", "url", 400),
    ],
)
def test_no_command_says_the_login(canned, monkeypatch, caplog, given, product, status):
    """Nor does a traceback or a log, whether it is given in the environment or in the URL."""
    caplog.set_level(logging.INFO)
    login = f"elastic:{quote(WORDS[0], safe='')}@" if given == "url" else ""
    environment = {"ES_SIMHASH_URL": canned.url.replace("://", f"://{login}"), "ES_SIMHASH_PRODUCT": product}
    for name, value in {**environment, **GIVEN[given]}.items():
        monkeypatch.setenv(name, value)

    def refuse(_, sent):
        reason = {"type": "x", "reason": f"{' '.join(repeated(sent))} {environment['ES_SIMHASH_URL']}"}
        return json.dumps({"error": {**reason, "root_cause": [reason]}, "acknowledged": reason}).encode()

    canned.give(b"", status=status)
    monkeypatch.setattr(canned, "echoes", refuse)
    forms = forms_of(KEY if given == "key" else PASSWORD)
    for number, command in enumerate(COMMANDS):
        as_json = ["--json"] * (number % 2 == (status == 200))
        ended = invoke([*command.split(), *as_json], stdin='{"body": "text"}')
        assert ended.exit_code == 1, (command, ended.output)
        said = ended.output
        with monkeypatch.context() as patch:
            patch.setenv("ES_SIMHASH_DEBUG", "1")
            with pytest.raises((SimHashError, *ERRORS)) as raised:
                invoke(command.split(), stdin='{"body": "text"}')
        said += "".join(traceback.format_exception(raised.value)) + caplog.text
        assert not [form for form in forms if form in said], command


def test_documents_are_not_cleaned():
    """They are the user's, whatever word is in them."""

    class Reads:
        _headers = PASSWORD

        def search(self, **_):
            hit = {"_index": "i", "_id": "1", "_source": {"body": "hunt/er#2 pw"}}
            return {"_shards": WHOLE, "timed_out": False, "hits": {"hits": [hit]}}

    for dialect in (ELASTICSEARCH, OPENSEARCH):
        [hit] = finish(dialect.call(Reads(), Call("search", {"body": {}})))["hits"]["hits"]
        assert hit["_source"] == {"body": "hunt/er#2 pw"}


def test_what_is_too_short_is_no_secret():
    """A password of three letters stands in any sentence; in its header it is hidden all the same."""
    header = f"Basic {base64.b64encode(b'u:the').decode()}"
    hidden = Secrets(header).hide(["the index", header, "u:the"])
    assert hidden == ["the index", "Basic ***", "***"]
