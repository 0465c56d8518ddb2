"""Decisions about documents as they are written, compared with slow and obvious rules."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash import fingerprint, hamming_distance
from es_simhash.hashing import get_scheme
from es_simhash.ingest import decide as module
from es_simhash.ingest.decide import DecisionRule, Document, Existing, Unshown, decide, needs_copies
from es_simhash.lookup.content import Content, Unread, compare_contents
from es_simhash.mapping.rule import Grouping
from es_simhash.texts.measures import TextMeasure
from tests.groups.strategies import related_fingerprints
from tests.reference import star

TEXTS = ["the boat leaves at nine", "the boat leaves at nine today", "heavy rain is expected on the coast", "7 boats"]
BY_DISTANCE = [Grouping(each) for each in (0, 1, 3, 8, 20)]
BY_CONTENT = [Grouping(20, similarity=0.4), Grouping(64, similarity=0.9), Grouping(20, similarity=0.4, per="site")]
# Each is one bit from the next, so what is near one is mostly not near the one after it.
CHAIN = [2**bits - 1 for bits in range(8)]


def content(text, per=()):
    return Content(text, per=per)


def in_batches(documents, sizes):
    """Cut *documents* into batches of *sizes*, again and again."""
    begin = 0
    while begin < len(documents):
        for size in sizes:
            yield documents[begin : begin + size]
            begin += size


def in_order(documents):
    return sorted(documents, key=lambda one: (one.at, one.id))


def shown_near(index, batch, max_distance, led):
    """Return what searches show near each document of *batch*: canonicals, and copies with their canonicals."""
    near = {}
    for value in {document.fingerprint for document in batch} - {None}:
        found = [one for one in index if hamming_distance(one.fingerprint, value) <= max_distance]
        near[value] = [replace(one, position=None, canonicals=led.get(one.id)) for one in found]
    return near


class World:
    """Every document that was written, by id, and what is decided about the next one by looking at all of them."""

    def __init__(self, rule):
        self.rule = rule
        self.documents = {}

    def compare(self, one, other):
        distance = hamming_distance(one.fingerprint, other.fingerprint)
        return compare_contents(one.content, other.content, self.rule, distance=distance)

    def is_led(self, copy):
        canonical = self.documents.get(copy.group)
        is_there = copy.is_member and canonical is not None and not canonical.is_member
        return is_there and self.compare(copy, canonical).accepts

    def leader_of(self, new):
        others = [] if new.is_deletion else in_order(self.documents.values())
        others = (one for one in others if new.id not in (one.id, one.group) and not self.is_led(one))
        return next((one for one in others if self.compare(new, one).accepts), None)

    def write(self, document):
        self.documents.pop(document.id, None)
        if not document.is_deletion:
            self.documents[document.id] = document


documents = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 19) | st.none(),
        st.sampled_from(TEXTS),
        st.sampled_from([("a",), ("b",)]),
    ),
    min_size=8,
    max_size=20,
)


@settings(max_examples=200)
@given(
    st.just(CHAIN) | related_fingerprints(20),
    documents,
    st.sampled_from(BY_DISTANCE + BY_CONTENT),
    st.sampled_from(["tag", "skip"]),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=20, max_size=20),
)
def test_a_decision_is_that_of_looking_at_all(values, rows, rule, on_duplicate, sizes, refreshes):
    """Whatever was written again or deleted meanwhile, and whenever the index is refreshed: nothing is lost between."""
    known, world, index = Unshown(rule.max_distance), World(rule), {}
    new = []
    for number, (id_, place, text, per) in enumerate(rows):
        value = None if place is None else ([*values, 0])[place % (len(values) + 1)]
        new.append(
            Document(f"{id_:02d}", value, position=number, content=content(text, per), is_deletion=value is None)
        )
    refresh = iter(refreshes)
    for batch in in_batches(new, sizes):
        led = {one.id: [index[one.group]] if one.group in index else [] for one in index.values() if one.is_member}
        near = shown_near(in_order(index.values()), batch, rule.max_distance, led)
        for document in batch:
            document.must_write = document.is_deletion or document.id in index
        decisions = decide(batch, Existing(near, there=index), known, DecisionRule(rule, on_duplicate))
        for document, decision in zip(batch, decisions, strict=True):
            leader = world.leader_of(document)
            if leader is None:
                assert (decision.verdict, decision.group, decision.leader) == ("write", document.id, None)
            else:
                is_there = document.must_write or document.id in world.documents
                assert decision.verdict == ("tag" if is_there else on_duplicate)
                assert (decision.group, decision.leader.id) == (leader.group, leader.id)
                assert decision.distance == hamming_distance(document.fingerprint, leader.fingerprint)
                assert decision.is_stale == leader.is_member
                score = world.compare(document, leader).score
                assert decision.similarity == (None if score is None else score.similarity)
            if decision.verdict != "skip":
                world.write(document)
                known.add(document)
        if not next(refresh):
            index = {id_: replace(one, canonicals=None) for id_, one in world.documents.items()}
            known.clear()


@given(related_fingerprints(30), st.integers(0, 20), st.data())
def test_the_order_of_moments_says_what_was_decided(values, max_distance, data):
    """Whatever the ids: for batches of one moment, two writers whose clocks differ, and refreshes in between."""
    ids = data.draw(st.permutations([f"{place:02d}" for place in range(len(values))]))
    new = [Document(id_, value, position=n) for n, (value, id_) in enumerate(zip(values, ids, strict=True))]
    writers, clocks, index = [Unshown(max_distance) for _ in range(2)], [0, 5], []
    written = [], []
    for batch in in_batches(new, data.draw(st.lists(st.integers(1, 9), min_size=1))):
        number = data.draw(st.sampled_from([0, 1]))
        for other in (0, 1):
            # The other one's documents are shown before this one writes; its own, perhaps.
            if other != number or data.draw(st.booleans()):
                index += written[other]
                written[other].clear()
                writers[other].clear()
        clocks[number] += data.draw(st.integers(0, 3))
        near = shown_near(in_order(index), batch, max_distance, {})
        rule = DecisionRule(Grouping(max_distance), "tag")
        decide(batch, Existing(near), writers[number], rule, now=1 + clocks[number])
        for document in batch:
            writers[number].add(document)
        written[number].extend(batch)
    documents = in_order(new)
    canonicals = star([one.fingerprint for one in documents], max_distance)
    assert [one.group for one in documents] == [documents[place].id for place in canonicals]


NUMBERED = [f"{number} boats leave the harbour at {hour}{end}" for number in "78" for hour in "59" for end in ("", "!")]


@given(
    st.lists(st.sampled_from([*NUMBERED, TEXTS[2]]), max_size=20),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_what_differs_in_numbers_is_skipped_for_the_very_same(texts, sizes, refreshes):
    """Each text by its letters and numbers is written once, whether searches show its copy or not."""
    rule = DecisionRule(Grouping(64, similarity=0.4, measure=TextMeasure().noting_numbers()), "skip")
    known, index, written, seen = Unshown(64), {}, [], set()
    new = [Document(f"{n:02d}", fingerprint(text), position=n, content=content(text)) for n, text in enumerate(texts)]
    refresh = iter(refreshes)
    for batch in in_batches(new, sizes):
        led = {one.id: [index[one.group]] for one in index.values() if one.is_member}
        near = shown_near(in_order(index.values()), batch, 64, led)
        decisions = decide(batch, Existing(near), known, rule)
        for document, decision in zip(batch, decisions, strict=True):
            text = texts[document.position].rstrip("!")
            assert (decision.verdict == "skip") == (text in seen), text
            if decision.verdict == "skip":
                assert decision.leader.fingerprint == document.fingerprint
                assert not decision.is_stale
                continue
            seen.add(text)
            written.append(document)
            known.add(document)
        if next(refresh, False):
            index = {one.id: replace(one, canonicals=None) for one in written}
            known.clear()


def test_what_is_decided_again_keeps_its_moment():
    """So the order of moments still says what was decided: "z" was grouped before "b"."""
    known, rule, values = Unshown(3), DecisionRule(Grouping(3), "tag"), (0, 0b111, 0b111111, 0b111)
    batch = [Document(id_, value, position=n) for n, (id_, value) in enumerate(zip("zrbx", values, strict=True))]
    assert [one.group for one in decide(batch, Existing(), known, rule, now=1_000)] == ["z", "z", "b", "z"]
    standing = [document for document in batch if document.id != "r"]
    assert [one.group for one in decide(standing, Existing(), known, rule, now=2_000)] == ["z", "b", "z"]
    assert [one.at for one in standing] == [1_000, 1_001, 1_001]


def test_a_copy_stands_for_a_canonical_that_goes_in_the_same_batch():
    """Also for what has other bits, where searches show neither."""
    unshown, batch = Unshown(1), [Document("gone", None, is_deletion=True), Document("new", 1)]
    unshown.add(Document("copy", 0, group="gone", position=0, is_member=True))
    decision = decide(batch, Existing(), unshown, DecisionRule(Grouping(1), "tag"))[1]
    assert (decision.group, decision.leader.id, decision.is_stale) == ("gone", "copy", True)


def decide_one(document, index, *, led=None, there=None):
    """Return the group and the moment of *document*, where searches show the *index*."""
    existing = Existing(shown_near(index, [document], 3, led or {}), there=there or {})
    [decision] = decide([document], existing, Unshown(3), DecisionRule(Grouping(3), "tag"), now=9)
    return decision.group, decision.at


def test_a_canonical_that_is_given_again_keeps_its_moment():
    """It is no later than "d", a copy of another canonical that is near it, else its own copy would come before it."""
    index = [
        Document("b", 0, group="b", at=1),
        Document("a", 0b111100, group="a", at=2),
        Document("c", 0b1111000, group="a", at=3, is_member=True),
        Document("d", 0b1100, group="b", at=4, is_member=True),
    ]
    again = Document("a", 0b111100, position=0, must_write=True)
    assert decide_one(again, index, there={"a": Document("a", 0b111100, at=2)}) == ("a", 2)
    # A new one of the same bits has the moment of its batch.
    assert decide_one(Document("e", 0, position=0), index) == ("b", 9)


def test_a_canonical_that_comes_back_stands_before_its_own_copies():
    """Another program deleted it: its moment is before those of the copies that name it, and of no others."""
    index = [
        Document("c", 0b1, group="a", at=5, is_member=True),
        Document("e", 0b11, group="a", at=6, is_member=True),
        Document("d", 0b10, group="x", at=2, is_member=True),
        Document("x", 0b11110, group="x", at=1),
    ]
    assert decide_one(Document("a", 0, position=0), index, led={"d": [index[-1]]}) == ("a", 4)


def test_a_canonical_comes_after_copies_of_others_that_it_could_have_taken():
    """Its bits are those of a copy whose text is between two, and whose moment is after that of the batch."""
    one = "the council approved the new bridge over the river on tuesday after a debate"
    other = "heavy rain closed two mountain roads while crews worked all night to clear mud"
    third = "the old tram driver waters seven plants in a small shop behind our station"
    texts = {"z": one, "m": f"{one} {other}", "n": third, "c": other}
    rule, standing = Grouping(3, similarity=0.4), Document("s", 0, group="s", at=1, content=content(third))
    batch = [
        Document(id_, int(id_ != "z"), position=n, content=content(text)) for n, (id_, text) in enumerate(texts.items())
    ]
    # "n", given again, keeps its moment, which says nothing about that of "m".
    existing = Existing(shown_near([standing], batch, 3, {}), there={"n": Document("n", 1, at=3)})
    decisions = decide(batch, existing, Unshown(3), DecisionRule(rule, "tag"), now=1_000)
    assert [decision.group for decision in decisions] == ["z", "z", "s", "c"]
    assert (batch[1].at, batch[2].at) == (1_001, 3)
    assert batch[3].at >= 1_001


@given(related_fingerprints(20), st.integers(0, 20))
def test_what_is_skipped_attracts_nothing(values, max_distance):
    """Only what was written counts, so the written ones are the canonicals of the rule."""
    batch = [Document(f"{n:02d}", value, position=n) for n, value in enumerate(values)]
    decisions = decide(batch, Existing(), Unshown(max_distance), DecisionRule(Grouping(max_distance), "skip"))
    written = [place for place, decision in enumerate(decisions) if decision.verdict != "skip"]
    assert written == sorted(set(star(values, max_distance)))


@given(st.sampled_from(["tag", "skip"]), st.booleans())
def test_one_id_stands_once_for_each_routing_value(on_duplicate, is_one_batch):
    """What is near the older one belongs to it, not to a canonical that is gone; nothing is skipped for it."""
    rule, unshown = DecisionRule(Grouping(3), on_duplicate), Unshown(3)
    given = [Document("x", 0, routing="a"), Document("copy", 1), Document("x", 2**64 - 1, routing="b")]
    given += [Document("last", 2)]
    batches, decisions = [given] if is_one_batch else [[one] for one in given], []
    for batch in batches:
        decided = decide(batch, Existing(), unshown, rule)
        decisions += decided
        for document, decision in zip(batch, decided, strict=True):
            if decision.verdict != "skip":
                unshown.add(document)
    told = [(one.verdict, one.group, one.distance, one.is_stale) for one in decisions]
    assert told[0] == ("write", "x", 0, False)
    assert told[1] == (on_duplicate, "x", 1, False)
    assert told[3] == ("tag", "x", 1, False)
    assert [str(one.why) for one in decisions[3].uncompared] == ["it has the same id, and another routing value"]


def found(text):
    """Return the content of a document whose text was read from the index."""
    content = Content(text)
    content.found = text
    return content


BOAT, RAIN = TEXTS[1:3]


@pytest.mark.parametrize(
    ("given", "shown", "is_known", "told", "is_short"),
    [
        (Content(unread=Unread("partial", "body")), Content(BOAT), True, [(None, "partial")], False),
        (Content(BOAT), Content(unread=Unread("not_read", "a shard failed")), True, [("x", "not_read")], False),
        (Content(BOAT), found(RAIN), True, [], False),
        (Content(RAIN), found(BOAT), True, [("x", "text")], False),
        (Content(RAIN), found(BOAT), False, [], False),
        (Content(RAIN), Content(BOAT), True, [], False),
        (Content("7"), found(RAIN), True, [], True),
        (None, Content(RAIN), True, [("x", "text")], False),
    ],
)
def test_what_could_not_be_compared_is_told(given, shown, is_known, told, is_short):
    """A text of the index that is not that of its fingerprint rejects nothing: it was changed, or is masked."""
    other = Document("x", fingerprint(RAIN), group="x", content=shown)
    new = Document("n", other.fingerprint ^ 1, content=given)
    rule = DecisionRule(Grouping(3, similarity=0.4), "skip", get_scheme() if is_known else None)
    [decision] = decide([new], Existing({new.fingerprint: [other]}), Unshown(3), rule)
    assert (decision.verdict, decision.group, decision.leader) == ("write", "n", None)
    assert ([(one.id, one.why.kind) for one in decision.uncompared], decision.is_short) == (told, is_short)


@pytest.mark.parametrize(
    ("routing", "hits", "is_told"),
    [
        (None, [{"_routing": "a"}], True),
        (None, [{}], False),
        (7, [{"_routing": "7"}], False),
        ("b", [{"_routing": "b"}, {"_routing": "a"}], True),
        ("b", [], False),
    ],
)
def test_an_id_that_the_index_has_with_another_routing_value_is_told(routing, hits, is_told):
    """Nobody knows whether the two are in one shard; without a fingerprint, too."""
    new = Document("x", None, routing=routing)
    [decision] = decide([new], Existing(held={"x": hits}), Unshown(3), DecisionRule(Grouping(3), "tag"))
    assert decision.verdict == "write"
    assert [one.why.kind for one in decision.uncompared] == (["routing"] if is_told else [])


NOTING = TextMeasure().noting_numbers()


@pytest.mark.parametrize(
    ("text", "on_duplicate", "is_written_again", "needed"),
    [
        (NUMBERED[0], "tag", False, "none"),
        (NUMBERED[0], "skip", False, "none"),
        (NUMBERED[2], "tag", False, "none"),
        (NUMBERED[2], "skip", False, "same"),
        (NUMBERED[0], "skip", True, "near"),
        (RAIN, "skip", False, "near"),
    ],
)
def test_which_copies_decide(text, on_duplicate, is_written_again, needed):
    """None where a canonical accepts; those of the same bits where it differs in nothing but numbers; else all."""
    canonical = Document("x", 0, group="x", content=Content(NUMBERED[0]))
    unshown = Unshown(3)
    if is_written_again:
        unshown.add(Document("x", None))
    rule = DecisionRule(Grouping(3, similarity=0.4, measure=NOTING), on_duplicate)
    assert needs_copies(Document("n", 1, content=Content(text)), [canonical], unshown, rule) == needed


@pytest.mark.parametrize("similarity", [0.4, None])
def test_texts_that_are_compared_soon_are_prepared_together(similarity, monkeypatch):
    """Those of new documents near another one, and of the first near each; most texts are compared with none."""
    prepared = set()
    monkeypatch.setattr(
        module, "prepare_together", lambda contents, measure: prepared.update(each.pending_text for each in contents)
    )
    values = {"near": 0, "copy": 2**60, "same": 2**60, "late": 2**50, "alone": 2**64 - 1}
    batch = [Document(id_, value, content=Content(id_)) for id_, value in values.items()]
    batch += [Document("bare", None), Document("distant", 2**30 - 1)]
    shown = [Document(f"shown {number}", 1, content=Content(f"shown {number}")) for number in range(5)]
    unshown = Unshown(3)
    unshown.add(Document("unshown", 2**50 + 1, group="unshown", content=Content("unshown")))
    rule = DecisionRule(Grouping(3, similarity=similarity), "tag")
    decide(batch, Existing({0: shown}), unshown, rule)
    expected = {"near", "shown 0", "shown 1", "shown 2", "copy", "same", "late", "unshown"}
    assert prepared == (set() if similarity is None else expected)


def test_texts_of_unshown_documents_take_memory():
    """So many bytes of texts are kept until a refresh; afterwards none."""
    unshown, text = Unshown(3), Content("a text of letters")
    assert not unshown.occupies(1)
    unshown.add(Document("a", 0, content=text))
    unshown.add(Document("b", 1))
    assert [unshown.occupies(most) for most in (text.size, text.size + 1)] == [True, False]
    assert [one.id for one in unshown.of_id("a")] == ["a"]
    unshown.clear()
    assert not unshown.occupies(1)
    assert (unshown.of_id("a"), unshown.near([1, 2**40 - 1]), unshown.near([])) == ([], {}, {})
