"""Which steps before features a sample asks for: copies that differ in what a step leaves out, with and without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from string import ascii_letters

from es_simhash.errors import count
from es_simhash.groups.all_pairs import distances_between
from es_simhash.hashing import Scheme, fingerprint_array
from es_simhash.hashing.preprocess import LINK, html_to_text, is_japanese
from es_simhash.record import Record
from es_simhash.texts.measures import Preset, compare_pairs

LEAST_SHARE, FEWEST = 0.05, 3
"""A step is asked for by so many of the texts: fewer may speak of tags and links."""

_HOST = len("https://t.co")
# Frequent characters of one of the two forms.
_TRADITIONAL = frozenset("們這個國會來說學對經關與實將從應樣發萬")
_SIMPLIFIED = frozenset("们这个时为说对经关开问进种发报电网业员级线亿")
_WORDS = {"html": "tags or character references", "links": "links"}


@dataclass(frozen=True, slots=True)
class StepFigures(Record):
    """
    What a step finds: *texts* of the sample have what it changes; of so many copies, without tags or with other links,
    *found* are found without the step, and *found_after* with it: not measured of t2s, which needs OpenCC.
    *preprocess*: all steps of the scheme then.
    """

    step: str
    preprocess: tuple[str, ...]
    texts: int
    found: int | None = None
    found_after: int | None = None

    def __str__(self) -> str:
        options = " ".join(f"--preprocess {step}" for step in self.preprocess)
        if self.found is None or self.found_after is None:
            said = f"{count(self.texts, 'text')} are in traditional Chinese, and others in simplified"
            return f"{said}: {options} finds copies in the other form (pip install 'es-simhash[preprocess]')"
        more, what = self.found_after - self.found, _WORDS[self.step]
        return f"{more:,} of {self.texts:,} more copies are found without {what}: {options}"


def measure_steps(texts: Sequence[str], scheme: Scheme, preset: Preset, *, seed: int = 0) -> Iterator[StepFigures]:
    """Yield each step that *scheme* lacks, and by which *preset* finds more copies of enough of *texts*."""
    chance, least = Random(seed), max(FEWEST, LEAST_SHARE * len(texts))
    for step, copy_of in _COPIES.items():
        copies = [(text, copy) for text in texts if (copy := copy_of(text, chance)) != text]
        if step in scheme.preprocess or len(copies) < least:
            continue
        before = scheme.preprocess
        after = replace(scheme, preprocess=(step, *before) if step == "html" else (*before, step))
        found, found_after = (_count_found(copies, used, preset) for used in (scheme, after))
        if found_after > found:
            yield StepFigures(step, after.preprocess, len(copies), found, found_after)
    chinese = [text for text in texts if not is_japanese(text)]
    surpluses = [len(_TRADITIONAL.intersection(text)) - len(_SIMPLIFIED.intersection(text)) for text in chinese]
    traditional, simplified = sum(more > 0 for more in surpluses), sum(more < 0 for more in surpluses)
    if "t2s" not in scheme.preprocess and min(traditional, simplified) >= least:
        yield StepFigures("t2s", (*scheme.preprocess, "t2s"), traditional)


def _count_found(copies: Sequence[tuple[str, str]], scheme: Scheme, preset: Preset) -> int:
    import numpy as np  # noqa: PLC0415

    texts = [text for copy in copies for text in copy]
    values, known = fingerprint_array(texts, scheme=scheme)
    left = np.arange(0, len(texts), 2)
    measure = preset.text_measure().after(scheme)
    similarity = compare_pairs(texts, left, left + 1, measure=measure, bound=preset.similarity)
    is_near = known[left] & known[left + 1] & (distances_between(values[left], values[left + 1]) <= preset.max_distance)
    return int((is_near & (similarity >= preset.similarity)).sum())


def _without_tags(text: str, chance: Random) -> str:
    _ = chance
    return html_to_text(text)


def _with_other_links(text: str, chance: Random) -> str:
    """Return *text* with other letters in each link, behind as many as the shortest host has."""

    def other(link: re.Match[str]) -> str:
        kept = link[0][:_HOST]
        return kept + "".join(chance.choices(ascii_letters, k=len(link[0]) - len(kept)))

    return LINK.sub(other, text)


_COPIES: dict[str, Callable[[str, Random], str]] = {"html": _without_tags, "links": _with_other_links}
