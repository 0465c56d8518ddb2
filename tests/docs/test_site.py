"""The site, whose build checks every link between pages, and the pages for machines: llms.txt and AGENTS.md."""

import inspect
import re
import shlex
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest

import es_simhash
from es_simhash import SimHashClient
from es_simhash.cli.app import each_command
from tests.docs.blocks import ROOT, load_tool

SITE = ROOT / "build/site"
ADDRESS = "https://es-simhash.github.io/es-simhash/"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    return load_tool("build_site")


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif "src" in found or (tag == "link" and found.get("rel") not in {"canonical", "prev", "next"}):
            self.loads.append(found.get("src") or found["href"])


@pytest.fixture(scope="module")
def site():
    """Build the site, as `make site` does, and return its pages by their addresses."""
    pytest.importorskip("zensical")
    pytest.importorskip("pdoc")
    done = subprocess.run(
        [sys.executable, "tools/build_site.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    addresses = {path.relative_to(SITE).as_posix().removesuffix("index.html"): path for path in SITE.rglob("*.html")}
    return {address: Page(path.read_text(encoding="utf-8")) for address, path in addresses.items()}


def test_the_pages_are_short(tool):
    """In words: the pages that say how to use it, and README, docs/ and the changelog, written by hand, in English."""
    navigation = tomllib.loads(read("zensical.toml"))["project"]["nav"]
    sections = {name: pages for entry in navigation for name, pages in entry.items()}
    user_pages = [sections["Start"], *(page for entry in sections["Use"] for page in entry.values())]
    docs = {name for path in tool.pages() if (name := path.as_posix()).startswith("docs/") and "zh" not in name}
    written = {"README.md", "CHANGELOG.md"} | docs - {"docs/cli.md", "docs/json.md"}
    assert written >= {*user_pages, "docs/proofs.md"}
    assert sum(len(read(name).split()) for name in user_pages) <= 14_200
    assert sum(len(read(name).split()) for name in written) <= 20_000


def test_no_link_of_the_site_is_dead(site, tool):
    """
    Also of what is generated, also to images and anchors; links to the code lead to files of the checkout.
    No page loads a font, script, style or image from elsewhere: it can be read behind a firewall.
    """
    dead, source = [], tool._SOURCE
    assert len(site) > len(list(tool.pages()))
    assert [link for page in site.values() for link in page.loads if urlsplit(link).netloc] == []
    for address, page in site.items():
        for link in [*page.links, *page.loads]:
            target = urlsplit(urljoin(ADDRESS + address, link))
            whole = target._replace(fragment="").geturl()
            path, anchor = unquote(whole.removeprefix(ADDRESS)), unquote(target.fragment)
            if whole.startswith(ADDRESS):
                found = anchor in site[path].ids | {"", "__skip"} if path in site else (SITE / path).is_file()
            else:
                found = not whole.startswith(source) or (ROOT / whole.removeprefix(source)).exists()
            dead += [] if found else [(address, link)]
    assert dead == []
    assert sum(len(page.links) for page in site.values()) > 1000


def test_the_reference_has_everything_public(site):
    methods = [f"SimHashClient.{name}" for name, _ in inspect.getmembers(SimHashClient, inspect.isfunction)]
    wanted = {*es_simhash.__all__, *(name for name in methods if "._" not in name)}
    assert wanted - site["python/es_simhash.html"].ids == set()


def test_commands_that_are_named_exist(tool):
    """On every page, also their options."""
    commands = dict(each_command())
    text = "\n".join(read(name) for name in ["llms.txt", *tool.pages()])
    found = [shlex.split(code) for code in re.findall(r"`es-simhash ([a-z][^`]*)`", text)]
    assert len(found) > 50
    for command, *words in found:
        entry = commands[f"{command} {words[0]}" if command == "export" else command]
        known = {option for parameter in entry.assemble_argument_collection() for option in parameter.names}
        assert {word for word in words if word.startswith("--")} <= known, command
