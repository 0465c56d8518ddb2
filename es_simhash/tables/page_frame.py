"""
HTML pages from templates: files of the package named ``....html.jinja``, by jinja2. No page is here.

Every text that a template shows is escaped, also each character that is an order rather than a letter. The lines of a
template are joined without their indentation, so that a page has no more blanks than its words need.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from es_simhash.tables.hidden import shown
from es_simhash.tables.notebook import Html, bar

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def template(name: str) -> Template:
    return _environment().get_template(name)


def asset(name: str) -> Html:
    """Return a style or a script of the package as it is."""
    return Html(files("es_simhash").joinpath(name).read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    import jinja2  # noqa: PLC0415 -- only for pages

    environment = jinja2.Environment(
        # A line break becomes a comment: it is not in the page, and errors still name the right line.
        loader=jinja2.FunctionLoader(lambda name: "{#\n#}".join(map(str.strip, asset(name).splitlines()))),
        autoescape=True,
        finalize=_visible,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {"asset": asset, "bar": bar}
    environment.filters |= {"digest": digest, "number": "{:,}".format}
    return environment


def _visible(value: Any) -> Any:
    # Markup is already safe; jinja2 escapes what this returns otherwise.
    return value if hasattr(value, "__html__") else shown(str(value))


def digest(content: str) -> str:
    """Return what a policy says of a style or a script, so that no other one may be used."""
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
