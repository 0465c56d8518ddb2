"""
The documents of the demo, read from `corpus.jsonl`. Nothing is judged or shown here.

About half are originals, unrelated although some share a topic. Each other document is a copy of one original
with an edit of a known kind, so it is known whether a search should find it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class EditKind:
    """
    One way to make a copy from an original.

    *is_same_text*: whether a person would call the copy the same text. A translation is not: a search that
    compares characters is right not to report it.
    """

    label: str
    is_same_text: bool


EDIT_KINDS: Mapping[str, EditKind] = MappingProxyType(
    {
        "punctuation": EditKind("punctuation, width or case changed", is_same_text=True),
        "typo": EditKind("characters mistyped", is_same_text=True),
        "numbers": EditKind("dates or figures changed", is_same_text=True),
        "quoting": EditKind("quoted in a reply", is_same_text=True),
        "reordering": EditKind("sentences in another order", is_same_text=True),
        "boilerplate": EditKind("header, source line or notice added", is_same_text=True),
        "revision": EditKind("articles revised", is_same_text=True),
        "truncation": EditKind("end cut off", is_same_text=True),
        "script": EditKind("traditional and simplified exchanged", is_same_text=True),
        "paraphrase": EditKind("told in other words", is_same_text=False),
        "translation": EditKind("translated", is_same_text=False),
    }
)
"""
The kinds of edit in the corpus, from small to large.
"""


@dataclass(frozen=True, slots=True)
class Document:
    """
    One document of the corpus.

    *id*: stable: `news-zh-01`, and `news-zh-01-typo` for a copy of it. *title*: empty for posts.
    *edit_of*: id of the original, never of another copy; `None` for an original, as is *edit*, a key of
    `EDIT_KINDS`.
    *expect*: a sentence that says why a search should find the document, or should not.
    """

    id: str
    lang: str
    kind: str
    title: str
    text: str
    edit_of: str | None
    edit: str | None
    expect: str

    @property
    def family(self) -> str:
        """Id of the original: of this document itself, or of the one that it is a copy of."""
        return self.edit_of or self.id

    @property
    def source(self) -> dict[str, Any]:
        """The document as it is indexed: a new dict of all fields except the id."""
        fields = asdict(self)
        del fields["id"]
        return fields


def load_corpus() -> tuple[Document, ...]:
    """Return the documents of the demo, each original followed by its copies."""
    lines = files("es_simhash.demo").joinpath("corpus.jsonl").read_text(encoding="utf-8")
    # Split at "\n" only: str.splitlines would also split a text at U+2028 or U+0085.
    return tuple(Document(**json.loads(line)) for line in lines.split("\n") if line)
