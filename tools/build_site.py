"""Build the site in ``build/site`` from the pages and the docstrings of what is public. ``make site`` runs it."""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the package beside this file, not the one that is installed

import es_simhash

PAGES, SITE = ROOT / "build/pages", ROOT / "build/site"
_SOURCE = "https://github.com/es-simhash/es-simhash/blob/main/"

_INTRODUCTION = """\
# Python

Everything that `import es_simhash` offers, from its docstrings. `help(SimHashClient.find_near_dups)` shows the same
text.

"""
# Lines of code have up to 120 characters; where they do not fit, nothing of a command is hidden.
_STYLE = """\
.md-grid { max-width: 80rem }
.md-typeset pre > code { white-space: pre-wrap; overflow-wrap: anywhere }
.md-typeset .whole { white-space: nowrap }
"""
# A browser would break the line after each hyphen of an option, or of the program's name.
_WHOLE = re.compile(r"(?<=[>\s])((?:--|es-)[a-z][a-z-]*)")
_CLASSES = """\
Classes

Many results are tables too, with `to_dicts`, `to_pandas` and `to_polars`
([views.md](views.md#notebooks-and-data-frames)).
"""
_ASYNC = "Each of its methods is one of `SimHashClient`, to await; streams are read with `async for`.\n"


def pages() -> list[Path]:
    """Return the pages, relative to the checkout."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(path.relative_to(ROOT) for path in found)


def adapt(text: str, page: Path) -> str:
    """Return the text of a page for Zensical: what GitHub reads in another way, and links to what is no page."""
    text = re.sub(r"^```(\w+) [\w ]+$", r"```\1", text, flags=re.MULTILINE)
    # In code within a table GitHub wants `\|`, and Python-Markdown `|`.
    text = re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"`[^`]+`", lambda code: code[0].replace("\\|", "|"), row[0]),
        text,
        flags=re.MULTILINE,
    )

    def target(link: re.Match[str]) -> str:
        path = (ROOT / page.parent / link[1]).resolve()
        if path.suffix in (".md", ".png") or not path.exists():
            return link[0]
        return f"]({_SOURCE}{path.relative_to(ROOT)})"

    return re.sub(r"\]\(([^)#:]+)\)", target, text)


def python_reference() -> str:
    """Return the page of what is public: the client, functions, classes, errors."""
    public = {name: getattr(es_simhash, name) for name in es_simhash.__all__}
    clients = [name for name in public if name.endswith("SimHashClient")]
    errors = [name for name, each in public.items() if inspect.isclass(each) and issubclass(each, Exception)]
    classes = [name for name, each in public.items() if inspect.isclass(each) and name not in {*clients, *errors}]
    parts = [_INTRODUCTION, *_entry("SimHashClient", es_simhash.SimHashClient, "##")]
    parts += _members(es_simhash.SimHashClient, inspect.getmembers(es_simhash.SimHashClient))
    parts += [*_entry("AsyncSimHashClient", es_simhash.AsyncSimHashClient, "##"), _ASYNC, "\n## Functions\n\n"]
    for name, each in public.items():
        if inspect.isfunction(each):
            parts += _entry(name, each, "###")
    for title, names in ((_CLASSES, classes), ("Errors", errors)):
        parts.append(f"\n## {title}\n\n")
        for name in names:
            parts += [*_entry(name, public[name], "###"), *_members(public[name], vars(public[name]).items())]
    return "".join(parts)


def _members(cls: type, members: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for name, each in members:
        if not name.startswith("_") and (inspect.isfunction(each) or isinstance(each, property)):
            yield from _entry(f"{cls.__name__}.{name}", each, "####")


def _entry(name: str, each: object, heading: str) -> Iterator[str]:
    short = name.rpartition(".")[2]
    yield f"{heading} `{short}` {{ #{name} }}\n\n"
    doc = inspect.getdoc(each) or ""
    if inspect.isfunction(each) or "\nArgs:" in doc:
        yield f"```python\n{_signature(short, each)}\n```\n\n"
    yield _markdown(doc) + "\n\n"


def _signature(name: str, each: Any) -> str:
    """Return what is written before the docstring; for a class, its arguments, one a line."""
    if inspect.isfunction(each):
        source = textwrap.dedent(inspect.getsource(each))
        written = source[source.index(f"def {name}(") :].partition(':\n    """')[0].removeprefix("def ")
        return re.sub(r"\(\s*self(,\s(?=\w|\*)|,(?=\n)|(?=\)))", "(", written)
    arguments = [re.sub(r": '([^']*)'", r": \1", str(one)) for one in inspect.signature(each).parameters.values()]
    return "\n    ".join([f"{name}(", *(f"{one}," for one in arguments)]) + "\n)"


def _markdown(docstring: str) -> str:
    """Return a docstring as Markdown: its sections as lists, its examples as code."""
    text, *sections = re.split(r"^(Args|Attributes|Returns|Raises|Examples):\n", docstring, flags=re.MULTILINE)
    parts = [text.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        body = textwrap.dedent(body).strip()  # noqa: PLW2901
        if title == "Examples":
            body = f"```pycon\n{body}\n```"  # noqa: PLW2901
        elif title != "Returns":
            entries = re.split(r"^(\S.*?):(?:\n| (?=\S))", body, flags=re.MULTILINE)[1:]
            names = (re.sub(r"[\w.*]+", r"`\g<0>`", name) for name in entries[::2])
            body = "\n".join(  # noqa: PLW2901
                f"- {name}: {' '.join(said.split())}" for name, said in zip(names, entries[1::2], strict=True)
            )
        parts.append(f"**{title}**\n\n{body}")
    linked = re.sub(r":\w+:`~?(?:es_simhash\.)?([\w.]+)`", _link, "\n\n".join(parts))
    linked = re.sub(r"\bdocs/([\w-]+\.md)", r"[\1](\1)", linked)
    return re.sub(r"(?<!`)``(?!`)", "`", linked)


def _link(role: re.Match[str]) -> str:
    name = role[1] if role[1] in es_simhash.__all__ else f"SimHashClient.{role[1]}"
    known = hasattr(es_simhash, name) or hasattr(es_simhash.SimHashClient, role[1])
    return f"[`{role[1]}`](#{name})" if known else f"`{role[1]}`"


def main() -> None:
    """Copy the pages, build the site, and put the pages beside it for programs that read Markdown."""
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    for page in pages():
        (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / page).write_text(adapt((ROOT / page).read_text(encoding="utf-8"), page), encoding="utf-8")
    for path in [ROOT / "llms.txt", *(ROOT / "docs").rglob("*.png")]:
        shutil.copy(path, PAGES / path.relative_to(ROOT))
    (PAGES / "site.css").write_text(_STYLE, encoding="utf-8")
    (PAGES / "docs/python.md").write_text(python_reference(), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=ROOT, check=True)
    for page in SITE.rglob("index.html"):
        html = page.read_text(encoding="utf-8")
        html = re.sub(
            r"<code>.*?</code>",
            lambda code: _WHOLE.sub(r'<span class="whole">\1</span>', code[0]),
            html,
            flags=re.DOTALL,
        )
        page.write_text(html, encoding="utf-8")
    for page in PAGES.rglob("*.md"):
        shutil.copy(page, SITE / page.relative_to(PAGES))


if __name__ == "__main__":
    main()
