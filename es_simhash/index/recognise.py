"""
Recognises a document that was to be created and is there already: our own, an equal one, or another one. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from es_simhash.index.fields import GROUPED

__all__ = ["Kinship", "compare_created"]

Kinship: TypeAlias = Literal["own", "same", "other"]


def compare_created(sent: Any, found: Mapping[str, Any], *, prefix: str, is_unsure: bool) -> Kinship:
    """
    Say what a document is that was there when *sent* was to be created under its id.

    The moment of grouping, which we write into each grouped document, tells our own document from one that somebody
    wrote earlier. A document without that moment cannot be told from an equal one: it counts as our own only if an
    answer was lost.

    Args:
        sent:
            The document that was to be created.
        found:
            The ``_source`` that is there.
        prefix:
            Name of the object that holds the fields.
        is_unsure:
            Whether the server may have carried out an earlier attempt whose answer was lost.

    Returns:
        ``"own"``: this operation created it; ``"same"``: it was there before, and has the same content apart from group
        fields; ``"other"``: its content differs, or cannot be compared.

    Examples:
        >>> compare_created({"n": 1}, {"n": 1}, prefix="simhash", is_unsure=False)
        'same'
        >>> compare_created({"n": 1}, {"n": 1}, prefix="simhash", is_unsure=True)
        'own'
    """
    try:
        plain = json.loads(json.dumps(sent))
    except (TypeError, ValueError, RecursionError):
        return "other"  # a client serialises such values in its own way
    if not isinstance(plain, dict):
        return "other"
    mine, theirs = _own(plain, prefix), _own(found, prefix)
    if "at" not in mine:
        return "other" if plain != dict(found) else "own" if is_unsure else "same"
    # A pipeline may have changed the rest of a document that we wrote.
    if mine == theirs and (is_unsure or plain == dict(found)):
        return "own"
    return "same" if _ungrouped(plain, prefix) == _ungrouped(found, prefix) else "other"


def _own(document: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    own = document.get(prefix)
    return dict(own) if isinstance(own, Mapping) else {}


def _ungrouped(document: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    own = {key: value for key, value in _own(document, prefix).items() if key not in GROUPED}
    return {**document, prefix: own}
