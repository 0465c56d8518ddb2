"""What explain, check_sample and tune say, on real servers, sync and async."""

import pytest

from es_simhash import InvalidInputError
from tests.servers.support import ONE_SHARD, document, put

BASE = (
    "The council approved the new bridge over the river on Tuesday after a long debate about its cost. "
    "Residents had asked for a crossing for twenty years, and the mayor called the vote a victory for patience. "
    "Work is to begin in spring and to last eighteen months, during which the ferry will run every half hour."
)
EDITED = BASE.replace("Tuesday", "Wednesday")
LONGER = BASE + " Read more in the printed edition, and write to us about the bridges in your own neighbourhood."
OTHER = "Nobody expected the harbour to freeze in October, least of all the crew of the small blue ferry."
TEXTS = {"same": BASE.upper(), "edited": EDITED, "longer": LONGER, "other": OTHER}


@pytest.fixture
def filled(server, index, simhash):
    """An index with four texts."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    put(server, index, [document(id_, text) for id_, text in TEXTS.items()])
    return index


def test_explain_documents(filled, simhash):
    """Two documents are compared by id; a text may take the place of one, and two of both."""
    found = simhash.explain(filled, "same", "edited")
    assert found.distance > 0
    is_found = "edited" in [each.id for each in simhash.find_near_dups_of(filled, "same")]
    assert found.verdict.startswith(f"near-duplicates by the rule of {filled} (within ") == is_found
    other = simhash.explain(filled, "same", texts=[OTHER])
    assert other.verdict.startswith(f"no near-duplicates by the rule of {filled} (within ")
    assert other.verdict.endswith(f"{other.distance} bits, more than 12")
    shorter = simhash.explain(filled, texts=[BASE, BASE[: len(BASE) * 7 // 10]])
    assert shorter.verdict.startswith("no near-duplicates")
    assert "WEDNESDAY" not in {part.text for excerpt in found.diff.excerpts for part in excerpt}
    with pytest.raises(InvalidInputError, match="no document 'nothing' in"):
        simhash.explain(filled, "same", "nothing")
    assert simhash.explain(filled, "same", texts=[EDITED]).to_dict() == found.to_dict()
    assert simhash.explain(filled, texts=(TEXTS["same"], EDITED)).to_dict() == found.to_dict()
    for ids, texts in (((), ["a"]), (("same",), []), (("same", "edited"), ["a"]), (("same",), [1]), (("same",), "ab")):
        with pytest.raises(InvalidInputError):
            simhash.explain(filled, *ids, texts=texts)


def test_a_fingerprint_cannot_be_verified(filled, simhash):
    with pytest.raises(InvalidInputError, match="ask with a text"):
        simhash.find_near_dups(filled, fingerprint=1, verify=True)


def test_a_sample_finds_what_is_wrong(server, filled, simhash):
    """A healthy index has no error; each fault that is put in is found, and named with what to do."""
    healthy = simhash.check_sample(filled)
    assert (healthy.is_healthy, healthy.sampled, healthy.fingerprinted) == (True, 4, 4)
    shouted, rounded = document("shouted", BASE), document("rounded", LONGER)
    shouted["simhash"] |= {"fingerprint": "ABCDEFABCDEFABCD"}
    rounded["simhash"] |= {"value": int(float(rounded["simhash"]["value"])) + 2048}
    faults = [shouted, rounded, document("stale", BASE) | {"body": OTHER}, document("short", "too short")]
    faults += [{"_id": "forgotten", "body": BASE}, {"_id": "empty", "body": "..."}]
    put(server, filled, faults + [document(f"copy{number}", OTHER) for number in range(200)])
    found = simhash.check_sample(filled)
    kinds = {each.kind: each for each in found.findings}
    assert kinds.keys() == {"stale", "broken", "mapping", "short"}
    assert not found.is_healthy
    assert kinds["broken"].values["part"] == 2  # the one in capitals, and the one whose number was rounded
    assert "'stale'" in kinds["stale"].message
    assert "without fingerprint, which no lookup finds: 2 of " in kinds["mapping"].message
    assert found.findings[0].severity == "error"
    assert found.to_dict()["healthy"] is False
    assert simhash.check_sample(filled, sample=3).sampled == 3


def test_a_sample_of_a_dynamic_mapping(server, index, simhash):
    """Fields that the server mapped by itself are the first thing to repair, and the rest is left alone."""
    put(server, index, [document("1", BASE)])
    found = simhash.check_sample(index)
    assert not found.is_healthy
    assert {each.kind for each in found.findings} == {"mapping"}
    assert "'keyword'" in found.findings[0].message


def test_tune_counts_texts_without_words(server, index, simhash):
    """A server finds them in a search, and leaves them out when it only counts: more were drawn than there were."""
    texts = ["The storm closed all schools today", "…", "Trains stopped in the north again"]
    put(server, index, [{"_id": str(number), "body": text} for number, text in enumerate(texts)])
    found = simhash.tune(index, text_field="body")
    assert (found.documents, found.sampled, found.short) == (3, 2, 1)
    with pytest.raises(InvalidInputError, match="does not record its text field"):
        simhash.tune(index)


def test_tune(filled, simhash):
    """A sample larger than the index is the index; nothing is written."""
    found = simhash.tune(filled, sample=100)
    assert (found.sampled, found.documents) == (4, 4)
    assert found.recommended in {"identical", "near", "similar"}
    assert found.presets[0].copies > 20
    assert all(each.recall is not None for each in found.presets)
    with pytest.raises(InvalidInputError, match="no document sampled"):
        simhash.tune(filled, text_field="title")
