"""What people's own searches show of copies, on real servers, sync and async."""

import json

import pytest

from es_simhash import InvalidInputError, fingerprint, fingerprint_fields
from es_simhash.quality.searches import read_queries
from tests.servers.support import ONE_SHARD, put

COPIED = (
    "The harbour was closed on Monday because the wind had broken the crane that stands at the old pier. "
    "Dockers lifted the boxes by hand until a second crane came by rail, and the captains of nine ships that lay "
    "outside the breakwater drew lots who of them was to come in first when the signal turned to green again."
)
OTHERS = [" ".join(["harbour", *(f"word{n}of{k}" for k in range(14))]) for n in range(12)]
BY_NUMBER = {"query": {"match": {"body": "harbour"}}, "sort": [{"n": "asc"}], "size": 3, "aggs": {}, "from": 1}


@pytest.fixture
def queries(tmp_path):
    def write(*lines):
        path = tmp_path / "searches.txt"
        path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
        return path

    return write


def test_the_lines_of_a_file(queries):
    """Empty ones are passed over; a mark of lines inside a text is a part of it; what only shows hits is left out."""
    path = queries("\ufeffone", "", '  {"query": {"match": {"body": "a\u2028b"}}, "size": 3, "_source": false} \r')
    one, two = read_queries(path)
    assert (one.place, one.words, one.body) == ("line 1 of 'searches.txt'", "one", None)
    assert (two.place, two.body) == ("line 3 of 'searches.txt'", {"query": {"match": {"body": "a\u2028b"}}})


@pytest.fixture
def filled(server, simhash, index):
    """Six copies, then others; a copy that no group has, and a document without a fingerprint among them."""
    mappings = {"properties": {"n": {"type": "float"}, "title": {"type": "text"}}}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=mappings)
    texts = [COPIED.replace("Monday", day) for day in ("Monday", "Tuesday", "Friday", "Monday", "Sunday", "Monday")]
    documents = [{"_id": str(n), "n": n, "body": text, "title": f"Nr {n}"} for n, text in enumerate([*texts, *OTHERS])]
    list(simhash.ingest(index, documents))
    copy = {"_id": "copy", "n": 6.5, "body": OTHERS[0].upper(), **fingerprint_fields(fingerprint(OTHERS[0].upper()))}
    put(server, index, [copy, {"_id": "bare", "n": 6.6, "body": OTHERS[3]}])
    return index


def test_how_many_hits_repeat_an_earlier_one(filled, simhash, queries):
    """By group, else by the rule; what has no fingerprint is counted, and so is what a search without copies shows."""
    found = simhash.report(filled, queries=queries(BY_NUMBER, "", "  harbour crane ", "nothing")).searches
    assert (found.searches, found.reason) == (3, "")
    [by_number, words] = found.worst
    assert (by_number.hits, by_number.repeats, by_number.unseen, by_number.new) == (10, 6, 1, 5)
    assert (by_number.earlier.id, by_number.repeat.id, by_number.repeat.title) == ("0", "1", "Nr 1")
    assert (words.search, words.hits, words.repeats, words.new) == ("harbour crane", 10, 5, 5)
    assert (found.hits, found.repeats, found.new) == (20, 11, 10)
    shown = found.to_dict()
    assert (shown["share"], [row["search"] for row in shown["worst"]]) == (
        11 / 20,
        [json.dumps(BY_NUMBER), "harbour crane"],
    )
    assert "Monday" in shown["worst"][0]["texts"][0]
    assert "Tuesday" in shown["worst"][0]["texts"][1]


def test_a_page_and_a_filter(filled, simhash, queries):
    """The page says it first, and each search with what differs; a filter holds for searches too."""
    report = simhash.report(filled, queries=queries(BY_NUMBER), filter={"range": {"n": {"gte": 4}}})
    assert (report.searches.hits, report.searches.repeats, report.searches.new) == (10, 2, 1)
    page = report.html()
    assert "2 of the first 10 hits of 1 searches (20.0 %) repeat an earlier hit." in page
    assert "Without copies these searches show 1 new hits." in page
    assert "11 of the first" not in page
    assert "repeat an earlier hit" in report._repr_html_()


def test_an_index_that_was_never_grouped(server, simhash, index, queries):
    """Copies are found by the rule, and why the number of new hits is missing is said."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    texts = [COPIED, COPIED.upper(), *OTHERS[:3]]
    put(server, index, [{"_id": str(n), "body": t, **fingerprint_fields(fingerprint(t))} for n, t in enumerate(texts)])
    report = simhash.report(index, queries=queries("harbour"))
    found = report.searches
    assert (found.hits, found.repeats, found.unseen, found.new) == (5, 1, 0, None)
    assert "never grouped" in found.reason
    assert "never grouped" in report.html()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"query":', "line 2 of 'searches.txt' is no JSON"),
        ('{"query":' * 100_000, "line 2 of 'searches.txt' is no JSON: it is nested too deeply"),
        ({"query": {"no_such_query": {}}}, "line 2 of 'searches.txt' is no search that the server takes: "),
        ({"collapse": {"field": "title"}}, "line 2 of 'searches.txt': body has 'collapse'"),
        ("[1]", None),
    ],
)
def test_a_line_that_cannot_be_searched(filled, simhash, queries, line, said):
    """One sentence that names it."""
    if said is None:
        assert simhash.report(filled, queries=queries("harbour", line)).searches.searches == 2
        return
    with pytest.raises(InvalidInputError, match=said):
        simhash.report(filled, queries=queries("harbour", line))
