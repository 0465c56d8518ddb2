"""Checks documents with texts, and pairs of them whose similarity is known; the caller reads the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.errors import InvalidInputError, WrongTypeError, shorten


@dataclass(frozen=True, slots=True)
class Truth:
    """
    Documents, and pairs of them with their exact similarity. Unlisted pairs are less similar than all listed ones.

    Attributes:
        ids:
            Ids of the documents.
        texts:
            Their texts, in the same order.
        left:
            Positions of the first document of each pair; always smaller than the second's.
        right:
            Positions of the second.
        jaccard:
            Similarity of each pair, 0 to 1.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    jaccard: NDArray[np.float64]


def read_documents(documents: Iterable[Mapping[str, Any]], *, text_field: str = "text") -> dict[str, str]:
    """Return the texts of *documents* by id, in order; a document without text has an empty one."""
    texts: dict[str, str] = {}
    for number, document in enumerate(documents, 1):
        if not isinstance(document, Mapping):
            raise WrongTypeError(f"document {number} must be a mapping, not {type(document).__name__}")
        name, text = document.get("id"), document.get(text_field)
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise InvalidInputError(f"document {number} has the id {shorten(name)}: give each an id, as a string")
        if str(name) in texts:
            raise InvalidInputError(f"document {number} has the id {shorten(name)} of an earlier one: ids must differ")
        if text is not None and not isinstance(text, str):
            raise InvalidInputError(f"document {number} has {shorten(text)} as its {text_field}: give a string")
        texts[str(name)] = text or ""
    if not texts:
        raise InvalidInputError("there are no documents: give some to evaluate with")
    return texts


def read_truth(
    documents: Iterable[Mapping[str, Any]], pairs: Iterable[Mapping[str, Any]], *, text_field: str = "text"
) -> Truth:
    """
    Return *documents* and *pairs*, checked.

    Args:
        documents:
            Mappings with ``id`` and text.
        pairs:
            Mappings with ``id1``, ``id2`` and ``jaccard``, as a row of a table gives them. A pair listed twice counts
            once, with its first similarity.
        text_field:
            Name of the text of a document.

    Raises:
        TypeError: If an item is not a mapping.
        InvalidInputError: If a document or a pair cannot be used; the message says which, and why. Pairs of unknown
            documents are counted.
    """
    texts = read_documents(documents, text_field=text_field)
    places = {name: place for place, name in enumerate(texts)}
    found: dict[tuple[int, int], float] = {}
    unknown: dict[str, int] = {}
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, Mapping):
            raise WrongTypeError(f"pair {number} must be a mapping, not {type(pair).__name__}")
        missing = [key for key in ("id1", "id2", "jaccard") if pair.get(key) is None]
        if missing:
            raise InvalidInputError(f"pair {number} has no {missing[0]}: the columns are id1, id2 and jaccard")
        first, second = str(pair["id1"]), str(pair["id2"])
        for name in (first, second):
            if name not in places:
                unknown.setdefault(name, number)
        if unknown:
            continue
        if first == second:
            raise InvalidInputError(f"pair {number} is of {shorten(first)} with itself: leave it out")
        low, high = sorted((places[first], places[second]))
        found.setdefault((low, high), _similarity(pair["jaccard"], number))
    if unknown:
        name, number = next(iter(unknown.items()))
        raise InvalidInputError(
            f"the pairs name {len(unknown)} unknown documents, first {shorten(name)} in pair {number}: "
            "give the documents that the pairs are of"
        )
    if not found:
        raise InvalidInputError("there are no pairs: give pairs whose similarity is known")
    ends = np.array(list(found), np.int64).reshape(-1, 2)
    jaccard = np.array(list(found.values()), np.float64)
    return Truth(tuple(texts), tuple(texts.values()), ends[:, 0], ends[:, 1], jaccard)


def _similarity(value: Any, number: int) -> float:
    try:
        similarity = float(value)
    except (TypeError, ValueError):
        similarity = -1.0
    if not 0 <= similarity <= 1:
        raise InvalidInputError(f"pair {number} has the jaccard {shorten(value)}: give a number from 0 to 1")
    return similarity
