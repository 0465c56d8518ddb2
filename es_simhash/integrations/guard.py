"""
What the guards of all frameworks share: which chunks are to be stored, and our fields once a store has written them.
No framework.

A store writes its own fields only. So its documents are read again and updated, by ``tag_written``, unless an ingest
pipeline of the server adds the fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash import IncompleteWriteError, Screened, SimHashClient, Written, WrongTypeError
from es_simhash.arguments import check_field, check_name
from es_simhash.errors import count, shorten


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of text that is to be stored, with the fields that it will have there; *id*: ``None`` if it gets one."""

    text: str | None
    id: str | None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Guard:
    """Asks *simhash* about chunks before they are stored in *index*; the store calls their text *text_field*."""

    simhash: SimHashClient
    index: str
    text_field: str

    def __post_init__(self) -> None:
        if not isinstance(self.simhash, SimHashClient):
            raise WrongTypeError(f"simhash must be a SimHashClient, not {type(self.simhash).__name__}")
        check_name("index", self.index)
        check_field("text_field", self.text_field)

    def screen(self, chunks: Iterable[Chunk]) -> list[Screened]:
        """Return what is known of each of *chunks*."""
        return list(self.simhash.screen(self.index, map(self._document, chunks), text_field=self.text_field))

    def near(self, chunks: Mapping[int, Chunk]) -> dict[int, Screened]:
        """Return what is known of those of *chunks*, by place, that are not to be stored."""
        found = zip(chunks, self.screen(chunks.values()), strict=True) if chunks else ()
        return {place: screened for place, screened in found if not is_stored(screened)}

    def _document(self, chunk: Chunk) -> dict[str, Any]:
        # Fields of the user may be called _id or _source, as what is made of a hit.
        text = {} if chunk.text is None else {self.text_field: chunk.text}
        return {**({} if chunk.id is None else {"_id": chunk.id}), "_source": {**chunk.fields, **text}}

    def tag(self, ids: Sequence[str]) -> list[Written]:
        """Give the documents *ids* our fields; raise IncompleteWriteError if some do not get them."""
        reports = list(self.simhash.tag_written(self.index, ids)) if ids else []
        if refused := [report for report in reports if report.action == "refused"]:
            raise IncompleteWriteError(
                f"{count(len(refused), 'chunk')} of {len(ids):,} in {shorten(self.index)} did not get fingerprints, "
                f"such as {shorten(refused[0].id)} ({refused[0].reason}): store them again",
                refused=len(refused),
            )
        return reports


def is_stored(screened: Screened) -> bool:
    """Return whether a chunk is stored: what nobody can judge is, and a new text of a document that is there."""
    return screened.answer != "near" or screened.must_write
