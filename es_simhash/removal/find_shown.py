"""
Which fields of a document tell a person what it is: title, URL, source and date.

They are found by their usual names, at any depth of the mappings, and at the top of some documents, so also where a
field is not mapped. A field of which no document is known to have a value is not shown. The first name of a kind
counts; of titles, also those beside it. Names such as ``post_title``, ``title_en`` and ``title.en`` are titles
too, beside usual ones or where there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import read_values
from es_simhash.mapping.port import Port
from es_simhash.mapping.user_fields import walk_fields
from es_simhash.transport.protocol import Index

KINDS: Mapping[str, Sequence[str]] = {
    "title": ("title", "headline", "heading", "subject", "name", "caption", "标题"),
    "url": ("url", "uri", "link", "href", "permalink", "网址", "链接"),
    "source": ("source", "site", "publisher", "outlet", "domain", "host", "feed", "来源"),
    "date": (
        *("date", "published", "published_at", "publication_date", "pub_date", "publish_date", "created"),
        *("created_at", "@timestamp", "timestamp", "time", "日期", "发布时间"),
    ),
}
TITLES = ("title", "headline", "heading", "subject", "标题")
"""If one of these stands beside the first title, it is a title too: indices and sites name titles differently."""
_LANGUAGE = re.compile(r"(?<=[A-Za-z])[._-](?:ar|cs|da|de|en|es|fi|fr|he|hi|it|ja|ko|nl|pl|pt|ru|sv|tr|uk|vi|zh)\Z")
DOCUMENTS = 20
MOST_NAMES = 100


async def find_shown(server: Port, index: Index, resolved: Resolved, asked: Sequence[str]) -> dict[str, str]:
    """
    Return the fields to show, each with its kind (see :data:`KINDS`), or ``""``.
    *asked*: show these, and where no title is among them, the one that is found: a guard rail needs it. Cost: a search.
    """
    given = {name: next((kind for kind in KINDS if _last(name) in _usual(kind)), "") for name in asked}
    if "title" in given.values():
        return given
    texts = {name for fields in resolved.text_fields.values() for name in fields}
    walked = (field for mapping in resolved.mappings.values() for field in walk_fields(mapping))
    mapped = (name for name, node in walked if "properties" not in node)
    known = {name for kind in KINDS for name in _usual(kind)}
    names = [
        path for path in dict.fromkeys(mapped) if _last(path) in known and not path.startswith(f"{server.prefix}.")
    ]
    top = [form for usual in KINDS.values() for word in usual for form in (word, word.title(), word.replace("_", ""))]
    wanted = [field for field in dict.fromkeys([*names, *top]) if field not in texts]
    # A title counts that none of the documents below has, as far as it can be searched: a guard rail needs it.
    titles = [title for title in names if _last(title) in _usual("title") and title not in texts][:MOST_NAMES]
    with_values = [{"exists": {"field": title}} for title in titles]
    query = {"exists": {"field": f"{server.prefix}.fingerprint"}}
    body: dict[str, Any] = {"query": query, "_source": wanted, "size": DOCUMENTS}
    if titles:
        body["aggs"] = {"titles": {"filters": {"filters": with_values}}}
    answer = await server.patient.search(index=index, body=body)
    sources: list[Mapping[str, Any]] = [hit.get("_source") or {} for hit in answer["hits"]["hits"]]
    buckets = answer["aggregations"]["titles"]["buckets"] if titles else ()
    sources += [{title: "has one"} for title, bucket in zip(titles, buckets, strict=True) if bucket["doc_count"]]
    found = choose(wanted, sources)
    return {**given, **{name: kind for name, kind in found.items() if not asked or kind == "title"}}


def names_of(kind: str, shown: Mapping[str, str]) -> tuple[str, ...]:
    """Return the fields of that *kind* among those *shown*, the one that counts first."""
    return tuple(name for name, own in shown.items() if own == kind)


def choose(names: Iterable[str], sources: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """
    Return for each kind the first of *names* that has a value in one of *sources*.

    >>> choose(["page.Title", "title", "published-at"], [{"page": {"Title": "x"}, "published-at": "2026-01-01"}])
    {'page.Title': 'title', 'published-at': 'date'}
    >>> choose(["a.title", "headline", "a.headline"], [{"a": {"headline": "x"}}, {"headline": "y"}, {"a.title": "z"}])
    {'a.title': 'title', 'a.headline': 'title'}
    >>> choose(["title.de", "title.en", "jobTitle"], [{"title": {"de": "x", "en": "y"}, "jobTitle": "z"}])
    {'jobTitle': 'title', 'title.de': 'title', 'title.en': 'title'}
    """
    found = [name for name in names if any(_is_short(read_values(source, name)) for source in sources)]
    shown: dict[str, str] = {}
    for kind in KINDS:
        usual = _usual(kind)
        ordered = sorted(
            (_plain(path) not in usual, usual.index(_last(path)), _bare(path).count("."), path)
            for path in found
            if _last(path) in usual
        )
        for *_, path in ordered:
            if path == ordered[0][-1] or (kind == "title" and _is_beside(path, ordered[0][-1])):
                shown[path] = kind
    return shown


def _is_beside(path: str, first: str) -> bool:
    names = {path, first}
    return {*map(_last, names)} <= set(TITLES) and len({_bare(name).rpartition(".")[0] for name in names}) == 1


def _is_short(values: Sequence[Any]) -> bool:
    return any(isinstance(value, (str, int, float)) and value != "" for value in values)


def _usual(kind: str) -> list[str]:
    return [_last(name) for name in KINDS[kind]]


def _last(name: str) -> str:
    plain = _plain(_bare(name))
    return "title" if plain.endswith("title") else plain


def _bare(name: str) -> str:
    return _LANGUAGE.sub("", name)


def _plain(name: str) -> str:
    return name.rpartition(".")[2].lower().replace("_", "").replace("-", "").lstrip("@")
