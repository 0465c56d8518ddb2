"""The options of an ingest and of a screen, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

from es_simhash.arguments import Count, check_choice, check_fields, check_options, option, private
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.ingest.decide import OnDuplicate
from es_simhash.lookup.lookup_options import LookupRequest
from es_simhash.lookup.query import check_source

IngestIdFrom = Literal["content"] | None
OpType = Literal["index", "create"]


@dataclass(frozen=True, slots=True)
class IngestSizes:
    """
    Limits of a batch, and of the memory in flight.
    *characters*: about how many fill a batch. *first*: documents in each batch that is read before the first report.
    *asking*: in one about each document of which the server is asked; *most*: in any other. *unshown*: after so many
    written documents the index is refreshed, so that memory stays bounded, whatever its refresh interval.
    *unshown_bytes*: the same for the texts of these documents, where texts are compared.
    """

    characters: int = 4_000_000
    first: int = 50
    asking: int = 500
    most: int = 2_000
    unshown: int = 100_000
    unshown_bytes: int = 100_000_000


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """
    How to ingest, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
        on_duplicate:
            ``"tag"``: write a duplicate with the id of its canonical. ``"skip"``: do not write it, but tag it if
            the index has its id, because the old text would stay; costs a search for each batch with ids.
            ``None``: do not look for duplicates, write no groups.
        grouping:
            ...
        id_from:
            ``"content"`` makes the id of a document that has none from its content, so that the same document
            written again adds nothing; by default the id is random.
        workers:
            Number of processes that compute fingerprints; by default none. As for :func:`with_fingerprints`.
        op_type:
            ``"create"`` only creates documents, as data streams demand; one whose id is taken is reported as
            ``"refused"`` with the kind ``"exists"``, or as ``"unchanged"`` if the index has the same content under
            it. By default a document replaces the one with its id.
        batch:
            Most documents in one request, 1 to 10,000; by default 2,000, and 500 where the server is asked about
            each of them. The first two requests have 50 at most.
        lookup:
            ...
    """

    text_field: str | Sequence[str] | None = None
    on_duplicate: OnDuplicate | None = option("tag", partial(check_choice, choices=("tag", "skip", None)))
    grouping: GroupingRequest = field(default_factory=GroupingRequest)
    id_from: IngestIdFrom = option(None, partial(check_choice, choices=("content", None)))
    workers: int | None = option(None, Count())
    op_type: OpType = option("index", partial(check_choice, choices=get_args(OpType)))
    batch: int | None = option(None, Count(1, 10_000))
    lookup: LookupRequest = field(default_factory=LookupRequest)
    sizes: IngestSizes = private(IngestSizes())

    def __post_init__(self) -> None:
        check_options(self)
        check_fields("text_field", self.text_field, may_lack=True)


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """
    How to screen, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
        source:
            ``False``, ``True`` or the ``_source`` fields of the winner that the answer carries.
        grouping:
            ...
    """

    text_field: str | Sequence[str] | None = None
    source: bool | Sequence[str] = False
    grouping: GroupingRequest = field(default_factory=GroupingRequest)

    def __post_init__(self) -> None:
        check_options(self)
        check_fields("text_field", self.text_field, may_lack=True)
        check_source(self.source)
