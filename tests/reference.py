"""
The slow, obvious oracle: fingerprints in plain Python, one character and one bit at a time, and groups by comparison.

No numpy and none of the library's own code, but for the shipped table of characters. What is done with its entries is
spelt out here a second time, from docs/design.md.
"""

import functools
import hashlib
import math
import re
import struct
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import xxhash

from es_simhash.hashing.characters import BASE, MARK, character_entries, expansion_values, to_codes


def simhash(hashes, weights=None):
    """Charikar's sum with exact fractions, rounded to multiples of 2**-20."""
    hashes = list(hashes)
    weights = [1] * len(hashes) if weights is None else weights
    fixed = [round(Fraction(weight) * 2**20) for weight in weights]
    result = 0
    for bit in range(64):
        total = sum(weight if value >> bit & 1 else -weight for value, weight in zip(hashes, fixed, strict=True))
        if total > 0:
            result |= 1 << bit
    return result


def hash_bytes(data, name="xxh3_64"):
    """One hash by the library that defines it, or by its definition."""
    if name == "xxh3_64":
        return xxhash.xxh3_64(data).intdigest()
    if name == "md5":
        return int(hashlib.md5(data).hexdigest()[16:], 16)  # noqa: S324
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


@functools.cache
def letters_of(text):
    """The letters of a text with their marks, one character at a time; docs/design.md says what the table holds."""
    found, expansions = [None], expansion_values()
    for entry in character_entries(to_codes(text)).tolist():
        if entry >= MARK:
            if found[-1] is not None:
                found[-1] = (found[-1] + entry) % MARK
            continue
        for value in expansions[entry - 0x110000] if 0x110000 <= entry <= BASE else [entry]:
            if value > 1:
                found.append(None if value == 0x20 else value)
    written = []
    for letter in found:
        if letter is not None:
            base, added = letter & BASE, letter >> 21 & 3
            second = "e" if added == 1 and base in map(ord, "aou") else "a" if added == 2 and base == ord("a") else ""
            written += [letter & ~(3 << 21), ord(second)] if second else [letter]
    return tuple(written)


def hashed_letters(text):
    """The letters without the marks that no fingerprint sees."""
    return tuple(letter & 0x39FFFFF for letter in letters_of(text))


@functools.cache
def letters(letter):
    """What a letter is worth: 6 for a logograph, 4 for kana, 3 for any other."""
    code = letter & BASE
    logographs = [
        (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
        (0xA000, 0xA48C), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0x20000, 0x3FFFD),
    ]  # fmt: skip
    kana = [(0x3041, 0x30FF), (0x3105, 0x312F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x1AFF0, 0x1B16F)]
    if any(first <= code <= last for first, last in logographs):
        return 6
    return 4 if any(first <= code <= last for first, last in kana) else 3


def runs_worth(units, worths, least):
    """The shortest run of *units* from each place that is worth *least*, where there is one."""
    for start in range(len(units)):
        for end in range(start + 1, len(units) + 1):
            if sum(worths[start:end]) >= least:
                yield units[start:end]
                break


def shingles(text, size):
    """Counted shingles worth at least *size* letters each, padded to *size* letters."""
    found = hashed_letters(text)
    padded = [(*run, *[0] * (size - len(run))) for run in runs_worth(found, list(map(letters, found)), 3 * size)]
    return Counter(padded) or Counter([(*found, *[0] * (size - len(found)))] if found else [])


@functools.cache
def is_unspaced(letter):
    """Whether a letter belongs to a script written without spaces."""
    code = letter & BASE
    ranges = [
        (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),
        (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x30FF), (0x3105, 0x312F),
        (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),
        (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFD),
    ]  # fmt: skip
    return any(first <= code <= last for first, last in ranges)


def weight(count, weighting):
    """The weight of a feature that comes several times."""
    if weighting == "log":
        return 1 + math.log(min(count, 65536))
    return count if weighting == "linear" else 1


def fingerprint(text, *, size=4, weighting="log", hash="xxh3_64"):
    """Fingerprint of a text by shingles, or None."""
    merged = Counter()
    for shingle, count in shingles(text, size).items():
        merged[hash_bytes(struct.pack(f"<{len(shingle)}I", *shingle), hash)] += count
    if not merged:
        return None
    return simhash(merged, [weight(count, weighting) for count in merged.values()])


def keywords(text, top=20):
    """TF-IDF keywords with weights by jieba itself, ranked by fixed-point weight and code points."""
    import jieba.analyse

    found = jieba.analyse.extract_tags(text, topK=None, withWeight=True)
    ranked = sorted(found, key=lambda item: (-round(item[1], 12), item[0]))
    return ranked[:top]


def distance(a, b):
    """Bits that differ."""
    return sum((a >> bit ^ b >> bit) & 1 for bit in range(64))


@functools.cache
def letters_only(text):
    """
    The letters of a text as they are compared: Greek without accents, \u0451 and a dotted i without their marks; a
    Vietnamese tone on the second vowel of oa, oe, uy.
    """
    without = letters_of("\u0451i\u0307")
    found = [
        letter & BASE if 0x370 <= letter & BASE < 0x400 or letter in without else letter for letter in letters_of(text)
    ]
    tones = [letter - ord("o") for letter in letters_of("òóỏõọ")]
    for place in range(len(found) - 1):
        for first, second in ("oa", "oe", "uy"):
            if found[place] - ord(first) in tones and found[place + 1] == ord(second):
                found[place], found[place + 1] = ord(first), found[place + 1] + found[place] - ord(first)
    return tuple(found)


def is_alone(letter):
    """Whether a letter is a unit by itself: a logograph, or of a script written without spaces."""
    return is_unspaced(letter) or letters(letter) == 6


@functools.cache
def cut_hash(before, letter):
    """What decides where a text is cut, of two letters that stand side by side; modulo 2**32."""
    value = (letter * 0x9E3779B1 + before * 0x85EBCA77) % 2**32
    value = (value ^ value >> 15) * 0x2C1B3C6D % 2**32
    return value ^ value >> 12


@functools.cache
def pieces(text):
    """The pieces of a text: one begins where a hash is the smallest of three, and beside a character that is alone."""
    found = letters_only(text)
    hashes = [cut_hash(*pair) for pair in pairwise(found)]
    hashes = [2**32 - 1, *hashes]
    cut = []
    for place, letter in enumerate(found):
        before, after = hashes[max(0, place - 1) : place], hashes[place + 1 : place + 2]
        has_all = len(before) == len(after) == 1 < place
        is_smallest = has_all and hashes[place] < before[0] and hashes[place] <= after[0]
        is_beside = place > 0 and (is_alone(letter) or is_alone(found[place - 1]))
        if place == 0 or is_smallest or is_beside or len(cut[-1]) == 16:
            cut.append(())
        cut[-1] += (letter,)
    return cut


@functools.cache
def shingle_runs(text):
    """Runs of pieces that are worth 15: 8 for one of letters, 3 for a character by itself."""
    found = pieces(text)
    runs = set(map(tuple, runs_worth(found, [3 if is_alone(piece) else 8 for piece in map(first_of, found)], 15)))
    return frozenset(runs or ({tuple(found)} if found else ()))


def first_of(piece):
    return piece[0]


def share_of_few(first, second, *, runs=shingle_runs):
    """Jaccard similarity and containment of runs, where what the smaller text has alone, but for one, counts more."""
    one, other = runs(first), runs(second)
    smaller, shared = min(len(one), len(other)), len(one & other)
    if not smaller:
        return Fraction(0), Fraction(0)
    extra = 16 * max(0, smaller - shared - 1) * max(Fraction(0), Fraction(45, smaller) - 1)
    return shared / (len(one | other) + extra), shared / (smaller + extra)


def jaccard(first, second):
    """Shared runs of pieces as a share of all runs of two texts."""
    return share_of_few(first, second)[0]


def letter_runs(text):
    """Runs of letters that are worth 15: 3 for a letter, 4 for a kana, 6 for a logograph."""
    found = letters_only(text)
    runs = set(runs_worth(found, [letters(each) for each in found], 15))
    return frozenset(runs or ({found} if found else ()))


@functools.cache
def long_runs(text, size=7):
    """Runs of so many letters, or of 5 characters by themselves."""
    found = letters_only(text)
    runs = set(runs_worth(found, [size if is_alone(each) else 5 for each in found], 5 * size))
    return frozenset(runs or ({found} if found else ()))


GROUPED = re.compile(r"(?<![^\W_])[0-9]{1,3}(?: [0-9]{3}(?![^\W_]))+")
NUMBER = re.compile(r"(?:(?<![^ ($\u20ac%\u2030])[.])?[0-9]+(?:[.,'_][0-9]+)*")
ZERO = re.compile(r"(?<![0-9])0(?=[.](?![0-9]{3}(?![0-9]))[0-9])")
INDIAN = re.compile(r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}")
SIGNS = re.compile(r"(?<=[^\W\d_])(?:[+#]{1,2})(?![+#\w])|(?<![^ (])[.](?=[^\W\d_])|[\u2713\u2717]+")
EXPONENTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"


def numbers(text):
    """The numbers of a text with six letters before each, and after each where there are six, without other numbers."""
    found = GROUPED.sub(lambda grouped: grouped[0].replace(" ", "_"), "".join(map(plain_digit, text)))
    where = []
    for match in [*NUMBER.finditer(found), *SIGNS.finditer(found)]:
        begin, end = match.span()
        value = "".join(
            "^" + digit if text[place] in EXPONENTS and place > begin else digit
            for place, digit in enumerate(match[0], begin)
        )
        value = INDIAN.sub(lambda grouped: grouped[0].replace(",", ""), value)
        value = re.sub(r"(?<=[0-9])[.,_'](?=[0-9]{3}(?![0-9]))", "", ZERO.sub("", value))
        value = (*re.sub("[,']", ".", value), *beside(found, begin, end)) if match.re is NUMBER else match[0]
        is_weak = match[0][0] in "\u2713\u2717"
        before, after = (without_digits(part) for part in (found[:begin], found[end:]))
        where.append(("before", (*[0] * (6 - len(before)), *before[-6:]), value, is_weak))
        if len(after) >= 6:
            where.append(("after", after[:6], value, is_weak))
    return set(where)


def beside(text, begin, end):
    """The currency or percent on either side of a number, a minus before it, brackets around it."""
    padded = f"   {text}   "
    before, after = padded[: begin + 3], padded[end + 3 :]
    units = [
        before[-1],
        after[0],
        *([before[-2]] if before[-1] == " " else []),
        *([after[1]] if after[0] == " " else []),
    ]
    unit = next((sign for sign in units if sign in "$\u20ac%\u2030"), "")
    sign = before[:-1] if before[-1] in "$\u20ac%\u2030" else before
    is_minus = sign[-1] == "-" and sign[-2] in " ("
    return unit, is_minus, before[-1] == "(" and after[0] == ")"


def plain_digit(character):
    entry = int(character_entries(to_codes(character))[0])
    return chr(entry) if ord("0") <= entry <= ord("9") else character


def without_digits(text):
    return tuple(letter for letter in letters_only(text) if not ord("0") <= letter <= ord("9"))


def without_zeros(text):
    """The letters and digits, but for a zero before a point."""
    return letters_only(ZERO.sub("", text))


def compare_numbers(first, second):
    """Whether only numbers, or signs, differ, or one stands in the other text's place of another number."""
    one, other = numbers(first), numbers(second)
    mine, others = ({place[:2] for place in pair} for pair in (one - other, other - one))
    if without_digits(first) != without_digits(second):
        return "replaced" if mine & others else "same"
    if not mine & others and all(is_weak for *_, is_weak in one ^ other):
        return "same" if without_zeros(first) == without_zeros(second) else "only"
    return "signs" if without_zeros(first) == without_zeros(second) else "only"


def most_numbers_replaced(first, second):
    """Whether more places have another number than the same one, and more than the two of one number."""
    one, other = numbers(first), numbers(second)
    mine, others = ({place[:2] for place in pair} for pair in (one - other, other - one))
    return len(mine & others) > max(2, len(one & other))


@functools.cache
def edits(first, second):
    """The fewest units that are replaced, inserted or deleted, by the table of the textbook."""
    row = list(range(len(second) + 1))
    for number, one in enumerate(first, 1):
        above, row = row, [number]
        for place, other in enumerate(second, 1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (one != other)))
    return row[-1]


def edit_similarity(first, second, *, cut=letters_only):
    """The units that stay as a share of the longer text; 0 where either has none."""
    one, other = cut(first), cut(second)
    if not one or not other:
        return Fraction(0)
    longest = max(len(one), len(other))
    return Fraction(longest - edits(tuple(one), tuple(other)), longest)


def are_neighbours(first, second, *, max_distance, similarity=None, measure=jaccard, per=None, within=None):
    """
    Whether two documents, given as dicts, are neighbours; "text" and "fingerprint" are None where there is none.
    *per* names a key with a list of values, *within* is a key with a list of moments and the largest difference.
    """
    prints = first["fingerprint"], second["fingerprint"]
    near = distance(*prints) <= max_distance
    if near and per is not None:
        near = bool(first[per]) and set(first[per]) == set(second[per])
    if near and within is not None:
        dates = first[within[0]], second[within[0]]
        near = all(dates) and abs(min(dates[0]) - min(dates[1])) <= within[1]
    if near and similarity is not None:
        texts = first["text"], second["text"]
        near = None not in texts and float(measure(*texts)) >= similarity
        near = near and not (0 < similarity < 1 and any(map(is_short, texts)))
    return near


def is_short(text):
    """Whether a text has fewer than 20 letters; 2 kana count 3, and 2 logographs 5."""
    return sum({3: 2, 4: 3, 6: 5}[letters(letter)] for letter in letters_only(text)) < 40


def canonical_order(documents, keys):
    """The places of documents as dicts, the preferred first: by *keys*, id, index, routing."""

    def rank(document, key):
        if key == "id":
            return 0
        if key == "longest":
            return -len(document["text"] or "")
        if ":" in key:
            field, _, listed = key.partition(":")
            names = listed.split(">")
            others = names.index("*") if "*" in names else len(names)
            return min((names.index(value) if value in names else others for value in document[field]), default=99)
        if key.startswith("-"):
            return -max(document[key[1:]], default=float("-inf"))
        return min(document[key], default=float("inf"))

    def place_of(place):
        document = documents[place]
        names = document["id"], document["index"], document.get("routing") or ""
        return [rank(document, key) for key in keys], [name.encode() for name in names]

    return sorted(range(len(documents)), key=place_of)


def star_of(count, near):
    """Return the place of each one's canonical, one after the other; *near* says whether two places are neighbours."""
    canonicals, places = [], []
    for place in range(count):
        found = [each for each in canonicals if near(each, place)]
        if not found:
            canonicals.append(place)
        places.append(found[0] if found else place)
    return places


def star(values, max_distance):
    """Return the place of each fingerprint's canonical."""
    return star_of(len(values), lambda a, b: distance(values[a], values[b]) <= max_distance)


GRAM, GUARANTEE = 12 * 25, 12 * 100


def worth(character):
    """What a character is worth for passages, in twelfths of a letter: 5/4 letters a logograph, 4/3 a kana."""
    return {6: 15, 4: 16, 3: 12}[letters(character)]


def run_of(text, least):
    """The shortest beginning of *text* whose characters are worth *least* or more, or None."""
    total = 0
    for end, character in enumerate(text, 1):
        total += worth(character)
        if total >= least:
            return text[:end]
    return None


def run_of_letters(text, least):
    """The shortest beginning of *text* of at least so many letters, and no shorter than a window of passages."""
    lengths = {6: 30, 4: 16, 3: 12}
    total, window = 0, run_of(text, GUARANTEE)
    for end, character in enumerate(text, 1):
        total += lengths[letters(character)]
        if total >= 12 * least:
            return None if window is None else text[: max(end, len(window))]
    return None


@functools.cache
def run_hash(run):
    """A polynomial modulo 2**64, mixed by the last steps of splitmix64."""
    value = sum(letter * pow(0x9E3779B97F4A7C15, place, 2**64) for place, letter in enumerate(run)) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def grams(stripped):
    """The hash of each gram of the letters of a text."""
    found = [run_of(stripped[start : start + GRAM], GRAM) for start in range(len(stripped))]
    return [run_hash(gram) for gram in found if gram is not None]


def windows(stripped):
    """The shortest runs worth the guarantee, one for each place at which such a run begins."""
    found = [run_of(stripped[start : start + GUARANTEE], GUARANTEE) for start in range(len(stripped))]
    return [window for window in found if window is not None]


def passage_terms(text):
    """The terms that winnowing keeps of a text: the smallest hash of each window, in base 64, sorted."""
    stripped = hashed_letters(text)
    if not stripped:
        return []
    kept = {min(grams(window)) for window in windows(stripped)}
    kept = kept or {min(grams(stripped), default=run_hash(stripped))}
    digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    return sorted({"".join(digits[value >> 6 * place & 63] for place in range(5, -1, -1)) for value in kept})
