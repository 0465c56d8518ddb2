"""
The numbers and signs of texts, and which of two texts has others in the same places.

A number is a run of digits of any script, with a point or comma between two of them: 2.5 and 2,5 are one number and
the same. A point, comma, apostrophe or blank before exactly three digits only groups them: 1,500 and 1 500 are 1500,
and so is 1,00,000 a 100000. 12:30 and 2026-01-31 are two and three numbers. A minus before a number belongs to it,
brackets around it, a currency or percent beside it, an exponent, a unit behind it: 5 mg, 5 g and 5 million are three
numbers, and 5km is 5 km; 1st is 1. What is written with letters is none, such as 二, but a Roman number in capitals is
one: I, C and such after part, chapter and the like. Words of letters and signs (C++, C#, .NET) count as numbers; so do
marks such as ✓, → and emoji, where both texts have one. <, ≤, ± and such before a number belong to it; not the end of
a tag.

A number stands in a place: six letters before it, or six after it. Digits are no letters. If two texts have the same
place, and each has a number there that the other does not have there, a number was replaced. A number in a passage that
one text lacks was added or cut, and not replaced.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_simhash.hashing.characters import (
    BASE,
    CODE_POINTS,
    LOGOGRAPHS,
    MARK,
    SEPARATOR,
    UNASSIGNED,
    UNSPACED,
    Hashes,
    character_entries,
    ends_among,
    join_codes,
    to_codes,
)
from es_simhash.texts.letters import text_batches
from es_simhash.texts.measures import Replaced

BEHIND = 3
"""How many values stand behind the numbers of a text."""

# Letters of a place, on one side of a number.
_SIDE = 6
# Places that one number has at most: what stands before it, and after it.
_PLACES = 2
_HIGH = np.uint64(32)
# The last bit of what counts only where the other text has another one in its place.
_WEAK = 1

_POINT = ".,'’\u066b\u066c，．"
_BLANK = " \u00a0\u2009\u202f"
_EXPONENT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_PLUS = "+#＋＃"
_MINUS = "-−–﹣－"
_UNIT = "$€£¥₹₽₩₺₪฿₫%‰°＄￥％"
_WIDE_UNITS = str.maketrans("＄￥％", "$¥%")
_OPENING = '\1([{:=;|"“„「（：\n\r\t\u3000'
_CLOSING = ")）"
_TICKS = (0x2190, 0x21FF), (0x25A0, 0x27BF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1FAFF)
_RELATION = "<>≤≥±~≈≠√"
# Stand for every other character between words, for a Roman numeral, and for the ends of a text.
_OTHER, _NUMERAL, _END = "\2", "R", "\1\1"
# Above all characters in use: the letters that are several, such as those of a ligature.
_EXPANSIONS = 0xF_0000

_IS_ROMAN = re.compile(
    r"[ivx\u2160-\u217f]{2,}|(?!mix)m{0,3}(?:c[md]|d?c{0,3})(?:x[cl]|l?x{0,3})(?:i[xv]|v?i{0,3})"
).fullmatch
_SHORT_ROMAN = 2
_COUNTED_BY_ROMANS = re.compile(
    r"(?<!\w)(?:war|no|nr|article|artikel|class|type|stage|mark|schedule|parts|chapters|ch|part|parte|partie|teil|chapter|chapitre|capitulo|capitolo|kapitel|volume|vol|band|tome|tomo|book|buch|livre|"
    r"libro|section|sektion|abschnitt|titre|titulo|title|act|akt|acte|annex|appendix|phase|grade)\W{1,3}\Z"
)
_LONGEST_COUNTED = 14
_UNIT_WORDS = """
    nm μm mm cm dm m km mi ft yd mg μg g kg t lb lbs oz ml cl dl l hl ha ms sec min am pm a.m p.m px dpi
    kv mv ma kw mw gw kwh mwh gwh hz khz mhz ghz pa hpa kpa mpa bar kj mj kcal kb mb gb tb kbit mbit gbit kbps mbps gbps
    hundred thousand million millions billion billions trillion mn bn mio mrd mln mld millionen milliarde milliarden
    milliard milliards millones milioni miliardi мм см м км мг г кг т мл л мин тыс млн млрд
    公里 千米 厘米 毫米 米 里 毫克 千克 公斤 克 斤 吨 毫升 升 公顷 亩
    千 百 万 萬 亿 億 千万 百万 元 美元 欧元 日元 英镑 港元
"""
UNITS = frozenset(_UNIT_WORDS.split())
"""What belongs to a number that stands before it, with or without a blank; in small letters."""

ORDINALS = frozenset(["st", "nd", "rd", "th", "er", "re", "ere", "e", "eme"])
"""What ends a number, without a blank, and says nothing more."""


def text_numbers(texts: Sequence[str]) -> list[Hashes]:
    """
    Return for each text its numbers, a hash of its other letters, one of letters and digits, and how many numbers.
    The numbers are sorted, up to two for each: the place is in the upper half of the bits, the number in the lower.
    """
    return [_find(*spelt) for batch in text_batches(texts) for spelt in _spell(batch)]


def compare_numbers(first: Hashes, second: Hashes) -> tuple[Replaced, bool]:
    """
    Return whether only numbers, or signs, differ, or a number stands in the other text's place of another number; and
    whether most are replaced: more places have another number than the same one, and more than a number has.
    """
    if np.array_equal(first, second):
        return "same", False
    both = first[:-BEHIND], second[:-BEHIND]
    mine, others = (np.setdiff1d(*pair, assume_unique=True) for pair in (both, both[::-1]))
    replaced, kept = np.intersect1d(mine >> _HIGH, others >> _HIGH).size, both[0].size - mine.size
    are_most = replaced > max(_PLACES, kept)
    if first[-3] != second[-3]:
        return ("replaced" if replaced else "same"), are_most
    if (
        not replaced and (np.append(mine, others) & np.uint64(_WEAK)).all()
    ):  # the same numbers may have changed their places
        return ("same" if first[-2] == second[-2] else "only"), False
    return ("signs" if first[-2] == second[-2] else "only"), are_most


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


# Classes of characters as they are spelt: digits, with A to J for exponents; all that is neither digit nor letter;
# letters, and those of them that do not stand alone.
_D = "[0-9A-J]"
_KNOWN = _POINT + _BLANK + _PLUS + _MINUS + _UNIT + _OPENING + _CLOSING + _RELATION
_SIGNS = re.escape(_KNOWN + _OTHER + _NUMERAL) + _ranges(_TICKS)
_LETTER = f"[^0-9A-J{_SIGNS}]"
_BOUND = f"[^0-9A-J{_SIGNS}{_ranges((*UNSPACED, *LOGOGRAPHS))}]"
_NO_LETTERS = re.compile(f"[0-9A-J{_SIGNS}]+")
_BEGINS = re.compile(f"[0-9A-J{_NUMERAL}{_PLUS}.{_ranges(_TICKS)}]")
_NO_WORDS = re.compile(f"[{_SIGNS}]+")


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what a number is, what of it only groups its digits or says nothing, and the end of an ordinal."""
    spelt = [shown.strip(_END) for shown, _ in _spell(sorted(UNITS, key=len, reverse=True))]
    alone = "|".join(unit for unit in spelt if not re.match(_BOUND, unit))
    bound = "|".join(unit for unit in spelt if re.match(_BOUND, unit) and "." not in unit)
    ordinal = f"(?:{'|'.join(ORDINALS)})(?!{_BOUND})"
    named = f"°[cf](?!{_BOUND})|°?(?:(?:{bound})(?!{_BOUND})|[ap]\\.m(?!{_LETTER})|{alone})"
    unit = f"(?:[{_BLANK}]?(?:{named})|{ordinal})"
    run = f"(?:(?<!{_BOUND}){_D}+{unit}?|{_D}+)"
    # A blank groups digits that are no part of a word: up to three before it.
    free = "|".join(f"(?<=[{_SIGNS}]{_D * digits})" for digits in (1, 2, 3))
    grouping = f"(?:{free})[{_BLANK}](?={_D}{{3}}(?!{_D})(?:{unit}|(?!{_LETTER})))"
    joint = f"(?:(?<={_D})[{re.escape(_POINT)}](?={_D})|{grouping})"
    number = re.compile(
        f"(?P<number>{run}(?:{joint}?{run})*)|{_NUMERAL}+|(?P<tick>[{_ranges(_TICKS)}]+)"
        f"|(?<={_LETTER})[{_PLUS}]{{1,2}}(?![{_PLUS}]|{_D}|{_LETTER}){_NUMERAL}*"
        f"|(?<=[{_BLANK}{re.escape(_OPENING)}])\\.(?={_LETTER})"
    )
    ended = f"(?<={_D}){ordinal}"
    # 1,00,00,000
    indian = f",(?=(?:{_D}{_D},){{1,3}}{_D}{{3}}(?!{_D}))"
    grouped = f"[{_BLANK}°]|\\.(?=m)|[{re.escape(_POINT)}](?={_D}{{3}}(?!{_D}))|{indian}|{ended}"
    return number, re.compile(grouped), re.compile(ended)


_POINTS = re.compile(f"[{re.escape(_POINT)}]")
_NO_EXPONENT = re.compile(f"(?<!{_D})[A-J]")
_PLAIN_DIGITS = str.maketrans("ABCDEFGHIJ", "0123456789")


@functools.cache
def _known_signs() -> NDArray[np.bool_]:
    """Return which characters are spelt as they are, though they are no letters."""
    signs = np.zeros(CODE_POINTS, np.bool_)
    signs[list(map(ord, _KNOWN))] = True
    for first, last in _TICKS:
        signs[first : last + 1] = True
    return signs


def _spell(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """
    Yield each text as patterns read it, between its ends, and its characters, as many.
    Letters are as they are compared, without marks; digits are those of ASCII, exponents A to J.
    """
    codes, stops = join_codes([text.replace("℃", "°C").replace("℉", "°F") for text in texts])
    entries = character_entries(codes)
    is_seen = (entries > UNASSIGNED) & (entries < MARK)
    codes, stops, values = codes[is_seen], ends_among(is_seen, stops), entries[is_seen] & np.uint32(BASE)
    signs = np.where(_known_signs().take(codes), codes, ord(_OTHER))
    letters = np.where(values < CODE_POINTS, values, values - CODE_POINTS + _EXPANSIONS)
    is_exponent = np.isin(codes, to_codes(_EXPONENT))
    spelt = np.where(values > SEPARATOR, letters + (ord("A") - ord("0")) * is_exponent, signs)
    shown, given = (found.astype("<u4").tobytes().decode("utf-32-le") for found in (spelt, codes))
    start = 0
    for stop in stops.tolist():
        yield _END + shown[start:stop] + _END, _END + given[start:stop] + _END
        start = stop


def _mark_romans(shown: str, given: str) -> str:
    """Return *shown* with a mark for each numeral of a Roman number: words of such capitals behind what they count."""
    parts, last = list[str](), 0
    for match in re.finditer("[IVXLCDM\u2160-\u217f]+", given):
        start, stop = match.span()
        if _NO_WORDS.fullmatch(shown[start - 1]) and _NO_WORDS.fullmatch(shown[stop]):
            word, before = shown[start:stop], shown[max(0, start - _LONGEST_COUNTED) : start]
            is_number = set(word) <= {*"ivx"} or len(word) > _SHORT_ROMAN  # CD and DC are words
            is_sure = len(word) >= _SHORT_ROMAN and is_number and _IS_ROMAN(word)
            if is_sure or _COUNTED_BY_ROMANS.search(before):
                parts += shown[last:start], _NUMERAL * len(word)
                last = stop
    return "".join([*parts, shown[last:]])


def _find(shown: str, given: str) -> Hashes:
    """Return what :func:`text_numbers` returns of one text."""
    number, grouped, ended = _patterns()
    marked = _mark_romans(shown, given)
    numbers: list[tuple[int, int]] = []  # with the number of letters before each
    letters, words = list[str](), list[str]()
    before = last = 0
    for first in _BEGINS.finditer(marked):
        start = first.start()
        if start < last or (start == last and marked[start] in _PLUS):
            continue  # in a number, or behind its unit
        if (match := number.match(marked, start)) is None:
            continue
        stop = match.end()
        between = _NO_LETTERS.sub("", marked[last:start])
        before, last = before + len(between), stop
        letters.append(between)
        if match["number"] is None:
            value, said = given[start:stop], shown[start:stop]
        else:
            value = _POINTS.sub(".", grouped.sub("", match[0]))
            value = _NO_EXPONENT.sub(lambda digit: digit[0].translate(_PLAIN_DIGITS), value)
            value = "\1".join([value, *_beside(marked, start, stop)])
            said = ended.sub("", match[0]).translate(_PLAIN_DIGITS)
        words += between, _NO_WORDS.sub("", said)
        is_weak = match["tick"] is not None
        numbers.append((_hash(value) >> 32 & ~_WEAK | is_weak, before))
    between = _NO_LETTERS.sub("", marked[last:])
    every, spelt = "".join([*letters, between]), "".join([*words, between])
    places = set()
    for found, place in numbers:
        places.add(_hash(f"<{every[max(0, place - _SIDE) : place]}") >> 32 << 32 | found)
        # Where a text ends within six letters that is no place: many a text ends with a number of the same unit.
        if len(every) >= place + _SIDE:
            places.add(_hash(f">{every[place : place + _SIDE]}") >> 32 << 32 | found)
    return np.array([*sorted(places), _hash(every), _hash(spelt), len(places)], np.uint64)


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())


def _beside(text: str, start: int, stop: int) -> Iterator[str]:
    """Yield what belongs to a number beside its digits: a unit on either side, a minus, a relation, brackets."""
    before, after = text[start - 1], text[stop]
    second, following = text[start - 1 - (before in _BLANK)], text[stop + (after in _BLANK)]
    yield next((sign for sign in (before, after, second, following) if sign in _UNIT), "").translate(_WIDE_UNITS)
    sign = start - 1 - (before in _UNIT)
    yield "-" if text[sign] in _MINUS and text[sign - 1] in _BLANK + _OPENING else ""
    is_tag = second == ">" and text[start - 2 - (before in _BLANK)] not in _BLANK
    yield second if second in _RELATION and not is_tag else ""
    yield "()" if before in "(（" and after in _CLOSING and re.match(_D, text[stop - 1]) else ""
