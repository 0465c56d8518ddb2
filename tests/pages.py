"""A page of ours, read back; and texts that would break one."""

from __future__ import annotations

import re
from html.parser import HTMLParser

HOSTILE = [
    "</script><script>document.title = 'run'</script>",
    "<!-- <script> -->",
    "</template></details><img src=x onerror=alert(1)>",
    "</svg></style></title><style>*{display:none}</style>",
    "\u202eevil\u202c \u2066x",
    "\x1b[31mred\x1b[0m \x00 \x9b",
    "half \ud800 and \udfff",
    "un\u200b\ufeff\U000e0041\u2060seen",
    "w" * 5_000,
    "שלום עולם",
    "北京 ニュース 你好，世界。",
    "&lt;b&gt; &amp; \"quoted\" 'and' {0} {index} %s",
    "javascript:alert(1)",
    "]]> <![CDATA[ x ]]>",
    "",
    " \n\t\r ",
]
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\u200b\ufeff\U000e0041\ud800-\udfff]"
)
LOADING = {"img", "link", "iframe", "object", "image", "use", "foreignobject"}
RUNNING = {"src", "style", "xlink:href", "action", "srcset", "formaction", "background", "poster"}


class Page(HTMLParser):
    """
    A page that is refused where it is not well formed, or could load or run anything.

    *scripts* of its own may be in it, behind a policy; and *links* to the web.
    """

    def __init__(self, html: str, *, scripts: bool = False, links: bool = False) -> None:
        super().__init__()
        self.may_run, self.may_link = scripts, links
        self.open, self.tags, self.ids, self.labels, self.links = [], [], [], [], []
        self.texts, self.styles, self.waiting, self.attributes, self.policy = [], [], [], set(), ""
        self.feed(html)
        self.close()
        assert self.open == []
        assert len(set(self.ids)) == len(self.ids)
        assert set(self.labels) <= set(self.ids)
        self.text = "".join(self.texts)

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        assert len(held) == len(attrs)
        assert tag not in LOADING
        assert tag != "script" or self.may_run
        assert not held.keys() & RUNNING
        assert not any(name.startswith("on") or "url(" in (value or "") for name, value in attrs)
        if "href" in held and not held["href"].startswith("#"):
            assert self.may_link
            assert re.match("https?://", held["href"].lower())
            assert held["rel"] == "noreferrer"
            self.links.append(held["href"])
        elif "href" in held:
            self.labels.append(held["href"].removeprefix("#"))
        self.ids += [held["id"]] if "id" in held else []
        self.labels += [held[name] for name in ("for", "aria-labelledby") if name in held]
        if held.get("http-equiv") == "Content-Security-Policy":
            assert not {"style", "script"} & {*self.tags}
            self.policy = held["content"]
        self.tags.append(tag)
        self.attributes |= held.keys()
        self.open += [] if tag in {"meta", "input"} else [tag]

    def handle_endtag(self, tag):
        assert tag == self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] == ["style"]:
            self.styles.append(data)
        elif self.open[-1:] != ["script"]:
            self.texts.append(data)
        elif data.startswith("<article"):
            self.waiting.append(data)

    def refuse(self, data):
        raise AssertionError(data)

    handle_comment = unknown_decl = refuse
