"""Build the site in ``build/site``, as ``make site`` does: pages by Zensical, docstrings of what is public by pdoc."""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pdoc

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the package beside this file, not the one that is installed

import es_simhash

PAGES, SITE = ROOT / "build/pages", ROOT / "build/site"
_SOURCE = "https://github.com/es-simhash/es-simhash/blob/main/"

# Lines of code have up to 120 characters; where they do not fit, nothing of a command is hidden.
_STYLE = """\
.md-grid { max-width: 80rem }
.md-typeset pre > code { white-space: pre-wrap; overflow-wrap: anywhere }
"""


def pages() -> list[Path]:
    """Return the pages, relative to the checkout."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(path.relative_to(ROOT) for path in found)


def adapt(text: str, page: Path) -> str:
    """Return the text of a page for Zensical: what GitHub reads in another way, and links to what is no page."""
    text = re.sub(r"^```(\w+) [\w ]+$", r"```\1", text, flags=re.MULTILINE)
    # In code within a table GitHub wants `\|`, and Python-Markdown `|`.
    text = re.sub(r"(?m)^\|.*$", lambda row: re.sub("`[^`]+`", lambda code: code[0].replace("\\|", "|"), row[0]), text)

    def target(link: re.Match[str]) -> str:
        path = (ROOT / page.parent / link[1]).resolve()
        if path.suffix in (".md", ".png") or not path.exists():
            return link[0]
        return f"]({_SOURCE}{path.relative_to(ROOT)})"

    return re.sub(r"\]\(([^)#:]+)\)", target, text)


def write_reference(folder: Path) -> None:
    """Write what is public into *folder*: clients, functions, classes, errors; what a class inherits as its own."""
    public = {name: getattr(es_simhash, name) for name in es_simhash.__all__}
    for cls in filter(inspect.isclass, public.values()):
        for base in cls.__mro__[1:]:
            for name, member in vars(base).items():
                if base.__module__.startswith("es_simhash") and name[0] != "_" and name not in vars(cls):
                    setattr(cls, name, member)

    def rank(name: str) -> tuple[bool, ...]:
        return name != "SimHashClient", name != "AsyncSimHashClient", name[0].isupper(), name.endswith("Error")

    es_simhash.__all__ = sorted(public, key=rank)
    pdoc.doc.Class.bases = property(lambda _: [])  # which no page describes
    pdoc.render.configure(docformat="google", show_source=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about types that only type checkers import
        pdoc.pdoc("es_simhash", r"!es_simhash\.", output_directory=folder)


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
    subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=ROOT, check=True)
    for page in PAGES.rglob("*.md"):
        shutil.copy(page, SITE / page.relative_to(PAGES))
    write_reference(SITE / "python")


if __name__ == "__main__":
    main()
