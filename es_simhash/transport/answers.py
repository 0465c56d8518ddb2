"""
Whether an answer covers every shard of every index asked, and if not, why not.

Every read goes through :func:`find_gaps`. A gap is data; its sentence is made last, for people, and no code reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.errors import IncompleteSearchError

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
# Of a point in time; of a search, Elasticsearch by the first failure, and OpenSearch by naming no failure at all.
NO_COPY = "no_shard_available_action_exception"


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
        return self.kind in ("shards_silent", "shards_missing") or NO_COPY in self.cause

    def __str__(self) -> str:
        cause = f": {self.cause}" if self.cause else ""
        return _SENTENCES[self.kind].format(number=self.number, total=self.total, cause=cause)


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
    if total and "successful" in shards and (silent := total - failed - shards["successful"]) > 0:
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


def check_whole(gaps: Iterable[Gap]) -> None:
    if reasons := sentences(gaps):
        raise IncompleteSearchError(
            f"not every document could be read: {'; '.join(reasons)}; run it again", reasons=reasons
        )
