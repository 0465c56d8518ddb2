"""
Passages of two texts that differ, as HTML: removed words are struck through, added ones underlined.
"""

from __future__ import annotations

from collections.abc import Iterable

from es_simhash.quality.worddiff import Change, Segment
from es_simhash.tables.markup import Html, element

__all__ = ["excerpt"]

_MARKS = {Change.REMOVED: "del", Change.ADDED: "ins"}


def excerpt(segments: Iterable[Segment]) -> Html:
    """
    Return one excerpt of a difference.
    """
    parts = [
        element(_MARKS[part.change], part.text) if part.change in _MARKS else part.text
        for part in segments
        if part.text
    ]
    return element("blockquote", *parts, dir="auto")
