"""What texts become: golden vectors, normalisation, scripts, jieba kept private, bounded work."""

import json
import math
import subprocess
import sys
import unicodedata
import zlib
from pathlib import Path

import numpy as np
import pytest

from es_simhash.hashing import (
    Scheme,
    characters,
    features as feature_module,
    fingerprint,
    fingerprints,
    get_scheme,
    to_hex,
)
from es_simhash.hashing.characters import UNASSIGNED, character_entries, join_codes, reduce_codes
from es_simhash.hashing.features import keyword_extractor
from tests import reference
from tools.build_characters import pack

VECTORS = json.loads((Path(__file__).parents[1] / "vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", VECTORS["schemes"], ids=lambda case: str(Scheme.from_dict(case["scheme"])))
def test_golden_vectors(case):
    """A released scheme keeps its bits. A change here is a new scheme version, never a new vector."""
    scheme = Scheme.from_dict(case["scheme"])
    texts = [VECTORS["texts"][name] for name in case["fingerprints"]]
    found = [None if value is None else to_hex(value) for value in fingerprints(texts, scheme=scheme)]
    assert dict(zip(case["fingerprints"], found, strict=True)) == case["fingerprints"]


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="the table is built with Unicode 14.0")
def test_table_is_the_generated_one():
    """The shipped table of characters is exactly what its generator makes."""
    shipped = Path(characters.__file__).with_name(characters.TABLE_FILE).read_bytes()
    assert zlib.decompress(shipped) == zlib.decompress(pack())


def test_every_character_is_its_decomposition():
    """Alone, and behind a letter, with what marks distinguish."""
    known = [chr(code) for code in np.flatnonzero(character_entries(np.arange(0x110000)) != UNASSIGNED).tolist()]
    composed = [f"a {character}" for character in known]
    for form in ("NFC", "NFD"):
        other = [unicodedata.normalize(form, text) for text in composed]
        for one, another in zip(reduce_codes(*join_codes(composed)), reduce_codes(*join_codes(other)), strict=True):
            assert np.array_equal(one, another)


@pytest.mark.parametrize("text", ["", " \n\t", "。，！？", "🙂🎉", "\0", "\ud800", "\u200b\ufeff", "\u0301", "_"])
@pytest.mark.parametrize("scheme", ["shingles", "keywords"])
def test_texts_without_features(text, scheme):
    """A text with nothing to go by has no fingerprint."""
    assert fingerprint(text, scheme=scheme) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＢＣ　１２３", "abc123"),
        ("STRASSE", "Straße"),
        ("e\u0301te\u0301", "ÉTÉ"),
        ("ﾃﾞｰﾀ", "データ"),
        ("soft\u00adhyphen", "softhyphen"),
        ("a-b_c.d!", "ABCD"),
        ("h̶e̶l̶l̶o̶", "hello"),
        ("בְּרֵאשִׁית", "בראשית"),
        ("مُحَمَّد", "محمد"),
        ("va\ufe0fr\u034fi", "vari"),
        ("é Ä ș ł", "e ae s l"),
        ("१२३ ٤٥ ２３", "123 45 23"),
        ("ൻ", "ന്"),
    ],
)
def test_same_shingles(one, other):
    """Width, case, composition, punctuation, invisible characters, marks and forms of one letter do not count."""
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("की", "का"),
        ("कि", "क"),
        ("क्क", "कक"),
        ("ที่นี่", "ทนี"),
        ("กุ", "กู"),
        ("กา", "กี"),
        ("ကို", "ကာ"),
        ("ཀི", "ཀུ"),
        ("が", "か"),
        ("ぱ", "ば"),
        ("தி", "த"),
    ],
)
def test_marks_that_make_words_are_kept(one, other):
    """Vowel signs, viramas, tone marks and voicing tell words apart."""
    assert fingerprint(one) != fingerprint(other)


def test_logarithms_are_far_from_rounding():
    """No machine's logarithm can round to another fixed-point weight."""
    for count, fixed in enumerate(feature_module.logarithms()[1:], 1):
        exact = 2**20 * (1 + math.log(count))
        assert abs(abs(exact - fixed) - 0.5) > 1e-6


@pytest.mark.parametrize("text", ["e" + "\u0301\u0316" * 50_000, "的" * 30_000, "ß" * 100_000])
def test_no_text_stalls(text):
    """Long runs of combining marks and of unpunctuated characters get their bits before the test times out."""
    for scheme in ("shingles", "keywords"):
        assert fingerprint(text, scheme=scheme) == fingerprints([text], scheme=scheme)[0], scheme


# jieba's own modules leave files open and have escape sequences that newer Pythons warn about.
OLD_JIEBA = pytest.mark.filterwarnings("ignore")


@OLD_JIEBA
@pytest.mark.shared
@pytest.mark.parametrize("name", ["xwlb_zh", "laws_tw", "reuters21578", "weibo_ced"])
def test_keywords_are_those_of_jieba(shared_texts, name):
    """On real texts the keywords are jieba's own, ties ranked by code points."""
    extract = keyword_extractor(get_scheme("keywords"))
    texts = shared_texts(name, 10)
    for text, found in zip(texts, extract(texts), strict=True):
        assert list(found) == [word for word, _ in reference.keywords(text)]


def test_ties_are_ranked_by_code_points():
    """Of words with equal weight the smaller code points come first, wherever they stand."""
    scheme = get_scheme("keywords", top=2)
    assert list(keyword_extractor(scheme)(["zeta yota beta alpha"])[0]) == ["alpha", "beta"]
    assert fingerprint("zeta beta alpha", scheme=scheme) == fingerprint("alpha zeta beta", scheme=scheme)


def test_automatic_number_of_keywords():
    """With top="auto" a longer text has more keywords, from 20 to 200."""
    extract = keyword_extractor(get_scheme("keywords", top="auto"))
    words = [f"word{number}" for number in range(5000)]
    assert [len(extract([" ".join(words[:count])])[0]) for count in (10, 100, 1000, 5000)] == [10, 20, 100, 200]


def test_jieba_is_private():
    """Words that the user adds to, deletes from or tunes in jieba do not change a bit, and jieba stays the user's."""
    code = """
import jieba, logging
jieba.setLogLevel(logging.CRITICAL)
from es_simhash.hashing import fingerprint
text = "云计算和大数据中心在北京大学里的石墨烯研究，龘靐齉爩"
before = fingerprint(text, scheme="keywords")
users = jieba.lcut(text)
jieba.add_word("大数据中心在", 10**9); jieba.del_word("北京大学"); jieba.del_word("龘靐")
jieba.suggest_freq(("石墨", "烯"), True)
assert jieba.lcut(text) != users
assert fingerprint(text, scheme="keywords") == before
print(before)
"""
    quietly = "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    "
    command = [sys.executable, "-W", "error", "-c", f"{quietly}import jieba\n{code}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    text = "云计算和大数据中心在北京大学里的石墨烯研究，龘靐齉爩"
    assert int(result.stdout) == fingerprint(text, scheme="keywords")
