"""
What is lost if one document goes for another: the class of a line of a plan. Pure. Loads numpy: import lazily.

A text is words, numbers and ends of sentences. Symbols (a minus, <, an arrow, an emoji) count as numbers. A word of a
script without spaces is one character; three words, or five such characters, are a run. A document is *contained* in
another one if each of its sentences stands there whole: the first may lack its beginning there, if that ends as an
agency line does; the last may lack its end, if the text goes on there (it was cut). A sentence that is shorter than a
run, and a short line without an end, such as a cell of a table, must stand between its neighbours. Every number must
stand there as often. So each run and each number of what goes stands in what stays.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from es_simhash.hashing.characters import UNSPACED, Hashes
from es_simhash.removal.losses import LOSSLESS, Loss
from es_simhash.texts.letters import compared_letters
from es_simhash.texts.measures import Replaced
from es_simhash.texts.numbers import ORDINALS, UNITS, compare_numbers, text_numbers

FEW_WORDS, FEW_CHARACTERS, FEW_SHARE = 8, 20, 1 / 30

# What a word and a character by itself count, and how long a run is: three words, or five characters.
_WORD, _ALONE, _RUN = 5, 3, 15
_MORE = 10
"""Characters that follow where a text was cut."""
_MOST = 500
"""Words of a title, or of a sentence without its beginning, that are looked for: each of its places takes so long."""
# Eight words: a line that is shorter, and ends no sentence, may be a cell of a table.
_LINE = 40

_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_MARKS = (
    r"\x00-/:-@\[-`{-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2000-\u206f\u2190-\u2bff"
    r"\u3000-\u3004\u3008-\u3020\u30fb\ufe30-\ufe4f\uff5b-\uff65"
)
_MANY = "十百千万萬亿億兆"
_DIGIT = f"〇零一二三四五六七八九两兩壹贰叁肆伍陆柒捌玖拾{_MANY[0]}"
_DASHES = r"\-\u2010-\u2015\u2212"
_GROUPED = re.compile(r"(?<=\d)[,'’ \u00a0\u2009\u202f](?=\d{3}(?!\d))")
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")


_SITE = re.compile(r"\s[-–—·•]+\s|[|｜_]+")
"""What stands between the title of a page and the name of its site."""
_SITE_NAMES = 4

_IS_CASED = re.compile(r"[kmgt]?(?:w|wh|b|bit|v|a|hz|pa|j|bq)").fullmatch
"""Units whose case says which: 5 mW and 5 MW."""

_IS_ENDED = re.compile(r"(?<![.…])[.!?。！？．](?![.…])\W*\Z").search
_IS_NUMBER_WORD = re.compile(
    r"""
    zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen
    |(?:twen|thir|for|fif|six|seven|eigh|nine)ty|(?:hundred|thousand|[mbtr]+illion|dozen)s?|half|quarter
    |first|second|third|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf)th
    |jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?
    |oct(?:ober)?|nov(?:ember)?|dec(?:ember)?
    |mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?
    """,
    re.VERBOSE,
).fullmatch


@functools.cache
def _tokens() -> re.Pattern[str]:
    """Return the pattern of the parts of a text, made once: to find the symbols (no lines, no boxes) takes long."""
    codes = [
        code
        for code in (*range(0x2500), *range(0x2580, 0x10000), *range(0x1F000, 0x20000))
        if chr(code) in "^%‰′″" or (unicodedata.category(chr(code)) in {"Sc", "Sm", "So"} and chr(code) not in "|©®™")
    ]
    # Ranges: re tries characters beyond the first plane one by one, at every letter.
    runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
    symbols = "".join(f"\\U{run[0]:08x}-\\U{run[-1]:08x}" for run in runs)
    units = "|".join(sorted((unit for unit in UNITS if re.fullmatch(f"[{_UNSPACED}]+", unit)), reverse=True))
    return re.compile(
        rf"""
    (?P<rule> ([=~+<>*_\#-]) \2{{2,}} )
    | (?P<number> \.? \d+ (?: [.,:'’/\u2044] \d+ )* [{_MANY}]* (?: [ ]? (?: {units} | ° [ ]? [CFcf] (?!\w) ) )?
      | (?: 星期 | 礼拜 | 禮拜 | 周 | 週 ) [一二三四五六日天]
      | [{_DIGIT}] [{_DIGIT}{_MANY}]*
      | [{_DASHES}] (?= [ $€£¥]? \d )
      | (?<=\w) [-\u2212] (?! [\w\r\n] )
      | \( (?= [$€£¥]? [\d.,]+ \) )
      | (?<! [\w.]) \. (?= [^\W\d])
      | != | (?<!\w) ! (?=\w) | (?<=\d) ! | && | \|\| | (?<=\w) \# (?=\w) | (?<=[^\n\t]) \t (?=\t)
      | [{symbols}] )
    | (?P<alone> [{_UNSPACED}] )
    | (?P<word> [^\s\d{_UNSPACED}{_MARKS}{symbols}]+ (?: [+\#]+ (?!\w) )? )
    | (?P<end> [!?…。！？；;] | (?<!\b\w) \. (?!\w) )
    | (?P<line> \n )
    | (?P<lead> (?<=\s) [{_DASHES}]+ (?=\s) | [:)\]】] | (?<=[电電讯訊]) [ \u3000] )
    """,
        re.VERBOSE,
    )


@dataclass(frozen=True)
class Text:
    """A text, read for comparison; each part of it is made when it is asked for, and kept."""

    text: str

    @cached_property
    def _read(self) -> tuple[list[str], list[str], list[int], list[int], list[int]]:
        """Return the words, what each is, and before which of them a line, a sentence, an agency line end."""
        words: list[str] = []
        kinds: list[str] = []
        ends: dict[str, list[int]] = {"line": [], "end": [], "lead": [], "rule": []}
        text = _SUPERSCRIPTS.sub(lambda found: f"^{found[0]}", _GROUPED.sub("", self.text))
        for found in _tokens().finditer(unicodedata.normalize("NFKC", text)):
            kind = found.lastgroup or ""
            if kind in ends:
                ends[kind].append(len(words))
                continue
            word = found[0].casefold().replace(" ", "")
            if kinds[-1:] == ["number"]:  # its unit is a part of it
                kind = "number" if _IS_CASED(word) or word in UNITS or word in ORDINALS else kind
                word = found[0] if _IS_CASED(word) else word
            words.append(word)
            kinds.append("number" if _IS_NUMBER_WORD(word) else kind)
        return words, kinds, sorted([*ends["line"], *ends["end"]]), ends["end"], ends["lead"]

    @property
    def words(self) -> list[str]:
        return self._read[0]

    @cached_property
    def joined(self) -> str:
        return f" {' '.join(self.words)} "

    @cached_property
    def numbers_in_order(self) -> list[str]:
        return [word for word, kind in zip(*self._read[:2], strict=True) if kind == "number"]

    @cached_property
    def numbers(self) -> Counter[str]:
        return Counter(self.numbers_in_order)

    @cached_property
    def without_numbers(self) -> str:
        return "".join(word for word, kind in zip(*self._read[:2], strict=True) if kind != "number")

    def units(self, *, by_line: bool) -> list[tuple[int, int]]:
        """Return where each sentence begins and ends; *by_line*: the end of a line ends one too."""
        ends = self._read[2 if by_line else 3]
        return [(begin, end) for begin, end in pairwise([0, *ends, len(self.words)]) if begin < end]

    @cached_property
    def phrases(self) -> dict[bool, set[str]]:
        """The sentences, by whether the end of a line ends one too."""
        words = self.words
        return {
            by_line: {" ".join(words[begin:end]) for begin, end in self.units(by_line=by_line)}
            for by_line in (True, False)
        }

    @cached_property
    def _passed(self) -> list[int]:
        """What the words before each place count."""
        return [0, *accumulate(_ALONE if kind == "alone" else _WORD for kind in self._read[1])]

    @cached_property
    def _runs(self) -> list[tuple[int, int]]:
        """Begin and end of the shortest run from each word on."""
        passed, end, runs = self._passed, 0, list[tuple[int, int]]()
        for begin in range(len(self.words)):
            while passed[end] - passed[begin] < _RUN:
                if end == len(self.words):
                    return runs
                end += 1
            runs.append((begin, end))
        return runs

    @cached_property
    def run_set(self) -> set[str]:
        return {" ".join(self.words[begin:end]) for begin, end in self._runs}

    def _stand(self, other: Text) -> list[bool]:
        """Return which runs stand in *other*; what is behind the last run, where it is less than one, goes with it."""
        found = [" ".join(self.words[begin:end]) in other.run_set for begin, end in self._runs]
        found[-1:] = [f" {' '.join(self.words[max(0, len(found) - 1) :])} " in other.joined]
        return found

    def _reach(self, stand: list[bool]) -> list[int]:
        """Return for each word the furthest end of a run that begins there or before, and does *stand*."""
        last = len(self.words)
        ends = [*(end for _, end in self._runs[:-1]), last]
        found = list(accumulate((end if stands else 0 for end, stands in zip(ends, stand, strict=True)), max))
        return found + found[-1:] * (last - len(found))

    @cached_property
    def folded(self) -> bytes:
        """The letters by which verification compares texts."""
        return compared_letters([self.text])[0].tobytes()

    @cached_property
    def number_hashes(self) -> Hashes:
        """The numbers by which verification compares texts."""
        return text_numbers([self.text])[0]

    def is_same(self, other: Text) -> bool:
        """Return whether only spaces, case or marks differ."""
        if self.text == other.text or self.words == other.words:
            return True
        is_alike = self.numbers_in_order == other.numbers_in_order and self.folded == other.folded
        return is_alike and self._compare_numbers(other) == "same"

    def _compare_numbers(self, other: Text) -> Replaced:
        return compare_numbers(self.number_hashes, other.number_hashes)[0]

    def differs_in_numbers(self, other: Text) -> bool:
        """Return whether nothing but numbers or signs differs; not whether these do."""
        return self.without_numbers == other.without_numbers or self._compare_numbers(other) in ("only", "signs")

    def stands_in(self, other: Text) -> bool:
        """Return whether every sentence and every number of this text stands in *other*."""
        if self.numbers - other.numbers:
            return False
        # What ends at another place of a line, because it was wrapped anew, still ends where sentences do.
        return any(self._stands_by(other, by_line=by_line) for by_line in (True, False))

    @cached_property
    def _is_ended(self) -> bool:
        return bool(_IS_ENDED(self.text))

    def _stands_by(self, other: Text, *, by_line: bool) -> bool:
        there = other.phrases[by_line]
        sentences = {*self._read[3]}
        for begin, end in self.units(by_line=by_line):
            is_open = end == len(self.words) and not self._is_ended
            if is_open and self._is_cut(begin, other):
                return True
            is_whole = " ".join(self.words[begin:end]) in there or (
                begin == 0 and self._is_at(other._read[4], other, end)
            )
            weight = self._passed[end] - self._passed[begin]
            if weight < _RUN or (end not in sentences and weight < _LINE):
                beside = " ".join(self.words[max(0, begin - 1) : end + 1])
                is_between = begin > 0 and end < len(self.words)
                is_whole = f" {beside} " in other.joined and (is_whole or is_between)
            if not is_whole:
                return False
        return True

    def stands_whole_in(self, other: Text) -> bool:
        """Return whether these words begin and end in *other* where lines or sentences do."""
        return self._is_at([0, *other._read[2]], other, len(self.words))

    def _is_at(self, places: Sequence[int], other: Text, size: int) -> bool:
        """Return whether the first words, if they are not many, stand whole in *other* at one of *places*."""
        ends = {*other._read[2], len(other.words)}
        begins = (place for place in places if place + size in ends)
        return size <= _MOST and any(other.words[begin : begin + size] == self.words[:size] for begin in begins)

    def _is_cut(self, begin: int, other: Text) -> bool:
        """Return whether *other* has what begins here, and goes on: the last word may be cut too."""
        rest = " ".join(self.words[max(0, begin - 1) :])
        place = other.joined.find(f" {rest}")
        after = other.joined[place + 1 + len(rest) :] if place >= 0 else ""
        return len(after) >= _MORE

    def loses_few(self, other: Text) -> bool:
        """Return whether only a few words of this text, and no number, stand nowhere in *other*."""
        words, kinds, *_ = self._read
        stand = self._stand(other)
        own = {place for place, furthest in enumerate(self._reach(stand)) if furthest <= place}
        borders = set(self._read[2])
        for (begin, end), stands in zip(self._runs, stand, strict=False):
            # Words that stand there, and not together: another one stood between them, or other ones around them.
            if not stands and own.isdisjoint(range(begin, end)) and borders.isdisjoint(range(begin + 1, end)):
                own.add(begin + 1)
        if self.numbers - other.numbers or any(kinds[place] == "number" for place in own):
            return False
        alone = sum(kinds[place] == "alone" for place in own)
        letters = sum(len(words[place]) for place in own)
        is_little = alone / FEW_CHARACTERS + (len(own) - alone) / FEW_WORDS <= 1
        return is_little and letters <= FEW_SHARE * sum(map(len, words))


@dataclass(frozen=True)
class Document:
    """What is compared of a document: its text, and its titles, which count as text."""

    text: Text
    titles: tuple[Text, ...]

    @classmethod
    def of(cls, text: str, *titles: str) -> Document:
        return cls(Text(text), tuple(map(Text, titles)))

    def has_titles_in(self, other: Document) -> bool:
        """
        Return whether each title is one of *other*, there perhaps with the name of a site behind it, or a whole line or
        sentence of its text. Between other words it may say something else: "Guilty" is not in "Not guilty".
        """
        signs = ((title.text, deque(_SITE.finditer(title.text), _SITE_NAMES)) for title in other.titles)
        heads = (text[: sign.start()] for text, last in signs for sign in last)
        titles = [*other.titles, *map(Text, heads)]
        return all(
            any(map(title.is_same, titles)) or title.stands_whole_in(other.text) for title in self.titles if title.words
        )


def find_loss(goes: Document | None, stays: Document | None) -> Loss:
    """
    Return the class of a line: what is lost if *goes* is removed for *stays*; ``None`` for one that was not read.

    >>> text = "The council approved the bridge over the river. It opens on March 1, and costs 6 million."
    >>> cut, agency = text[:47], text.replace("The", "(Reuters) - The", 1)
    >>> pairs = [(text.upper(), text), (cut, text), (text, agency), (text.replace("6", "six"), text), (text, cut)]
    >>> [find_loss(Document.of(one), Document.of(other)) for one, other in pairs]
    ['same', 'contained', 'contained', 'numbers', 'rewritten']
    >>> find_loss(Document.of(text * 9 + "Agency report", "News"), Document.of(text * 9, "News - BBC"))
    'few'
    >>> find_loss(Document.of(text, "The new bridge"), Document.of(text, "The old bridge"))
    'title'
    >>> text = "市议会星期二批准在河上建造新桥。工程三月开始，费用是六千万元。"
    >>> cut, later = text[:16], text.replace("三", "5")
    >>> pairs = [(text.replace("。", "！"), text), (cut, text), (later, text), (text, cut)]
    >>> [find_loss(Document.of(one), Document.of(other)) for one, other in pairs]
    ['same', 'contained', 'numbers', 'rewritten']
    >>> find_loss(Document.of(text * 9 + "（新华社）", "建造新桥"), Document.of(text * 9, "建造新桥_新闻网"))
    'few'
    """
    if goes is None or stays is None:
        return "unread"
    if not goes.has_titles_in(stays):
        return "title"
    one, other = goes.text, stays.text
    if one.is_same(other):
        return "same"
    if one.stands_in(other):
        return "contained"
    if one.differs_in_numbers(other):
        return "numbers"
    return "few" if one.loses_few(other) else "rewritten"


def is_kept_shorter(goes: Document, stays: Document, loss: Loss) -> bool:
    """
    Return whether the document that stays has nothing of its own, and the one that goes has: the longer should stay.

    >>> longer, shorter = Document.of("The bridge is open now. Cars may pass."), Document.of("The bridge is open now.")
    >>> is_kept_shorter(longer, shorter, "rewritten"), is_kept_shorter(shorter, longer, "contained")
    (True, False)
    """
    return loss not in LOSSLESS and find_loss(stays, goes) == "contained"
