"""
The demo's documents, read from `corpus.jsonl` beside this file; nothing is judged or shown here.

About half of the documents are originals, unrelated to one another although some share a topic. The others are
copies of one original with an edit of known kind, so that for every copy one can say whether a search should have
found it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EDIT_KINDS", "Document", "EditKind", "load_corpus"]


@dataclass(frozen=True, slots=True)
class EditKind:
    """
    One way of making a copy from an original.

    Attributes:
        label:
            What was done, for a reader.
        is_same_text:
            Whether the copy is still the same text to a person. A translation is not: a search on characters that
            reports it would be wrong about how it works, so leaving it out counts as right.
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
The kinds of edit in the corpus, the gentlest first.
"""


@dataclass(frozen=True, slots=True)
class Document:
    """
    One document of the corpus.

    Attributes:
        id:
            Readable and stable: `news-zh-01`, and `news-zh-01-typo` for a copy of it.
        lang:
            `en`, `ja`, `zh-Hans`, `zh-Hant`, or `mixed`.
        kind:
            `law`, `listing`, `mail`, `news` or `post`.
        title:
            May be empty: posts have none.
        text:
            What the fingerprint is made of.
        edit_of:
            Id of the original, never of another copy; `None` for an original.
        edit:
            Key of `EDIT_KINDS`; `None` for an original.
        expect:
            A sentence that says why it should, or should not, be found.
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
        """
        Id of the original that this document is, or is a copy of.
        """
        return self.edit_of or self.id

    @property
    def source(self) -> dict[str, Any]:
        """
        The document as it goes into an index: a new dict of every field but the id.
        """
        fields = asdict(self)
        del fields["id"]
        return fields


def load_corpus() -> tuple[Document, ...]:
    """
    Return the documents of the demo, each original followed by its copies.

    Examples:
        >>> documents = load_corpus()
        >>> documents[0].id
        'news-zh-01'
        >>> documents[1].edit_of, documents[1].edit
        ('news-zh-01', 'typo')
    """
    lines = files("es_simhash.demo").joinpath("corpus.jsonl").read_text(encoding="utf-8")
    # Split at "\n" only: str.splitlines would also cut inside a text that holds U+2028 or U+0085.
    return tuple(Document(**json.loads(line)) for line in lines.split("\n") if line)
