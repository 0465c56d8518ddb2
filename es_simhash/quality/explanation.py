"""Explains why two texts, or two documents, are near-duplicates, or why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from es_simhash.arguments import check_count, check_fields, check_items, check_key
from es_simhash.errors import InvalidInputError, WrongTypeError, count, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint, from_hex, get_scheme, hamming_distance, to_hex
from es_simhash.lookup.content import Content, compare_contents, docvalue_fields, read_content, why_apart
from es_simhash.lookup.find import Scope, no_document, read_scope
from es_simhash.lookup.judge import CHANGED, read_documents, why_unread
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import Reason, hit_fingerprints, words_apart
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.fields import read_hit
from es_simhash.mapping.meta import no_text_field
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings
from es_simhash.mapping.rule import PairRule
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import WORD_SHINGLES, Replaced, Similarity
from es_simhash.texts.worddiff import WordDiff, word_diff
from es_simhash.transport.answers import check_whole
from es_simhash.transport.protocol import Index, check_index


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
        numbers:
            ``"only"`` if nothing but numbers differs, ``"signs"`` if nothing but their signs, ``"replaced"`` if numbers
            stand in the places of others beside other differences, else ``"same"``; ``None`` if a text has no letters.
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
    numbers: Replaced | None
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

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one row, without the words that differ."""
        row = self.to_dict()
        del row["diff"]
        return [row]

    def _title(self) -> str:
        if self.verdict is not None:
            return self.verdict
        distance = "no distance" if self.distance is None else f"distance {count(self.distance, 'bit')}"
        return f"{distance}; {self.similarity.jaccard:.1%} {WORD_SHINGLES.of_what} are the same"

    def _sheets(self) -> Sequence[Part]:
        figures = [{"": name, "value": value, "what that is": said} for name, value, said in self._figures()]
        return [*self.diff.marked(), Sheet("", figures, folded=("value", "what that is"))]

    def _figures(self) -> Iterator[tuple[str, str, str]]:
        """Yield what people read of it, how alike the two are first."""
        of_what = f"{WORD_SHINGLES.of_what} (Jaccard; in Chinese, of 5 characters)"
        yield "similarity", f"{self.similarity.jaccard:.4f}", of_what
        yield "containment", f"{self.similarity.containment:.4f}", "of those of the smaller text"
        if self.distance is not None:
            yield "distance", count(self.distance, "bit"), f"of 64 ({self.scheme})"
        if self.numbers is not None and self.numbers in _NUMBERS:
            yield "numbers", self.numbers, _NUMBERS[self.numbers]
        for name, value in (("A", self.first), ("B", self.second)):
            yield name, "none" if value is None else to_hex(value), "no features" if value is None else "fingerprint"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "verdict": self.verdict,
            "because": self.because,
            "scheme": str(self.scheme),
            "fingerprints": [None if value is None else to_hex(value) for value in (self.first, self.second)],
            "distance": self.distance,
            "jaccard": round(self.similarity.jaccard, 4),
            "containment": round(self.similarity.containment, 4),
            "numbers": self.numbers,
            "diff": {
                "excerpts": [
                    [{"change": part.change.value, "text": part.text} for part in excerpt]
                    for excerpt in self.diff.excerpts
                ],
                "omitted": self.diff.omitted,
                "is_cut": self.diff.is_cut,
            },
        }


_NUMBERS: Mapping[str, str] = {
    "only": "nothing but numbers differs: the figures of another day, or a correction",
    "signs": "nothing but signs differs: of numbers, or words such as C++ and C#",
    "replaced": "numbers stand in the places of other numbers, and other words differ too",
}


def explain(first: str, second: str, *, scheme: str | Scheme = DEFAULT_SCHEME, max_changes: int = 4) -> Explanation:
    """
    Return why two texts are near-duplicates, or why not.

    Bounded in time and memory: a diff of long texts ends where it says so.

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
        >>> found.distance, found.similarity.jaccard
        (0, 1.0)
    """
    used = get_scheme(scheme)
    measure = WORD_SHINGLES.noting_numbers().after(used)
    score = measure.compare(*measure.prepare([first, second]))
    values = [fingerprint(text, scheme=used) for text in (first, second)]
    similarity = Similarity(score.similarity, score.containment or 0.0)
    diff = word_diff(first, second, max_changes=max_changes)
    return Explanation(used, values[0], values[1], similarity, score.numbers, diff)


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
    for id_ in ids:
        check_key("first" if id_ is ids[0] else "second", id_, wanted="the id of a document")
    given = tuple(check_items("texts", texts, of="texts"))
    if not all(isinstance(text, str) for text in given):
        raise WrongTypeError(f"texts must be a list of texts, not {shorten(texts)}")
    if len(ids) + len(given) != 2:
        raise InvalidInputError(f"{len(ids)} documents and {len(given)} texts are given: give two together")
    check_count("max_changes", max_changes)
    named = check_fields("text_field", text_field, may_lack=True)
    await read_present_settings(server, index)
    scope = await read_scope(server, index, LookupOptions(), "document")
    indices = list(scope.text_fields)
    if named:
        scope = replace(scope, text_fields=TextFields(others=named))
    if ids and not scope.text_fields.all:
        raise no_text_field("documents cannot be compared", "give text_field", index=str(index))
    read = []
    for id_ in ids:
        read.append(await _read_document(server, id_, scope))
    how = partial(_explain_by, scope, max_changes, indices, is_recorded_text=not named)
    found: Explanation = await server.compute(how, [*read, *map(_Side, given)])
    return found


@dataclass(frozen=True, slots=True)
class _Side:
    """A text, and the *hit* of its document with the *digits* of its fingerprint."""

    text: str
    hit: Mapping[str, Any] | None = None
    digits: str | None = None

    def content(self, rule: PairRule, text_fields: TextFields) -> Content:
        return Content(self.text) if self.hit is None else read_content(self.hit, rule, text_fields)


async def _read_document(server: Port, id: str, scope: Scope) -> _Side:
    """Return the document *id*; InvalidInputError if there is none, or several differ in what is compared."""
    name, fields = scope.fingerprint_field, scope.text_fields
    values = [name, *docvalue_fields(scope.rule)]
    hits, gaps = await read_documents(server, scope.index, id, text_fields=fields.all, docvalue_fields=values)
    check_whole(gaps)
    if not hits:
        raise no_document(id, scope.index)
    try:
        found = [_Side(read_hit(hit, fields[hit["_index"]]), hit, *hit_fingerprints(hit, name)[:1]) for hit in hits]
    except InvalidInputError as error:
        raise InvalidInputError(f"document {shorten(id)} cannot be compared: {error}") from error
    if len({(side.text, side.digits, side.content(scope.rule, fields).key) for side in found}) > 1:
        raise InvalidInputError(
            f"document {shorten(id)} cannot be compared: several documents of that id differ: name one index"
        )
    return found[0]


def _explain_by(
    scope: Scope,
    max_changes: int,
    indices: Sequence[str],
    sides: Sequence[_Side],
    *,
    is_recorded_text: bool,
) -> Explanation:
    found = explain(sides[0].text, sides[1].text, scheme=scope.settings.scheme, max_changes=max_changes)
    present = found.first, found.second
    values = [now if side.digits is None else from_hex(side.digits) for side, now in zip(sides, present, strict=True)]
    # What is found is the second, unless only the first is a document.
    hits = [one_side.hit for one_side in sides if one_side.hit is not None]
    index = str(hits[-1]["_index"]) if hits else max(indices, default="the index")
    recorded, is_text = scope.rule, len(hits) < 2
    rule = replace(recorded, per=None, within=None) if is_text else recorded
    one, other = (side.content(rule, scope.text_fields) for side in sides)
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
    if judged.distance is None or any(one_side.hit is not None and one_side.digits is None for one_side in sides):
        return replace(judged, because="fingerprint")
    comparison = compare_contents(one, other, rule, distance=judged.distance)
    if comparison.unread is not None:
        return replace(judged, unverified=why_unread(comparison.unread, one))
    if comparison.because != "texts":
        return replace(judged, because=comparison.because)
    if is_recorded_text and values[found_side] != present[found_side]:
        return replace(judged, unverified=CHANGED)
    return replace(judged, because=reason)
