"""Explains why two texts, or two documents, are near-duplicates, or why not; features are strings here, not hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from operator import mul
from typing import Any, Literal

from es_simhash.arguments import check_count, check_fields, check_items, check_key
from es_simhash.errors import NAME_TEXT_FIELD, InvalidInputError, WrongTypeError, count, shorten
from es_simhash.hashing import (
    DEFAULT_SCHEME,
    Scheme,
    estimated_cosine,
    fingerprint,
    from_hex,
    get_scheme,
    hamming_distance,
    split_blocks,
    to_hex,
)
from es_simhash.hashing.characters import normalise_text, shingle_lengths, to_codes
from es_simhash.hashing.features import ONE, keyword_extractor, repeat_weight, word_extractor
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.lookup.content import Content, read_content, why_apart
from es_simhash.lookup.find import COPIES, no_document, read_rules
from es_simhash.lookup.judge import CHANGED, Verdict, decide
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import Reason, hit_fingerprints, words_apart
from es_simhash.lookup.rules import Rules
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.fields import Fields, read_hit
from es_simhash.mapping.meta import IndexSettings, no_text_field
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings
from es_simhash.mapping.rule import PairRule
from es_simhash.quality.known_pairs import DUPLICATE, LETTER_EDITS, LETTER_SHINGLES, SAME_LETTERS
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import PRESETS, WORD_SHINGLES, Similarity, compare_texts
from es_simhash.texts.worddiff import WordDiff, word_diff
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.protocol import Index, check_index
from es_simhash.transport.retry import search_texts


def list_features(text: str, scheme: Scheme) -> dict[str, float]:
    """
    Return the features of *text* under *scheme* with their weights, in order of first appearance.

    Memory: about 150 bytes for each character of the text.

    Examples:
        >>> from es_simhash.hashing import get_scheme
        >>> list_features("北京 abcd", get_scheme("shingles"))
        {'北京': 1.0, '京ab': 1.0, 'abcd': 1.0}
    """
    if scheme.name == "weighted":
        raise InvalidInputError(f"scheme {scheme.id} takes features, not text: list your own features")
    prepare = preprocessor(scheme)
    prepared = text if prepare is None else prepare([text])[0]
    if scheme.name == "shingles":
        counts = _count_shingles(prepared, scheme)
        weighting = scheme.parameters["weighting"]
        return {shingle: repeat_weight(count, weighting) / ONE for shingle, count in counts.items()}
    extractor = keyword_extractor if scheme.name == "keywords" else word_extractor
    return {name: weight / ONE for name, weight in extractor(scheme)([prepared])[0].items()}


def _count_shingles(text: str, scheme: Scheme) -> Counter[str]:
    stripped = normalise_text(text).replace(" ", "")
    size = scheme.parameters["size"]
    lengths = [size] * len(stripped) if scheme.version == 1 else shingle_lengths(to_codes(stripped), size).tolist()
    shingles = (
        stripped[start : start + length] for start, length in enumerate(lengths) if start + length <= len(stripped)
    )
    return Counter(shingles) or Counter([stripped] if stripped else [])


# Texts longer than this are fingerprinted and compared whole, but their features are not listed.
_MAX_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Feature:
    """A shingle or word of either text, with its weight in each; 0 where a text does not have it."""

    name: str
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Explanation(Tabular):
    """
    The comparison of two texts.

    Attributes:
        scheme:
            Scheme of the fingerprints.
        first, second:
            The fingerprints, of a document that of the index; ``None`` for a text without features.
        similarity:
            Jaccard similarity and containment of the texts, by their shingles of some 7 letters, or of 5 Chinese
            characters.
        letters:
            Edit similarity of their letters.
        edited:
            Jaccard similarity by shingles of 5 letters.
        numbers:
            ``"only"`` if nothing but numbers differs, ``"replaced"`` if numbers stand in the places of others beside
            other differences, else ``"same"``; ``None`` if a text has no letters.
        features:
            Features of either text, of which the fingerprints are made; those that count most first. Empty where a text
            is too long to list them.
        is_cut:
            Whether the features were left out for length.
        diff:
            The words that differ.
        rule:
            The rule by which ``find_near_dups_of`` the first document, or ``find_near_dups`` of a text, judges the
            second: that of its *index*, for a text without ``per`` and ``within``. ``None`` without an index.
        index:
            The index whose rule it is.
        by_rule:
            The similarity that the rule compares; ``None`` where it compares none.
        because:
            What keeps the two apart under the rule: one of the reasons of :class:`~es_simhash.Rejected`, or
            ``"fingerprint"`` where a text or document has none. ``None`` if they are near-duplicates.
        unverified:
            Why the texts do not count, where near-duplicates were taken for such by the other parts of the rule.
        not_applied:
            Which of ``"per"`` and ``"within"`` were not looked at, because a text has no values.
    """

    scheme: Scheme
    first: int | None
    second: int | None
    similarity: Similarity
    letters: float
    edited: float
    numbers: Literal["only", "replaced", "same"] | None
    features: tuple[Feature, ...]
    is_cut: bool
    diff: WordDiff
    rule: PairRule | None = None
    index: str | None = None
    by_rule: float | None = None
    because: Reason | Literal["fingerprint"] | None = None
    unverified: str | None = None
    not_applied: tuple[str, ...] = ()

    @property
    def verdict(self) -> str | None:
        """Whether the rule takes the two for near-duplicates, and if not, why; ``None`` without an index."""
        if self.rule is None:
            return None
        said = f"{'no ' if self.because else ''}near-duplicates by the rule of {self.index} ({self.rule.words})"
        if self.because == "fingerprint":
            said += ": one of the two has no fingerprint"
        elif self.because is not None:
            said += f": {words_apart(self.because, self.rule, self.distance or 0, self.by_rule)}"
        elif self.unverified is not None:
            said += f", but not compared: {self.unverified}"
        named = " and ".join(self.not_applied)
        return f"{said}; the fields of {named} were not looked at: a text has none" if named else said

    @property
    def distance(self) -> int | None:
        """Distance of the fingerprints in bits; ``None`` where a text has none."""
        return None if self.first is None or self.second is None else hamming_distance(self.first, self.second)

    @property
    def differing_bits(self) -> tuple[int, ...]:
        """The bits that differ, 0 for the most significant, so that bits 0 to 15 are block 0."""
        if self.first is None or self.second is None:
            return ()
        difference = self.first ^ self.second
        return tuple(bit for bit in range(64) if difference >> (63 - bit) & 1)

    @property
    def equal_blocks(self) -> tuple[int, ...]:
        """The blocks that are equal, 0 to 3."""
        if self.first is None or self.second is None:
            return ()
        pairs = zip(split_blocks(self.first), split_blocks(self.second), strict=True)
        return tuple(number for number, (one, other) in enumerate(pairs) if one == other)

    @property
    def shared(self) -> tuple[Feature, ...]:
        """Features of both texts."""
        return tuple(each for each in self.features if each.first and each.second)

    @property
    def differing(self) -> tuple[Feature, ...]:
        """Features of one text only, and those whose weights differ."""
        return tuple(each for each in self.features if each.first != each.second)

    @property
    def cosine(self) -> float | None:
        """Cosine similarity of the weighted features, which the distance estimates; ``None`` where unknown."""
        sides = [each.first for each in self.features], [each.second for each in self.features]
        norms = [sqrt(sum(weight * weight for weight in side)) for side in sides]
        return sum(map(mul, *sides)) / (norms[0] * norms[1]) if all(norms) else None

    @property
    def presets(self) -> tuple[str, ...]:
        """Names of the presets that report the texts as near-duplicates, under this scheme, and in this index."""
        distance, rule = self.distance, self.rule
        counts_numbers = rule is not None and rule.measure.numbers == "same"
        if self.because in ("fingerprint", "per", "within"):
            return ()
        known = {WORD_SHINGLES: self.similarity.jaccard, LETTER_SHINGLES: self.edited, LETTER_EDITS: self.letters}
        return tuple(
            preset.name
            for preset in PRESETS.values()
            if distance is not None
            and distance <= preset.max_distance
            and self.scheme.has_features_of(get_scheme(preset.scheme))
            and (self.numbers == "same" or (preset.numbers or ("same" if counts_numbers else "any")) == "any")
            and known[preset.text_measure()] >= preset.similarity
        )

    @property
    def is_noise(self) -> bool:
        """Whether the words differ and the letters hardly do, and not by numbers alone: errors, not another text."""
        is_by_letters = self.similarity.jaccard < DUPLICATE and self.letters >= SAME_LETTERS
        return is_by_letters and self.numbers != "only"

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each feature: its name, and its weight in both texts."""
        return [_plain(each) for each in self.features]

    def _title(self) -> str:
        if self.verdict is not None:
            return self.verdict
        distance = "no distance" if self.distance is None else f"distance {count(self.distance, 'bit')}"
        letters = f", {self.letters:.1%} of the letters" if self.is_noise else ""
        return f"{distance}; {self.similarity.jaccard:.1%} {WORD_SHINGLES.of_what}{letters} are the same"

    def _sheets(self) -> Sequence[Part]:
        of_all = [("differ", self.differing), ("are shared", self.shared)]
        features = [
            Sheet(f"Features that {which}: {len(each):,}", [_cells(one) for one in each], most=SHOWN_FEATURES)
            for which, each in of_all
            if each and not self.is_cut
        ]
        figures = [{"": name, "value": value, "what that is": said} for name, value, said in self._figures()]
        return [*self.diff.marked(), Sheet("", figures, folded=("value", "what that is")), *features]

    def _figures(self) -> Iterator[tuple[str, str, str]]:
        """Yield what people read of it, how alike the two are first."""
        of_what = f"{WORD_SHINGLES.of_what} (Jaccard; in Chinese, of 5 characters)"
        yield "similarity", f"{self.similarity.jaccard:.4f}", of_what
        yield "containment", f"{self.similarity.containment:.4f}", "of those of the smaller text"
        yield "letters", f"{self.letters:.4f}", "stay (edit similarity)"
        if self.distance is not None:
            yield "distance", count(self.distance, "bit"), f"of 64 ({self.scheme})"
        if self.cosine is not None:
            yield "cosine", f"{self.cosine:.4f}", "of the weighted features, of which the fingerprint is made"
        yield "presets", ", ".join(self.presets) or "none", "report the two" if self.presets else "reports the two"
        if self.numbers is not None and self.numbers in _NUMBERS:
            yield "numbers", self.numbers, _NUMBERS[self.numbers]
        if self.is_noise:
            yield "noise", "yes", "the words differ, the letters hardly do: wrong letters or numbers, not another text"
        for name, value in (("A", self.first), ("B", self.second)):
            yield name, "none" if value is None else to_hex(value), "no features" if value is None else "fingerprint"
        if self.differing_bits:
            yield "bits", ", ".join(map(str, self.differing_bits)), "differ, 0 for the most significant"
        if self.distance is not None:
            yield "blocks", ", ".join(map(str, self.equal_blocks)) or "none", "equal"
        if self.is_cut:
            yield "features", "not listed", "the texts are too long"

    def to_dict(self, *, most: int = 20) -> dict[str, Any]:
        """Return everything as plain JSON values, with the *most* weighty features of each kind."""
        distance = self.distance
        return {
            "verdict": self.verdict,
            "because": self.because,
            "scheme": str(self.scheme),
            "fingerprints": [None if each is None else to_hex(each) for each in (self.first, self.second)],
            "distance": distance,
            "differing_bits": list(self.differing_bits),
            "equal_blocks": list(self.equal_blocks),
            "estimated_cosine": None if distance is None else round(estimated_cosine(distance), 4),
            "cosine": None if self.cosine is None else round(self.cosine, 4),
            "jaccard": round(self.similarity.jaccard, 4),
            "containment": round(self.similarity.containment, 4),
            "letters": round(self.letters, 4),
            "edited": round(self.edited, 4),
            "numbers": self.numbers,
            "is_noise": self.is_noise,
            "presets": list(self.presets),
            "features": {
                "shared_count": len(self.shared),
                "differing_count": len(self.differing),
                "shared": [_plain(each) for each in self.shared[:most]],
                "differing": [_plain(each) for each in self.differing[:most]],
                "left_out_for_length": self.is_cut,
            },
            "diff": {
                "excerpts": [
                    [{"change": part.change.value, "text": part.text} for part in excerpt]
                    for excerpt in self.diff.excerpts
                ],
                "omitted": self.diff.omitted,
                "is_cut": self.diff.is_cut,
            },
        }


SHOWN_FEATURES = 12
"""Features of each kind that people are shown; all are in ``features``."""
_NUMBERS: Mapping[str | None, str] = {
    "only": "nothing but numbers differs: the figures of another day, or a correction",
    "replaced": "numbers stand in the places of other numbers, and other words differ too",
}


def _cells(feature: Feature) -> dict[str, Any]:
    return {"feature": feature.name, "weight in A": feature.first, "weight in B": feature.second}


def _plain(feature: Feature) -> dict[str, Any]:
    return {"feature": feature.name, "first": round(feature.first, 4), "second": round(feature.second, 4)}


def explain(first: str, second: str, *, scheme: str | Scheme = DEFAULT_SCHEME, max_changes: int = 4) -> Explanation:
    """
    Return why two texts are near-duplicates, or why not.

    Bounded in time and memory: the features of texts beyond 200,000 characters are not listed, and a diff of long texts
    ends where it says so.

    Args:
        first:
            A text.
        second:
            Another.
        scheme:
            Name, id or :class:`Scheme`.
        max_changes:
            Places shown at which the texts differ, at least 1.

    Raises:
        TypeError: If a text is not a string.
        SchemeError: If the scheme is unknown.

    Examples:
        >>> found = explain("The boat leaves at nine.", "the boat leaves at nine!")
        >>> found.distance, found.similarity.jaccard, found.equal_blocks, found.presets[0]
        (0, 1.0, (0, 1, 2, 3), 'identical')
    """
    used = get_scheme(scheme)
    letters, edited = LETTER_EDITS.after(used), LETTER_SHINGLES.noting_numbers().after(used)
    score = edited.compare(*edited.prepare([first, second]))
    values = [fingerprint(text, scheme=used) for text in (first, second)]
    is_cut = max(len(first), len(second)) > _MAX_CHARACTERS
    features = () if is_cut else _compare(list_features(first, used), list_features(second, used))
    return Explanation(
        used,
        values[0],
        values[1],
        compare_texts(first, second, scheme=used),
        letters.compare(*letters.prepare([first, second])).similarity,
        score.similarity,
        score.numbers,
        features,
        is_cut,
        word_diff(first, second, max_changes=max_changes),
    )


def _compare(first: Mapping[str, float], second: Mapping[str, float]) -> tuple[Feature, ...]:
    names = dict.fromkeys([*first, *second])
    features = [Feature(name, first.get(name, 0.0), second.get(name, 0.0)) for name in names]
    return tuple(sorted(features, key=lambda each: -max(each.first, each.second)))


async def explain_documents(
    server: Port,
    index: Index,
    ids: Sequence[str],
    texts: Sequence[str],
    text_field: str | Sequence[str],
    max_changes: int,
) -> Explanation:
    """Return how the documents *ids* and *texts*, two together, differ; costs a search for each document."""
    check_index(index)
    for each in ids:
        check_key("first" if each is ids[0] else "second", each, wanted="the id of a document")
    given = tuple(check_items("texts", texts, of="texts"))
    if not all(isinstance(each, str) for each in given):
        raise WrongTypeError(f"texts must be a list of texts, not {shorten(texts)}")
    if len(ids) + len(given) != 2:
        raise InvalidInputError(f"{len(ids)} documents and {len(given)} texts are given: give two together")
    check_count("max_changes", max_changes, 0)
    named = check_fields("text_field", text_field, may_lack=True)
    settings = await read_present_settings(server, index)
    rules = await read_rules(server, index, settings, LookupOptions(), "document")
    fields = TextFields(others=named) if named else rules.text_fields
    if ids and not fields.all:
        raise no_text_field("documents cannot be compared", NAME_TEXT_FIELD, index=str(index))
    if not ids and rules.used.each:
        raise InvalidInputError(f"the indices of {shorten(index)} have different rules: name one of them")
    read = []
    for each in ids:
        read.append(await _read_document(server, index, each, rules, fields))
    how = partial(_explain_by, replace(rules, text_fields=fields, is_recorded_text=not named), settings, max_changes)
    found: Explanation = await server.compute(how, [*read, *map(_Side, given)])
    return found


@dataclass(frozen=True, slots=True)
class _Side:
    """A text, and the *hit* of its document with the *digits* of its fingerprint."""

    text: str
    hit: Mapping[str, Any] | None = None
    digits: str | None = None

    def content(self, rule: PairRule, fields: TextFields) -> Content:
        return Content(self.text) if self.hit is None else read_content(self.hit, rule, fields)


async def _read_document(server: Port, index: Index, id: str, rules: Rules, fields: TextFields) -> _Side:
    """Return the document *id*; InvalidInputError if there is none, or several differ in what is compared."""
    name = Fields(server.prefix).fingerprint
    body = {"size": COPIES, "query": {"ids": {"values": [id]}}, "docvalue_fields": [name, *rules.docvalue_fields]}
    answer = await search_texts(server, index, body, fields.all)
    check_whole(find_gaps(answer))
    hits = answer["hits"]["hits"]
    if not hits:
        raise no_document(id, index)
    try:
        found = [_Side(read_hit(hit, fields[hit["_index"]]), hit, *hit_fingerprints(hit, name)[:1]) for hit in hits]
    except InvalidInputError as error:
        raise InvalidInputError(f"document {shorten(id)} cannot be compared: {error}") from error
    own_rules = {rules.of(hit["_index"]) for hit in hits}
    compared = {(each.text, each.digits, each.content(rule, fields).key, rule) for each in found for rule in rules.all}
    if len(own_rules) > 1 or len(compared) > len(rules.all):
        raise InvalidInputError(
            f"document {shorten(id)} cannot be compared: several documents of that id, or their rules, differ: "
            "name one index"
        )
    return found[0]


def _explain_by(rules: Rules, settings: IndexSettings, max_changes: int, sides: Sequence[_Side]) -> Explanation:
    found = explain(sides[0].text, sides[1].text, scheme=settings.scheme, max_changes=max_changes)
    present = found.first, found.second
    values = [now if side.digits is None else from_hex(side.digits) for side, now in zip(sides, present, strict=True)]
    # What is found is judged by the rule of its own index: the second, unless only the first is a document.
    hits = [each.hit for each in sides if each.hit is not None]
    index = str(hits[-1]["_index"]) if hits else max(rules.each, default="the index")
    recorded, is_text = rules.of(index), len(hits) < 2
    rule = replace(recorded, per=None, within=None) if is_text else recorded
    one, other = (each.content(rule, rules.text_fields) for each in sides)
    reason: Reason = "texts"
    share = None
    if rule.similarity is not None:
        reason, share = why_apart(one, other, rule)
    found_side = 0 if sides[1].hit is None else 1
    judged = replace(
        found,
        first=values[0],
        second=values[1],
        rule=rule,
        index=index,
        by_rule=share,
        not_applied=tuple(name for name in ("per", "within") if is_text and getattr(recorded, name) is not None),
    )
    if judged.distance is None or any(each.hit is not None and each.digits is None for each in sides):
        return replace(judged, because="fingerprint")
    verdict = decide(judged.distance, one, other, rule)
    if verdict.because == "texts":
        is_changed = rules.is_recorded_text and values[found_side] != present[found_side]
        verdict = CHANGED if is_changed else Verdict(reason)
    return replace(judged, because=verdict.because, unverified=verdict.unverified)
