"""Traditional and simplified Chinese, compared after a conversion."""

import pytest

from es_simhash import fingerprint, get_scheme
from es_simhash.quality.explanation import explain
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from tests.compared import compare_texts

opencc = pytest.importorskip("opencc", reason="needs the extra preprocess")
T2S = get_scheme("shingles", preprocess=["t2s"])
SIMPLIFIED = "长江是中华民族的母亲河，也是中华民族发展的重要支撑，国家和沿江省市把修复长江生态环境摆在重要位置。"
TRADITIONAL = opencc.OpenCC("s2t").convert(SIMPLIFIED)

JAPANESE = "会議室に新しい{}を運び、午後から使うことに決めた。担当者は来週までに報告書を出す。"


@pytest.mark.parametrize("pair", ["机機", "叶葉", "谷穀", "后後", "里裏", "干乾"])
def test_japanese_stays_as_it_is(pair):
    """In Chinese these are two forms of one character, in Japanese two words; a Chinese text may quote some kana."""
    one, other = map(JAPANESE.format, pair)
    after = WORD_SHINGLES.after(T2S)
    assert fingerprint(one, scheme=T2S) == fingerprint(one) != fingerprint(other, scheme=T2S)
    assert after.compare(*after.prepare([one, other])).similarity < 1
    quoted = (f"{text}他唱了《ありがとう》。" for text in (SIMPLIFIED, TRADITIONAL))
    assert after.compare(*after.prepare(list(quoted))).similarity == 1


@pytest.mark.parametrize("measure", [WORD_SHINGLES, TextMeasure("edit", "characters")])
def test_texts_are_compared_as_the_fingerprints_see_them(measure):
    """After the steps of the scheme; the measure that is recorded stays the same."""
    after = measure.after(T2S)
    pair = [SIMPLIFIED, TRADITIONAL]
    assert measure.compare(*measure.prepare(pair)).similarity < 0.8
    assert after.compare(*after.prepare(pair)).similarity == 1.0
    assert (after, after.to_dict()) == (measure, measure.to_dict())
    assert after.after(get_scheme()).scheme is None
    assert compare_texts(*pair, scheme=T2S).jaccard == 1.0
    assert explain(*pair, scheme=T2S).similarity == 1.0
