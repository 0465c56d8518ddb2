"""
The numbers and signs of texts, and which of two texts has others in the same places.

A number is a run of digits of any script, with a point or comma between two of them: 2.5 and 2,5 are one number and the
same. A point, comma, apostrophe or blank before exactly three digits only groups them: 1,500 and 1 500 are 1500, and so
is 1,00,000 a 100000; ½ is 1/2, .5 is 0.5. 12:30 and 2026-01-31 are two and three numbers. A minus before a number
belongs to it, brackets around it, a currency or percent beside it, an exponent, a unit behind it: 5 mg, 5 g and 5
million are three numbers, and 5km is 5 km; 1st is 1. What is written with letters is none, such as 二, but a Roman
number in capitals is one: I, C and such after part, chapter and the like, I beside a logograph, and Ⅰ. Words of letters
and signs (C++, C#, .NET) count as numbers; so do marks such as ✓, → and emoji, where both texts have one. <, ≤, ± and
such before a number belong to it; not the end of a tag.

A number stands in a place: six letters before it, or six after it. Digits are no letters. If two texts have the same
place, and each has a number there that the other does not have there, a number was replaced. A number in a passage that
one text lacks was added or cut, and not replaced.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_simhash.hashing.characters import (
    BASE,
    CODE_POINTS,
    MARK,
    SEPARATOR,
    UNASSIGNED,
    Codes,
    Flags,
    Hashes,
    Places,
    are_new,
    character_entries,
    ends_among,
    expand,
    find_expansions,
    to_codes,
)
from es_simhash.texts.letters import stands_alone, text_batches
from es_simhash.texts.measures import Replaced
from es_simhash.texts.shingle_sets import mix_runs

BEHIND = 3
"""How many values stand behind the numbers of a text."""

# Letters of a place, on one side of a number.
_SIDE = 6
# Places that one number has at most: what stands before it, and after it.
_PLACES = 2
# Digits that are looked at of a longer number.
_DIGITS = 64
# Between two texts: no letter of any text.
_END = 1
_HIGH = np.uint64(32)
_ROMAN_SIGNS = 0x2160
# The last bit of what counts only where the other text has another one in its place.
_WEAK = np.uint64(1)

_POINT, _EXPONENT, _PLUS, _RELATION, _MINUS, _BLANK, _OPENING, _UNIT, _ROMAN, _TICK, _FRACTION = range(1, 12)
_KINDS = {
    _POINT: ".,'’\u066b\u066c",
    _BLANK: " \u00a0\u2009\u202f",
    _EXPONENT: "⁰¹²³⁴⁵⁶⁷⁸⁹",
    _PLUS: "+#",
    _MINUS: "-−–‐‑﹣",
    _UNIT: "$€£¥₹₽₩₺₪฿₫%‰°′″￥٪",
    _OPENING: '\1([{:=;|"“„「\n\r\t\u3000',
    _TICK: "".join(
        map(chr, (*range(0x2190, 0x2200), *range(0x25A0, 0x27C0), *range(0x1F1E6, 0x1F200), *range(0x1F300, 0x1FB00)))
    ),
    _ROMAN: "IVXLCDM" + "".join(map(chr, range(_ROMAN_SIGNS, 0x2180))),
    _RELATION: "<>≤≥±~≈≠√",
    _FRACTION: "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞",
}
_OTHER_UNITS = {"￥": "¥", "٪": "%"}
# Full-width signs up to }, and how far they stand from those of ASCII; ～ stands between numbers.
_WIDE, _WIDE_SIGNS, _WIDE_STEP = np.uint32(0xFF01), 0x5D, np.uint32(0xFEE0)
_IS_ROMAN = re.compile(r"[ivx]{2,}|(?!mix)m{0,3}(?:c[md]|d?c{0,3})(?:x[cl]|l?x{0,3})(?:i[xv]|v?i{0,3})").fullmatch
_SHORT_ROMAN = 2
_COUNTED_BY_ROMANS = re.compile(
    r"(?<!\w)(?:war|no|nr|article|artikel|class|type|stage|mark|schedule|parts|chapters|ch|part|parte|partie|teil|chapter|chapitre|capitulo|capitolo|kapitel|volume|vol|band|tome|tomo|book|buch|livre|"
    r"libro|section|sektion|abschnitt|titre|titulo|title|act|akt|acte|annex|appendix|phase|grade) {1,3}\Z"
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

_LONGEST_UNIT = max(map(len, UNITS))

ORDINALS = frozenset(["st", "nd", "rd", "th", "er", "re", "ere", "e", "eme"])
"""What ends a number, without a blank, and says nothing more."""


def text_numbers(texts: Sequence[str]) -> list[Hashes]:
    """
    Return for each text its numbers, a hash of its other letters, one of letters and digits, and how many numbers.
    The numbers are sorted, up to two for each: the place is in the upper half of the bits, the number in the lower.
    """
    return [found for batch in text_batches(texts) for found in _find(batch)]


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
    if not replaced and (np.append(mine, others) & _WEAK).all():  # the same numbers may have changed their places
        return ("same" if first[-2] == second[-2] else "only"), False
    return ("signs" if first[-2] == second[-2] else "only"), are_most


@functools.cache
def _kinds() -> NDArray[np.uint8]:
    kinds = np.zeros(CODE_POINTS, np.uint8)
    for kind, characters in _KINDS.items():
        kinds[list(map(ord, characters))] = kind
    return kinds


def _are(kinds: NDArray[np.uint8], first: int, last: int) -> Flags:
    found: Flags = (kinds >= first) & (kinds <= last)
    return found


def _moved(found: NDArray[Any], step: int) -> NDArray[Any]:
    """Return what stands so many places before each, or behind it; np.roll takes five times as long of a short text."""
    moved = np.empty_like(found)
    if step > 0:
        moved[step:], moved[:step] = found[:-step], 0
    else:
        moved[:step], moved[step:] = found[-step:], 0
    return moved


def _find(texts: Sequence[str]) -> list[Hashes]:
    # Six ends stand before, between and behind the texts: as many as a place has letters. So no letter of another text
    # is beside one.
    end = chr(_END) * _SIDE
    texts = [text.replace("℃", "°C").replace("℉", "°F") for text in texts]
    codes = to_codes(end + end.join(texts) + end)
    entries = character_entries(codes)
    stops = np.cumsum(np.fromiter(map(len, texts), np.intp, len(texts)) + _SIDE)
    codes = codes - _WIDE_STEP * (codes - _WIDE < _WIDE_SIGNS)  # what stands before these is far behind them now
    places, _, more = find_expansions(entries)
    if places.size:  # such as ½ and ㎏; what follows ½ belongs to its last digits
        more_codes = np.where(_kinds().take(codes[places]) == _FRACTION, ord("/"), codes[places])
        codes = np.insert(codes, np.repeat(places + 1, more), np.repeat(more_codes, more))
        entries, stops = expand(entries, stops)
    # One value for each character, so marks count for nothing here.
    is_seen = (entries > UNASSIGNED) & (entries < MARK)
    if not is_seen.all():
        codes, entries, stops = codes[is_seen], entries[is_seen], ends_among(is_seen, stops)
    kinds, values = _kinds().take(codes), entries & np.uint32(BASE)
    is_digit = (values >= ord("0")) & (values <= ord("9"))
    is_letter = (values > SEPARATOR) & ~is_digit
    is_word = is_letter | is_digit
    is_roman = _find_romans(codes, values, kinds == _ROMAN, is_word)
    is_letter &= ~is_roman
    is_unit, is_silent = _find_units(codes, kinds, values, is_letter, is_digit)
    is_letter &= ~is_unit
    others = _hash_parts(values, is_letter, stops)
    is_sign = _find_signs(codes, kinds, is_letter, is_digit)
    is_part, is_dropped = _find_joints(codes, kinds, values, is_letter, is_digit)
    is_dropped |= is_silent
    all_letters = _hash_parts(values, is_word & ~is_dropped, stops)
    is_number = is_digit | is_part | is_roman | is_sign | is_unit
    # A mark or a fraction beside a number is another one.
    runs = is_number.view(np.int8) + (kinds >= _TICK) * np.int8(2)
    starts = np.flatnonzero(is_number & (runs != _moved(runs, 1)))
    found: list[Hashes] = [np.empty(0, np.uint64)] * len(texts)
    if starts.size:
        is_exponent = (kinds == _EXPONENT) & _moved(is_digit, 1)
        digits = np.where(is_digit, values + (np.uint32(MARK) * is_exponent), codes)
        digits[is_part] = ord(".")
        digits[is_unit | is_roman] = values[is_unit | is_roman]
        numbers = _hash_numbers(digits, starts, is_number & ~is_dropped)
        last = np.flatnonzero(is_number & (runs != _moved(runs, -1))) + 1
        beside = np.where(
            is_digit[starts] | is_part[starts], _beside(codes, kinds, starts, last, is_unit), np.uint64(0)
        )
        numbers = (numbers + beside) * np.uint64(0x9E37_79B9_7F4A_7C15)
        numbers = numbers >> _HIGH & ~_WEAK | (kinds[starts] == _TICK)
        found = _place(numbers, starts, np.where(codes == _END, _END, values), is_letter | (codes == _END), stops)
    both = zip(found, others, all_letters, strict=True)
    return [np.append(part, np.array([*hashes, part.size], np.uint64)) for part, *hashes in both]


def _hash_parts(values: Codes, is_kept: Flags, stops: Places) -> list[int]:
    """Return a hash of what is kept of each text."""
    kept, ends = values[is_kept], ends_among(is_kept, np.append(0, stops)).tolist()
    return [xxhash.xxh3_64_intdigest(kept[start:stop].tobytes()) for start, stop in pairwise(ends)]


def _find_romans(codes: Codes, values: Codes, is_numeral: Flags, is_word: Flags) -> Flags:
    """Return which characters are Roman numbers: such capitals, or one by a logograph or behind a word for a part."""
    found = np.zeros(values.size, np.bool_)
    starts = np.flatnonzero(is_numeral & ~_moved(is_numeral, 1))
    if not starts.size:
        return found
    stops = np.flatnonzero(is_numeral & ~_moved(is_numeral, -1)) + 1
    is_ordinal = (codes[stops] == ord("e")) & ~is_word[np.minimum(stops + 1, codes.size - 1)]  # XXe siècle
    beside = np.stack([starts - 1, stops + is_ordinal])
    is_whole = (~is_word[beside] | stands_alone(values[beside])).all(axis=0)
    least = np.where(is_word[beside].any(axis=0) | (codes[starts] >= _ROMAN_SIGNS), 1, _SHORT_ROMAN)
    for start, stop, fewest in np.stack([starts, stops, least], axis=1)[is_whole].tolist():
        word, before = (
            values[begin:end].tobytes().decode("utf-32-le", "replace")
            for begin, end in ((start, stop), (max(0, start - _LONGEST_COUNTED), start))
        )
        is_number = set(word) <= {*"ivx"} or len(word) > _SHORT_ROMAN  # CD and DC are words
        is_sure = len(word) >= fewest and is_number and _IS_ROMAN(word)
        found[start:stop] = bool(is_sure or _COUNTED_BY_ROMANS.search(before))
    return found


def _find_signs(codes: Codes, kinds: NDArray[np.uint8], is_letter: Flags, is_digit: Flags) -> Flags:
    """Return which characters are marks, or signs that make another word: of C++, C# and A+, and the point of .NET."""
    is_plus = kinds == _PLUS
    is_open = _are(kinds, _BLANK, _OPENING)
    is_last = is_plus & ~_moved(is_plus | is_letter | is_digit, -1)
    is_first = is_plus & _moved(is_letter, 1) & (is_last | _moved(is_last, -1))
    is_point = (codes == ord(".")) & _moved(is_open, 1) & _moved(is_letter, -1)
    found: Flags = is_first | (is_last & _moved(is_first, 1)) | is_point | (kinds == _TICK)
    return found


@functools.cache
def _units() -> list[Hashes]:
    """Return the hashes of units, of those that need no end of a word behind them, and of ordinals."""
    hashed = list[Hashes]()
    alone = {unit for unit in UNITS if stands_alone(to_codes(unit[:1]))[0]}
    for words in (UNITS - alone, alone, ORDINALS):
        codes = [character_entries(to_codes(word)) & np.uint32(BASE) for word in sorted(words)]
        sizes = np.array(list(map(len, codes)))
        letters = np.where(np.concatenate(codes) > SEPARATOR, np.concatenate(codes), ord("."))
        hashed.append(mix_runs(letters.astype(np.uint64), np.cumsum(sizes) - sizes, sizes))
    return hashed


def _find_units(
    codes: Codes, kinds: NDArray[np.uint8], values: Codes, is_letter: Flags, is_digit: Flags
) -> list[Flags]:
    """Return which characters belong to a number behind its digits, and which of these say nothing, such as a blank."""
    is_taken, is_dropped = np.zeros((2, codes.size), np.bool_)
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1])
    if not edges.size:
        return [is_taken, is_dropped]
    units, alone, ordinals = _units()
    before, ends = edges[::2], edges[1::2] + 1
    ends = ends[~is_letter[before] | stands_alone(codes[before])]  # no number of a word, such as w2l
    starts = ends + _are(kinds[ends], _MINUS, _BLANK)  # a 5-km run, a 5 km run
    is_degree = codes[starts] == ord("°")
    starts = starts + is_degree
    # What follows each number, row by row: the work does not grow with the text.
    behind = np.minimum(starts[:, None] + np.arange(_LONGEST_UNIT + 2), codes.size - 1)
    followed, is_spelt = codes[behind], is_letter[behind]
    letters = np.where(is_spelt, values[behind], followed)
    run = np.argmin(is_spelt & ~stands_alone(followed), axis=1)  # none where it is longer than any unit
    is_dotted = (run == 1) & (followed[:, 1] == ord(".")) & ~is_spelt[:, 3]
    sizes = np.where(is_degree & (run == 1) & np.isin(letters[:, 0], list(map(ord, "cf"))), 1, 0)
    rows = np.arange(starts.size) * letters.shape[1]
    hashed = letters.astype(np.uint64).ravel()
    for size, known, may_be in (
        (run, units, run > 0),
        (3, units, is_dotted),
        (2, alone, is_spelt[:, 0]),
        (1, alone, is_spelt[:, 0]),
        (run, ordinals, starts == ends),
    ):
        tried = np.where(may_be & (sizes == 0), size, 0)
        is_known = np.isin(mix_runs(hashed, rows, tried), known)
        sizes = np.where(is_known, tried, sizes)
    is_dropped[starts[is_dotted & (sizes > 1)] + 1] = True
    is_ordinal = is_known[sizes > 0]
    firsts, starts, stops = ends[sizes > 0], starts[sizes > 0], (starts + sizes)[sizes > 0]
    is_taken[_spans(firsts, stops)] = True
    is_dropped[_spans(firsts, np.where(is_ordinal, stops, starts))] = True
    return [is_taken, is_dropped]


def _spans(starts: Places, stops: Places) -> Places:
    """Return the places from each of *starts* to before its stop."""
    sizes = stops - starts
    return np.repeat(stops - np.cumsum(sizes), sizes) + np.arange(sizes.sum())


def _find_joints(
    codes: Codes, kinds: NDArray[np.uint8], values: Codes, is_letter: Flags, is_digit: Flags
) -> tuple[Flags, Flags]:
    """Return which characters stand between digits of one number, and which of these only group them."""
    is_between = _moved(is_digit, 1) & _moved(is_digit, -1)
    is_point = (kinds == _POINT) & is_between
    after = [_moved(is_digit, -step) for step in range(1, 5)]
    groups = is_between & after[1] & after[2] & ~after[3]
    # A blank groups digits that are no part of a word: up to three before it.
    is_free, is_run = np.zeros(codes.size, np.bool_), _moved(is_digit, 1)
    for step in range(2, 5):
        is_free |= is_run & ~_moved(is_digit | is_letter, step)
        is_run = is_run & _moved(is_digit, step)
    is_blank = (kinds == _BLANK) & groups & is_free & ~_moved(is_letter, -4)
    is_dropped = is_blank | (is_point & groups)
    is_comma = is_point & (codes == ord(","))
    for _ in range(3):  # 1,00,00,00,000
        is_dropped |= is_comma & after[1] & _moved(is_comma & is_dropped, -3)
    is_part = is_point | is_blank
    points = np.flatnonzero((codes == ord(".")) & after[0])
    is_part[points] |= _are(kinds[points - 1], _RELATION, _UNIT)
    is_zero = is_point & _moved((values == ord("0")) & ~_moved(is_digit | is_point, 1), 1)  # .5 is 0.5
    is_dropped = (is_dropped & ~is_zero) | _moved(is_zero, -1)
    return is_part, is_dropped


def _hash_numbers(digits: Codes, starts: Places, is_kept: Flags) -> Hashes:
    kept = np.flatnonzero(is_kept)
    firsts = np.searchsorted(kept, starts)
    sizes = np.minimum(np.diff(firsts, append=kept.size), _DIGITS)
    return mix_runs(digits[kept].astype(np.uint64), firsts, sizes)


def _beside(codes: Codes, kinds: NDArray[np.uint8], starts: Places, stops: Places, is_unit: Flags) -> Hashes:
    """Return a number for what belongs to each number beside its digits: a unit on either side, a minus, brackets."""
    before, after = starts - 1, stops
    units = np.zeros(starts.size, np.uint64)
    for place in (after + (kinds[after] == _BLANK), before - (kinds[before] == _BLANK), before, after):
        units = np.where(kinds[place] == _UNIT, codes[place], units)
    for other, usual in _OTHER_UNITS.items():
        units[units == ord(other)] = ord(usual)
    signs = before - (kinds[before] == _UNIT)
    # Behind a logograph, most are ranges and names, such as 歼-20, but for -5℃.
    is_apart = _are(kinds[signs - 1], _BLANK, _OPENING) | (
        stands_alone(codes[signs - 1]) & ((units > 0) | is_unit[after - 1])
    )
    is_minus = (kinds[signs] == _MINUS) & is_apart
    relations = np.zeros(starts.size, np.uint64)
    for place in (before - (kinds[before] == _BLANK), before):
        is_tag = (codes[place] == ord(">")) & (kinds[place - 1] != _BLANK)
        relations = np.where((kinds[place] == _RELATION) & ~is_tag, codes[place], relations)
    in_brackets = (codes[before] == ord("(")) & (codes[after] == ord(")")) & ~is_unit[after - 1]
    found: Hashes = (
        units + np.uint64(1 << 21) * is_minus + np.uint64(1 << 22) * in_brackets + (relations << np.uint64(24))
    )
    return found


def _place(numbers: Hashes, starts: Places, values: Codes, is_letter: Flags, stops: Places) -> list[Hashes]:
    """Return for each text its numbers with their places, sorted."""
    letters = values[is_letter].astype(np.uint64)
    before = np.searchsorted(np.flatnonzero(is_letter), starts)
    side = np.full(starts.size, _SIDE)
    owners = np.searchsorted(stops, starts, side="right")
    # Where a text ends within six letters that is no place: many a text ends with a number of the same unit.
    has_after = letters[before + (_SIDE - 1)] != _END
    places = np.concatenate(
        [mix_runs(letters, before - _SIDE, side), ~mix_runs(letters, before, side)[has_after]], dtype=np.uint64
    )
    numbers, owners = (np.concatenate([column, column[has_after]]) for column in (numbers, owners))
    entries = places >> _HIGH << _HIGH | numbers
    order = np.lexsort((entries, owners))
    entries, owners = entries[order], owners[order]
    is_new = are_new(entries, owners)
    entries, owners = entries[is_new], owners[is_new]
    return np.split(entries, np.searchsorted(owners, np.arange(1, stops.size)))
