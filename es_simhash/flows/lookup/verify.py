"""
Verification of what a lookup found: get the texts of the near-duplicates, and keep those whose text is the same.

How similar two texts are is computed in ``index.verify``; here is where the texts come from, and what happens to a
near-duplicate whose text cannot be had: it is kept, without a similarity, and the answer says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Compute, Flow
from es_simhash.flows.transfer.answers import find_gaps, is_window_refused
from es_simhash.flows.transfer.texts import read_hit, search_texts
from es_simhash.hashing import fingerprint as compute_fingerprint
from es_simhash.index.meta import IndexSettings, check_text_fields
from es_simhash.index.rescore import NearDup, NearDups
from es_simhash.index.similarity import check_bound, compare_shingles, shingle_set

__all__ = [
    "DEFAULT_SIMILARITY",
    "TextSource",
    "Verification",
    "Verify",
    "fetch_text",
    "fetch_texts",
    "verification_of",
    "verify_near_dups",
]

DEFAULT_SIMILARITY = 0.8
# Texts fetched at once. With a few thousand characters each, a few megabytes.
FETCH = 500

TextSource: TypeAlias = Callable[[NearDup], str | None]


@dataclass(frozen=True, slots=True)
class Verification:
    """
    How to verify near-duplicates.

    Args:
        similarity:
            Smallest shingle Jaccard similarity to keep, 0 to 1; with 0 nothing is dropped.
        text_field:
            Field or fields of the text in the index; by default those that the index records.
        texts:
            A function that returns the text of a :class:`NearDup`, or ``None``, in place of the index; async clients
            call it in a thread.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the similarity is out of range, or a field name cannot be used.
    """

    similarity: float = DEFAULT_SIMILARITY
    text_field: str | Sequence[str] = ()
    texts: TextSource | None = None

    def __post_init__(self) -> None:
        check_bound(self.similarity, name="similarity")
        if self.text_field:
            check_text_fields(self.text_field)
        if self.texts is not None and not callable(self.texts):
            raise TypeError(f"texts must be a function of a NearDup, not {type(self.texts).__name__}")


Verify: TypeAlias = bool | float | TextSource | Verification


def verification_of(verify: Verify | None, *, similarity: float = DEFAULT_SIMILARITY) -> Verification | None:
    """
    Return what the argument *verify* of the find methods stands for; ``None`` where nothing is verified.

    Raises:
        TypeError: If it is neither a bool, a number, a function nor a :class:`Verification`.
        InvalidInputError: If it is a number out of range.
    """
    if verify is None or verify is False:
        return None
    if isinstance(verify, Verification):
        return verify
    if verify is True:
        return Verification(similarity)
    if callable(verify):
        return Verification(similarity, texts=verify)
    return Verification(check_bound(verify))


def verify_near_dups(
    index: Index,
    found: Sequence[NearDups],
    texts: Sequence[str],
    *,
    settings: IndexSettings,
    verification: Verification,
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
            What the index goes by.
        verification:
            The bound, and where the texts are.

    Returns:
        Answers without the near-duplicates below the bound, ordered by similarity, largest first; those that could not
        be compared come last. One whose text is no longer the text of its fingerprint (changed since, redacted, cut)
        is not dropped for it.

    Raises:
        InvalidInputError: If the texts are to come from the index and nothing says from which field.
    """
    wanted = list({(each.index, each.id): each for answer in found for each in answer}.values())
    fields: tuple[str, ...] = ()
    if verification.texts is not None:
        held, problems = yield Compute(_ask, (verification.texts, wanted))
    else:
        fields = check_text_fields(verification.text_field) if verification.text_field else settings.text_fields
        if not fields:
            raise _no_fields(index)
        held, problems = yield from fetch_texts(index, wanted, fields)
    answers: list[NearDups] = yield Compute(
        _compare, (list(found), list(texts), held, problems, settings, fields, verification.similarity)
    )
    return answers


Key: TypeAlias = tuple[str, str]
Texts: TypeAlias = tuple[dict[Key, str], dict[Key, str]]


def _ask(source: TextSource, wanted: Sequence[NearDup]) -> Texts:
    held, problems = {}, {}
    for each in wanted:
        text = source(each)
        if isinstance(text, str):
            held[each.index, each.id] = text
        elif text is None:
            problems[each.index, each.id] = "the text source has no text for it"
        else:
            raise TypeError(f"the text source returned {type(text).__name__} {shorten(text)}: return a str or None")
    return held, problems


def fetch_texts(index: Index, wanted: Sequence[NearDup], fields: Sequence[str]) -> Flow[Texts]:
    """
    Return the texts of documents by (index, id), and why others have none.

    They are read from ``_source``, or from stored fields where an index keeps no source.
    """
    held: dict[Key, str] = {}
    problems: dict[Key, str] = {}
    page, done = FETCH, 0
    while done < len(wanted):
        part = wanted[done : done + page]
        ids = list(dict.fromkeys(each.id for each in part))
        names = list(dict.fromkeys(each.index for each in part))
        body = {
            # As many as there can be: one id may stand in several of the indices.
            "size": min(len(ids) * len(names), 2 * page),
            "query": {"bool": {"filter": [{"ids": {"values": ids}}, {"terms": {"_index": names}}]}},
        }
        try:
            answer = yield from search_texts(index, body, fields)
        except Exception as error:
            if not is_window_refused(error) or page == 1:
                raise
            page = max(1, page // 2)
            continue
        done += len(part)
        for hit in answer["hits"]["hits"]:
            _read_hit(hit, fields, held, problems)
        gaps = find_gaps(answer)
        missing = f"its text was not read: {gaps[0]}" if gaps else "the document was deleted meanwhile"
        for each in part:
            key = (each.index, each.id)
            if key not in held:
                problems.setdefault(key, missing)
    return held, problems


def fetch_text(index: Index, id: str, *, settings: IndexSettings, verification: Verification) -> Flow[str]:
    """
    Return the text of the document *id*, for verifying its near-duplicates.

    Raises:
        InvalidInputError: If its text is not available, or indices differ on it.
    """
    if verification.texts is not None:
        itself = NearDup(id, index if isinstance(index, str) else ",".join(index), 0, 0)
        own, problems = yield Compute(_ask, (verification.texts, [itself]))
        if problems:
            raise InvalidInputError(f"document {shorten(id)} cannot be compared: the text source has no text for it")
        return str(own[itself.index, id])
    fields = check_text_fields(verification.text_field) if verification.text_field else settings.text_fields
    if not fields:
        raise _no_fields(index)
    held: dict[Key, str] = {}
    problems = {}
    body = {"size": 100, "query": {"ids": {"values": [id]}}}
    answer = yield from search_texts(index, body, fields)
    for hit in answer["hits"]["hits"]:
        _read_hit(hit, fields, held, problems)
    if len(set(held.values())) != 1:
        reason = next(iter(problems.values()), "there is none, or several indices differ on its text")
        raise InvalidInputError(f"document {shorten(id)} cannot be compared: {reason}")
    return next(iter(held.values()))


def _no_fields(index: Index) -> InvalidInputError:
    return InvalidInputError(
        f"index {shorten(index)} does not record which field holds the text: "
        "give verify=Verification(text_field=...), or record it with put_mapping"
    )


def _read_hit(hit: Mapping[str, Any], fields: Sequence[str], held: dict[Key, str], problems: dict[Key, str]) -> None:
    key = (hit["_index"], hit["_id"])
    try:
        held[key] = read_hit(hit, fields)
    except InvalidInputError as error:
        problems[key] = str(error)


def _compare(
    found: Sequence[NearDups],
    texts: Sequence[str],
    held: Mapping[Key, str],
    problems: Mapping[Key, str],
    settings: IndexSettings,
    fields: Sequence[str],
    bound: float,
) -> list[NearDups]:
    shingles = {key: shingle_set(text) for key, text in held.items()}
    # A text from the fields that were fingerprinted must still have that fingerprint; of others nothing is known.
    known = held if fields and tuple(fields) == settings.text_fields else {}
    current = {key: compute_fingerprint(text, scheme=settings.scheme) for key, text in known.items()}
    answers = []
    for answer, text in zip(found, texts, strict=True):
        asked = shingle_set(text) if len(answer) else None
        kept, reasons = [], []
        for each in answer:
            key = (each.index, each.id)
            if key not in shingles or asked is None:
                reasons.append(f"document {each.id!r} of {each.index!r} was not compared: {problems[key]}")
                kept.append(each)
                continue
            same = compare_shingles(asked, shingles[key])
            if same.jaccard >= bound:
                kept.append(replace(each, similarity=same.jaccard, containment=same.containment))
            elif key in current and current[key] != each.fingerprint:
                kept.append(each)
                reasons.append(
                    f"document {each.id!r} of {each.index!r} was not compared: its text is not the one of its "
                    "fingerprint; it was changed or redacted, or is cut"
                )
        kept.sort(key=_order)
        answers.append(replace(answer, items=tuple(kept), unverified=tuple(reasons)))
    return answers


def _order(near_dup: NearDup) -> tuple[float, int, str, str]:
    similarity = -1.0 if near_dup.similarity is None else near_dup.similarity
    return -similarity, near_dup.distance, near_dup.index, near_dup.id
