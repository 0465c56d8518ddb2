"""
Panels that only Kibana has: Lens, where a click on a bar or a value becomes a filter.

These objects name the version of their form, unlike all others: migrations of older forms of Lens would look for parts
that this form does not have. Kibana 8.9 and later know it.
"""

from __future__ import annotations

from typing import Any

from es_simhash.dashboards.subject import Subject

LENS_VERSIONS = {"typeMigrationVersion": "8.9.0", "coreMigrationVersion": "8.8.0"}
"""What a Lens object says about its own form."""

_LAYER = "documents"


def lens_panels(subject: Subject, title: str) -> dict[str, dict[str, Any]]:
    """
    Return the Lens panels of *subject* by kind. Each title begins with *title*.
    """
    found = {
        "lens_groups": _lens(subject, "lens-groups", f"{title}, groups in Lens", "lnsDatatable", *_groups(subject))
    }
    if subject.time_field:
        kind = "lens-time"
        found["lens_time"] = _lens(
            subject, kind, f"{title}, time in Lens", "lnsXY", *_time(subject.time_field, subject)
        )
    if subject.source_field:
        kind = "lens-sources"
        parts = _sources(subject.source_field, subject)
        found["lens_sources"] = _lens(subject, kind, f"{title}, sources in Lens", "lnsXY", *parts)
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
    layer = {
        "layerId": _LAYER,
        "layerType": "data",
        "seriesType": series,
        "xAccessor": "x",
        "splitAccessor": "kind",
        "accessors": ["documents"],
    }
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
        **LENS_VERSIONS,
    }
