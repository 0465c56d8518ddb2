"""
The pack on real servers: objects in a strict mapping, and every search of a panel run, its answer drawn by real Vega.

Kibana and Dashboards themselves are not here. ``panels.py`` is a model of what they do with a Vega panel.
"""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime

import pytest

from es_simhash import build_dashboards
from tests.dashboards.test_dashboards import specs_of
from tests.servers.panels import expand, with_answer
from tests.servers.support import ON_BOTH, ONE_SHARD, put

FIELDS = {"time_field": "meta.published", "source_field": 'agency\'s "name"', "text_field": "story 'text'"}
SPAN = tuple(int(datetime(2026, month, 1, tzinfo=UTC).timestamp() * 1000) for month in (1, 3))
BRIDGE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
CHIPS = "Shares of the chip maker fell by a tenth after it cut its forecast for the year again."
LONE = "A museum of clocks opens next month in the old station, with free entry on the first weekend."


@pytest.fixture
def grouped(sync_client, sync_simhash, index):
    """An index with two groups, of three and of two documents, one document alone, and one without words."""
    own = {FIELDS["source_field"]: {"type": "keyword"}, "meta": {"properties": {"published": {"type": "date"}}}}
    how = {"text_field": FIELDS["text_field"], "max_distance": 16, "mappings": {"properties": own}}
    sync_simhash.create_index(index, settings=ONE_SHARD, **how)
    texts = [BRIDGE, CHIPS, BRIDGE + " Work begins in May.", BRIDGE, CHIPS, LONE, "..."]
    documents = [
        {
            "_id": f"doc '{n}\"",
            FIELDS["text_field"]: text,
            FIELDS["source_field"]: "wire" if n < 4 else "paper",
            "meta": {"published": f"2026-01-{10 + n}"},
        }
        for n, text in enumerate(texts)
    ]
    assert [report.action for report in sync_simhash.ingest(index, documents)].count("tagged") == 3
    sync_client.indices.refresh(index=index)
    return index


def charts(index, **fields):
    """Return the Vega specification of each chart by the last part of its title."""
    specs = specs_of(build_dashboards(index, **fields))
    return {title.partition(", ")[2]: spec for title, spec in specs.items()}


def ask(client, server, spec):
    """Run the search of a chart, and return the answer whole."""
    request = spec["data"][0]["url"]
    body = expand(request, product=server.product, span=SPAN, context=None)
    assert "%" not in json.dumps(body)
    answer = client.search(index=request["index"], body=body)
    return dict(getattr(answer, "body", answer))


def draw(spec, answer):
    """Return the words in a chart as real Vega draws it."""
    vega = pytest.importorskip("vl_convert")
    svg = vega.vega_to_svg(json.dumps(with_answer(spec, answer, width=1_000, height=400)))
    drawn = re.findall(r"<text([^>]*)>(.*?)</text>", svg, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", words)) for style, words in drawn if 'opacity="0"' not in style]


@ON_BOTH
def test_what_the_charts_say(server, sync_client, grouped):
    """As they are drawn: numbers with shares, every day of the chosen time, the most doubled source first, groups."""
    found = charts(grouped, **FIELDS)
    answers = {name: ask(sync_client, server, spec) for name, spec in found.items()}
    words = {name: draw(spec, answers[name]) for name, spec in found.items()}
    assert words["numbers"] == [
        *("7", "documents"),
        *("3", "duplicates", "42.9% of all documents"),
        *("2", "groups with duplicates", "1.5 duplicates in each"),
        *("1", "without fingerprint", "run es-simhash setup"),
        *("0", "not grouped yet", "nothing to do"),
    ]
    buckets = answers["documents over time"]["aggregations"]["over_time"]["buckets"]
    assert len(buckets) == 60
    assert sum(bucket["doc_count"] for bucket in buckets) == 7
    assert sum(bucket["duplicates"]["doc_count"] for bucket in buckets) == 3
    assert {"duplicates", "all other documents"} <= set(words["documents over time"])
    assert any("Jan" in word for word in words["documents over time"])
    assert words["share by source"] == ["wire", "paper", "50.0%  (2 of 4)", "33.3%  (1 of 3)"]
    listed = answers["sizes of groups"]["aggregations"]["duplicates"]["listed"]["buckets"]
    assert sorted(bucket["doc_count"] for bucket in listed) == [1, 2]
    assert (words["sizes of groups"][:2], words["sizes of groups"][-2:]) == (["2", "3"], ["1", "1"])
    *largest, bridge, chips = words["largest groups"][:6]  # the text of the canonical, and of no duplicate
    assert largest == ["doc '0\"", "doc '1\"", "2", "1"]
    assert BRIDGE.startswith(bridge.rstrip("…"))
    assert CHIPS.startswith(chips.rstrip("…"))
    without = charts(grouped, **FIELDS | {"text_field": None})["largest groups"]
    assert draw(without, ask(sync_client, server, without))[2:] == ["2", "1"]


def test_sizes_of_more_groups_than_are_listed():
    """Groups below those that are listed are one bar, from 2 to the smallest size that is listed."""
    spec = charts("news")["sizes of groups"]
    listed = [{"key": f"g{n}", "doc_count": size - 1} for n, size in enumerate([2_000, 12, 12, 7])]
    duplicates = {
        "doc_count": 9_000,
        "groups": {"value": 104},
        "listed": {"sum_other_doc_count": 900, "buckets": listed},
    }
    words = draw(spec, {"aggregations": {"duplicates": duplicates}})
    labels = ["2–7", "5–9", "10–19", "20–49", "50–99", "100–999", "1,000+"]
    assert words[: len(labels)] == labels
    assert words[-len(labels) :] == ["100", "1", "2", "0", "0", "0", "1"]


# Any two of the three meet in each way.
@pytest.mark.parametrize(("mapped", "fields", "count"), [(True, FIELDS, 1), (False, {}, 0)])
def test_an_index_without_groups(server, sync_client, sync_simhash, index, count, fields, mapped):
    """Nothing, or one document, with our fields or without any mapping of them: every chart draws, and says so."""
    if mapped:
        sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    else:
        sync_client.indices.create(index=index, body={"settings": ONE_SHARD})
    for n in range(count):
        put(server, index, [{"_id": str(n), "body": BRIDGE}])
    for name, spec in charts(index, **fields).items():
        words = draw(spec, ask(sync_client, server, spec))
        if name == "numbers":
            # The documents lack the time field, so no range of time has them.
            assert words[0] == str(0 if fields else count)
        else:
            [said] = [word for word in words if word.startswith("No ")]
            assert ("range of time" in said) == bool(fields)


def test_the_saved_searches(sync_client, grouped):
    """The filters of each saved search, as both products send them, find what its title says."""
    found = {}
    for each in build_dashboards(grouped, **FIELDS):
        if each["type"] == "search":
            source = json.loads(each["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
            assert source["query"] == {"query": "", "language": "kuery"}
            query = {"bool": {"filter": [filter_["query"] for filter_ in source["filter"]]}}
            order = {"unmapped_type": "boolean"}
            sort = [{field: {"order": way, **order}} for field, way in each["attributes"]["sort"]]
            hits = sync_client.search(index=grouped, body={"query": query, "sort": sort})["hits"]["hits"]
            found[each["attributes"]["title"].partition(", ")[2]] = "".join(sorted(hit["_id"][5] for hit in hits))
    # A document without words is a group of its own.
    canonicals = {"duplicates": "234", "canonicals": "0156"}
    assert found == canonicals | {"without fingerprint": "6", "documents of one group": "0123456"}


def test_the_command_checks_the_fields(grouped, run):
    """What is not mapped or has the wrong type ends the command; the recorded text field is taken over."""
    source = ["--source-field", FIELDS["source_field"]]
    done = run("export", "dashboards", grouped, "--time-field", "meta.published", *source, "--check")
    assert done.exit_code == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == build_dashboards(grouped, **FIELDS)
    for wrong in ("nothing", FIELDS["text_field"]):
        done = run("export", "dashboards", grouped, "--time-field", wrong, "--check")
        assert (done.exit_code, done.stdout, wrong in done.stderr) == (1, "", True)
    done = run("export", "dashboards", f"{grouped}-nothing-*", "--check")
    assert (done.exit_code, done.stdout) == (1, "")
