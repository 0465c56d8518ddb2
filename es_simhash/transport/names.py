"""
What a name of an index may look like. No request is made here.
"""

from __future__ import annotations

from collections.abc import Sequence

from es_simhash.arguments import check_name
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten

Index = str | Sequence[str]


def index_key(index: Index) -> str:
    """
    Return the names in *index* as one string, separated by commas.
    """
    return index if isinstance(index, str) else ",".join(index)


def check_index(index: Index) -> str | list[str]:
    """
    Return *index* if it names at least one index, alias, data stream or pattern.

    Raises:
        TypeError: If it is neither a string nor a list of strings.
        InvalidInputError: If a name is empty, which a server would take for all indices, has a selector, or cannot be
            sent.
    """
    names = [index] if isinstance(index, str) else list(index) if isinstance(index, (list, tuple)) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise WrongTypeError(f"index must be a name or a list of names, not {shorten(index)}")
    if not names or not all(part.strip() for name in names for part in name.split(",")):
        raise InvalidInputError(f"index {shorten(index)} names no index: give a name, a pattern or a list of them")
    for name in names:
        check_name("index", name)
        if "::" in name:
            raise InvalidInputError(f"index {shorten(name)} has a selector, which is not supported: leave out '::...'")
    return index if isinstance(index, str) else names


def local_names(index: Index) -> list[str]:
    """
    Return the names in *index* that are not on another cluster.
    """
    names = index_key(check_index(index)).split(",")
    return [name for name in names if ":" not in name or name.startswith("<")]  # <...> is date math
