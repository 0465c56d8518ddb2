"""
Saved objects in the form that Kibana 8 and 9 and OpenSearch Dashboards 2 and 3 import.

No object names its version, so every importer runs all its migrations, except Lens (``lens.json``, Kibana 8.9 and
later): migrations of older forms of Lens would look for parts that this form does not have. Attributes are those that
all four know (``tests/dashboards/test_dashboards.py`` lists them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from es_simhash.dashboards.subject import Subject

# Migrations of both products compare the version of a panel, so it must have one. The form of a panel has not changed
# since this one.
_PANEL_VERSION = "7.9.3"

# Width of a dashboard; panels are placed by it.
_COLUMNS = 48

ALL_TIME = ("1970-01-01T00:00:00.000Z", "now+10y")
"""A range of time for the documents of one group: they may be years apart."""

_INDEX_REFERENCE = "kibanaSavedObjectMeta.searchSourceJSON.index"


def index_pattern(subject: Subject) -> dict[str, Any]:
    """
    Return the data view (in Dashboards: index pattern), with formats that turn fields into links.

    A group or a canonical leads to the dashboard of that group, a fingerprint to the documents that have it.
    """
    fields = subject.fields
    formats = {
        fields.group: _link(subject, fields.group),
        fields.duplicate_of: _link(subject, fields.group),
        fields.fingerprint: _link(subject, fields.fingerprint),
    }
    attributes = {
        "title": subject.index,
        "fieldFormatMap": _dump(formats),
        # Read from the server when the object is first used.
        "fields": "[]",
    }
    if subject.time_field:
        attributes["timeFieldName"] = subject.time_field
    return _saved("index-pattern", subject.id_of("index-pattern"), attributes)


def _link(subject: Subject, field: str) -> dict[str, Any]:
    url = group_link(subject, field, "{{value}}")
    return {"id": "url", "params": {"urlTemplate": url, "labelTemplate": "{{value}}"}}


def group_link(subject: Subject, field: str, value: str) -> str:
    """
    Return the address of the dashboard *one group*, with all of time and a filter: *field* has *value*.

    It begins with ``../app``, which is right below any base path and in any space. *value* is put into quotes as
    it is, so a ``'`` or ``!`` in it ends the address early; the products write all other characters as escapes.
    """
    where = f"index:'{subject.id_of('index-pattern')}',key:'{field}',params:(query:'{value}')"
    meta = f"alias:!n,disabled:!f,negate:!f,type:phrase,{where}"
    found = f"(meta:({meta}),query:(match_phrase:('{field}':'{value}')))"
    begin, end = ALL_TIME
    time = f"time:(from:'{begin}',to:{end.replace('+', '%2B')})"
    return f"../app/dashboards#/view/{subject.id_of('group')}?_g=({time})&_a=(filters:!({found}))"


def _filter(label: str, query: dict[str, Any], reference: str) -> dict[str, Any]:
    """Return a filter that shows *label*. It holds the query itself, so neither product translates anything."""
    meta = {"alias": label, "disabled": False, "negate": False, "type": "custom", "key": "query", "value": _dump(query)}
    return {"meta": {**meta, "indexRefName": reference}, "query": query, "$state": {"store": "appState"}}


def search(
    subject: Subject,
    kind: str,
    title: str,
    description: str,
    *,
    columns: Sequence[str],
    sort: Sequence[Sequence[str]],
    filters: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return a saved search of the documents that match all *filters*, which are queries by label."""
    attributes = {
        "title": title,
        "description": description,
        "columns": columns,
        "sort": sort,
        "hits": 0,
        "version": 1,
    }
    return _with_source("search", subject, kind, attributes, filters)


def visualization(
    subject: Subject,
    kind: str,
    title: str,
    description: str,
    *,
    type_: str,
    params: dict[str, Any],
    aggs: Sequence[dict[str, Any]] = (),
    filters: Mapping[str, dict[str, Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return a panel: Vega or markdown, or with *aggs* one whose search the product builds from them."""
    state = {"title": title, "type": type_, "params": params, "aggs": list(aggs)}
    attributes = {
        "title": title,
        "description": description,
        "visState": _dump(state),
        "uiStateJSON": "{}",
        "version": 1,
    }
    if aggs:
        return _with_source("visualization", subject, kind, attributes, filters)
    attributes["kibanaSavedObjectMeta"] = {"searchSourceJSON": _dump(_source())}
    return _saved("visualization", subject.id_of(kind), attributes)


def _with_source(
    type_: str, subject: Subject, kind: str, attributes: dict[str, Any], filters: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return an object that searches the index pattern of the pack."""
    names = [f"kibanaSavedObjectMeta.searchSourceJSON.filter[{number}].meta.index" for number in range(len(filters))]
    pattern = {"type": "index-pattern", "id": subject.id_of("index-pattern")}
    found = [_filter(label, query, name) for (label, query), name in zip(filters.items(), names, strict=True)]
    source = _source(found) | {"indexRefName": _INDEX_REFERENCE}
    attributes["kibanaSavedObjectMeta"] = {"searchSourceJSON": _dump(source)}
    references = [{"name": name, **pattern} for name in (_INDEX_REFERENCE, *names)]
    return _saved(type_, subject.id_of(kind), attributes, references)


def _source(filters: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"query": {"query": "", "language": "kuery"}, "filter": list(filters)}


@dataclass(frozen=True, slots=True)
class Panel:
    """A place on a dashboard; *width* is its share of the row, against the other panels of the row."""

    saved: dict[str, Any]
    title: str
    width: int = 1


def dashboard(
    subject: Subject,
    kind: str,
    title: str,
    description: str,
    *,
    rows: Sequence[tuple[int, Sequence[Panel]]],
    time: tuple[str, str],
) -> dict[str, Any]:
    """Return a dashboard of *rows* (height, panels from left to right) that opens with the range *time*."""
    panels: list[dict[str, Any]] = []
    references: list[dict[str, Any]] = []
    top = 0
    for height, row in rows:
        total, left, passed = sum(panel.width for panel in row), 0, 0
        for panel in row:
            passed += panel.width
            right = _COLUMNS * passed // total
            number = len(panels)
            reference = f"panel_{number}"
            place = {"x": left, "y": top, "w": right - left, "h": height, "i": str(number)}
            shown = {"version": _PANEL_VERSION, "panelIndex": str(number), "gridData": place}
            panels.append({**shown, "panelRefName": reference, "title": panel.title, "embeddableConfig": {}})
            references.append({"name": reference, "type": panel.saved["type"], "id": panel.saved["id"]})
            left = right
        top += height
    attributes = {
        "title": title,
        "description": description,
        "panelsJSON": _dump(panels),
        "optionsJSON": _dump({"hidePanelTitles": False, "useMargins": True}),
        "hits": 0,
        "version": 1,
        "timeRestore": bool(subject.time_field),
        "kibanaSavedObjectMeta": {"searchSourceJSON": _dump(_source())},
    }
    if subject.time_field:
        attributes |= {"timeFrom": time[0], "timeTo": time[1]}
    return _saved("dashboard", subject.id_of(kind), attributes, references)


def _saved(
    type_: str, id_: str, attributes: dict[str, Any], references: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    return {"type": type_, "id": id_, "attributes": attributes, "references": references or []}


def _dump(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))
