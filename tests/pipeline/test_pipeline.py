"""The ingest pipeline as data: its tables, its size, and the schemes that it refuses."""

import json
import unicodedata

import numpy as np
import pytest

from es_simhash import InvalidInputError, SchemeError, build_pipeline, fingerprints, get_scheme, to_hex
from es_simhash.hashing.characters import COMBINES, DROPPED, EXPANDS, SEPARATOR, UNASSIGNED, character_entries
from es_simhash.pipeline.probe import find_differences, probe_documents
from es_simhash.pipeline.source import CODE_POINTS, character_tables, literal

MARKS = {"N": UNASSIGNED, "C": COMBINES, "M": COMBINES, "X": EXPANDS, "D": DROPPED, "S": SEPARATOR}


def at(index, blocks, code):
    """Return what the two strings have for a code point, as the script finds it."""
    return blocks[(ord(index[code >> 7]) - 0x100) * 128 + (code & 127)]


def points(text):
    """Return the code points of a decomposition or a replacement."""
    codes = []
    rest = iter(text)
    for character in rest:
        high = ord(character)
        codes.append((high - 0xE000 << 10) + ord(next(rest)) - 0x4000 if 0xE000 <= high < 0xF000 else high)
    return "".join(map(chr, codes))


def test_the_entries_are_those_of_the_pinned_table():
    """Of every code point there is."""
    tables = character_tables()
    known = character_entries(np.arange(CODE_POINTS, dtype=np.uint32)).tolist()
    for code in range(CODE_POINTS):
        entry = at(tables.entry_index, tables.entries, code)
        if entry in MARKS:
            assert known[code] == MARKS[entry], hex(code)
        elif entry == "L":
            assert known[code] > 0xFFFF, hex(code)
        else:
            assert known[code] == (code if entry == "U" else ord(entry)), hex(code)


def test_the_forms_are_those_of_unicode():
    """A combining class, or a decomposition."""
    tables = character_tables()
    for code in (0x41, 0xE9, 0x301, 0x345, 0x1E69, 0xFB01, 0xFDFA, 0x1D15E, 0x2F800, 0x1100, 0x94D):
        form = ord(at(tables.form_index, tables.forms, code)) - 0x100
        if form < 256:
            assert form == unicodedata.combining(chr(code))
            continue
        start = form - 256
        length = ord(tables.decompositions[start]) - 0x30
        decomposed = points(tables.decompositions[start + 1 : start + 1 + 2 * length])[:length]
        assert decomposed == unicodedata.normalize("NFKD", chr(code))


def test_no_string_has_a_character_that_json_could_lose():
    """No surrogate, and nothing below the space."""
    for table in character_tables().to_list():
        assert not any(character < " " or "\ud800" <= character <= "\udfff" for character in table)


@pytest.mark.parametrize("settings", [{}, {"size": 16, "seed": 2**64 - 1}, {"weighting": "linear", "size": 1}])
@pytest.mark.parametrize("scheme", ["shingles-1", "shingles-2"])
def test_a_pipeline_is_plain_and_small(scheme, settings):
    """At most 200 KB of JSON, of which the script has less than a server's limit of 65,535 bytes."""
    pipeline = build_pipeline(scheme=get_scheme(scheme, **settings), text_field=["title", "body"])
    [processor] = pipeline["processors"]
    assert len(json.dumps(pipeline, ensure_ascii=False).encode()) < 200_000
    assert len(processor["script"]["source"].encode()) < 65_535
    assert "${" not in processor["script"]["source"]
    assert pipeline == build_pipeline(scheme=get_scheme(scheme, **settings), text_field=["title", "body"])


@pytest.mark.parametrize(
    "scheme",
    [
        "words",
        "keywords",
        get_scheme("weighted", hash="xxh64"),
        get_scheme("shingles", hash="md5"),
        get_scheme("shingles", preprocess="html"),
    ],
    ids=str,
)
def test_what_a_server_cannot_compute_is_refused(scheme):
    """With the reason, and what to do instead."""
    with pytest.raises(SchemeError, match="an ingest pipeline cannot compute .*: compute the fingerprints in Python"):
        build_pipeline(scheme=scheme, text_field="body")


def test_features_come_from_one_field():
    """There is no order between the features of two."""
    with pytest.raises(InvalidInputError, match="from one field"):
        build_pipeline(scheme="weighted", text_field=["tags", "words"])


def test_a_constant_is_signed():
    """Painless has no unsigned numbers."""
    assert [literal(each) for each in (5, 2**63 - 1, 2**63, 2**64 - 2, -1)] == [
        "5L",
        "9223372036854775807L",
        "Long.MIN_VALUE",
        "(-2L)",
        "(-1L)",
    ]


def test_a_server_that_makes_other_bits_is_noticed():
    """One answer differs, and is named."""
    scheme = get_scheme("shingles")
    documents = probe_documents(scheme, "body.text", prefix="p")
    texts = [each["_source"]["body"]["text"] for each in documents]

    right = [{} if each is None else {"p": {"fingerprint": to_hex(each)}} for each in fingerprints(texts)]
    answers = [{"doc": {"_source": each}} for each in right]
    assert find_differences(answers, scheme, prefix="p") == []
    answers[3] = {"doc": {"_source": {}}}
    [difference] = find_differences(answers, scheme, prefix="p")
    assert (difference.given, difference.found) == (texts[3], None)
