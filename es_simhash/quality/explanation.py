"""Explains why two texts, or two documents, are near-duplicates, or why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from es_simhash.arguments import check_items, check_key
from es_simhash.errors import InvalidInputError, WrongTypeError, count, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint, from_hex, get_scheme, hamming_distance, to_hex
from es_simhash.lookup.content import Content, compare_contents, docvalue_fields, read_content, why_apart
from es_simhash.lookup.documents import differing, read_documents
from es_simhash.lookup.find import Scope, read_scope
from es_simhash.lookup.judge import CHANGED, LookupRule, why_unread
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import Reason, hit_fingerprints, words_apart
from es_simhash.mapping.fields import read_hit
from es_simhash.mapping.meta import no_text_field
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings
from es_simhash.tables.notebook import Part, Sheet, cut
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import DEFAULT_PRESET, Replaced
from es_simhash.texts.worddiff import WordDiff, word_diff
from es_simhash.transport.answers import check_whole
from es_simhash.transport.protocol import Index, check_index

_CHANGES = 4  # places at which texts differ that are shown


@dataclass(frozen=True, slots=True)
class Explanation(Tabular):
    """
    What a rule says of two texts, and why.

    Attributes:
        rule:
            The rule by which ``find_near_dups_of`` the first document, or ``find_near_dups`` of a text, judges the
            second: that of its *index*, for a text without ``per`` and ``within``. Without an index the default.
        index:
            The index whose rule it is; ``None`` for the default.
        scheme:
            Scheme of the fingerprints.
        first, second:
            The fingerprints, of a document that of the index; ``None`` for a text without features.
        similarity:
            How much of the texts is the same, by the measure of the rule, 0 to 1, whatever their numbers.
        numbers:
            ``"only"`` if nothing but numbers differs, ``"signs"`` if nothing but their signs, ``"replaced"`` if numbers
            stand in the places of others beside other differences, else ``"same"``; ``None`` if a text has no letters.
        diff:
            The words that differ.
        because:
            What keeps the two apart under the rule: one of the reasons of :class:`~es_simhash.Rejected`, or
            ``"fingerprint"`` where a text or document has none. ``None`` if they are near-duplicates.
        unverified:
            Why the texts do not count, where near-duplicates were taken for such by the other parts of the rule.
    """

    rule: LookupRule
    index: str | None
    scheme: Scheme
    first: int | None
    second: int | None
    similarity: float
    numbers: Replaced | None
    diff: WordDiff
    because: Reason | Literal["fingerprint"] | None = None
    unverified: str | None = None

    @property
    def verdict(self) -> str:
        """Whether the rule takes the two for near-duplicates, and if not, why."""
        rule = f"the default rule ({self.rule.words})"
        if self.index is not None:
            rule = f"the rule of {self.index} ({self.rule})"
        if self.unverified is not None:
            return f"near-duplicates by {rule}, but not compared: {self.unverified}"
        if self.because is None:
            return f"near-duplicates by {rule}"
        why = "one of the two has no fingerprint"
        if self.because != "fingerprint":
            why = words_apart(self.because, self.rule, self.distance or 0, self.similarity)
        return f"no near-duplicates by {rule}: {why}"

    @property
    def distance(self) -> int | None:
        """Distance of the fingerprints in bits; ``None`` where a text has none."""
        return None if self.first is None or self.second is None else hamming_distance(self.first, self.second)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "verdict": self.verdict,
            "because": self.because,
            "index": self.index,
            "rule": self.rule.to_dict(),
            "scheme": str(self.scheme),
            "fingerprints": [None if value is None else to_hex(value) for value in (self.first, self.second)],
            "distance": self.distance,
            "similarity": round(self.similarity, 4),
            "numbers": self.numbers,
            "diff": self.diff.to_dict(),
            "unverified": self.unverified,
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one row, without the words that differ."""
        row = self.to_dict()
        del row["diff"]
        return [row]

    def _title(self) -> str:
        return self.verdict

    def _sheets(self) -> Sequence[Part]:
        rows = [{"": name, "found": found, "the rule": wanted} for name, found, wanted in self._conditions()]
        return [*self.diff.marked(), Sheet("", rows, folded=("found", "the rule"))]

    def _conditions(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield what is compared of the two: its name, what was found, and what the rule wants."""
        rule, distance = self.rule, self.distance
        found = "none: no fingerprint" if distance is None else f"{count(distance, 'bit')} of 64 ({self.scheme})"
        yield "distance", found, f"at most {count(rule.max_distance, 'bit')}"
        least = None if rule.similarity is None else f"at least {100 * rule.similarity:g} %"
        yield "similarity", f"{100 * cut(self.similarity):g} % {rule.measure.of_what}", least
        if self.numbers in _NUMBERS:
            yield "numbers", _NUMBERS[self.numbers], "the same" if rule.measure.numbers == "same" else None


_NUMBERS = {
    "only": "nothing but numbers differs: the figures of another day, or a correction",
    "signs": "nothing but signs differs: of numbers, or words such as C++ and C#",
    "replaced": "numbers stand in the places of other numbers, and other words differ too",
}


@dataclass(frozen=True, slots=True)
class _Side:
    """A text with its fingerprint, of a document that of the *index*, and what the rule compares of it."""

    text: str
    value: int | None
    content: Content
    index: str | None = None


def explain(first: str, second: str, *, scheme: str | Scheme = DEFAULT_SCHEME) -> Explanation:
    """
    Return why two texts are near-duplicates by the default rule, or why not.

    Bounded in time and memory: a diff of long texts ends where it says so.

    Args:
        first:
            A text.
        second:
            Another.
        scheme:
            Name, id or :class:`Scheme`.

    Raises:
        TypeError: If a text is not a string.
        SchemeError: If the scheme is unknown.

    Examples:
        >>> found = explain("The boat leaves the pier at nine.", "the boat leaves the pier at nine!")
        >>> found.because, found.distance, found.similarity
        (None, 0, 1.0)
    """
    used = get_scheme(scheme)
    sides = [_side_of(text, used) for text in (first, second)]
    preset = DEFAULT_PRESET
    measure = preset.text_measure().after(used).noting_numbers()
    rule = LookupRule(preset.max_distance, preset.similarity, measure)
    return _explain(sides, rule, used)


async def explain_documents(
    server: Port,
    index: Index,
    ids: Sequence[str],
    texts: Sequence[str],
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
    await read_present_settings(server, index)
    scope = await read_scope(server, index, LookupOptions(), "text" if given else "document")
    if ids and not scope.text_fields.all:
        raise no_text_field("documents cannot be compared", index=str(index))
    scheme = scope.settings.scheme
    sides = [await _read_document(server, id_, scope) for id_ in ids] + [_side_of(text, scheme) for text in given]
    # What is found is the second, unless only the first is a document.
    found = sides[max(len(ids), 1) - 1]

    def judge() -> Explanation:
        told = _explain(sides, scope.rule, scheme)
        is_stale = told.because in {"texts", "numbers", "short"} and not found.content.fits(found.value, scheme)
        return replace(told, because=None, unverified=CHANGED) if is_stale else told

    explained: Explanation = await server.compute(judge)
    return replace(explained, index=found.index or max(scope.text_fields, default="the index"))


async def _read_document(server: Port, id: str, scope: Scope) -> _Side:
    """Return the document *id*; InvalidInputError if there is none, or several differ in what is compared."""
    name, fields = scope.fingerprint_field, scope.text_fields
    values = [name, *docvalue_fields(scope.rule)]
    hits, gaps = await read_documents(server, scope.index, id, text_fields=fields.all, docvalue_fields=values)
    check_whole(gaps)
    try:
        found = [
            _Side(
                read_hit(hit, fields[hit["_index"]]),
                next(map(from_hex, hit_fingerprints(hit, name)), None),
                read_content(hit, scope.rule, fields),
                str(hit["_index"]),
            )
            for hit in hits
        ]
    except InvalidInputError as error:
        raise InvalidInputError(f"document {shorten(id)} cannot be compared: {error}") from error
    if len({(side.text, side.value, side.content.key) for side in found}) > 1:
        raise differing(id, hits)
    return found[0]


def _side_of(text: str, scheme: Scheme) -> _Side:
    return _Side(text, fingerprint(text, scheme=scheme), Content(text))


def _explain(sides: Sequence[_Side], rule: LookupRule, scheme: Scheme) -> Explanation:
    """Return what *rule* says of two sides, by all that is known of them but where they were found."""
    first, second = sides
    measure = replace(rule.measure, numbers="any")
    score = measure.compare(*measure.prepare([first.text, second.text]))
    diff = word_diff(first.text, second.text, max_changes=_CHANGES)
    found = Explanation(rule, None, scheme, first.value, second.value, score.similarity, score.numbers, diff)
    if found.distance is None:
        return replace(found, because="fingerprint")
    compared = compare_contents(first.content, second.content, rule, distance=found.distance)
    if compared.unread is not None:
        return replace(found, unverified=why_unread(compared.unread, first.content))
    if compared.because == "texts":
        return replace(found, because=why_apart(first.content, second.content, rule)[0])
    return replace(found, because=compared.because)
