"""Verification driven by hand: how texts are asked for, and what happens when they do not come."""

import pytest

from es_simhash import InvalidInputError, NearDup, NearDups, Verification
from es_simhash.hashing import Scheme, fingerprint, get_scheme
from es_simhash.lookup import judge
from es_simhash.lookup.content import Content
from es_simhash.lookup.find import Scope
from es_simhash.lookup.judge import accept, choose_rule
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import words_apart
from es_simhash.mapping.context import Context
from es_simhash.mapping.meta import IndexSettings
from es_simhash.quality import sampling
from es_simhash.quality.sampling import sample_documents
from es_simhash.tables.notebook import cut
from es_simhash.transport.protocol import Key
from tests.compared import compare_texts
from tests.transport.by_hand import SCRIPTED, ServerError, drive, scripted

BASE = "the council approved the new bridge over the river on tuesday after a long debate about its cost"
SETTINGS = IndexSettings(get_scheme(), ("title", "body.text"))


class Texts:
    """A server that knows texts by index and id."""

    def __init__(self, texts, **answer):
        self.texts = texts
        self.answer = answer

    def __call__(self, call):
        assert call.api == "search"
        body = call.arguments["body"]
        ids, names = (next(iter(each.values())) for each in body["query"]["bool"]["filter"])
        hits = [
            {"_index": index, "_id": name, "_source": source}
            for (index, name), source in self.texts.items()
            if name in ids["values"] and index in names["_index"]
        ]
        assert len(hits) <= body["size"]
        return answer_of(hits, **self.answer)


def answer_of(hits, **more):
    return {"_shards": {"total": 1, "failed": 0}, "hits": {"hits": hits}, **more}


def near_dups(*keys):
    return NearDups(tuple(NearDup(name, index, 0, fingerprint(BASE)) for index, name in keys))


def verified(found, server, *, texts=(BASE,), settings=SETTINGS, size=None):
    options = LookupOptions(verify=Verification(), size=size)
    scope = Scope(Context(), "news-*", settings, options, *choose_rule(settings, {}, options, "text"))
    flow = accept(SCRIPTED, scope, found, [Content(text) for text in texts])
    answers, calls, _ = drive(flow, server)
    return answers, calls


def test_texts_of_all_answers_are_fetched_together():
    """One search fetches each near-duplicate of a batch once, in the fields recorded, and joins them in order."""
    server = Texts({("news-1", "a"): {"title": "the council", "body": {"text": BASE[12:]}}})
    answers, calls = verified([near_dups(("news-1", "a"))] * 2, server, texts=[BASE, BASE])
    assert [[each.similarity for each in answer] for answer in answers] == [[1.0], [1.0]]
    [call] = calls
    assert call.arguments["index"] == "news-*"
    assert sorted(call.arguments["body"]["_source"]) == ["body.text", "title"]


def test_the_same_id_in_two_indices_is_two_documents():
    """A document is known by index and id."""
    texts = {("news-1", "a"): {"title": BASE}, ("news-2", "a"): {"title": "something else"}}
    settings = IndexSettings(get_scheme("keywords"), ("title",))
    found = near_dups(("news-1", "a"), ("news-2", "a"))
    [answer], _ = verified([found], Texts(texts), settings=settings)
    # The other text is not the one of its fingerprint, which says that it was changed: it is not dropped for that.
    assert [(each.index, each.similarity) for each in answer] == [("news-1", 1.0), ("news-2", None)]
    assert "'news-2'" in answer.unverified[0]


def test_many_are_fetched_in_pages(monkeypatch):
    """Every near-duplicate is compared."""
    monkeypatch.setattr(judge, "FETCH_DOCUMENTS", 8)
    keys = [("news-1", f"{number:03d}") for number in range(30)]
    server = Texts({key: {"title": BASE} for key in keys})
    [answer], calls = verified([near_dups(*keys)], server)
    assert [each.similarity for each in answer] == [1.0] * 30
    assert answer.unverified == ()
    assert len(calls) == 4


def test_a_shard_that_fails_leaves_near_duplicates_unverified():
    """What a failed shard may hold is kept, and the shard's failure given as the reason."""
    server = Texts({("news-1", "a"): {"title": BASE}}, _shards={"total": 2, "failed": 1})
    [answer], _ = verified([near_dups(("news-1", "a"), ("news-1", "b"))], server)
    assert [(each.id, each.similarity) for each in answer] == [("a", 1.0), ("b", None)]
    assert "1 of 2 shards failed" in answer.unverified[0]


@pytest.mark.parametrize("partly", [False, True])
def test_an_index_without_source_is_asked_for_whole_hits(partly):
    """Where a server refuses parts of a _source that is not kept; what is near is kept, and marked."""
    refusal = "unable to fetch fields from _source field: _source is disabled in the mappings"
    failed = {"_shards": {"total": 2, "failed": 1, "failures": [{"reason": {"type": "x", "reason": refusal}}]}}

    def server(call):
        if call.arguments["body"]["_source"] is not True:
            return failed | {"hits": {"hits": []}} if partly else ServerError(400, refusal)
        return answer_of([{"_index": "i", "_id": "a"}])

    [answer], calls = verified([near_dups(("i", "a"))], server)
    assert [each.similarity for each in answer] == [None]
    assert "the index stores no _source" in answer.unverified[0]
    assert len(calls) == 2


PLAIN = {"rule": "star", "max_distance": 9, "canonical": ["id"], "similarity": None}
RULE = {**PLAIN, "similarity": 0.7, "per": "site", "within": ["at", "7d"]}


@pytest.mark.parametrize(
    ("asker", "recorded", "given", "rule", "origin", "not_applied"),
    [
        ("document", RULE, {}, (9, 0.7, "site"), "recorded", ()),
        ("text", RULE, {}, (9, 0.7, None), "recorded", ("per", "within")),
        ("fingerprint", RULE, {}, (9, None, None), "recorded", ("texts", "per", "within")),
        ("document", RULE, {"max_distance": 3}, (3, None, None), "given", ()),
        ("text", RULE, {"verify": 0.9}, (9, 0.9, None), "given", ("per", "within")),
        ("text", PLAIN, {}, (9, None, None), "recorded", ()),
        ("text", None, {}, (12, 0.8, None), "default", ()),
        ("fingerprint", None, {}, (3, None, None), "default", ("texts",)),
    ],
)
def test_the_rule_of_a_lookup(asker, recorded, given, rule, origin, not_applied):
    """A text has no values that keep apart, and a fingerprint no text either; what does not count is said."""
    extra = {} if recorded is None else {"grouping": recorded}
    found, _ = choose_rule(IndexSettings(get_scheme(), ("body",), extra=extra), {}, LookupOptions(**given), asker)
    assert (found.max_distance, found.similarity, found.per, found.origin) == (*rule, origin)
    assert (found.not_applied, found.within is None) == (not_applied, found.per is None)


@pytest.mark.parametrize("given", [{"preset": "near"}, {"verify": True}, {"verify": 0.9}])
def test_a_fingerprint_has_no_text_to_compare(given):
    """Whoever asks for a comparison of texts has to pass a text."""
    settings = IndexSettings(get_scheme(), ("body",))
    with pytest.raises(InvalidInputError, match="ask with a text, not with a fingerprint"):
        choose_rule(settings, {}, LookupOptions(**given), "fingerprint")
    assert choose_rule(settings, {}, LookupOptions(**given | {"verify": False}), "fingerprint")[0].similarity is None


OTHER = "heavy rain closed two mountain roads while crews worked all night to clear the mud near the old tunnel"


def test_values_that_keep_apart_are_read():
    """Beside the texts, in the same search; the nearest that were rejected are noted, whatever keeps them apart."""
    settings, options = IndexSettings(get_scheme(), ("body",), extra={"grouping": RULE}), LookupOptions()
    scope = Scope(Context(), "news", settings, options, *choose_rule(settings, {}, options, "document"))
    held = {"0": ("x", BASE), "6": ("x", OTHER)} | dict.fromkeys("12349", ("y", BASE))

    def server(call):
        asked = call.arguments["body"]["docvalue_fields"]
        assert sorted(field if isinstance(field, str) else field["field"] for field in asked) == ["at", "site"]
        hits = [
            {"_index": "news", "_id": id_, "_source": {"body": text}, "fields": {"site": [site], "at": ["0"]}}
            for id_, (site, text) in held.items()
        ]
        return answer_of(hits)

    found = NearDups(tuple(NearDup(id_, "news", int(id_), fingerprint(held[id_][1])) for id_ in sorted(held)))
    asked = Content(BASE, per=("x",), moment=0)
    [answer], _, _ = drive(accept(SCRIPTED, scope, [found], [asked]), server)
    assert [near.id for near in answer] == ["0"]
    noted = [(rejected.near_dup.id, rejected.because) for rejected in answer.rejected]
    assert noted == [*((id_, "per") for id_ in "1234"), ("6", "texts")]


@pytest.mark.parametrize(
    ("hit", "words"),
    [
        ({}, "stores no _source"),
        ({"_source": {}}, "no text in title"),
        ({"_source": {"title": None}}, "no text in title"),
        ({"_source": {"title": ["a", 5]}}, "holds 5"),
        (None, "deleted"),
    ],
)
def test_reasons(hit, words):
    """A near-duplicate without a text is kept, last, with the reason in one line."""

    def server(call):
        hits = [{"_index": "i", "_id": "b", "_source": {"title": BASE}}]
        hits += [] if hit is None else [{"_index": "i", "_id": "a", **hit}]
        return answer_of(hits)

    [answer], _ = verified([near_dups(("i", "a"), ("i", "b"))], server)
    assert [each.id for each in answer] == ["b", "a"]
    [reason] = answer.unverified
    assert words in reason
    assert "\n" not in reason


def test_a_server_error_passes_through():
    """A search that is refused raises the client's own exception."""
    with pytest.raises(ServerError):
        verified([near_dups(("i", "a"))], lambda call: ServerError(403, "no"))


def test_index_without_text_field():
    """Where neither the caller nor the index names a field, the message says how to."""
    with pytest.raises(InvalidInputError, match="does not record which field has the text"):
        verified([near_dups(("i", "a"))], None, settings=IndexSettings(get_scheme()))


@pytest.mark.parametrize(("documents", "letters"), [(0, 9), (3, 9), (2_500, 9), (2_500, 60)])
def test_a_sample(monkeypatch, documents, letters):
    """One larger than the index is all of it; one of long texts ends early, and says so; one search draws it."""
    monkeypatch.setattr(sampling, "MOST_LETTERS", 30_000)
    drawings = []

    def server(call):
        body = call.arguments["body"]
        drawings.append("function_score" in body["query"])
        ids = range(documents) if drawings[-1] else body["query"]["bool"]["filter"][0]["ids"]["values"]
        hits = [{"_index": "i", "_id": str(number), "_source": {"t": "x" * letters}} for number in ids]
        return answer_of(hits[: body["size"]])

    flow = sample_documents(scripted(), "i", 2_600, query={"match_all": {}}, text_fields=["t"])
    hits, reasons, _ = drive(flow, server)[0]
    most = documents if letters == 9 else 500
    assert [hit["_id"] for hit in hits] == list(map(str, range(most)))
    assert reasons == ([] if letters == 9 else ["the sample ends at 500 documents: they have 30,000 letters"])
    assert drawings[:2] == [True, False][: 1 + bool(documents)]


@pytest.mark.parametrize(("size", "most"), [(10, 40), (None, 600)])
def test_of_very_many_copies_few_texts_are_read(size, most):
    """The nearest first, until so many are accepted."""
    keys = [("news-1", f"{number:04d}") for number in range(600)]
    server, read = Texts({key: {"title": BASE} for key in keys}), []

    def counting(call):
        answer = server(call)
        read.extend(answer["hits"]["hits"])
        return answer

    [answer], _ = verified([near_dups(*keys)], counting, size=size)
    assert [each.id for each in answer] == [name for _, name in keys[:size]]
    assert len(read) <= most


def test_the_nearest_that_were_rejected_are_noted():
    """At most five, nearest first, with similarity and bound; nothing for those farther away."""
    words = BASE.split()
    texts, items = {}, []
    for number in range(8):
        text = " ".join([*words[: 4 + number], *("other words stand here instead of those" + str(number)).split()])
        texts["news-1", f"{number}"] = {"title": text}
        items.append(NearDup(f"{number}", "news-1", 9 - number, fingerprint(text)))
    settings = IndexSettings(get_scheme(), ("title",))
    [answer], calls = verified([NearDups(tuple(items))], Texts(texts), settings=settings)
    assert [each.near_dup.id for each in answer.rejected] == ["7", "6", "5", "4", "3"]
    assert (len(answer), len(calls)) == (0, 1)
    nearest = answer.rejected[0]
    similarity = compare_texts(BASE, texts["news-1", "7"]["title"]).jaccard
    assert nearest.near_dup.similarity == similarity
    assert str(nearest) == f"7: 2 bits, {100 * cut(similarity):g} % of the 7-letter shingles, below 80 %"
    assert answer.to_dict()["rejected"][0]["at_least"] == 0.8
    assert words_apart("texts", answer.rule, 3, None) == "3 bits, less than 72 % of the 7-letter shingles, below 80 %"


def test_who_lacks_a_file_of_the_scheme_judges_changed_texts_without_it(tmp_path):
    """A lookup by id needs no dictionary; one that is named and cannot be read is an error."""
    path = tmp_path / "words.txt"
    path.write_text("石墨烯电池 500\n", encoding="utf-8")
    scheme = get_scheme("keywords", dictionary=path)
    texts = {Key("i", "a"): BASE}
    assert judge._fingerprints_now(texts, Scheme.from_dict(scheme.to_dict())) == {}
    path.unlink()
    with pytest.raises(InvalidInputError, match="cannot read dictionary"):
        judge._fingerprints_now(texts, scheme)
