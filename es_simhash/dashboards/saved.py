"""
Saved objects in the form that Kibana 8 and 9 and OpenSearch Dashboards 2 and 3 import, and panels of Kibana alone.

No object names its version, so every importer runs all its migrations, except Lens (Kibana 8.9 and later):
migrations of older forms of Lens would look for parts that this form does not have. Attributes are those that
all four know (``tests/dashboards/test_dashboards.py`` lists them).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
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


def filter_of(query: dict[str, Any], label: str) -> dict[str, Any]:
    """Return a filter that shows *label*. It holds the query itself, so neither product translates anything."""
    meta = {"alias": label, "disabled": False, "negate": False, "type": "custom", "key": "query", "value": _dump(query)}
    return {"meta": meta, "query": query, "$state": {"store": "appState"}}


def search(
    subject: Subject,
    kind: str,
    title: str,
    description: str,
    *,
    columns: Sequence[str],
    sort: Sequence[Sequence[str]],
    filters: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return a saved search of the documents that match all *filters*."""
    attributes = {
        "title": title,
        "description": description,
        "columns": list(columns),
        "sort": [list(each) for each in sort],
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
    filters: Sequence[dict[str, Any]] = (),
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
    type_: str, subject: Subject, kind: str, attributes: dict[str, Any], filters: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return an object that searches the index pattern of the pack."""
    pattern = {"type": "index-pattern", "id": subject.id_of("index-pattern")}
    references = [{"name": _INDEX_REFERENCE, **pattern}]
    named = []
    for number, each in enumerate(filters):
        name = f"kibanaSavedObjectMeta.searchSourceJSON.filter[{number}].meta.index"
        references.append({"name": name, **pattern})
        named.append(each | {"meta": each["meta"] | {"indexRefName": name}})
    source = _source(named) | {"indexRefName": _INDEX_REFERENCE}
    attributes["kibanaSavedObjectMeta"] = {"searchSourceJSON": _dump(source)}
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


# What a Lens object says about its form.
_LENS_VERSIONS = {"typeMigrationVersion": "8.9.0", "coreMigrationVersion": "8.8.0"}
_LAYER = "documents"


def lens_panels(subject: Subject, title: str) -> dict[str, dict[str, Any]]:
    """Return the Lens panels of *subject* by kind. Each title begins with *title*."""
    found = {
        "lens_groups": _lens(subject, "lens-groups", f"{title}, groups in Lens", "lnsDatatable", *_groups(subject))
    }
    if field := subject.time_field:
        found["lens_time"] = _lens(subject, "lens-time", f"{title}, time in Lens", "lnsXY", *_time(field, subject))
    if field := subject.source_field:
        parts = _sources(field, subject)
        found["lens_sources"] = _lens(subject, "lens-sources", f"{title}, sources in Lens", "lnsXY", *parts)
    return found


def _time(field: str, subject: Subject) -> tuple[dict[str, Any], dict[str, Any]]:
    params = {"interval": "auto", "includeEmptyRows": True, "dropPartials": False}
    time = _column("date_histogram", field, "Time", "date", "interval", is_bucketed=True, params=params)
    columns = {"x": time, "kind": _kinds(subject), "documents": _count("Documents")}
    return columns, _bars("bar_stacked")


def _sources(field: str, subject: Subject) -> tuple[dict[str, Any], dict[str, Any]]:
    columns = {"x": _terms(field, "Source", 12), "kind": _kinds(subject), "documents": _count("Documents")}
    return columns, _bars("bar_horizontal_percentage_stacked")


def _groups(subject: Subject) -> tuple[dict[str, Any], dict[str, Any]]:
    fields = subject.fields
    columns = {
        "group": _terms(fields.group, "Group", 100),
        "documents": _count("Duplicates", only=f"{fields.duplicate_of}: *"),
        "largest": _column("max", fields.distance, "Largest distance", "number", "ratio"),
    }
    visualization = {
        "layerId": _LAYER,
        "layerType": "data",
        "columns": [{"columnId": name} for name in columns],
        "paging": {"size": 10, "enabled": True},
    }
    return columns, visualization


def _bars(series: str) -> dict[str, Any]:
    accessors = {"xAccessor": "x", "splitAccessor": "kind", "accessors": ["documents"]}
    layer = {"layerId": _LAYER, "layerType": "data", "seriesType": series, **accessors}
    return {
        "legend": {"isVisible": True, "position": "top"},
        "valueLabels": "hide",
        "fittingFunction": "None",
        "preferredSeriesType": series,
        "layers": [layer],
    }


def _column(
    operation: str, field: str, label: str, type_: str, scale: str, *, is_bucketed: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "operationType": operation,
        "sourceField": field,
        "label": label,
        "customLabel": True,
        "dataType": type_,
        "scale": scale,
        "isBucketed": is_bucketed,
        **more,
    }


def _count(label: str, *, only: str | None = None) -> dict[str, Any]:
    counted = _column("count", "___records___", label, "number", "ratio", params={"emptyAsNull": False})
    return counted | ({"filter": {"language": "kuery", "query": only}} if only else {})


def _terms(field: str, label: str, size: int) -> dict[str, Any]:
    params = {
        "size": size,
        "orderBy": {"type": "column", "columnId": "documents"},
        "orderDirection": "desc",
        "otherBucket": False,
        "missingBucket": False,
        "parentFormat": {"id": "terms"},
    }
    return _column("terms", field, label, "string", "ordinal", is_bucketed=True, params=params)


def _kinds(subject: Subject) -> dict[str, Any]:
    duplicates = f"{subject.fields.duplicate_of}: *"
    filters = [
        {"label": label, "input": {"language": "kuery", "query": query}}
        for label, query in (("duplicates", duplicates), ("all other documents", f"not {duplicates}"))
    ]
    return {
        "operationType": "filters",
        "label": "Kind",
        "customLabel": True,
        "dataType": "string",
        "scale": "ordinal",
        "isBucketed": True,
        "params": {"filters": filters},
    }


def _lens(
    subject: Subject, kind: str, title: str, type_: str, columns: dict[str, Any], visualization: dict[str, Any]
) -> dict[str, Any]:
    layer = {"columnOrder": list(columns), "columns": columns, "incompleteColumns": {}, "sampling": 1}
    state = {
        "visualization": visualization,
        "datasourceStates": {"formBased": {"layers": {_LAYER: layer}}, "textBased": {"layers": {}}},
        "query": {"language": "kuery", "query": ""},
        "filters": [],
        "internalReferences": [],
        "adHocDataViews": {},
    }
    reference = {"type": "index-pattern", "id": subject.id_of("index-pattern")}
    return {
        "type": "lens",
        "id": subject.id_of(kind),
        "attributes": {"title": title, "description": "", "visualizationType": type_, "state": state},
        "references": [{"name": f"indexpattern-datasource-layer-{_LAYER}", **reference}],
        **_LENS_VERSIONS,
    }
