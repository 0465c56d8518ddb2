"""``ingest(prepare=)`` on real servers: what the function gets, what is written, and what its failures leave."""

import asyncio
import json

import pytest

from tests.servers.archives import raw_source
from tests.servers.support import ONE_SHARD, read_all, stored_groups, texts

BRIDGE = "the council votes on the new bridge across the harbour on tuesday"
FERRY = "a ferry goes to the island at nine and at noon every day of the week"
KINDS = {"properties": {"source": {"type": "keyword"}, "day": {"type": "date"}, "vector": {"type": "float"}}}


@pytest.fixture
def waiting(mode):
    """Return a function that makes a function for the client of the mode: a coroutine function for the async one."""

    def make(function):
        async def wait(documents):
            return function(documents)

        return wait if mode == "async" else function

    return make


def create(call, simhash, index):
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=KINDS))


@pytest.mark.parametrize("on_duplicate", ["skip", "tag", None])
def test_only_what_is_written_is_prepared_and_each_once(server, call, simhash, index, waiting, on_duplicate):
    """Over several batches; the caller's documents stay as they are, and so do the digits of numbers in JSON."""
    documents = [{"_id": f"{n}", "body": text, "more": {"n": [n]}} for n, text in enumerate(texts(130, seed=2))]
    given = [*documents[:100], *(json.dumps({**each, "price": 1}).replace("1}", "1.10}") for each in documents[100:])]
    before, seen = json.dumps(given), []

    def embed(some):
        seen.extend(each["_id"] for each in some)
        for each in some:
            each["more"]["n"].append(len(each["body"]))
        return [{**each, "vector": [0.5, 1.5]} for each in some]

    create(call, simhash, index)
    reports = list(call(simhash.ingest(index, given, on_duplicate=on_duplicate, prepare=waiting(embed))))
    written = [each.id for each in reports if each.action in ("written", "tagged")]
    assert seen == written
    assert ({each.action for each in reports} == {"written"}) == (on_duplicate is None)
    assert (len(written) < 130) == (on_duplicate == "skip")
    assert json.dumps(given) == before
    stored = read_all(server, index)
    assert stored.keys() == set(written)
    for id_, each in stored.items():
        assert (each["vector"], each["more"]["n"]) == ([0.5, 1.5], [int(id_), len(each["body"])])
        assert each["simhash"]["fingerprint"]
    assert '"price": 1.10' in raw_source(server, index, max(written, key=int)).decode()


@pytest.mark.parametrize(
    ("on_duplicate", "how"),
    [
        *(("skip", "id"), ("tag", "body"), ("replace", "source"), ("skip", "day"), ("tag", "simhash")),
        ("replace", "nothing"),
    ],
)
def test_what_it_may_not_change_is_refused_as_by_the_server(server, call, simhash, index, waiting, on_duplicate, how):
    """The reports and the groups are those of an ingest in which the server refuses the same documents."""
    rule = {"verify": 0.7, "max_distance": 16, "per": "source", "within": ("day", "9d"), "on_duplicate": on_duplicate}
    documents = [
        {"_id": f"{n:03d}", "body": text, "source": "a", "day": f"2026-01-0{n % 7 + 1}", "x": n % 5 == 0}
        for n, text in enumerate(texts(90, seed=3))
    ]

    def change(some):
        for each in some:
            if each["x"] and how == "nothing":
                yield None
            elif each["x"]:
                yield {**each, {"id": "_id"}.get(how, how): {"group": "a"} if how == "simhash" else "2025-01-01"}
            else:
                yield {**each, "vector": 1}

    other = f"{index}-other"
    create(call, simhash, index)
    create(call, simhash, other)
    found = list(call(simhash.ingest(index, documents, prepare=waiting(lambda some: list(change(some))), **rule)))
    refused = [{**each, "vector": "no number" if each["x"] else 1} for each in documents]
    wanted = list(call(simhash.ingest(other, refused, **rule)))
    told = [
        [(each.id, each.action, each.canonical, each.distance, each.kind) for each in some] for some in (found, wanted)
    ]
    assert told[0] == told[1]
    assert {each.reason.split()[0] for each in found if each.action == "refused"} == {"prepare"}
    stored, others = read_all(server, index), read_all(server, other)
    assert stored_groups(stored) == stored_groups(others)
    assert not any(each["x"] for each in stored.values())


def test_a_function_that_raises_refuses_what_it_was_given(call, simhash, server, index, waiting):
    """Duplicates of these are decided again, and prepared then; a wrong number is a failure too."""
    create(call, simhash, index)
    calls = []

    def embed(some):
        calls.append([each["_id"] for each in some])
        if len(calls) == 1:
            raise OSError("the service\nis gone")
        return some[1:] if len(calls) == 3 else some

    texts = {"a": BRIDGE, "b": FERRY, "c": BRIDGE, "d": BRIDGE, "e": f"{BRIDGE} again"}
    given = [{"_id": id_, "body": text} for id_, text in texts.items()]
    reports = list(call(simhash.ingest(index, given, on_duplicate="skip", prepare=waiting(embed))))
    assert calls == [["a", "b"], ["c"]]
    assert [(each.action, each.canonical) for each in reports] == [
        *[("refused", None)] * 2,
        *(("written", "c"), ("skipped", "c"), ("skipped", "c")),
    ]
    assert reports[0].reason == "prepare failed (OSError: the service is gone)"
    [report] = call(simhash.ingest(index, [{"_id": "f", "body": FERRY}], prepare=waiting(embed)))
    assert (report.action, report.reason) == (
        "refused",
        "prepare failed (InvalidInputError: 0 documents returned for 1)",
    )
    assert sorted(read_all(server, index)) == ["c"]
    [report] = call(simhash.ingest(index, [{"_id": "g", "body": FERRY}], prepare=waiting(list.clear)))
    assert report.reason == "prepare failed (WrongTypeError: it returned None: return the documents)"


def test_a_document_that_cannot_be_copied_is_refused_alone(call, simhash, server, index, waiting):
    """As one that is no JSON is without a function; what is near it is written in its place."""
    create(call, simhash, index)
    given = [{"_id": "a", "body": BRIDGE, "n": (n for n in "a")}, *({"_id": id_, "body": BRIDGE} for id_ in "bc")]
    seen = []
    for documents in (given[:1], given):
        reports = list(
            call(
                simhash.ingest(
                    index, documents, on_duplicate="skip", prepare=waiting(lambda d: seen.append(len(d)) or d)
                )
            )
        )
        assert reports[0].reason.startswith("a value in it cannot be copied for prepare (TypeError: ")
    assert [each.action for each in reports] == ["refused", "written", "skipped"]
    assert seen == [1]
    assert sorted(read_all(server, index)) == ["b"]


def test_a_blocking_client_takes_no_coroutine_function(sync_simhash, index):
    async def embed(some):
        return some

    with pytest.raises(TypeError, match="prepare is a coroutine function"):
        sync_simhash.ingest(index, [], prepare=embed)
    with pytest.raises(TypeError, match="prepare must be a function"):
        sync_simhash.ingest(index, [], prepare=5)


def test_a_blocking_client_awaits_nothing(sync_simhash, index):
    """A function may return a coroutine without being one: that one would need a loop."""

    async def embed(some):
        await asyncio.sleep(0)
        return some

    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    [report] = sync_simhash.ingest(index, [{"_id": "a", "body": "some text"}], prepare=lambda some: embed([*some]))
    assert report.action == "refused"
    assert "it returned what is to be awaited: return the documents, or use AsyncSimHashClient" in report.reason
