"""Options of lookups, checked, and what counts where the caller gave none. Makes no request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, get_args

from es_simhash.arguments import Count, check_choice, check_field, check_ids, check_key, check_options, option, private
from es_simhash.errors import IncompleteSearchError, InvalidInputError, shorten
from es_simhash.lookup.query import Filter, check_filter, check_source
from es_simhash.mapping.rule import PairRule, parse_within
from es_simhash.texts.measures import DEFAULT_SIMILARITY, NUMBERS, Numbers, Preset, check_bound, get_preset
from es_simhash.transport.protocol import Index, cause_of, index_key, status_of
from es_simhash.transport.refusals import CLOSED, is_no_index, is_passing

_Rule = TypeVar("_Rule", bound=PairRule)


@dataclass(frozen=True, slots=True)
class Verification:
    """
    How to verify near-duplicates. What is not given stays as the preset says, else the rule that the index records,
    else .8 of the shingles of words, whatever the numbers.

    Args:
        similarity:
            Smallest similarity to keep, 0 to 1; with 0 nothing is dropped.
        numbers:
            ``"same"`` keeps texts apart that have other numbers in the same places, such as the figures of another
            week; ``"most"``, texts in which more numbers are others, from two on, than the same; ``"any"``, none.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the similarity is out of range.
    """

    similarity: float | None = None
    numbers: Numbers | None = option(None, partial(check_choice, choices=NUMBERS))

    def __post_init__(self) -> None:
        if self.similarity is not None:
            check_bound("similarity", self.similarity)
        check_options(self)
        self.put_on(PairRule())  # which refuses what contradicts

    def put_on(self, rule: _Rule) -> _Rule:
        """Return *rule* with what is given in its place."""
        measure = replace(rule.measure, numbers=self.numbers or rule.measure.numbers)
        usual = DEFAULT_SIMILARITY if rule.similarity is None else rule.similarity
        return replace(rule, similarity=usual if self.similarity is None else self.similarity, measure=measure)


Verify: TypeAlias = bool | float | Verification
"""What a caller gives as ``verify``."""

WithinGiven: TypeAlias = tuple[str, str] | Literal[False] | None


def asked_rule(
    rule: _Rule,
    *,
    preset: str | Preset | None = None,
    verify: Verify | None = None,
    max_distance: int | None = None,
    per: str | Literal[False] | None = None,
    within: WithinGiven = None,
) -> _Rule:
    """Return *rule* with what is asked for in its place: *preset* first, then what is given beside it."""
    if preset is not None:
        known = get_preset(preset)
        measure = known.text_measure(rule.measure.numbers)
        rule = replace(rule, max_distance=known.max_distance, similarity=known.similarity, measure=measure)
    if isinstance(verify, Verification):
        rule = verify.put_on(rule)
    elif verify is False:
        rule = replace(rule, similarity=None)
    elif verify is True:
        rule = Verification().put_on(rule)
    elif verify is not None:
        rule = replace(rule, similarity=check_bound("verify", verify))
    changed: dict[str, Any] = {} if max_distance is None else {"max_distance": max_distance}
    if per is not None:
        changed["per"] = None if per is False else check_field("per", per)
    if within is not None:
        changed["within"] = None if within is False else parse_within(within)
    return replace(rule, **changed)


Lookups = Literal["auto", "server", "memory"]

MEMORY_BYTES = 1 << 30

# Fewer lookups than these are never worth a table, which takes some six requests however small it is.
FEWEST_LOOKUPS = 50

# Milliseconds to read one fingerprint, and of a lookup by block terms beyond what the cost model counts: estimates from
# runs of bench/plain.py. They decide only which way is faster.
READ_FINGERPRINT_MS, LOOKUP_MS = 0.0015, 0.7


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """
    Where to look many texts up, checked.

    Args:
        lookups:
            ``"server"``: ask the server about each document. ``"memory"``: read the fingerprints of the index
            first, keep them current, and ask only about documents that have one near them; an error where that is
            not possible. ``"auto"``: ask the server, and change to memory once enough documents have come for it
            to be faster. The decisions are the same. See docs/dedup.md.
        memory_bytes:
            Most memory for these fingerprints, 20 to 60 bytes each, the fewer the more there are; by default 1 GiB.
            If they need more, ``"auto"`` asks the server, and ``"memory"`` is an error that says how much.
    """

    lookups: Lookups = option("auto", partial(check_choice, choices=get_args(Lookups)))
    memory_bytes: int | None = option(None, Count(largest=1 << 50))

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def most_bytes(self) -> int:
        """Most bytes that fingerprints may occupy."""
        return self.memory_bytes or MEMORY_BYTES


def pays(lookups: int, *, milliseconds: float, documents: int) -> bool:
    """Return whether *lookups* by block terms, of *milliseconds* each, cost more than to read all fingerprints."""
    return lookups >= FEWEST_LOOKUPS and lookups * (LOOKUP_MS + milliseconds) > READ_FINGERPRINT_MS * documents


TableFault = Literal["statistics", "primary", "numbers", "search", "answer", "fingerprint", "memory", "view", "expired"]

# Most characters of a server's message.
MESSAGE_CHARACTERS = 200


class TableError(Exception):
    """The fingerprints of an index cannot be kept in memory; *kind* says why. Caught where lookups are made."""

    def __init__(self, kind: TableFault, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    @property
    def is_passing(self) -> bool:
        """Whether it may be otherwise in a moment."""
        return self.kind in ("primary", "answer", "expired")

    @property
    def is_of_document(self) -> bool:
        """Whether one document is the cause, which a lookup by the server names where it could be near."""
        return self.kind == "fingerprint"

    def __str__(self) -> str:
        sentences = {
            "statistics": "the server does not show the sequence numbers of the shards",
            "primary": "a shard has no primary",
            "answer": "the server did not answer a search whole",  # it was too busy, or shards did not answer
            "numbers": "the server does not search operations by their sequence numbers",
            "search": "the server refuses the searches that read fingerprints",
            "fingerprint": "a document has block terms and no fingerprint that can be read",
            "memory": "the fingerprints need more memory than memory_bytes allows",
            "view": "the server keeps no point in time",
            "expired": "the point in time has ended",
        }
        return sentences[self.kind] + (f" ({self.detail})" if self.detail else "")

    def for_caller(self, index: Index) -> IncompleteSearchError | InvalidInputError:
        """Return the error of a caller who demands that fingerprints are in memory."""
        said = f"lookups='memory' cannot be used for {shorten(index_key(index))}: {self}"
        if self.is_passing:
            return IncompleteSearchError(f"{said}; run it again, or pass 'auto'", reasons=(str(self),))
        return InvalidInputError(f"{said}; change that, or pass 'auto'")


def as_fault(error: Exception, kind: TableFault) -> Exception:
    """Return the error to raise: the client's own if the index is closed or gone, or if no answer came."""
    if isinstance(error, IncompleteSearchError):
        return TableError("answer", error.reasons[0])
    is_plain = status_of(error) is None or CLOSED.meets(error) or is_no_index(error)
    return (
        error if is_plain else TableError("answer" if is_passing(error) else kind, cause_of(error)[:MESSAGE_CHARACTERS])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """
    The sizes of requests; the answers do not depend on them.
    *first_page*: hits of a first search if no more are expected; too small a page costs a second search.
    *largest_page*: by default servers refuse more. *fingerprints*: near ones whose documents are asked together.
    *batch*, *batch_in_memory*: lookups in one request; in memory most of them find nothing, so more fit. One search has
    at most *shared* lookups, with at most *shared_terms* block terms, so that its body is small. The client compares
    what a shared search finds with each of its lookups: at most *shared_passing* documents for each lookup.
    """

    first_page: int = 2_000
    next_page: int = 5_000
    largest_page: int = 10_000
    fingerprints: int = 1_000
    batch: int = 100
    batch_in_memory: int = 1_000
    shared: int = 50
    shared_terms: int = 6_000
    shared_passing: int = 12_000


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """
    What every lookup takes, checked.

    Args:
        size:
            Most documents returned; ``None`` for all.
        filter:
            A query, or a list of queries, that the documents also match.
        exclude_ids:
            Ids of documents to leave out.
        source:
            ``False``, ``True`` or the ``_source`` fields that results carry.
        routing:
            Routing value that restricts the search.
    """

    size: int | None = option(None, Count())
    filter: Filter = None
    exclude_ids: Iterable[str] = option((), check_ids)
    source: bool | Sequence[str] = False
    routing: str | None = option(None, check_key)

    def __post_init__(self) -> None:
        check_filter(self.filter)
        check_source(self.source)
        check_options(self)


@dataclass(frozen=True, slots=True)
class LookupOptions(SearchOptions):
    """
    How to look up near-duplicates, checked.

    Args:
        max_distance:
            Largest Hamming distance reported, in bits, inclusive, 0 to 64; by default that of the rule that the
            index records, else 12. Given alone, without verify and preset, it is bits alone: no text is compared.
        size:
            Most near-duplicates returned, the nearest in bits of those that the rule accepts; ``None`` for all.
            Which of several at the same distance are cut off is not defined.
        verify:
            By default the rule that the index records decides, also about the texts. ``False``: bits alone.
            ``True``: compare the texts as that rule does, else by .8 of their 7-letter shingles (exact Jaccard). A
            number: that bound instead. A :class:`Verification`: that, and whether numbers count. Needs a *text* or
            a document. A near-duplicate whose text cannot be read is kept, last and without similarity;
            ``unverified`` says why.
        preset:
            ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a
            verification that were measured together. An explicit max_distance or verify overrides the preset.
    """

    max_distance: int | None = option(None, Count(0, 64))
    verify: Verify | None = None
    preset: str | Preset | None = None
    sizes: Sizes = private(Sizes())

    def __post_init__(self) -> None:
        self.put_on(PairRule())  # refuses what cannot be used before a server is asked
        SearchOptions.__post_init__(self)

    @property
    def is_bits_alone(self) -> bool:
        """Whether the caller asks for bits alone: by ``verify=False``, or by a distance and nothing about texts."""
        return self.verify is False or (self.max_distance is not None and self.verify is None and self.preset is None)

    def put_on(self, rule: PairRule) -> PairRule:
        """Return *rule*, that of an index, with everything that the caller asks for in its place."""
        if self.is_bits_alone:
            rule = PairRule(rule.max_distance)
        verify = False if self.is_bits_alone else self.verify
        return asked_rule(rule, verify=verify, preset=self.preset, max_distance=self.max_distance)


class _Answer(Protocol):
    """What answers of lookups have in common."""

    @property
    def complete(self) -> bool: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...


_A = TypeVar("_A", bound=_Answer)


def check_complete(answer: _A, *, what: str = "near-duplicates") -> _A:
    """Return *answer* if it is complete; else raise an error that carries it."""
    if answer.complete:
        return answer
    raise IncompleteSearchError(
        f"{what} may be missing: {'; '.join(answer.reasons)}; the {len(answer)} found are in the error's .results",
        results=answer,
        reasons=answer.reasons,
    )
