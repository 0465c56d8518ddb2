"""
Verification of what a lookup found: get the texts of the near-duplicates, and keep those whose text is the same.

How similar two texts are is computed in ``index.measures``. Here is where the texts come from, and what happens to a
near-duplicate whose text is not available: it is kept, without a similarity, and the answer says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from es_simhash.errors import IncompleteSearchError, InvalidInputError, WrongTypeError, shorten
from es_simhash.flows.context import Index, index_key
from es_simhash.flows.lookup.fetch import FETCH, fetch_hits, meant_hits
from es_simhash.flows.protocol import Compute, Flow
from es_simhash.flows.transfer.answers import check_whole, find_gaps
from es_simhash.flows.transfer.texts import read_hit, search_texts
from es_simhash.hashing import fingerprint as compute_fingerprint
from es_simhash.index.keys import Key, document_key
from es_simhash.index.measures.verification import TextSource, Verification
from es_simhash.index.meta import IndexSettings, check_text_fields
from es_simhash.index.rescore import NearDup, NearDups

__all__ = [
    "FETCH",
    "FoundTexts",
    "NoText",
    "fetch_text",
    "fetch_texts",
    "verify_near_dups",
]


def verify_near_dups(
    index: Index,
    found: Sequence[NearDups],
    texts: Sequence[str],
    *,
    settings: IndexSettings,
    verification: Verification,
    page: int = FETCH,
) -> Flow[list[NearDups]]:
    """
    Return the answers *found* with the similarity of each near-duplicate to the text asked for.

    Cost: one search for every 500 different near-duplicates; none if there are none, or the caller has the texts.

    Args:
        index:
            What was searched.
        found:
            One answer for each text.
        texts:
            The texts asked for.
        settings:
            The settings that the index records.
        verification:
            The bound, and where the texts are.
        page:
            Texts fetched at once.

    Returns:
        Answers without the near-duplicates below the bound, ordered by similarity, largest first; those that could not
        be compared come last. A near-duplicate whose text was changed, redacted or cut since it was fingerprinted is
        not dropped for that.

    Raises:
        InvalidInputError: If the texts are to come from the index and nothing says from which field.
    """
    wanted = list({each.key: each for answer in found for each in answer}.values())
    fields: tuple[str, ...] = ()
    if verification.texts is not None:
        texts_found = yield Compute(_ask, (verification.texts, wanted))
    else:
        fields = check_text_fields(verification.text_field) if verification.text_field else settings.text_fields
        if not fields:
            raise _no_fields(index)
        texts_found = yield from fetch_texts(index, [each.key for each in wanted], fields, page=page)
    compared = _Compared(texts_found, settings, fields, verification)
    answers: list[NearDups] = yield Compute(_compare, (list(found), list(texts), compared))
    return answers


@dataclass(frozen=True, slots=True)
class NoText:
    """
    Why a near-duplicate has no text to compare.

    Attributes:
        kind:
            ``"no_source"``: the caller's function has none. ``"not_read"``: shards did not answer. ``"deleted"``.
            ``"unreadable"``: the document has no text in the fields. ``"changed"``: its text is not the one of its
            fingerprint.
        detail:
            What more is known.
    """

    kind: Literal["no_source", "not_read", "deleted", "unreadable", "changed"]
    detail: str = ""

    def __str__(self) -> str:
        """Return the sentence for people."""
        match self.kind:
            case "no_source":
                return "the text source has no text for it"
            case "not_read":
                return f"its text was not read: {self.detail}"
            case "deleted":
                return "the document was deleted meanwhile"
            case "changed":
                return "its text does not fit its fingerprint: it was changed, redacted or cut"
            case _:
                return self.detail


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """
    The texts of documents, and why others have none.

    Attributes:
        texts:
            The texts.
        missing:
            Why a document has none.
        versions:
            Of which version each text is, its ``_seq_no`` and ``_primary_term``, where that was asked for.
    """

    texts: dict[Key, str] = field(default_factory=dict)
    missing: dict[Key, NoText] = field(default_factory=dict)
    versions: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def add(self, hit: Mapping[str, Any], fields: Sequence[str]) -> None:
        """Add the text of a hit."""
        key = document_key(hit)
        if "_seq_no" in hit:
            self.versions[key] = hit["_seq_no"], hit["_primary_term"]
        try:
            self.texts[key] = read_hit(hit, fields)
        except InvalidInputError as error:
            self.missing[key] = NoText("unreadable", str(error))

    def check_read(self) -> None:
        """
        Raise an error if shards did not answer.

        Raises:
            IncompleteSearchError: If a text was not read for that.
        """
        reasons = tuple(dict.fromkeys(str(why) for why in self.missing.values() if why.kind == "not_read"))
        if reasons:
            raise IncompleteSearchError(f"texts could not be read: {reasons[0]}", reasons=reasons)


def _ask(source: TextSource, wanted: Sequence[NearDup]) -> FoundTexts:
    found = FoundTexts()
    for each in wanted:
        text = source(each)
        if isinstance(text, str):
            found.texts[each.key] = text
        elif text is None:
            found.missing[each.key] = NoText("no_source")
        else:
            raise WrongTypeError(
                f"the text source returned {type(text).__name__} {shorten(text)}: return a str or None"
            )
    return found


def fetch_texts(
    index: Index, wanted: Sequence[Key], fields: Sequence[str], *, page: int = FETCH, versions: bool = False
) -> Flow[FoundTexts]:
    """
    Return the texts of the documents *wanted*, at most *page* at once, and on request of which *versions* they are.

    They are read from ``_source``, or from stored fields where an index keeps no source.
    """
    found = FoundTexts()
    unanswered = yield from fetch_hits(
        index, wanted, lambda hit: found.add(hit, fields), text_fields=fields, page=page, versions=versions
    )
    for key, gap in unanswered.items():
        found.missing[key] = NoText("deleted") if gap is None else NoText("not_read", str(gap))
    return found


def fetch_text(
    index: Index, id: str, *, settings: IndexSettings, verification: Verification, routing: str | None = None
) -> Flow[str]:
    """
    Return the text of the document *id*, for verifying its near-duplicates.

    Args:
        index:
            What to search.
        id:
            The document's id.
        settings:
            The settings that the index records.
        verification:
            Where the text is.
        routing:
            Which document is meant, where several have that id.

    Raises:
        InvalidInputError: If its text is not available, or several documents of that id have different texts.
        IncompleteSearchError: If not all shards answered: a copy of the document there may have another text.
    """
    if verification.texts is not None:
        itself = NearDup(id, index_key(index), 0, 0, routing=routing)
        found = yield Compute(_ask, (verification.texts, [itself]))
    else:
        fields = check_text_fields(verification.text_field) if verification.text_field else settings.text_fields
        if not fields:
            raise _no_fields(index)
        found = FoundTexts()
        answer = yield from search_texts(index, {"size": 100, "query": {"ids": {"values": [id]}}}, fields)
        check_whole(find_gaps(answer))
        for hit in meant_hits(answer["hits"]["hits"], routing):
            found.add(hit, fields)
    if len(set(found.texts.values())) != 1:
        reason = next(iter(found.missing.values()), "there is none, or several documents of that id differ on it")
        raise InvalidInputError(f"document {shorten(id)} cannot be compared: {reason}")
    return str(next(iter(found.texts.values())))


def _no_fields(index: Index) -> InvalidInputError:
    return InvalidInputError(
        f"index {shorten(index)} does not record its text field: name the text field of the verification, "
        "or record it (put_mapping, or es-simhash create --existing --text-field)"
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """What near-duplicates are compared by: their texts, where those come from, the measure and the bound."""

    found: FoundTexts
    settings: IndexSettings
    fields: Sequence[str]
    verification: Verification

    def current_fingerprints(self) -> dict[Key, int | None]:
        """Return the fingerprints of the texts; empty if these are not the fields that were fingerprinted."""
        if not self.fields or tuple(self.fields) != self.settings.text_fields:
            return {}
        return {key: compute_fingerprint(text, scheme=self.settings.scheme) for key, text in self.found.texts.items()}


def _compare(found: Sequence[NearDups], texts: Sequence[str], compared: _Compared) -> list[NearDups]:
    known, bound = compared.found.texts, compared.verification.similarity
    measure = compared.verification.text_measure.after(compared.settings.scheme)
    prepared = dict(zip(known, measure.prepare(list(known.values())), strict=True))
    current = compared.current_fingerprints()
    answers = []
    wanted = measure.prepare([text if len(answer) else "" for answer, text in zip(found, texts, strict=True)])
    for answer, asked in zip(found, wanted, strict=True):
        kept: list[NearDup] = []
        missing: list[tuple[NearDup, NoText]] = []
        for each in answer:
            if each.key not in prepared:
                missing.append((each, compared.found.missing[each.key]))
                kept.append(each)
                continue
            same = measure.compare(asked, prepared[each.key], bound=bound)
            if same.similarity >= bound:
                kept.append(replace(each, similarity=same.similarity, containment=same.containment))
            elif each.key in current and current[each.key] != each.fingerprint:
                missing.append((each, NoText("changed")))
                kept.append(each)
        kept.sort(key=_order)
        reasons = (f"document {each.id!r} of {each.index!r} was not compared: {why}" for each, why in missing)
        answers.append(replace(answer, items=tuple(kept), unverified=tuple(reasons)))
    return answers


def _order(near_dup: NearDup) -> tuple[float, int, str, str, str]:
    similarity = -1.0 if near_dup.similarity is None else near_dup.similarity
    return -similarity, *near_dup.order
