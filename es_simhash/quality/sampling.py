"""Reads samples of an index: documents with texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from es_simhash.arguments import Count, check_fields, check_options, option
from es_simhash.errors import NAME_TEXT_FIELD, InvalidInputError, Said, shorten
from es_simhash.mapping.fields import text_or_none
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.limits import Fitting, is_beyond
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Key, Progress, document_key
from es_simhash.transport.retry import retry, search_texts

LARGEST_SAMPLE = 10_000
# Documents fetched at once; with texts of a few thousand characters, a few megabytes.
_PAGE = 1_000


def sample_option(default: int) -> Any:
    """Return the option for how many documents are drawn."""
    return option(default, Count(1, LARGEST_SAMPLE))


def seed_option(default: int) -> Any:
    """Return the option for the seed: 0 to 2**31 - 1, which servers take."""
    return option(default, Count(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """
    Which documents are drawn, and where their text is, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
        sample:
            Documents drawn at random, 1 to 10,000; all if there are fewer.
        seed:
            Chooses what is drawn at random.
    """

    text_field: str | Sequence[str] = ()
    sample: int = sample_option(1_000)
    seed: int = seed_option(0)

    def __post_init__(self) -> None:
        check_fields("text_field", self.text_field, may_lack=True)
        check_options(self)

    def fields(self, settings: IndexSettings | None) -> tuple[str, ...]:
        """Return the text fields that are named, else those that *settings* record."""
        named = check_fields("text_field", self.text_field, may_lack=True)
        return named or (settings.text_fields if settings else ())

    def named_fields(self, index: Index, settings: IndexSettings | None) -> tuple[str, ...]:
        """Return them, or raise InvalidInputError if there are none."""
        if not (found := self.fields(settings)):
            raise InvalidInputError(Said(f"index {shorten(index)} does not record its text field: ", NAME_TEXT_FIELD))
        return found


async def sample_documents(
    server: Port,
    index: Index,
    size: int,
    *,
    query: Mapping[str, Any],
    text_fields: Sequence[str],
    source: Sequence[str] = (),
    docvalue_fields: Sequence[str] = (),
    seed: int = 0,
    with_text: bool = False,
) -> tuple[Hits, list[Gap], int]:
    """
    Return up to *size* random documents that match *query*, why some could not be drawn, and how many were drawn.
    The same seed returns the same documents while the index does not change. Fewer are returned if fewer match, or if
    the ``max_result_window`` of the index is smaller. *with_text*: documents are drawn until so many have a text: no
    query knows an empty text, or the texts that a mapping hides.
    """
    drawn = 0
    hits: dict[Key, Mapping[str, Any]] = {}  # copies of a shard may order equal scores otherwise from page to page
    gaps: dict[Gap, None] = {}
    page = Fitting(min(size, _PAGE), "hits")
    while len(hits) < size:
        server.tell(Progress(len(hits), size, "sampling texts"))
        # Where few of those drawn are wanted, pages stay as large as they are.
        wanted = min(page.size, size - len(hits) if drawn == len(hits) else page.size)
        body = {
            "from": drawn,
            "size": wanted,
            "query": {
                "function_score": {
                    "query": dict(query),
                    "random_score": {"seed": seed, "field": "_seq_no"},
                    "boost_mode": "replace",
                }
            },
            "docvalue_fields": list(docvalue_fields),
        }
        try:
            answer = await retry(server, partial(search_texts, server, index, body, text_fields, source=source))
        except Exception as error:
            if drawn and is_beyond(error, "hits"):
                break
            if not page.shrink(error):
                raise
            continue
        gaps |= dict.fromkeys(find_gaps(answer))
        found = answer["hits"]["hits"]
        for hit in found:
            drawn += 1
            if not with_text or text_or_none(hit, text_fields):
                hits.setdefault(document_key(hit), hit)
            if len(hits) == size:
                break
        if len(found) < wanted:
            break
    return list(hits.values()), list(gaps), drawn
