"""Traditional and simplified Chinese: counted in a sample, told by both checks, and compared after a conversion."""

import pytest

from es_simhash import fingerprint, get_scheme
from es_simhash.mapping.fields import fingerprint_fields
from es_simhash.quality.edits import Scripts, convert, count_scripts
from es_simhash.quality.explanation import explain
from es_simhash.quality.health import judge_sample
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure, compare_texts

pytest.importorskip("opencc", reason="needs the extra preprocess")
T2S = get_scheme("shingles", preprocess=["t2s"])
SIMPLIFIED = [
    "长江是中华民族的母亲河，也是中华民族发展的重要支撑，国家和沿江省市把修复长江生态环境摆在重要位置。",
    "今年秋收时节，江西萍乡的水稻陆续迎来丰收，农民驾驶收割机在田间作业，收入持续增长。",
]
TRADITIONAL = [convert(text, "s2t") for text in SIMPLIFIED]


def test_scripts_of_a_sample():
    """Pairs are counted across the scripts only; what both scripts write alike belongs to neither."""
    texts = [*SIMPLIFIED, SIMPLIFIED[0] + "。", TRADITIONAL[0], "no Chinese at all", "山水", "\0国\ud800"]
    assert count_scripts(texts, get_scheme()) == Scripts(traditional=1, simplified=4, pairs=2)
    assert count_scripts(texts, T2S) is None
    assert count_scripts(["no Chinese at all"], get_scheme()) is None


def test_a_sample_names_both_scripts():
    """A warning where the same text stands in both; nothing where the scheme converts them."""

    def hits(texts, scheme):
        found = []
        for number, text in enumerate(texts):
            own = fingerprint_fields(fingerprint(text, scheme=scheme))["simhash"]
            values = {f"simhash.{name}": [value] for name, value in own.items() if name != "value"}
            found.append({"_id": str(number), "_source": {"body": text, "simhash": own}, "fields": values})
        return judge_sample(found, scheme=scheme, text_fields=["body"], prefix="simhash")

    def of_scripts(findings):
        return [(each.severity, dict(each.values)) for each in findings if each.kind == "two_scripts"]

    both = [SIMPLIFIED[0], TRADITIONAL[0]]
    assert of_scripts(hits(both, get_scheme())) == [("warning", {"traditional": 1, "simplified": 1, "pairs": 1})]
    assert [each for each, _ in of_scripts(hits([SIMPLIFIED[0], TRADITIONAL[1]], get_scheme()))] == ["note"]
    assert of_scripts(hits(both, T2S)) == of_scripts(hits(SIMPLIFIED, get_scheme())) == []


@pytest.mark.parametrize("measure", [WORD_SHINGLES, TextMeasure("edit", "characters")])
def test_texts_are_compared_as_the_fingerprints_see_them(measure):
    """After the steps of the scheme; the measure that is recorded stays the same."""
    after = measure.after(T2S)
    pair = [SIMPLIFIED[0], TRADITIONAL[0]]
    assert measure.compare(*measure.prepare(pair)).similarity < 0.8
    assert after.compare(*after.prepare(pair)).similarity == 1.0
    assert (after, after.to_dict()) == (measure, measure.to_dict())
    assert after.after(get_scheme()).scheme is None
    assert compare_texts(*pair, scheme=T2S).jaccard == 1.0
    assert explain(*pair, scheme=T2S).similarity.jaccard == 1.0
