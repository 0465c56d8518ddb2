"""
What the filters of all frameworks share: their options, what stays, and what its metadata then say. No framework.

pydantic is not among the requirements of this library: each of the frameworks brings it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.json_schema import SkipJsonSchema

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.folding.texts import distinct_texts
from es_simhash.texts.measures import DEFAULT_PRESET, Preset

COUNT = "similar_count"
IDS = "similar_ids"

_Document = TypeVar("_Document")


@dataclass(frozen=True, slots=True)
class Item:
    """A document as the filters see it; *text* is ``None`` if it has none, or not only text: then it stays."""

    text: str | None
    id: str | None
    metadata: dict[str, Any]


class Options(BaseModel):
    """The options of :func:`es_simhash.distinct_texts`, which says what they mean; *keep* is given a text."""

    model_config = ConfigDict(extra="forbid")

    preset: str | Preset = DEFAULT_PRESET.name
    keep: Literal["first", "longest"] | SkipJsonSchema[Callable[[str], Any]] = "first"

    @model_validator(mode="after")
    def _checked(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """Raise InvalidInputError if one of the options cannot be used."""
        self._distinct([])

    def _distinct(self, texts: Sequence[str]) -> Any:
        return distinct_texts(texts, preset=self.preset, keep=self.keep)

    def filtered(
        self, documents: Iterable[_Document], read: Callable[[_Document], Item]
    ) -> Iterator[tuple[_Document, dict[str, Any] | None]]:
        """Yield the documents that stay, in order, each with its new metadata if it stands for others."""
        documents = list(documents)
        items = [read(document) for document in documents]
        # A text without a fingerprint stays.
        found = self._distinct([item.text or "" for item in items])
        others = {group.kept: [items[document.position] for document in group.dropped] for group in found.groups}
        for position in found.kept:
            told = _tell(items[position], others[position]) if position in others else None
            yield documents[position], told


def _tell(kept: Item, dropped: Sequence[Item]) -> dict[str, Any] | None:
    """Return the metadata of *kept* with what it stands for; what an earlier filter told of these is counted too."""
    without_id, ids = _told(kept)
    before = without_id + len(ids)
    known = {kept.id, *ids}
    for document in dropped:
        more, its_ids = _told(document)
        if document.id is None or document.id not in known:  # else the same document, found twice
            without_id += more + (document.id is None)
        new = [id_ for id_ in dict.fromkeys((document.id, *its_ids)) if id_ is not None and id_ not in known]
        known.update(new)
        ids += new
    count = without_id + len(ids)
    return {**kept.metadata, COUNT: count, **({IDS: ids} if ids else {})} if count > before else None


def _told(item: Item) -> tuple[int, list[str]]:
    """
    Return what an earlier filter told in the metadata of *item*: how many have no id, and the ids of the others.
    What no filter wrote is not overwritten.
    """
    count, ids = item.metadata.get(COUNT), item.metadata.get(IDS)
    is_count = count is None or (type(count) is int and count >= 0)
    if is_count and (ids is None or (isinstance(ids, list) and all(isinstance(id_, str) for id_ in ids))):
        return max((count or 0) - len(ids or ()), 0), [*(ids or ())]
    name, value = (IDS, ids) if is_count else (COUNT, count)
    raise InvalidInputError(
        f"{name} in the metadata of document {shorten(item.id)} is {shorten(value)}, which no filter of "
        "near-duplicates wrote: rename it"
    )
