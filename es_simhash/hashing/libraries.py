"""
The optional libraries behind the preprocess steps of a scheme, and their versions. No text is changed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from es_simhash.errors import MissingDependencyError, SchemeError, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["STEPS", "installed_versions", "library_version"]

_DISTRIBUTIONS = {"html": "selectolax", "t2s": "OpenCC"}

STEPS = tuple(sorted(_DISTRIBUTIONS))
"""The names of the steps."""


def installed_versions(steps: tuple[Any, ...], *, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """
    Return the versions of the libraries that *steps* need, by distribution name.

    Args:
        steps:
            Names of steps, in order, each at most once.
        known:
            Versions already recorded; then nothing is looked up, only the names are checked.

    Raises:
        SchemeError: If a step is unknown or comes twice, or *known* lacks a library.
        MissingDependencyError: If a library is not installed.
    """
    for step in steps:
        if not isinstance(step, str) or step not in _DISTRIBUTIONS:
            raise SchemeError(f"unknown preprocess step {shorten(step)}: give some of {', '.join(STEPS)}")
    if len(set(steps)) < len(steps):
        raise SchemeError(f"preprocess {shorten(list(steps))} names a step twice: once is enough")
    names = [_DISTRIBUTIONS[step] for step in steps]
    if known is not None:
        if set(names) != set(known) or not all(isinstance(version, str) for version in known.values()):
            raise SchemeError(f"preprocess {shorten(list(steps))} does not fit its libraries {shorten(dict(known))}")
        return dict(known)
    return {name: library_version(name) for name in names}


def library_version(name: str) -> str:
    """
    Return the installed version of a distribution.

    Raises:
        MissingDependencyError: If it is not installed.
    """
    import importlib.metadata  # noqa: PLC0415 - brings the e-mail package with it, a quarter of our import time

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError(f'{name} is not installed: pip install "es-simhash[preprocess]"') from error
