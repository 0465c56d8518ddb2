"""
What a reader does on the review page, in a real Chromium: keeps removals and groups, also of parts that are not in
place, saves the file of decisions, and goes on with it. Chromium is led by its own protocol over two pipes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from itertools import count

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.removal import review_page as page_module
from es_simhash.removal.records import PlannedRemoval
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.removal.review import review_html
from es_simhash.transport.protocol import Key
from tests.pages import HOSTILE as TEXTS
from tests.quality.test_report import full
from tests.servers.removals import document, take, write_plan

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
SECONDS = 60
HOSTILE = "</script>'\"<b>&amp;\x7f\u202e\ud800 ü"


def wait_for(find, what):
    """Return what *find* returns, when there is something."""
    end = time.monotonic() + SECONDS
    while not (found := find()):
        assert time.monotonic() < end, what
        time.sleep(0.02)
    return found


class Browser:
    """A Chromium without a window; *log* has what pages wrote to the console, and what the policy refused."""

    def __init__(self, folder):
        to_read, write = os.pipe()
        read, to_write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        command = ["bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}', CHROMIUM, *flags]
        command.append(f"--user-data-dir={folder / 'profile'}")
        self._process = subprocess.Popen(command, pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._write, self._read, self._numbers = write, os.fdopen(read, "rb"), count(1)
        self._session, self._rest = None, b""
        self.log, self.requests = [], []
        self.downloads = folder / "downloads"
        self.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def close(self):
        """End it."""
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        self._read.close()

    def send(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            *whole, self._rest = self._rest.split(b"\0")
            found = None
            for message in map(json.loads, whole):
                if message.get("id") == number:
                    found = message
                elif message.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                    self.log.append(message["params"])
                elif message.get("method") == "Network.requestWillBeSent":
                    self.requests.append(message["params"]["request"]["url"])
            if found:
                assert "error" not in found, found
                return found["result"]
            data = os.read(self._read.fileno(), 1 << 20)
            assert data, "Chromium ended"
            self._rest += data

    def open(self, path, *, has_scripts=True):
        """Open a page in a tab of its own."""
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network", "DOM"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setScriptExecutionDisabled", value=not has_scripts)
        self.send("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script):
        """Return what *script* has as its value."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, script):
        """Return when *script* is true."""
        wait_for(lambda: self.run(script), script)

    def choose(self, path):
        """Go on with an earlier file."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector="#earlier")["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def names(self):
        """Return role and name of each control and each text that is announced, as a screen reader has them."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value")) for node in nodes if not node["ignored"]]

    def has_text(self, text):
        """Return whether a reader gets to see the text."""
        return ("StaticText", text) in self.names()

    def saved(self):
        """Return the path of the file that the page gave, when it is whole."""
        # Chromium takes the name with an empty file first.
        return wait_for(lambda: [path for path in self.downloads.glob("*.json") if path.stat().st_size], "a file")[0]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """One Chromium for all tests."""
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium):
    """It, with an empty log and no file saved."""
    chromium.log.clear()
    chromium.requests.clear()
    shutil.rmtree(chromium.downloads, ignore_errors=True)
    return chromium


@pytest.fixture
def show(browser, tmp_path):
    """Return a function that opens the page of a plan, of pairs of an id and of what stays; and returns the plan."""

    def made(*pairs, routing=None, losses=("same",)):
        lines = []
        for n, (id_, stays) in enumerate(pairs):
            goes = document(id_, routing=routing, body=f"keep the words of {id_}")
            kept = document(stays, body=f"keep the words of {stays}")
            lines.append(PlannedRemoval(goes, kept, 1, 0.9 + n / len(pairs) / 25, losses[n % len(losses)]))
        return open_page(browser, tmp_path, lines, text_fields={})

    return made


def open_page(browser, folder, lines, language="en", **header):
    """Open the page of a plan in a tab of its own, and return the plan."""
    plan, page = folder / "removal.db", folder / "page.html"
    write_plan(plan, lines, **header)
    page.write_text(review_html(plan, language=language), encoding="utf-8")
    browser.open(page)
    return plan


GROUPS = [*((f"d{n}", f"c{n % 3}") for n in range(9)), ("alone", "single")]
UNFOLD = "for (const band of document.querySelectorAll('.band')) band.open = true"
BOX = "[...document.querySelectorAll('[data-key]')].find(item => item.querySelector('.id').textContent === {id!r})"
BOX += ".querySelectorAll('.decide input')[{which}]"


def tick(browser, id_, which=0):
    """Click the own box of a removal, or (1) that of its group."""
    browser.run(f"({BOX.format(id=id_, which=which)}).click()")


def state(browser, id_, which=0):
    """Return whether a box is ticked; ``None`` if it is in between."""
    return browser.run(f"(box => box.indeterminate ? null : box.checked)({BOX.format(id=id_, which=which)})")


def told(browser):
    """Return the count of the page."""
    return browser.run("document.querySelector('#count span').textContent")


def fill_in(browser, by="Ann", reason="other parties"):
    """Say who decides and why, and press the button."""
    browser.run(f"document.querySelector('#by').value = {json.dumps(by)}")
    browser.run(f"document.querySelector('#reason').value = {json.dumps(reason)}")
    browser.run("document.querySelector('#decisions button').click()")


def decided(plan, file):
    """Return the keys that the file keeps, as the program reads it, and who approved the rest."""
    found = take(plan, file)[-1]
    return found.keep, (found.by, found.reason)


def kept(plan, file):
    return {key.id for key in decided(plan, file)[0]}


def test_boxes_of_removals_and_groups(browser, show):
    """They agree, are counted, and give a file that apply takes; one box is for a whole class."""
    plan = show(*GROUPS)
    box = "document.querySelector('.band > .decide input')"
    tick(browser, "d1")
    assert browser.run(f"[{box}.checked, {box}.indeterminate]") == [False, True]
    for count_of in ("10 kept, 0 of 10 still go", "0 kept, 10 of 10 still go"):
        browser.run(f"{box}.click()")
        assert told(browser) == count_of
    assert browser.run("document.querySelectorAll('article .decide input').length") == 19  # a group of one has no box
    tick(browser, "d1")
    assert (state(browser, "d1"), state(browser, "d1", 1), state(browser, "d4", 1)) == (True, None, None)
    tick(browser, "d4", 1)
    assert [state(browser, f"d{n}") for n in (1, 4, 7, 0)] == [True, True, True, False]
    assert [state(browser, f"d{n}", 1) for n in (1, 4, 7, 0)] == [True, True, True, False]
    tick(browser, "d7")
    tick(browser, "alone")
    assert told(browser) == "3 kept, 7 of 10 still go"
    fill_in(browser)
    file = browser.saved()
    assert file.name == "removal.decisions.json"
    keys = {Key("news", id_, None) for id_ in ("d1", "d4", "alone")}
    assert decided(plan, file) == (keys, ("Ann", "other parties"))
    assert browser.log == []
    assert {url.partition(":")[0] for url in browser.requests} <= {"file", "blob"}


def test_what_is_held_back_goes_if_somebody_says_so(browser, show, tmp_path):
    """Its box is ticked from the start; the file says what goes after all, and comes back."""
    pairs = [("a", "c"), ("b", "c"), ("d", "c"), ("e", "x")]
    plan = show(*pairs, losses=("same", "few"))
    assert told(browser) == "2 kept, 2 of 4 still go"
    assert [state(browser, id_) for id_ in "abde"] == [False, True, False, True]
    assert (state(browser, "a", 1), browser.has_text("A few words of its own go: 2, held back")) == (None, True)
    tick(browser, "b")
    tick(browser, "d")
    fill_in(browser)
    file = shutil.copy(browser.saved(), tmp_path / "mine.json")
    assert kept(plan, file) == {"d"}
    with RemovalFile(plan) as removal:
        assert [line.document.id for line in removal.removals("going")] == ["a", "b", "d"]
    show(*pairs, losses=("same", "few"))
    browser.choose(file)
    browser.wait("document.querySelector('#said').textContent === 'The boxes are as in mine.json.'")
    assert [state(browser, id_) for id_ in "abde"] == [False, False, True, True]
    assert browser.log == []


def test_lines_that_are_not_in_full(browser, show, monkeypatch):
    """They have the same boxes, a group has removals among both, and a search finds them, and opens their class."""
    monkeypatch.setattr(page_module, "FULL", 4)
    plan = show(*((f"d{n:02d}", f"c{n % 3}") for n in range(30)))
    assert browser.run("[document.querySelectorAll('article, .band[open]').length]") == [4]
    for word, number in (("would go for", 0), ("keep the words", 4), ("d29", 1)):  # a search means the documents
        browser.run(f"document.querySelector('#query').value = {word!r}")
        browser.run("document.querySelector('#find button').click()")
        said = "1 removal matches" if number == 1 else f"{number} removals match"
        assert browser.run("document.querySelector('#found').textContent") == said
    assert browser.run("document.querySelectorAll('.band[open]').length") == 1
    tick(browser, "d00", 1)
    tick(browser, "d02")
    assert told(browser) == "11 kept, 19 of 30 still go"
    assert [state(browser, f"d{n}") for n in (28, 29)] == [False, False]
    tick(browser, "d28")
    assert [state(browser, f"d{n}") for n in (24, 25, 26, 27)] == [True, False, False, True]
    assert [state(browser, f"d{n}", 1) for n in (24, 25, 26)] == [True, None, None]
    tick(browser, "d24")
    assert state(browser, "d00", 1) is None
    fill_in(browser)
    assert kept(plan, browser.saved()) == {f"d{n:02d}" for n in range(0, 30, 3) if n != 24} | {"d02", "d28"}
    assert browser.log == []


def test_going_on_with_a_file(browser, show, tmp_path):
    """Boxes, name and reason come back; nothing that is ticked or written is lost; no other file changes anything."""
    plan = show(*GROUPS)
    tick(browser, "d0", 1)
    tick(browser, "d1")
    fill_in(browser, reason="")
    file = shutil.copy(browser.saved(), tmp_path / "mine.json")
    browser.saved().unlink()
    said = "document.querySelector('#said').textContent"
    show(*GROUPS)
    tick(browser, "alone")
    browser.run("document.querySelector('#by').value = 'Bob'")
    browser.choose(file)
    browser.wait(f"{said} === 'What mine.json keeps is added: 5 are kept now.'")
    assert [state(browser, id_) for id_ in ("d0", "d3", "d6", "d1", "alone", "d4")] == [True] * 5 + [False]
    assert browser.run("!dispatchEvent(new Event('beforeunload', {cancelable: true}))") is True
    browser.run("document.querySelector('#decisions button').click()")
    assert decided(plan, browser.saved()) == (
        {Key("news", id_, None) for id_ in ("d0", "d1", "d3", "d6", "alone")},
        ("Bob", ""),
    )
    show(*GROUPS)
    browser.choose(file)
    browser.wait(f"{said} === 'The boxes are as in mine.json.'")
    assert browser.run("document.querySelector('#by').value") == "Ann"
    whole = json.loads(file.read_text())
    for changed, why in (
        (whole | {"plan_sha256": "0" * 64}, "decides about another plan: open the page of that plan."),
        (whole | {"keep": [None, {"index": "news", "id": "z"}]}, "decides about what is not in this plan"),
        (whole | {"version": 2}, "is not a file of decisions"),
        (None, "is not a file of decisions"),
    ):
        other = tmp_path / "other.json"
        other.write_text(json.dumps(changed) if changed else "{")
        browser.run(f"{said.removesuffix('.textContent')}.textContent = ''")
        browser.choose(other)
        browser.wait(f"{said}.startsWith('other.json {why}')")
        assert told(browser) == "4 kept, 6 of 10 still go"
    assert kept(plan, file) == {"d0", "d3", "d6", "d1"}
    assert browser.log == []


def test_hostile_keys_come_back_as_they_are(browser, show):
    """In the page, in the file, and in the program."""
    plan = show((HOSTILE, "s" + HOSTILE), ("x" + HOSTILE, "s" + HOSTILE), ("plain", "c"), routing=HOSTILE)
    for blank in ("", "  "):  # apply would refuse such a file
        fill_in(browser, by=blank)
    assert browser.run("document.querySelector('#said').textContent") == "Say who decides: it is recorded."
    assert not browser.downloads.exists()
    browser.run("document.querySelectorAll('article .decide input')[1].click()")
    fill_in(browser, by="Ann </script>", reason=HOSTILE.replace("\ud800", ""))
    assert decided(plan, browser.saved())[0] == {Key("news", id_, HOSTILE) for id_ in (HOSTILE, "x" + HOSTILE)}
    assert browser.log == []
    with pytest.raises(InvalidInputError, match="another plan"):
        take(show(*GROUPS), browser.saved())


def test_a_screen_reader(browser, show):
    """Every control has a name, and the count is announced."""
    show(*GROUPS)
    browser.run(UNFOLD)
    browser.run(f"({BOX.format(id='d0', which=0)}).focus()")  # what is not on the screen has no names yet
    wanted = {
        ("checkbox", "Keep d0"),
        ("checkbox", "Keep all 3 that would go for c0"),
        ("checkbox", "Keep the whole class of 10: The same letters and numbers"),
        ("textbox", "Who decides (required)"),
        ("textbox", "Reason of the approval (recorded with what is deleted)"),
        ("button", "Make the file of decisions"),
    }
    [names] = wait_for(lambda: [names for names in [browser.names()] if wanted <= {*names}], wanted)
    assert all(name for role, name in names if role in ("checkbox", "textbox", "button", "searchbox"))
    assert browser.run("document.querySelector('#count span').role") == "status"


def test_without_javascript(browser, show, tmp_path):
    """The page says what needs it, and offers no box; the removals are there."""
    show(*GROUPS, losses=("few",))
    assert not browser.has_text("This page needs JavaScript for that.")
    browser.open(tmp_path / "page.html", has_scripts=False)
    assert browser.has_text("This page needs JavaScript for that.")
    roles = [role for role, _ in browser.names()]
    assert (roles.count("article"), roles.count("textbox")) == (10, 0)
    assert browser.run("document.querySelectorAll('.decide').length") == 0


def test_the_report_asks_for_nothing(browser, tmp_path):
    """Its console stays empty, and no text runs."""
    page = tmp_path / "report.html"
    page.write_text(full(TEXTS).html(), encoding="utf-8")
    browser.open(page)
    assert browser.run("document.title").startswith("Near-duplicates in </script")
    assert (browser.log, {url.partition(":")[0] for url in browser.requests}) == ([], {"file"})


HUGE = f"{HOSTILE}<script>document.title = 'run'</script>" * 10_000


def test_hundreds_of_hostile_lines(browser, tmp_path, monkeypatch):
    """The page opens, also on a phone; no text runs or is wider than the screen; those with megabytes are cut."""
    monkeypatch.setattr(page_module, "FULL", 50)
    lines = []
    for n in range(80):
        title = HUGE if n < 2 else f"{HOSTILE}{n}" + "w" * 300
        body = HUGE if n < 1 else f"{HOSTILE} keep the words {n} "
        goes, stays = (document(f"{id_}{n}{HOSTILE}", title=title, url="u" * 400, body=f"{body}{id_}") for id_ in "gs")
        lines.append(PlannedRemoval(goes, stays, 1, 0.9, "rewritten" if n % 4 else "same"))
    open_page(browser, tmp_path, lines, "zh", shown={"title": "title", "url": "url"})
    browser.send("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    browser.run(UNFOLD)
    assert browser.run("document.querySelectorAll('.decide').length") == 82
    assert browser.run("[document.querySelectorAll('article').length, document.title.length < 40]") == [50, True]
    assert browser.run("document.querySelectorAll('main script, img').length") == 1
    assert browser.run("document.documentElement.scrollWidth <= 400") is True
    browser.send("Emulation.clearDeviceMetricsOverride")
    assert browser.log == []
