"""Ingest that compares texts, sources and dates, on real servers: compared with all documents compared with all."""

import random
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import floor

import pytest

from es_simhash import AsyncSimHashClient, SimHashClient, fingerprint
from es_simhash.ingest import decide
from es_simhash.mapping.user_fields import milliseconds_of
from es_simhash.texts.measures import TextMeasure
from tests import reference
from tests.servers.batches import ingest_in_batches
from tests.servers.support import ONE_SHARD, WORDS, put, read_all, send_lines, stored_groups, texts

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
MAPPINGS = {
    "properties": {
        "n": {"type": "integer"},
        "source": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "published": {"type": "date"},
    }
}
BY_TEXT = {"max_distance": 20, "verify": 0.7}
VALUES = {"per": "source.raw", "within": ("published", "2d")}
# Small batches and large ones: what a batch does not see depends on its size, not on the grouping.
GROUPINGS = [(BY_TEXT, 7), (BY_TEXT | VALUES, 60), ({"max_distance": 14, "verify": False, **VALUES}, 7)]


def dated(moment, chance):
    """Return *moment* as one of the ways in which documents write it."""
    there = (moment + timedelta(hours=2)).isoformat()[:19] + "+02:00"
    return chance.choice([moment.isoformat(), int(moment.timestamp() * 1000), there])


def make_documents(count, seed):
    """Return documents in the order of their ids: edited texts, some exact copies, sources and dates, some without."""
    chance = random.Random(seed)
    bodies, documents = [], []
    for n in range(count):
        if bodies and chance.random() < 0.7:
            words = chance.choice(bodies[-40:]).split()
            for _ in range(chance.choice([0, 0, 1, 2, 3, 4, 6, 10])):
                words[chance.randrange(len(words))] = chance.choice(WORDS)
        else:
            words = [chance.choice(WORDS) for _ in range(chance.choice([5, 30, 60]))]
        bodies.append(" ".join(words))
        document = {"_id": f"{n:05d}", "n": n, "body": bodies[-1]}
        if chance.random() < 0.9:
            document["source"] = chance.choice(["reuters", "xinhua", ["xinhua", "reuters"]])
        if chance.random() < 0.9:
            document["published"] = dated(START + chance.randint(0, 6) * DAY / 2, chance)
        documents.append(document)
    return documents


def expected_star(documents, grouping):
    """Return the place of the canonical of each document, by the definition."""
    rows = [
        {
            "fingerprint": fingerprint(each["body"]),
            "text": each["body"],
            "source.raw": [each["source"]] if isinstance(each.get("source"), str) else each.get("source", []),
            "published": [milliseconds_of(each["published"])] if "published" in each else [],
        }
        for each in documents
    ]
    rule = {"max_distance": grouping["max_distance"], "similarity": grouping["verify"] or None}
    if "per" in grouping:
        rule |= {"per": grouping["per"], "within": ("published", 2 * DAY.total_seconds() * 1000)}
    return reference.star_of(len(rows), lambda one, other: reference.are_neighbours(rows[one], rows[other], **rule))


def create(simhash, index):
    simhash.create_index(index, text_field="body", settings={**ONE_SHARD, "refresh_interval": "-1"}, mappings=MAPPINGS)


@pytest.mark.parametrize(("grouping", "batch"), GROUPINGS, ids=["text", "all", "values"])
def test_tags_are_those_of_the_rule(server, index, simhash, client, call, grouping, batch):
    """Over batches and refreshes, ``star`` gives each document the first canonical that is its neighbour."""
    create(simhash, index)
    documents = make_documents(100, seed=batch)
    expected = expected_star(documents, grouping)
    reports = ingest_in_batches(client, call, index, documents, batch=batch, in_flight=50, **grouping)
    assert [n if each.canonical is None else int(each.canonical) for n, each in enumerate(reports)] == expected
    assert stored_groups(read_all(server, index)) == {f"{n:05d}": f"{c:05d}" for n, c in enumerate(expected)}
    assert 8 < sum(n != c for n, c in enumerate(expected)) < 90
    assert {each.reason for each in reports} == {None}
    assert simhash.reconcile(index).changed == 0
    for n, (report, c) in enumerate(zip(reports, expected, strict=True)):
        if n == c or not grouping["verify"]:
            assert report.similarity is None
        else:
            similarity = float(reference.jaccard(documents[n]["body"], documents[c]["body"]))
            assert report.similarity == pytest.approx(similarity)
            assert report.to_dict()["similarity"] == report.similarity


def test_a_text_that_cannot_be_read_is_told(server, index, simhash):
    """Another program took the text away and left the fingerprint: its copies stand for it."""
    create(simhash, index)
    body = texts(1)[0]
    list(simhash.ingest(index, [{"_id": "a", "body": body}, {"_id": "b", "body": body}], **BY_TEXT))
    send_lines(server, [{"update": {"_index": index, "_id": "a"}}, {"doc": {"body": None}}])
    server.request("POST", f"/{index}/_refresh")
    reports = list(simhash.ingest(index, [{"_id": "c", "body": body}, {"_id": "d", "body": body}]))
    assert [(each.action, each.canonical) for each in reports] == [("tagged", "a")] * 2
    assert ["'a'" in (each.reason or "") for each in reports] == [True, True]


def test_partial_updates_without_the_field_are_told(index, simhash):
    """What the index has of such a document is not read; what the update brings is."""
    create(simhash, index)
    one, other = texts(1, seed=1)[0], texts(1, seed=2)[0]
    documents = [{"_id": "z", "body": one, "source": "x"}]
    documents += [{"_id": each, "body": other, "source": each} for each in "ab"]
    list(simhash.ingest(index, documents, **BY_TEXT, per="source.raw"))
    updates = [
        {"_op_type": "update", "_id": "a", "doc": {"body": one}},
        {"_op_type": "update", "_id": "b", "doc": {"body": one, "source": "x"}},
    ]
    reports = list(simhash.ingest(index, updates))
    assert [(each.action, each.canonical) for each in reports] == [("written", "a"), ("tagged", "z")]
    assert ["source" in (each.reason or "") for each in reports] == [True, False]


ODD_DATES = (
    "2026 2026-02 2026-02-30 2026-01-01T24:00 17672256000 x 0000 -2026 -0 -1 -1.5 -0.5 1.5 1_000 2026-1-1 "
    "2026-01-01T10 2026-01-01T10:30 2026-01-01T10:30:05,25Z 2026-01-01T10+05 2026-01-01T10Z 999999999999999999 "
    "-999999999999999 999999999999999"
)
ZONES = "+18:00", "+18:01", "+19:00", "+05:60", "-1830", "+99"


@pytest.mark.parametrize(
    "date_format", [None, "epoch_second", "yyyy-MM-dd HH:mm:ss||strict_date_optional_time||epoch_millis"]
)
@pytest.mark.parametrize("kind", ["date", "date_nanos"])
def test_dates_are_read_as_the_server_reads_them(server, index, date_format, kind):
    """Whatever is read here is the moment that the server indexes."""
    chance = random.Random(6)
    values = [*ODD_DATES.split(), "", 2026, 20260101, 1_767_225_600, *(f"2026-01-01T10:30:05{zone}" for zone in ZONES)]
    for zero in "\u0660\uff10":  # other digits
        table = {ord("0") + digit: ord(zero) + digit for digit in range(10)}
        values += [each.translate(table) for each in ("2026", "2026-02-03", "2026-01-01T10:30:05Z", "1767225600")]
    field = {"type": kind, "ignore_malformed": True} | ({} if date_format is None else {"format": date_format})
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD, "mappings": {"properties": {"at": field}}})
    for _ in range(9):
        each = START + timedelta(seconds=chance.randint(0, 10**8), microseconds=chance.randint(0, 10**6))
        plain, seconds = each.isoformat()[:-6], each.timestamp()
        values += [each.isoformat(), plain, str(each)[:19], str(each.date()), f"{plain}-0330", f"{plain}789Z"]
        values += [int(seconds), int(seconds * 1000)]
    put(server, index, [{"_id": str(n), "at": value} for n, value in enumerate(values)])
    body = {"size": 1000, "docvalue_fields": [{"field": "at", "format": "epoch_millis"}]}
    hits = server.request("POST", f"/{index}/_search", body)["hits"]["hits"]
    shown = {int(hit["_id"]): floor(Decimal(hit["fields"]["at"][0])) for hit in hits if hit.get("fields")}
    format_ = {} if date_format is None else {"date_format": date_format}
    ours = {n: milliseconds_of(value, of_nanos=kind == "date_nanos", **format_) for n, value in enumerate(values)}
    read = {n: moment for n, moment in ours.items() if moment is not None}
    assert read == {n: shown.get(n) for n in read}
    assert len(read) >= len(shown) * 0.8


def test_the_texts_of_a_batch_are_prepared_together(sync_client, index, monkeypatch):
    """One by one takes several times as long, also where copies of a canonical are near."""
    ours = SimHashClient(sync_client)
    ours.create_index(index, text_field="body", settings=ONE_SHARD)
    prepare, sizes = TextMeasure.prepare, []
    monkeypatch.setattr(TextMeasure, "prepare", lambda self, given: sizes.append(len(given)) or prepare(self, given))
    for name in "abc":
        sizes.clear()
        documents = [
            (f"{name}{n}", " ".join(f"w{random.Random(f'{n} {k}').randrange(10**6)}" for k in range(40)))
            for n in range(60)
        ]
        list(ours.ingest(index, [{"_id": id_, "body": f"{body} {name}dded"} for id_, body in documents]))
        sync_client.indices.refresh(index=index)
    assert sum(sizes) >= 60
    assert sizes.count(1) <= 3


def test_nothing_is_compared_on_an_event_loop(async_client, runner, index, monkeypatch):
    """Texts are prepared and compared beside it, also where a batch is decided again, and where nothing is written."""
    threads, compare, prepare = set(), decide.compare_contents, TextMeasure.prepare
    here = threading.get_ident

    def noting(function):
        return lambda *given, **how: threads.add(here()) or function(*given, **how)

    monkeypatch.setattr(decide, "compare_contents", noting(compare))
    monkeypatch.setattr(TextMeasure, "prepare", noting(prepare))
    simhash, body = AsyncSimHashClient(async_client), texts(1)[0]
    given = [{"_id": id_, "n": n, "body": f"{body} {id_}"} for id_, n in (("a", "none"), ("b", 1), ("c", 2))]

    async def write():
        await simhash.create_index(index, text_field="body", mappings={"properties": {"n": {"type": "integer"}}})
        reports = [report async for report in simhash.ingest(index, given)]
        await async_client.indices.refresh(index=index)
        answers = [answer async for answer in simhash.screen(index, [body])]
        return [report.action for report in reports], answers[0].answer, here()

    actions, answer, loop = runner.run(write())
    assert (actions, answer) == (["refused", "written", "tagged"], "near")
    assert threads
    assert loop not in threads
