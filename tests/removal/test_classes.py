"""What is lost if a document goes for another one, read by a checker that shares no code with the classes."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import assume, given, strategies as st

from es_simhash.removal.classes import _MOST, Document, Text, find_loss, is_kept_shorter
from es_simhash.removal.losses import LOSSLESS

BRIDGE = "The council approved the new bridge over the river on Tuesday. It opens in May, and costs six million."
SNOW = "Rain is expected in the north until Friday evening. Above a thousand metres snow will fall in the mountains."
LONG = " ".join(
    f"Part {n} of the story has words such as {' '.join(f'w{n * 7 + k}' for k in range(9))}." for n in range(12)
)
LINE = "A line of more than eight words, and without an end"
XIN = "市议会星期二批准在河上建造新桥。工程三月开始，费用是六千万元。"
XUE = "预计北方的雨将下到星期五晚上。海拔一千米以上的山区有雪，请注意安全。"
CHINESE = "".join(
    f"第{n}部分讲的是另一个故事，其中有甲乙丙丁戊己庚辛壬癸{chr(0x4E00 + 50 * n)}等字。" for n in range(12)
)


def loss(goes, stays, *titles):
    """Return the class of two texts, with titles."""
    one, other = titles or ("", "")
    return find_loss(Document.of(goes, one), Document.of(stays, other))


@pytest.mark.parametrize(
    ("goes", "stays", "expected"),
    [
        # only spaces, case or marks
        (BRIDGE.upper(), BRIDGE, "same"),
        (BRIDGE.replace(" ", "\n"), BRIDGE.replace(".", " !"), "same"),
        ("Straße in ÄRGER", "strasse in aerger", "same"),
        (XIN.replace("，", " "), XIN, "same"),
        ("It costs 1,500 dollars now.", "It costs 1 500 dollars now.", "same"),
        # what is cut, at an end or between, and what stands in another order
        (BRIDGE, f"{BRIDGE} {SNOW}", "contained"),
        (BRIDGE, f"{SNOW} {BRIDGE}", "contained"),
        (BRIDGE, BRIDGE.replace("Tuesday. ", f"Tuesday. {SNOW} "), "contained"),
        (f"{BRIDGE} {SNOW}", f"{SNOW} {BRIDGE} More.", "contained"),
        (BRIDGE.replace(" ", "\n", 3), f"{BRIDGE} {SNOW}", "contained"),  # wrapped anew
        (BRIDGE, f"LONDON, March 3 (Reuters) - {BRIDGE}", "contained"),
        (BRIDGE[:80], BRIDGE, "contained"),
        (BRIDGE[:78], BRIDGE, "contained"),
        (f"{BRIDGE[:78]}...", BRIDGE, "contained"),
        (XIN, XIN + XUE, "contained"),
        (XUE, XIN + XUE, "contained"),
        (XIN, XIN.replace("新桥。", "新桥。" + XUE), "contained"),
        (XIN + XUE, XUE + XIN + "完", "contained"),
        (XIN, f"本报讯 {XIN}", "contained"),
        ("Sports\n" + BRIDGE, f"Sports\n{BRIDGE}\n{SNOW}", "contained"),
        (f"{LINE}\n{LINE} too\n{BRIDGE}", f"{LINE}\n{SNOW}\n{LINE} too\n{BRIDGE}", "contained"),  # line by line
        (f"{LINE}\n{LINE} too\n{BRIDGE}", f"(Reuters) - {LINE}\n{SNOW}\n{LINE} too\n{BRIDGE}", "contained"),
        # a short sentence that stands elsewhere
        (f"{BRIDGE} Not so. {SNOW}", f"{BRIDGE} {SNOW} Not so.", "few"),
        (f"{XIN}他说不对。{XUE}", f"{XIN}{XUE}他说不对。", "rewritten"),
        (f"{XIN}他们说不对。{XUE}", f"{XIN}{XUE}他们说不对。", "contained"),
        (f"{SNOW}\nThe king of France said so\n{BRIDGE}", f"{SNOW}\n{BRIDGE}\nThe king of France said so", "few"),
        # a statement that is made of others, or that a word has turned
        (f"{SNOW} The king of France said no.", f"{SNOW} The king of Spain. The head of France said no.", "few"),
        ("The minister did resign on Friday evening.", "The minister did not resign on Friday evening.", "rewritten"),
        (f"{SNOW} Man is able to do this.", f"{SNOW} Woman is able to do this.", "few"),
        (f"{SNOW} This is his car.", f"{SNOW} This is his career.", "few"),
        (f"{SNOW} It has 12", f"{SNOW} It has 125 seats.", "rewritten"),
        # numbers, in each form
        ("Prices rose by 2.5 percent in the north.", "Prices rose by 25 percent in the north.", "numbers"),
        ("Prices rose by 5 percent in the north.", "Prices rose by -5 percent in the north.", "numbers"),
        ("It costs $500 a year in the north.", "It costs €500 a year in the north.", "numbers"),
        ("The rate is six a share in all.", "The rate is 6-3/16 a share in all.", "numbers"),
        ("It was held on March 1 in Rome.", "It was held on April 1 in Rome.", "numbers"),
        ("They meet on Monday in Rome again.", "They meet on Tuesday in Rome again.", "numbers"),
        ("一共有三个人参加会议。", "一共有3个人参加会议。", "numbers"),
        ("会议在星期一举行。", "会议在星期日举行。", "numbers"),
        ("费用是二十三万元人民币。", "费用是25万元人民币。", "numbers"),
        ("apples\n5\npears\n6", "apples\n6\npears\n5", "numbers"),
        ("apples 5\npears 5\nplums 7", "apples 5\npears 6\nplums 7", "numbers"),
        ("apples 5\npears 5\nplums 7", "apples 5\npears\nplums 7\nkiwis 8", "rewritten"),
        (f"{LONG} It has 7 parts.", LONG, "rewritten"),
        # symbols, and where cells are empty
        *(
            (f"{SNOW} It is {one} here.", f"{SNOW} It is {other} here.", "numbers")
            for pair in [
                *("👍 👎", "<5 >5", "≥5 ≤5", "±5 5", "½ 12", "10⁶ 106", "m³ m3", "AA- AA", "–5 5", "(500) 500"),
                *("3+4 3-4", "EUR-5 EUR5", "→ ←", "🇩🇪 🇫🇷", "1,5 1.5", "a!=b a==b", "●●○ ●○○", "✅ ❌", "2/3 2-3"),
                ".NET NET",
            ]
            for one, _, other in [pair.partition(" ")]
        ),
        (f"{SNOW} p < 5 here.", f"{SNOW} p > 5 here.", "numbers"),
        (f"{SNOW} 5 mW here.", f"{SNOW} 5 MW here.", "numbers"),
        *[
            (f"{LONG} It has {one} here.{more}", f"{LONG} It has {other} here.", "rewritten" if more else "numbers")
            for one, other in (("5 mg", "5 g"), ("5°C", "5 °F"), ("10 km", "10 m"), ("1st", "2nd"), ("5公里", "5 米"))
            for more in ("", " Agency report")
        ],
        (f"{SNOW} It has 5km here.", f"{SNOW} It has 5 km here.", "same"),
        (f"{SNOW} Prices in $ here.", f"{SNOW} Prices in € here.", "numbers"),
        (f"{SNOW} It has 1,500 kg.", f"{SNOW} It has 1.500 kg.", "numbers"),
        ("Row\t\t5\t7\n" + SNOW, "Row\t5\t\t7\n" + SNOW, "numbers"),
        (f"====\n{SNOW}\n====", SNOW, "same"),
        # a beginning and an end that turn what is said, and lines that belong to others
        (f"Guilty on all counts, the court said. {SNOW}", f"Not guilty on all counts, the court said. {SNOW}", "few"),
        (f"同意建造新桥的计划。{XIN}", f"不同意建造新桥的计划。{XIN}", "few"),
        # also where it is too short for a run, or a line
        (f"Guilty. {SNOW}", f"Not guilty. {SNOW}", "few"),
        (f"Guilty on all counts\n{SNOW}", f"Not guilty on all counts\n{SNOW}", "few"),
        (f"5 metres. {SNOW}", f"-5 metres. {SNOW}", "numbers"),
        (f"{SNOW} All went.", f"{SNOW} All went home.", "few"),
        (f"同意。{XIN}", f"不同意。{XIN}", "few"),
        (f"Sports\n{SNOW}", f"Reuters: Sports\n{SNOW} {BRIDGE}", "contained"),
        (f"{SNOW} Admission is free of charge.", f"{SNOW} Admission is free of charge for members only.", "few"),
        (f"{SNOW} Tickets are sold", f"{SNOW} Tickets are sold out", "few"),
        (f"{SNOW} Written by John Smith", f"{SNOW} Written by John Smithson", "rewritten"),
        (f"Red wine\n12 net\nOld tea\n9 net\n{SNOW}", f"Red wine\n9 net\nOld tea\n12 net\n{SNOW}", "numbers"),
        (f"Red ink\nof Rome\nOld tea\nof Bonn\n{SNOW}", f"Red ink\nof Bonn\nOld tea\nof Rome\n{SNOW}", "rewritten"),
        # little of its own
        (f"{LONG} Agency report", LONG, "few"),
        (LONG.replace("such as w21", "such as w2l"), LONG, "numbers"),  # a number of a word is one
        (LONG.replace("the story", "the stroy", 1), LONG, "few"),
        (f"{CHINESE}（新华社）", CHINESE, "few"),
        (f"{CHINESE}（新华社三月）", CHINESE, "rewritten"),
        (f"{LONG * 3} Read more news on our pages every morning", LONG * 3, "few"),  # eight words
        (f"{LONG * 3} Read more news on all our pages every morning", LONG * 3, "rewritten"),
        (f"{CHINESE * 9}欢迎大家参观公园和广场请注意安全谢谢大家", CHINESE * 9, "few"),  # twenty
        (f"{CHINESE * 9}欢迎大家参观公园和大广场请注意安全谢谢大家", CHINESE * 9, "rewritten"),
        (f"{LONG} {BRIDGE}", LONG, "rewritten"),
        (f"{CHINESE}{XIN}", CHINESE, "rewritten"),
    ],
)  # fmt: skip
def test_what_is_lost(goes, stays, expected):
    """By class; the first that holds."""
    assert loss(goes, stays) == expected


@pytest.mark.parametrize(
    ("title", "other", "expected"),
    [
        ("The new bridge", "THE NEW BRIDGE!", "same"),
        ("STRASSE", "Straße", "same"),
        ("Bridge law", "Road law", "title"),
        # with the name of a site behind it
        ("Bridge opens", "Bridge opens - The Times", "same"),
        ("Bridge opens", "BRIDGE OPENS | Local | The Times", "same"),
        ("Bridge opens | Local", "Bridge opens | Local | The Times", "same"),
        ("新桥开通", "新桥开通_人民网", "same"),
        ("Bridge opens", "Bridge opens | " * 5_000 + " " * 20_000, "title"),  # a text, and no name of a site
        ("Bridge opens | The Times", "Bridge opens", "title"),
        # between other words it may say something else
        ("Guilty", "Not guilty", "title"),
        ("Guilty", "Guilty? No", "title"),
        ("Guilty", "Guilty until proven innocent", "title"),
        ("Guilty", "Fake - Guilty", "title"),
        ("Bridge law", "The new bridge law of 1994", "title"),
        ("Bridge law", "Anti-bridge law", "title"),
        ("有罪", "无罪还是有罪", "title"),
        # in the text, as a whole line or sentence
        ("It opens in May, and costs six million", "Road law", "same"),
        ("The new bridge", "The old bridge", "title"),
        ("Bridge", "Bridges law", "title"),
        ("Bridge law", "", "title"),
        ("", "Bridge law", "same"),
    ],
)
def test_a_title_counts_as_text(title, other, expected):
    """It is a title of what stays, or a line or sentence of its text."""
    assert loss(BRIDGE, BRIDGE, title, other) == expected


def test_each_title_counts():
    both, first = Document.of(BRIDGE, "Law 1", "Law 3"), Document.of(BRIDGE, "Law 1")
    assert (find_loss(both, first), find_loss(first, both)) == ("title", "same")


def test_a_text_for_a_title_is_not_looked_for_at_each_line():
    """The work grows with the words: what has more than a title has is no title that stands there."""
    words = "a " * _MOST + "b"
    for title, found in ((words, False), (words[2:], True)):
        assert Text(title).stands_whole_in(Text(f"a\n{title}")) == found


def test_what_was_not_read():
    assert find_loss(None, Document.of(BRIDGE)) == find_loss(Document.of(BRIDGE), None) == "unread"


@pytest.mark.parametrize(
    ("goes", "stays", "is_shorter"),
    [
        (f"{BRIDGE} {SNOW}", BRIDGE, True),
        (f"{LONG} Agency report", LONG, True),
        (f"{CHINESE}{XIN}", CHINESE, True),
        (BRIDGE, f"{BRIDGE} {SNOW}", False),
        (f"{BRIDGE} {LONG}", f"{BRIDGE} {SNOW}", False),
    ],
)
def test_the_one_that_stays_is_shorter(goes, stays, is_shorter):
    """It has nothing of its own, and the other one has."""
    both = Document.of(goes), Document.of(stays)
    assert is_kept_shorter(*both, find_loss(*both)) == is_shorter


def read_plainly(text):
    """Return sentences of words and the numbers of a text, by a way of its own."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = re.sub(r"([\u4e00-\u9fff])", r" \1 ", plain)
    sentences = [re.findall(r"[^\W_]+", part) for part in re.split(r"[!?。！？\n]|\.(?!\d)", plain)]
    return [words for words in sentences if words], re.findall(r"\d+", plain)


def find_lost(goes, stays, size=5):
    """Return a run of words within a sentence, or a number, that *stays* does not have."""
    sentences, numbers = read_plainly(goes)
    there, others = read_plainly(stays)
    joined = f" {' '.join(word for words in there for word in words)} "
    for words in sentences:
        for begin in range(max(1, len(words) - size + 1)):
            if f" {' '.join(words[begin : begin + size])} " not in joined:
                return words[begin : begin + size]
    for number in numbers:
        if number not in others:
            return number
        others.remove(number)
    return None


LEXICON = "the a of not council bridge river opens costs 5 6 12 six may rain north 桥 河 三 五 开 始"
words = st.sampled_from(LEXICON.split())
sentences = st.lists(words, min_size=1, max_size=7).map(" ".join)
texts = st.lists(st.tuples(sentences, st.sampled_from([". ", "。", "\n", "! ", "\n\n"])), min_size=1, max_size=8)


@st.composite
def edited(draw):
    """Draw a text, and one that edits made of it."""
    parts = draw(texts)
    others = list(parts)
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["cut", "add", "swap", "word", "end"]))
        place = draw(st.integers(0, len(others) - 1)) if others else 0
        if kind == "add":
            others.insert(place, (draw(sentences), ". "))
        elif not others:
            continue
        elif kind == "cut":
            del others[place]
        elif kind == "swap":
            others.append(others.pop(place))
        elif kind == "word":
            found = others[place][0].split()
            found[draw(st.integers(0, len(found) - 1))] = draw(words)
            others[place] = " ".join(found), others[place][1]
        else:
            others[place] = others[place][0], draw(st.sampled_from([". ", "\n"]))
    return "".join(map("".join, parts)), "".join(map("".join, others))


@given(edited())
def test_nothing_is_lost_that_the_classes_say_is_not(pair):
    """Of two texts, whatever was done to the one, and in both directions."""
    for goes, stays in (pair, pair[::-1]):
        if loss(goes, stays) in LOSSLESS:
            assert find_lost(goes, stays) is None


@given(texts, st.data())
def test_what_was_only_cut_is_contained(parts, data):
    """Whole sentences, wherever; each of a run of words or more."""
    whole = [(f"{sentence} w{n} x{n} y{n}", ". ") for n, (sentence, _) in enumerate(parts)]
    kept = [part for part in whole if data.draw(st.booleans())]
    assume(kept)
    found = loss("".join(map("".join, kept)), "".join(map("".join, whole)))
    assert found in LOSSLESS
