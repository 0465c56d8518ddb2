"""rjieba in the place of jieba: the same words, or jieba itself."""

import itertools
import logging
import random
import re
import sys

import pytest

pytest.importorskip("rjieba", reason="the extra 'fast' is not installed")

from es_simhash.hashing import fingerprints, get_scheme, segment, segment as fastcut


@pytest.fixture(scope="module")
def both():
    """The fast cutter, and jieba behind it, as the scheme ``keywords`` uses them."""
    loaded = segment.segmenter(get_scheme("keywords"))
    assert loaded._fast is not None
    return loaded._fast, loaded._tokenizer


def words(tokens):
    return [token for token in tokens if token.strip()]


def assert_same(both, texts):
    fast, jieba = both
    for text, found in zip(texts, fast.cut_all(texts), strict=True):
        assert words(found) == words(jieba.cut(text)), text


def test_every_run_of_letters_digits_and_symbols(both):
    """All runs of up to four of a letter, a digit, a point, a percent sign and another symbol are cut alike."""
    runs = ["".join(run) for length in range(1, 5) for run in itertools.product("a1.%-", repeat=length)]
    assert_same(both, runs)
    assert_same(both, [f"在{run}里" for run in runs[::7]])


def test_repeated_characters(both):
    """Runs that repeat themselves, of which jieba and rjieba choose different cuts, are cut as jieba does."""
    chance = random.Random(1)
    han = [chr(chance.randrange(0x4E00, 0x9FD6)) for _ in range(6)]
    runs = ["游游游游游_乁月嗳", "_叶叶叶叶叶信子", "水水水水喃"]
    runs += ["".join(chance.choices(chance.sample(han, 2), k=chance.randint(3, 9))) for _ in range(500)]
    assert_same(both, runs)


def test_mixed_runs(both):
    """Words of the dictionary, rare characters, letters and symbols in any order are cut alike."""
    chance = random.Random(2)
    _, jieba = both
    known = [word for word, frequency in jieba.FREQ.items() if frequency]
    mixed = [word for word in known if re.search("[!-~]", word)]
    for _ in range(300):
        parts = []
        for _ in range(chance.randint(1, 10)):
            parts.append(chance.choice(known if chance.random() < 0.6 else mixed))
            parts.append("".join(chance.choices("abZ019+#&._%-", k=chance.randint(0, 3))))
            parts.append(chr(chance.randrange(0x4E00, 0x9FD6)) * chance.randint(0, 1))
        assert_same(both, [re.sub(r"[^\u4E00-\u9FD5a-zA-Z0-9+#&._%-]", " ", "".join(parts))])


@pytest.mark.shared
@pytest.mark.parametrize(("name", "count"), [("xwlb_zh", 50), ("laws_tw", 10), ("weibo_ced", 500)])
def test_real_texts_have_the_same_bits(shared_texts, name, count, monkeypatch):
    """Real texts have the same fingerprints with rjieba and with jieba."""
    texts = shared_texts(name, count)
    fast = fingerprints(texts, scheme="keywords")
    monkeypatch.setattr(segment.segmenter(get_scheme("keywords")), "_fast", None)
    assert fingerprints(texts, scheme="keywords") == fast


def test_a_run_without_an_end(both, monkeypatch):
    """It is cut where jieba's is."""
    loaded = segment.segmenter(get_scheme("keywords"))
    text = "国家统计局今天发布的数据显示，工业生产稳步回升。" * 40 + "云计算和大数据" * 400 + "，a-b-c"
    [whole] = loaded.count_all([text])
    del whole[" "]
    monkeypatch.setattr(loaded, "_fast", None)
    [slow] = loaded.count_all([text])
    del slow[" "]
    assert slow == whole


@pytest.mark.parametrize(("line", "is_fast"), [("石墨烯电池 500\n北京大学 3\n", True), ("石墨烯 0\n", False)])
def test_user_dictionaries(tmp_path, line, is_fast, monkeypatch):
    """A user's words are rjieba's words too; where words are forbidden, jieba does the work."""
    path = tmp_path / "words.txt"
    path.write_text(line, encoding="utf-8")
    scheme = get_scheme("keywords", dictionary=path)
    texts = ["北京大学的石墨烯电池实验室研究石墨烯", "新石墨烯电池2.0在北京大学a-b"]
    found = fingerprints(texts, scheme=scheme)
    loaded = segment.segmenter(scheme)
    assert (loaded._fast is not None) == is_fast
    monkeypatch.setattr(loaded, "_fast", None)
    assert fingerprints(texts, scheme=scheme) == found


def test_without_rjieba(monkeypatch):
    """Where rjieba is not installed there is no fast cutter."""
    monkeypatch.setitem(sys.modules, "rjieba", None)
    assert fastcut.make_fast_cutter({"北京": 1}, 1, lambda text: [text]) is None


def test_rjieba_that_does_not_agree_is_not_used(caplog):
    """If jieba cuts the sentences of the trial in another way, jieba does the work, and the log says so."""
    with caplog.at_level(logging.WARNING, "es_simhash"):
        assert fastcut.make_fast_cutter({"北京": 1}, 1, lambda text: [text]) is None
    assert "so jieba does the work" in caplog.text
