"""The measures of texts in arrays against characters and words, spelt out."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.hashing import fingerprint
from es_simhash.mapping.rule import PairRule
from es_simhash.texts.measures import MEASURES, UNITS, Preset, Score, TextMeasure, compare_pairs
from es_simhash.texts.shingle_sets import edit_similarity, shingle_sets
from tests import reference
from tests.compared import compare_texts

LONGER = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from("ab c 长江. は7ไ한üıأ٣ـ\n"), max_size=60),
    st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", "北京", "2024", "北", "。"]), max_size=30).map(
        " ".join
    ),
)
BOUNDS = st.sampled_from([0.0, 0.3, 0.5, 0.8, 0.9, 1.0])
LETTERS = TextMeasure("edit", "characters")


@given(LONGER, LONGER)
@settings(max_examples=25)
def test_similarity_is_that_of_sets_of_runs_of_pieces(first, second):
    """Jaccard and containment of the hashed shingles are those of the pieces themselves."""
    found = compare_texts(first, second)
    assert len(shingle_sets([first])[0]) == len(reference.shingle_runs(first))
    assert found.jaccard == pytest.approx(float(reference.jaccard(first, second)))
    assert found.containment == pytest.approx(float(reference.share_of_few(first, second)[1]))


ANY_MEASURE = st.builds(TextMeasure, st.sampled_from(MEASURES), st.sampled_from(UNITS))


@given(LONGER, LONGER, ANY_MEASURE, BOUNDS)
def test_a_text_of_few_letters_is_like_none(first, second, measure, bound):
    """Below 20 letters it shares nothing, not with itself, unless the rule asks for the same letters, or for none."""
    ruled = PairRule(16, bound, measure).measure
    is_short = 0 < bound < 1 and any(map(reference.is_short, (first, second)))
    wanted = 0.0 if is_short else measure.compare(*measure.prepare([first, second])).similarity
    assert ruled.compare(*ruled.prepare([first, second])).similarity == wanted


BETWEEN = st.sampled_from(["", " ", "-\n", ", ", "\u00ad", "\u3000", " — "])


@given(LONGER, LONGER, st.lists(BETWEEN, min_size=8, max_size=8), ANY_MEASURE)
def test_boundaries_of_words_count_for_nothing(first, second, between, measure):
    """A text spaced otherwise is the same text, and as similar to any other as before."""
    # A mark belongs to the letter before it.
    letters = [letter for letter in first if not unicodedata.combining(letter) and letter not in "\u1161\u11a8"]
    first = "".join(letters)
    spaced = "".join(letter + between[place % 8] for place, letter in enumerate(letters))
    one, moved, other = measure.prepare([first, spaced, second])
    assert one.tolist() == moved.tolist()
    assert measure.compare(one, moved, bound=1.0).similarity == float(one.size > 0)
    assert measure.compare(one, other) == measure.compare(moved, other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("항만 사무소는 홍수 이후 월요일 아침에 창구를 옮겼다", "항만사무소는 홍수이후 월요일아침에 창구를 옮겼다"),
        ("The harbour office moved on Monday morning", "The har-\nbour office moved on Monday morn-\ning"),
        ("The harbour office moved on Monday morning", "Theharbour office movedon Monday morning"),
        ("LİMAN OFİSİ PAZARTESİ AÇILIYOR, KAPISI", "liman ofisi pazartesi açılıyor, kapısı"),
        ("Die Türen öffnen früh, Äpfel, Maße", "Die Tueren oeffnen frueh, Aepfel, Masse"),
        ("إلى المدرسة في ٣ آذار", "الي المدرسه فـــي 3 اذار"),
        ("Președintele și țara", "Preşedintele şi ţara"),
        ("Ёлка ещё зелёная", "Елка еще зеленая"),
        ("Το λιμάνι άνοιξε τη Δευτέρα", "ΤΟ ΛΙΜΑΝΙ ΑΝΟΙΞΕ ΤΗ ΔΕΥΤΕΡΑ"),
        ("L'œuvre du cœur", "L'oeuvre du coeur"),
        ("Blåbærgrød på Ærø", "Blaabaergroed paa Aeroe"),
        ("м'який п'ять", "мʼякий п’ять"),
        ("این کتاب یک مدرسه", "اين كتاب يك مدرسه"),
        ("Cảng mở cửa sáng thứ hai", unicodedata.normalize("NFD", "Cảng mở cửa sáng thứ hai")),
        ("항만 사무소", unicodedata.normalize("NFD", "항만 사무소")),
        ("ｶﾞﾗｽの窓 ２０２４", "ガラスの窓 2024"),
        ("แม่น้ำ", "เเม่น้ำ"),
        ("nước Cộng hoà, thuỷ tinh và hoa hoè", "nước Cộng hòa, thủy tinh và hoa hòe"),
    ],
)
@pytest.mark.parametrize("unit", UNITS)
def test_the_same_letters_are_the_same_text(first, second, unit):
    """Other spacing, line ends and lost blanks; forms of letters, in fingerprints too."""
    assert fingerprint(first) == fingerprint(second)
    for name in MEASURES:
        measure = TextMeasure(name, unit)
        assert measure.compare(*measure.prepare([first, second])).similarity == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [("má mà", "ma ma"), ("hòa thủy", "hóa thúy"), ("Łódź", "Lodz"), ("şu", "su"), ("がく", "かく")],
)
def test_what_marks_distinguish_is_another_text(first, second):
    """Where texts are compared, whatever the fingerprints say."""
    assert compare_texts(first, second).jaccard < 1


def test_in_a_text_of_few_words_a_replaced_word_makes_another_text():
    """What is added or cut does not; in a long text one word counts as before."""
    seats = (
        "She books a {} seat on the left side of the train whenever she travels to the coast, and pays with the card "
        "of the office"
    )
    window, aisle, more = seats.format("window"), seats.format("aisle"), seats.format("window") + " (Agency)"
    assert compare_texts(window, aisle).jaccard < 0.8 < compare_texts(window, more).jaccard
    long = "".join(
        f" In {year} the town had {7 * year % 941} houses and a mayor named {year % 89}." for year in range(99)
    )
    assert compare_texts(window + long, aisle + long).jaccard > 0.95


DIGITS = ["profit rose", "fell to", " 1,500 ", " 1500", " 1 500", "1,00,000", "2.5", " 2,5 ", " 0.5", " .5 ", "٣", "①"]
DIGITS += ["1.234", "²", " "]
SIGNS = [" and ", "长江", ".", " -2.5", "$5 ", "5 %", "7‰", "(7)", "C++ ", "C# ", " .net ", "✓", "✗"]
NUMBERED = st.lists(st.sampled_from(DIGITS) | st.sampled_from(SIGNS), max_size=12).map("".join)


@given(NUMBERED, NUMBERED, st.booleans(), st.sampled_from(["most", "same"]))
def test_replaced_numbers_are_those_in_the_same_places(first, second, is_alone, numbers):
    """As by the numbers and the letters around them, spelt out; texts of one batch do not meet."""
    measure = TextMeasure(numbers=numbers)
    texts = [first, second] if is_alone else ["profit 7", first, second, "rose 9 pct"]
    prepared = measure.prepare(texts)
    one, other = prepared if is_alone else prepared[1:3]
    score = measure.compare(one, other)
    plain = compare_texts(first, second).jaccard
    if not one.size or not other.size:
        assert score == Score(0.0, 0.0)
        return
    assert score.numbers == reference.compare_numbers(first, second)
    most = reference.most_numbers_replaced(first, second)
    assert score.similarity == (0.0 if (most if numbers == "most" else score.numbers != "same") else plain)
    noted = TextMeasure().noting_numbers()
    assert noted.compare(*noted.prepare([first, second])) == Score(plain, score.containment, score.numbers)
    assert measure.size(one) == len(reference.shingle_runs(first))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("arranged 1.5 billion for the port", "arranged 2.5 billion for the port", "only"),
        ("the port arranged 1,500 loans", "The port arranged 1500 loans", "same"),
        ("the port arranged 1.500 loans", "the port arranged ١٥٠٠ loans", "same"),
        ("profit rose 2.1 pct to 5.0 mln dlrs", "profit fell 3.1 pct to 4.0 mln dlrs", "replaced"),
        ("profit rose 2.1 pct. In 1987 it was 3 mln", "profit rose 2.1 pct.", "same"),
        ("二 boats left", "三 boats left", "same"),
        ("open 12:30", "open 12:45", "only"),
        ("the change was -5.2 in May", "the change was +5.2 in May", "signs"),
        ("the change was −3.1 in May", "the change was 3.1 in May", "signs"),
        ("costs $500 a month", "costs €500 a month", "signs"),
        ("costs $500 a month", "costs 500 $ a month", "same"),
        ("a share of 5 % in May", "a share of 5 ‰ in May", "signs"),
        ("售价￥５００，占５％", "售价¥500，占5%", "same"),
        ("some 10⁶ cells", "some 106 cells", "signs"),
        ("ten m² of floor", "ten m2 of floor", "same"),
        ("a loss of (5) in May", "a loss of 5 in May", "signs"),
        ("we look for C++ developers", "we look for C# developers", "signs"),
        ("we look for C++ developers", "we look for C developers", "signs"),
        ("a .NET server", "a NET server", "signs"),
        ("warranty ✓ included", "warranty ✗ included", "signs"),
        ("✓ warranty included", "warranty included", "same"),
        ("the vote was 👍 here", "the vote was 👎 here", "signs"),
        ("with p < 0.05 in all", "with p > 0.05 in all", "signs"),
        ("at least ≥5 were seen", "at least ≤5 were seen", "signs"),
        ("we saw √2 of them", "we saw 2 of them", "signs"),
        ("<b>5 were seen", "<i>5 were seen", "same"),
        ("they won 2-1 there", "they won 1-2 there", "only"),
        ("on 2024-01-02 there", "on 2024-02-01 there", "only"),
        ("in World War I there", "in World War II there", "only"),
        ("of Louis XIV there", "of Louis XVI there", "only"),
        ("of Part Ⅰ there", "of Part Ⅱ there", "only"),
        ("the MIX is good", "the CD is good", "same"),
        ("Part I. Design of dams", "Part II. Design of dams", "only"),
        ("Tome IV, la suite", "Tome IX, la suite", "only"),
        ("I and you", "V and you", "same"),
        ("lea el capítulo IV del libro", "lea el capi\u0301tulo V del libro", "only"),
        ("the subsection       V of it", "the subsection       X of it", "same"),
        ("at the café# we met", "at the cafe\u0301# we met", "same"),
        ("a dose of 5 mg daily", "a dose of 5 g daily", "only"),
        ("a dose of 5 mg daily", "a dose of 5MG daily", "same"),
        ("it lies 10 km away", "it lies 10 m away", "only"),
        ("it was 5 °C there", "it was 5 °F there", "only"),
        ("it was 5 °C there", "it was 5℃ there", "same"),
        ("on the 1st of May", "on the 2nd of May", "only"),
        ("on the 1st of May", "on the 1 of May", "same"),
        ("for № 5 of them", "for № 6 of them", "only"),
        ("open at 5 a.m. there", "open at 5 p.m. there", "only"),
        ("open at 5 am there", "open at 5 a.m. there", "same"),
        ("for 5 million people", "for 5 billion people", "only"),
        ("весом 5 кг здесь", "весом 5 г здесь", "only"),
        ("一共重5公斤左右", "一共重5斤左右", "only"),
        ("一共重5公斤左右", "一共重 5 公斤左右", "same"),
        ("the file w2l there", "the file w2g there", "same"),
        ("paid 1 500 euros", "paid 1500 euros", "same"),
        ("paid 1\u202f500 euros", "paid 1,500 euros", "same"),
        ("paid 1,00,000 rupees", "paid 100000 rupees", "same"),
        ("in 2010 500 people", "in 2010500 people", "signs"),
        ("the key a12 345 is", "the key a12345 is", "signs"),
        ("the key 12 345b is", "the key 12345b is", "signs"),
        ("a 5-km run", "a 5 km run", "same"),
        ("a 5-km run", "a 5-mile run", "replaced"),
        ("a loss of \u201140 here", "a loss of -40 here", "same"),
        ("a rise of .5 there", "a rise of 0.5 there", "same"),
        ("a rise of .5 there", "a rise of 5 there", "signs"),
        ("costs $.50 a month", "costs $50 a month", "signs"),
        ("at 10.5 a month", "at 1.5 a month", "only"),
        ("a ½ cup of milk", "a ¼ cup of milk", "only"),
        ("a ½ cup of milk", "a 1/2 cup of milk", "same"),
        ("a 1½ cup of milk", "a 1 1/2 cup of milk", "same"),
        ("a 1½ cup of milk", "a 11/2 cup of milk", "signs"),
        ("５㎏の米と１０㎞の道", "5kgの米と10kmの道", "same"),
        ("a ½ kg of rice", "a 1/2 kg of rice", "same"),
        ("it grew by 0,5 percent", "it grew by 0.5 percent", "same"),
        ("it grew by ０．５ percent", "it grew by .5 percent", "same"),
        ("it grew by -.5 percent", "it grew by -0.5 percent", "same"),
        ("it grew by 0.500 percent", "it grew by 500 percent", "signs"),
        ("the host 10.0.0.1 is down", "the host 10.0.1 is down", "only"),
        ("they write Ｃ＋＋ and ＜５", "they write C++ and <5", "same"),
        ("it turned by 5°30′ to the left", "it turned by 5°30″ to the left", "signs"),
        ("au XIXe siècle", "au XXe siècle", "only"),
        ("نسبة ٥٠٪ من الناس", "نسبة 50% من الناس", "same"),
        ("نسبة ٥٠٪ من الناس", "نسبة ٥٠ من الناس", "signs"),
        ("最低-5℃", "最低5℃", "signs"),
        ("歼-20首飞", "歼20首飞", "same"),
        ("10㎜の雨がふる", "10㎝の雨がふる", "only"),
        ("⑩番目の項目", "10番目の項目", "same"),
        ("a 5′ long board", "a 5″ long board", "signs"),
        ("Chapter Ⅳ. Dams", "Chapter IV. Dams", "same"),
        ("Ⅰ. Design of dams", "Ⅱ. Design of dams", "only"),
        ("第Ⅰ部の概要", "第II部の概要", "only"),
        ("用于I类医疗器械", "用于V类医疗器械", "only"),
        ("看CD的人", "看DC的人", "same"),
    ],
)
def test_what_a_number_is(first, second, expected):
    measure = TextMeasure().noting_numbers()
    assert measure.compare(*measure.prepare([first, second])).numbers == expected


BILLS = "at {} it lent {} mln, and took {} bills at 5 tonight"


@pytest.mark.parametrize(
    ("first", "second", "is_apart"),
    [
        ("the bank lent 25 mln stg", "the bank lent 35 mln stg", False),
        ("it lent 25 mln, and took 9 bills", "it lent 35 mln, and took 7 bills", True),
        (BILLS.format(9, 25, 9), BILLS.format(9, 35, 7), False),
        (BILLS.format(9, 25, 9), BILLS.format(8, 35, 7), True),
        (BILLS.format(9, 25, 9), "at 9 it lent 25 mln", False),
    ],
)
def test_most_numbers_are_more_than_stay(first, second, is_apart):
    """One number replaced is a correction; where more are replaced than stay, it is another edition of a form."""
    measure = TextMeasure(numbers="most")
    assert (measure.compare(*measure.prepare([first, second])).similarity == 0) == is_apart
    assert Preset("own", "", 3, 0.8, "", numbers="most").text_measure("same").numbers == "same"


@given(st.lists(LONGER, min_size=1, max_size=6), st.data())
def test_many_pairs_at_once(texts, data):
    """Pairs compared together have the similarity of each pair alone."""
    place = st.integers(0, len(texts) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), max_size=12))
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    expected = [compare_texts(texts[a], texts[b]).jaccard for a, b in pairs]
    assert compare_pairs(texts, left, right).tolist() == expected


@given(st.lists(LONGER, max_size=8), st.integers(1, 100))
def test_many_texts_are_cut_like_each_alone(texts, batch):
    """However many are cut together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("es_simhash.texts.letters._BATCH", batch)
        found = shingle_sets(texts)
    assert [each.tolist() for each in found] == [shingle_sets([text])[0].tolist() for text in texts]


@given(LONGER, LONGER, BOUNDS, st.sampled_from(["words", "characters"]))
def test_edit_similarity_is_that_of_the_textbook(first, second, bound, unit):
    """Exactly, from the bound on; below it 0."""
    measure = TextMeasure("edit", unit)
    cut = reference.pieces if unit == "words" else reference.letters_only
    expected = float(reference.edit_similarity(first, second, cut=cut))
    found = measure.compare(*measure.prepare([first, second]), bound=bound)
    assert found.similarity == (pytest.approx(expected) if expected >= bound else 0.0)
    assert found.containment is None


@given(LONGER, LONGER, BOUNDS)
def test_a_long_text_has_the_share_of_a_short_one_or_none_below_the_bound(first, second, bound):
    """So what keeps two texts apart is the same, however long they are."""
    one, other = LETTERS.prepare([first, second])
    exact = LETTERS.share(one, other, bound=bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("es_simhash.texts.measures._LONG", -1)
        assert LETTERS.share(one, other, bound=bound) == (None if exact < bound or exact == 0 else exact)


@given(st.lists(LONGER, min_size=2, max_size=5))
def test_shingles_of_characters_are_runs_of_letters(texts):
    """However many texts are cut together."""
    left, right = np.zeros(len(texts), np.int64), np.arange(len(texts))
    found = compare_pairs(texts, left, right, measure=TextMeasure("jaccard", "characters"))
    shares = [float(reference.share_of_few(texts[0], text, runs=reference.letter_runs)[0]) for text in texts]
    assert found.tolist() == pytest.approx(shares)


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_a_long_text_with_scattered_errors_is_found(unit):
    """One unit in 20 is another, and some are missing: the similarity is what the edits leave."""
    chance = np.random.default_rng(3)
    size = 40_000
    first, last = (1 << 50, 1 << 60) if unit == "words" else (0x61, 0x7A)
    units = chance.integers(first, last, size).astype(np.uint64)
    changed = units.copy()
    changed[chance.choice(size, size // 20, replace=False)] = 0x2D00
    changed = np.delete(changed, chance.choice(size, 400, replace=False))
    found = edit_similarity(units, changed, bound=0.9)
    assert found == pytest.approx(0.95 - 400 / size, abs=0.002)
    assert edit_similarity(units, chance.permutation(units), bound=0.5) == 0
