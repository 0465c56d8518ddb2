"""The grouping of an index: what is read from ``_meta``, what a caller may ask for, and what is refused."""

from dataclasses import replace

import pytest

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.groups.grouping_request import GroupingRequest, choose_grouping
from es_simhash.groups.recorded import field_kinds, find_field
from es_simhash.hashing import get_scheme
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.rule import (
    RULE_WORDS,
    Grouping,
    OrderKey,
    PairRule,
    Within,
    check_order,
    parse_key,
    parse_within,
    rule_words,
)
from es_simhash.texts.measures import TextMeasure

DAY = 86_400_000
FULL = Grouping(
    8, 0.9, per="source", within=Within("at", 7 * DAY), order=("source:x>y>*", "published", "-views", "longest")
)
NOISY = Grouping(max_distance=16, similarity=0.9, measure=TextMeasure("edit", "characters", "most"))


def test_a_field_that_no_search_reaches_is_the_object_that_hides_it():
    """So that nobody groups by values which no document seems to have."""
    below = {"properties": {"source": {"type": "keyword", "fields": {"raw": {"type": "keyword"}}}}}
    mapping = {"properties": {"open": below, "nested": {"type": "nested", **below}, "off": {"enabled": False, **below}}}
    types = [find_field(mapping, f"{name}.source").get("type") for name in ("open", "nested", "off", "none")]
    assert types == ["keyword", "nested", "object", None]
    assert find_field(mapping, "open.source.raw") == {"type": "keyword"}
    assert find_field({**mapping, "enabled": False}, "open.source")["type"] == "object"


@pytest.mark.parametrize(
    ("grouping", "said"),
    [
        (
            Grouping(per="body"),
            r"'body' of index 'i' is mapped as 'text': only a keyword can .*\(per\): name 'body\.raw'",
        ),
        (Grouping(per="none"), "'none' of index 'i' is not mapped: only a keyword"),
        (Grouping(within=Within("body", 1)), "only a date can limit .*: name 'at'"),
        (Grouping(order=("body",)), "only a date or a number can decide .*: name 'at'"),
    ],
)
def test_a_field_that_cannot_decide_is_refused(grouping, said):
    """With another one that can."""
    text = {"type": "text", "fields": {"raw": {"type": "keyword"}}}
    resolved = Resolved({"i": {"properties": {"body": text, "at": {"type": "date"}}}}, {"i": settings()})
    with pytest.raises(MappingError, match=said):
        field_kinds(resolved, grouping)


def settings(grouping=None, *, text_fields=("body",), scheme="shingles-3", max_distance=None):
    extra = {} if grouping is None else {"grouping": grouping}
    return IndexSettings(get_scheme(scheme), text_fields, max_distance, extra=extra)


@pytest.mark.parametrize("grouping", [Grouping(), FULL, Grouping(per="a"), Grouping(similarity=0), NOISY])
def test_what_is_recorded_is_read_again(grouping):
    """As plain JSON values."""
    assert Grouping.from_dict(grouping.to_dict()) == grouping


@pytest.mark.parametrize(
    ("rule", "words", "is_narrower"),
    [
        (PairRule(1), "within 1 bit, texts not compared", True),
        (PairRule(12), "within 12 bits, texts not compared", False),
        (PairRule(12, 0.8), "within 12 bits, at least 80 % of the 7-letter shingles are the same", False),
        (PairRule(12, 0.9), "within 12 bits, at least 90 % of the 7-letter shingles are the same", True),
        (NOISY, "within 16 bits, at least 90 % of the letters are the same, most numbers the same", False),
    ],
)
def test_what_a_rule_says_of_itself(rule, words, is_narrower):
    """And whether it misses what the default finds: of another measure no bound says so."""
    assert (rule.words, bool(rule.misses)) == (words, is_narrower)


def test_what_stands_in_the_mapping():
    """The order is a list, the span a pair."""
    assert FULL.to_dict() == {
        "rule": "star",
        "max_distance": 8,
        "canonical": ["source:x>y>*", "published", "-views", "longest"],
        "similarity": 0.9,
        "per": "source",
        "within": ["at", "7d"],
    }
    assert NOISY.to_dict()["similarity"] == {
        "at_least": 0.9,
        "measure": "edit",
        "unit": "characters",
        "numbers": "most",
    }
    assert Grouping().to_dict() == {"rule": "star", "max_distance": 3, "canonical": ["id"], "similarity": None}


def test_a_measure_stays_where_only_the_bound_is_given():
    """A preset changes it; without a comparison there is none."""
    assert GroupingRequest(verify=0.7).put_on(NOISY).measure == NOISY.measure
    assert GroupingRequest(preset="noisy", max_distance=16).put_on(Grouping()) == NOISY
    assert GroupingRequest(preset="noisy", verify=Verification(0.7)).put_on(NOISY) == replace(NOISY, similarity=0.7)
    assert GroupingRequest(preset="similar").put_on(NOISY) == Grouping(12, similarity=0.8)
    assert GroupingRequest(verify=False).put_on(NOISY) == Grouping(max_distance=16)


def test_a_record_by_distance_alone():
    """Nothing has to be asked for to go on."""
    old = settings({"rule": "star", "max_distance": 8, "canonical": "-published", "similarity": None})
    assert choose_grouping(old, GroupingRequest()) == Grouping(8, order=("-published",))
    with pytest.raises(InvalidInputError):
        choose_grouping(old, GroupingRequest(verify=True))


@pytest.mark.parametrize(
    "recorded",
    [
        7,
        {"rule": "star"},
        {"rule": "star", "max_distance": 3, "canonical": ["id"]},
        {"rule": "moon", "max_distance": 3, "canonical": "id"},
        {"rule": "star", "max_distance": 3, "canonical": []},
        {"rule": "star", "max_distance": 3, "canonical": ["id"], "similarity": 2},
        {"rule": "star", "max_distance": 3, "canonical": ["id"], "within": ["at"]},
        {"rule": "star", "max_distance": 3, "canonical": ["id"], "per": 7},
        {**NOISY.to_dict(), "similarity": {"at_least": 0.9}},
        {**NOISY.to_dict(), "similarity": {"at_least": 0.9, "measure": "containment", "unit": "words"}},
    ],
)
def test_a_record_that_is_not_ours(recorded):
    with pytest.raises(MappingError):
        Grouping.read(settings(recorded))


@pytest.mark.parametrize("older", [{"rule": "connected"}, {"key": ["url", "crawl"]}])
def test_a_rule_of_an_older_version_is_refused_with_what_to_run(older):
    with pytest.raises(MappingError, match=r"remove_fields\(index, groups_only=True\), then group anew with reconcile"):
        Grouping.read(settings({**FULL.to_dict(), **older}))


def test_defaults():
    """Texts are compared where the index records its text fields."""
    assert choose_grouping(settings(), GroupingRequest(), has_texts=False).similarity is None
    assert choose_grouping(settings(), GroupingRequest(verify=False)).similarity is None


@pytest.mark.parametrize(
    ("known", "rule"),
    [
        (settings(), PairRule(12, 0.8)),
        (settings(max_distance=5), PairRule(5, 0.8)),
        (settings(text_fields=()), PairRule(3)),
        (settings(text_fields=(), max_distance=5), PairRule(5)),
        (settings(FULL.to_dict()), FULL.pair_rule),
    ],
)
def test_what_makes_documents_near_duplicates(known, rule):
    """What is recorded; else the default, with a distance that is recorded, and texts where fields of them are."""
    assert known.rule == choose_grouping(known, GroupingRequest()).pair_rule == rule


def test_a_rule_is_said_in_chinese():
    """Each of its words, with the same values."""
    chinese = rule_words("zh")
    assert chinese.keys() == RULE_WORDS.keys()
    assert chinese["rule_bits"].format(bits=3) != RULE_WORDS["rule_bits"].format(bits=3)
    assert rule_words("en") is RULE_WORDS


def test_presets():
    """A preset gives distance and similarity; what is given beside it overrides it."""

    def chosen(**asked):
        grouping = choose_grouping(settings(max_distance=5), GroupingRequest(**asked))
        return grouping.max_distance, grouping.similarity

    assert chosen(preset="near") == (8, 0.9)
    assert chosen(preset="near", verify=True) == (8, 0.9)
    assert chosen(preset="near", verify=0.5) == (8, 0.5)
    assert chosen(preset="near", verify=False) == (8, None)
    assert chosen(preset="near", max_distance=2) == (2, 0.9)
    assert chosen(verify=True) == (5, 0.8)
    with pytest.raises(InvalidInputError):
        choose_grouping(settings(scheme="keywords-1"), GroupingRequest(preset="near"))


def test_texts_that_are_not_known():
    """An index that does not record its text fields cannot be grouped by texts, nor by their length."""
    for asked in ({"verify": True}, {"canonical": ["n", "longest"]}):
        with pytest.raises(InvalidInputError):
            choose_grouping(settings(text_fields=()), GroupingRequest(**asked))


@pytest.mark.parametrize(
    "asked",
    [
        {"max_distance": 9},
        {"verify": False},
        {"verify": 0.8},
        {"canonical": "id"},
        {"per": False},
        {"per": "other"},
        {"within": False},
        {"within": ("at", "6d")},
    ],
)
def test_another_grouping_than_the_recorded_one(asked):
    """It is refused, but for an operation that may differ."""
    recorded = settings(FULL.to_dict())
    with pytest.raises(InvalidInputError):
        choose_grouping(recorded, GroupingRequest(**asked))
    assert choose_grouping(recorded, GroupingRequest(**asked), may_differ=True) != FULL


def test_the_recorded_grouping_asked_for():
    """In other words, too."""
    same = GroupingRequest(
        max_distance=8,
        canonical=["source:x>y>*", "published", "-views", "longest", "id"],
        verify=0.9,
        per="source",
        within=("at", "168h"),
    )
    assert choose_grouping(settings(FULL.to_dict()), same) == FULL


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("id", OrderKey("id")),
        ("longest", OrderKey("longest")),
        ("published", OrderKey("field", "published")),
        ("-a.b", OrderKey("field", "a.b", is_descending=True)),
        ("source:a b>*>c", OrderKey("preference", "source", values=("a b", "*", "c"))),
    ],
)
def test_keys_of_an_order(text, key):
    assert parse_key(text) == key


@pytest.mark.parametrize(
    "canonical",
    [
        *("", "-", [], "source:", ":a", "-source:a", "source:a>>b", "source:a>a", ["id", "views"], ["views", "-views"]),
        *(7, [7], {"id"}),
    ],
)
def test_orders_that_cannot_be_used(canonical):
    with pytest.raises((InvalidInputError, TypeError)):
        check_order(canonical)


def test_ranks():
    """The preferred of several values counts, and a document without a value comes last."""
    key = parse_key("source:x>*>z")
    assert [key.rank(values) for values in (["x"], ["other"], ["z"], ["z", "x"], [])] == [0, 1, 2, 0, float("inf")]
    assert parse_key("source:x").rank(["other"]) == 1
    assert parse_key("views").rank([3, 1, 2]) == 1
    assert parse_key("-views").rank(["3", 1]) == -3
    assert parse_key("-views").rank([]) == float("inf")


@pytest.mark.parametrize(
    ("span", "milliseconds", "shown"),
    [("7d", 7 * DAY, "7d"), ("90m", 5_400_000, "90m"), ("1500ms", 1500, "1500ms"), ("0s", 0, "0d")],
)
def test_spans(span, milliseconds, shown):
    within = parse_within(("at", span))
    assert (within.milliseconds, within.span) == (milliseconds, shown)


@pytest.mark.parametrize(
    "pair", [*(("at", span) for span in ("7", "7w", "-7d", "1.5d", "٧d", 7)), ("", "7d"), "at:7d", ("at",), 7]
)
def test_spans_that_cannot_be_used(pair):
    with pytest.raises((InvalidInputError, TypeError)):
        parse_within(pair)
