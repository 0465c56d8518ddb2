"""The objects and fields that docs/json.md names, and what answers have beside them."""

import re

from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
_LINK = re.compile(r"\[[^]]+\]\(#([\w-]+)\)")
_HEADING = re.compile(r"^##+ `?([^`\n]+)`?$", re.MULTILINE)
_ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
# For each object, by its anchor: the texts of its fields; and the objects whose fields it has, too.
FIELDS, _AS = {}, {}
for _name, _text in zip(*[iter(_HEADING.split(PAGE)[1:])] * 2, strict=True):
    FIELDS[_name.lower().replace(" ", "-")] = dict(_ROW.findall(_text))
    _AS[_name.lower().replace(" ", "-")] = _LINK.findall(_text.partition("| field")[0])
COMMANDS = re.findall(r"^## `(.+)`$", PAGE, re.MULTILINE)


def find_unknown(command, answer):
    """Return the fields of an *answer* of a command that the page does not name."""
    return sorted({path for name, path in _printed(answer, [_anchor(command)]) if not name})


def find_unprinted(answers):
    """Return the fields, by object, that the page names without a condition, and that no answer of a command has."""
    printed = {found for command, answer in answers.items() for found in _printed(answer, [_anchor(command)])}
    names = FIELDS.keys() - {*map(_anchor, COMMANDS)} | {*map(_anchor, answers)}
    always = {
        name: [field for field, text in FIELDS[name].items() if not text.startswith("With `--")] for name in names
    }
    unprinted = {name: [field for field in fields if (name, field) not in printed] for name, fields in always.items()}
    return {name: fields for name, fields in unprinted.items() if fields}


def _anchor(command):
    return command.replace(" ", "-")


def _printed(value, names):
    """Yield each field of a *value* with the anchor of its object: one of *names*, or nothing if the page has none."""
    names = [*names, *(other for name in names for other in _AS[name])]
    for item in value if isinstance(value, list) else [value]:
        for field, held in item.items() if isinstance(item, dict) else ():
            texts = {name: FIELDS[name][field] for name in names if field in FIELDS[name]}
            yield from ((name, field) for name in texts or [""])
            if inner := [link for text in texts.values() for link in _LINK.findall(text)]:
                yield from ((name, path if name else f"{field}.{path}") for name, path in _printed(held, inner))
