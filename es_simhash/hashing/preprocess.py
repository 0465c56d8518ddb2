"""
Optional steps before a text is turned into features: HTML to text, traditional to simplified Chinese.

Done by kept libraries of the extra ``preprocess``. Their versions are recorded in the scheme, because another version
may cut or convert differently and so change bits.

``html``
    The text of an HTML page or fragment, by selectolax (Lexbor): scripts, styles, templates and comments out,
    character references resolved, block elements and line breaks on lines of their own.
``t2s``
    Traditional characters and phrases to simplified ones, by OpenCC's configuration of that name.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from es_simhash.errors import MissingDependencyError, SchemeError, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from es_simhash.hashing.scheme import Scheme

__all__ = ["STEPS", "installed_versions", "preprocessor"]

_DISTRIBUTIONS = {"html": "selectolax", "t2s": "OpenCC"}

STEPS = tuple(sorted(_DISTRIBUTIONS))
"""The names of the steps."""

_REMOVED = ["script", "style", "template", "noscript", "head"]
_BLOCKS = (
    "address,article,aside,blockquote,br,dd,details,dialog,div,dl,dt,fieldset,figcaption,figure,footer,form,h1,h2,h3,"
    "h4,h5,h6,header,hgroup,hr,li,main,nav,ol,option,p,pre,section,summary,table,td,th,tr,ul"
)
# Both libraries hand the text to C as UTF-8, where NUL may end it and a lone surrogate cannot be written.
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


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
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    import importlib.metadata  # noqa: PLC0415 - brings the e-mail package with it, a quarter of our import time

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError(f'{name} is not installed: pip install "es-simhash[preprocess]"') from error


def preprocessor(scheme: Scheme) -> Callable[[str], str] | None:
    """
    Return the function that does a scheme's steps, or ``None`` if it has none.

    Raises:
        MissingDependencyError: If a library is not installed.
        SchemeError: If another version of it is installed than the scheme was made with.
    """
    if not scheme.preprocess:
        return None
    for name, version in scheme.libraries.items():
        found = _version(name)
        if found != version:
            raise SchemeError(
                f"scheme {scheme.id} was made with {name} {version}, but {found} is installed: "
                f"pip install {name}=={version}, or make a new scheme and backfill"
            )
    steps = [_loaders[step]() for step in scheme.preprocess]

    def prepare(text: str) -> str:
        clean = _UNWRITABLE.sub(" ", text)
        for step in steps:
            clean = step(clean)
        return clean

    return prepare


@functools.cache
def _load_html() -> Callable[[str], str]:
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - an extra

    def to_text(html: str) -> str:
        if not html:
            return html
        tree = LexborHTMLParser(html)
        tree.strip_tags(_REMOVED)
        for node in tree.css(_BLOCKS):
            node.insert_before("\n")
            node.insert_after("\n")
        return tree.root.text(deep=True, separator="") if tree.root is not None else ""

    return to_text


@functools.cache
def _load_t2s() -> Callable[[str], str]:
    import opencc  # noqa: PLC0415 - an extra

    convert: Callable[[str], str] = opencc.OpenCC("t2s").convert
    return convert


_loaders: dict[str, Callable[[], Callable[[str], str]]] = {"html": _load_html, "t2s": _load_t2s}
