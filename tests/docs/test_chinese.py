"""The Chinese pages say what the English ones say: the same code, commands, options, terms, and links to each other."""

import ast
import itertools
import json
import os
import re
import shlex
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks

PAGES = {
    "README.md": "README.zh-CN.md",
    "docs/start.md": "docs/zh/start.md",
    "docs/lookup.md": "docs/zh/lookup.md",
    "docs/quality.md": "docs/zh/quality.md",
    "docs/removal.md": "docs/zh/removal.md",
    "docs/glossary.md": "docs/zh/glossary.md",
}
TRANSLATED = pytest.mark.parametrize(("english", "chinese"), PAGES.items())


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def lines_of(name):
    """Return the words of each line of the shell examples, without comments; also of those that no test runs."""
    shown = [*blocks(name, "sh"), *re.findall(r"^ {4}(?=es-simhash ).*$", read(name), re.MULTILINE)]
    lines = [shlex.split(line, comments=True) for block in shown for line in block.splitlines()]
    return [line for line in lines if line]


def named_in(name):
    """Return the commands, options and packages that the text of a page names."""
    prose = re.sub(r"^```.*?^```$", "", read(name), flags=re.MULTILINE | re.DOTALL)
    spans = (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose))
    return {span for span in spans if re.match(r"(es-simhash|pip|docker|make) |--", span)}


def trees(code, translated):
    """Return two blocks of Python as trees, where what is no ASCII in the second one is the same text in both."""
    made = ast.parse(code), ast.parse(translated)
    for one, two in itertools.zip_longest(*map(ast.walk, made)):
        is_text = isinstance(two, ast.Constant) and (two.value == "zh" or not str(two.value).isascii())
        if is_text and isinstance(one, ast.Constant):
            one.value = two.value = ""
    return [ast.dump(tree) for tree in made]


@TRANSLATED
def test_the_same_commands(english, chinese):
    """Line by line; a text may be another one."""
    for line, translated in itertools.zip_longest(lines_of(english), lines_of(chinese), fillvalue=[]):
        texts = {at: word for at, word in enumerate(translated) if not word.isascii()}
        assert [texts.get(at, word) for at, word in enumerate(line)] == translated


@TRANSLATED
def test_the_same_examples(english, chinese):
    for code, translated in zip(blocks(english, "python"), blocks(chinese, "python"), strict=True):
        one, two = trees(code, translated)
        assert one == two
    for data, translated in zip(blocks(english, "json"), blocks(chinese, "json"), strict=True):
        one, two = json.loads(data), json.loads(translated)
        assert {**one, **{name: value for name, value in two.items() if not str(value).isascii()}} == two


@TRANSLATED
def test_the_same_commands_and_options_in_the_text(english, chinese):
    assert named_in(chinese) == named_in(english)


@TRANSLATED
def test_each_page_leads_to_the_other(english, chinese):
    """Above the first section."""
    for name, label, other in ((english, "中文", chinese), (chinese, "English", english)):
        assert f"[{label}]({os.path.relpath(other, Path(name).parent)})" in read(name).partition("\n## ")[0]


def test_the_glossary_has_the_same_terms():
    english, chinese = (
        re.findall(r"^\| ([\w -]+?) \| (\S.*?) \|", read(name), re.MULTILINE)[1:]
        for name in ("docs/glossary.md", "docs/zh/glossary.md")
    )
    assert [term for term, _ in english] == [term for term, _ in chinese]
    assert len({word for _, word in chinese}) == len(chinese)
