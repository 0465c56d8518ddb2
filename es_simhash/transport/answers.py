"""
Whether an answer covers every shard of every index asked, and if not, why not.

Every read goes through :func:`find_gaps`. A gap is data; its sentence is made last, for people, and no code reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from es_simhash.errors import IncompleteSearchError
from es_simhash.transport.protocol import error_text, status_of

GapKind = Literal[
    "shards_failed",
    "shards_silent",
    "shards_missing",
    "no_shard",
    "unsaid",
    "timed_out",
    "terminated_early",
]

_SENTENCES: dict[GapKind, str] = {
    "shards_failed": "{number} of {total} shards failed{cause}",
    "shards_silent": "{number} of {total} shards did not answer: they have no active copy",
    "shards_missing": "shards have no active copy",
    "unsaid": "the answer does not say which shards it covers",
    "no_shard": "no shard was searched: no open index matches",
    "timed_out": "the search timed out",
    "terminated_early": "the search was terminated early",
}
# What both products say when they are asked for parts of a _source that is not kept.
_NO_SOURCE = "unable to fetch fields from _source"
# Elasticsearch answers 503 where one shard refuses a request and another is missing; a script that fails is a 500.
_REFUSED = (400, 500, 503)
_NO_SCRIPT = ("script", "painless", "allow_expensive_queries")
# Of a point in time; of a search, Elasticsearch by the first failure, and OpenSearch by naming no failure at all.
_NO_COPY = "no_shard_available_action_exception"
_NO_CONTEXT = "search_context_missing_exception"
_GONE = 404
_MISSING_SHARDS = ("missing shards", _NO_COPY, "'failed_shards': []")
# OpenSearch: an index without any mapping does not know the field by which documents are shared out to slices.
_NO_SLICE = "field _id not found"


@dataclass(frozen=True, slots=True)
class Gap:
    """
    One reason why an answer may lack documents; *cause* has the server's words for the first failure.
    ``"shards_silent"``: shards without any copy, which OpenSearch reports neither as failed nor as successful.
    ``"shards_missing"``: the whole request failed because a shard has no active copy. ``"no_shard"``: nothing was
    searched. ``"unsaid"``: the answer lacks what says whether it is complete, as where a proxy or a client cuts it.
    """

    kind: GapKind
    number: int = 0
    total: int = 0
    cause: str = ""

    @property
    def is_missing_shard(self) -> bool:
        return self.kind in ("shards_silent", "shards_missing") or _NO_COPY in self.cause

    def __str__(self) -> str:
        cause = f": {self.cause}" if self.cause else ""
        return _SENTENCES[self.kind].format(number=self.number, total=self.total, cause=cause)


Refusal: TypeAlias = BaseException | Mapping[str, Any] | Iterable[Gap]
"""The client's exception, the ``error`` of one search of several, or the gaps of an answer."""


def find_gaps(answer: Mapping[str, Any], *, ignore: Iterable[GapKind] = ()) -> list[Gap]:
    """
    Return why *answer*, of a search or of opening a point in time, does not cover all documents that were asked for.
    Not of a refresh: that counts copies, so a replica that is not there yet looks like a shard without any copy.
    *ignore*: kinds that mean nothing for this request. OpenSearch reports an early end of a composite aggregation whose
    page is full, and of a terms aggregation that counts without looking at documents. A point in time that is opened
    need not speak of its shards: its searches do.
    """
    gaps = []
    shards = answer.get("_shards") or {}
    total, failed = shards.get("total"), shards.get("failed", 0)
    if total is None:
        gaps.append(Gap("unsaid"))
    if failed:
        gaps.append(Gap("shards_failed", failed, total or 0, _first_cause(shards.get("failures") or ())))
    if total == 0:
        gaps.append(Gap("no_shard"))
    # Skipped shards count as successful on both products.
    if total and (silent := total - failed - shards.get("successful", total - failed)) > 0:
        gaps.append(Gap("shards_silent", silent, total))
    if answer.get("timed_out"):
        gaps.append(Gap("timed_out"))
    if answer.get("terminated_early"):
        gaps.append(Gap("terminated_early"))
    ignored = set(ignore)
    return [gap for gap in gaps if gap.kind not in ignored]


def _first_cause(failures: Iterable[Mapping[str, Any]]) -> str:
    causes = (failure.get("reason") or {} for failure in failures)
    return next((f"{cause.get('type')}: {cause.get('reason')}" for cause in causes if cause), "")


def sentences(gaps: Iterable[Gap | str]) -> tuple[str, ...]:
    """Return the sentence of each gap, each once."""
    return tuple(dict.fromkeys(map(str, gaps)))


def check_whole(gaps: Iterable[Gap], advice: str = "run it again") -> None:
    if reasons := sentences(gaps):
        raise IncompleteSearchError(
            f"not every document could be read: {'; '.join(reasons)}; {advice}", reasons=reasons
        )


def is_shard_missing(refusal: BaseException) -> bool:
    return status_of(refusal) == 503 and any(words in refusal_text(refusal) for words in _MISSING_SHARDS)


def is_closed(refusal: BaseException) -> bool:
    """Return whether the server refused a request because an index is closed."""
    return "index_closed_exception" in refusal_text(refusal)


def is_view_ended(refusal: Refusal) -> bool:
    """
    Return whether a point in time, or a part of it, is gone: it is too old, or an index was made anew.
    For an index made anew, Elasticsearch looks for the shards of the former one, and answers as for a missing shard.
    """
    if isinstance(refusal, BaseException) and status_of(refusal) == _GONE:
        return True
    text = refusal_text(refusal)
    return any(words in text for words in (_NO_CONTEXT, _NO_COPY))


def is_slice_refused(answer: Mapping[str, Any] | BaseException) -> bool:
    """Return whether an index behind the name cannot be read in slices, by the first *answer* to a slice."""
    return _NO_SLICE in refusal_text(answer if isinstance(answer, BaseException) else find_gaps(answer))


def is_source_refused(refusal: Refusal) -> bool:
    """Return whether the server refused to return parts of a ``_source`` that the index does not store."""
    return _is_refused_for(refusal, [_NO_SOURCE])


def is_script_refused(refusal: Refusal) -> bool:
    """Return whether the server refused a request for its script."""
    return _is_refused_for(refusal, _NO_SCRIPT)


def _is_refused_for(refusal: Refusal, words: Iterable[str]) -> bool:
    if isinstance(refusal, BaseException) and status_of(refusal) not in _REFUSED:
        return False
    text = refusal_text(refusal)
    return any(word in text for word in words)


def refusal_text(refusal: Refusal) -> str:
    """Return the server's text of a refusal, to search it for documented words; it has no sentence of ours."""
    if isinstance(refusal, BaseException):
        return error_text(refusal)
    if isinstance(refusal, Mapping):
        return str(refusal)
    return " ".join(gap.cause for gap in refusal)
