"""What documents are compared by: dates and values as a server reads them, and the comparison itself."""

from datetime import UTC, datetime

import pytest

from es_simhash.ingest.content_reader import make_reader
from es_simhash.lookup.content import Content, Unread, compare_contents, prepare_together
from es_simhash.mapping.rule import Grouping, PairRule
from es_simhash.mapping.user_fields import milliseconds_of, to_moment
from es_simhash.texts.measures import WORD_SHINGLES
from tests import reference

TEXT = "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood"
OTHER = "parliament passed the budget on tuesday after a debate that had lasted for three weeks"
DAY = 86_400_000


@pytest.mark.parametrize(
    ("value", "date_format", "expected"),
    [
        (-86_400_000, None, -DAY),
        ("1969-12-31T23:59:59.9999Z", None, -1),
        (datetime(1970, 1, 2, tzinfo=UTC), None, DAY),
        *((value, None, None) for value in ("2/1/1970", True, {})),
        ("1970-01-02 00:00:01", "yyyy-MM-dd HH:mm:ss||epoch_second", DAY + 1000),
        ("1970-01-02T00:00:00", "strict_date_time_no_millis", None),
        ("02/01/1970", "dd/MM/yyyy", None),
    ],
)
def test_a_date_is_read_in_the_format_of_the_mapping(value, date_format, expected):
    """What is not certain is not read; what a server reads is in ``tests/ingest/test_verified_server.py``."""
    assert milliseconds_of(value, **({"date_format": date_format} if date_format else {})) == expected


MAPPING = {
    "properties": {
        "body": {"type": "text"},
        "source": {"type": "text", "fields": {"raw": {"type": "keyword", "ignore_above": 4}}},
        "meta": {"properties": {"at": {"type": "date"}}},
    }
}
WHOLE = Grouping(similarity=0.8, per="source.raw", within=("meta.at", "1d"))


def read(document, **options):
    return make_reader(WHOLE, [MAPPING], "body").read(document, **options)


def test_values_are_read_from_the_document_as_the_mapping_says():
    """A multi-field has the values of its field, and none that are longer than ignore_above."""
    found = read({"body": TEXT, "source": ["b", "too long", "a", "b"], "meta.at": "1970-01-02"})
    assert (found.has_text, found.per, found.moment, found.unread) == (True, ("a", "b"), DAY, None)


@pytest.mark.parametrize(
    ("document", "is_partial", "kind"),
    [
        ({"body": TEXT, "source": "a", "meta": {"at": "yesterday"}}, False, "value"),
        ({"body": 7, "source": "a", "meta": {"at": "1970"}}, False, "text"),
        ({"body": TEXT, "source": "a"}, True, "partial"),
        ({"body": TEXT, "source": "a"}, False, None),
    ],
)
def test_what_cannot_be_read_is_known(document, is_partial, kind):
    """A document without a date has none; one with an unreadable date has one that is not known."""
    unread = read(document, is_partial=is_partial).unread
    assert (None if unread is None else unread.kind) == kind


def test_indices_that_read_dates_differently_are_not_guessed():
    """The document may go to either."""
    other = {"properties": {"meta": {"properties": {"at": {"type": "date", "format": "epoch_second"}}}}}
    reader = make_reader(Grouping(within=("meta.at", "1d")), [MAPPING, other], "body")
    assert reader.read({"meta": {"at": 86_400}}).unread.kind == "value"
    assert make_reader(Grouping(), [MAPPING], "body") is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {}, True),
        ({"text": TEXT.upper() + "!"}, {}, True),
        ({"text": TEXT + " it"}, {}, True),
        ({"text": OTHER}, {}, False),
        ({"text": "…"}, {"text": "…"}, False),
        ({"per": ("y",)}, {}, False),
        ({"per": ()}, {"per": ()}, False),
        ({"moment": 2 * DAY}, {}, True),
        ({"moment": 2 * DAY + 1}, {}, False),
        ({"moment": None}, {}, False),
    ],
)
def test_neighbours_agree_in_everything_that_the_grouping_names(first, second, expected):
    """Texts, the value of ``per`` and the dates of ``within``; the order of the two does not matter."""
    usual = {"text": TEXT, "per": ("x",), "moment": DAY}
    one, other = Content(**(usual | first)), Content(**(usual | second))
    assert compare_contents(one, other, WHOLE).accepts is expected
    assert compare_contents(other, one, WHOLE).accepts is expected


def test_what_was_not_read_is_no_neighbour_and_is_told():
    """Also where nothing is known of a document."""
    known = Content(TEXT)
    unread = Unread("not_read", "a shard failed")
    by_text = PairRule(similarity=0.8)
    assert compare_contents(known, Content(unread=unread), by_text).unread is unread
    assert compare_contents(known, None, by_text).unread.kind == "text"
    assert compare_contents(known, None, PairRule()).accepts


def test_a_text_is_kept_until_it_is_compared():
    """Then its shingles are kept, 8 bytes for each."""
    one, other = Content(TEXT), Content(TEXT)
    before = one.size
    assert compare_contents(one, other, PairRule(similarity=1.0)).score.similarity == 1.0
    assert (before, one.size) == (TEXT.__sizeof__(), 8 * len(reference.shingle_runs(TEXT)))
    assert one.pending_text is None
    assert one.key == other.key


def test_texts_are_prepared_together_as_each_alone():
    """Copies once; what was prepared before stays."""
    texts = [TEXT, OTHER, TEXT, "…", None]
    alone = [Content(text).prepared(WORD_SHINGLES).tolist() for text in texts]
    contents = [Content(text) for text in texts]
    prepare_together(contents[:2], WORD_SHINGLES)
    prepare_together(contents, WORD_SHINGLES)
    assert [each.pending_text for each in contents] == [None] * 5
    assert [each.prepared(WORD_SHINGLES).tolist() for each in contents] == alone


@pytest.mark.parametrize("milliseconds", [0, 1, 999, DAY, 1_800_000_000_123])
def test_a_moment_is_read_as_it_was_written(milliseconds):
    """To the millisecond; the last one that four digits of a year have stands for all later ones."""
    assert milliseconds_of(to_moment(milliseconds)) == milliseconds
    assert to_moment(10**18 + milliseconds) == "9999-12-31T23:59:59.999Z"
