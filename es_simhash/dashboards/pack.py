"""
The pack: saved objects that Kibana 8 and 9 and OpenSearch Dashboards 2 and 3 import, and its two dashboards.

``template.json`` has them, what they show, and what stands where. No object names its version, so every importer runs
all its migrations. Attributes are those that all four know (``tests/dashboards/test_dashboards.py``).
:func:`read_pack` alone asks a server.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from es_simhash.dashboards.charts import Subject, chart_spec, fill, find_pack_faults, read, read_text
from es_simhash.mapping.fields import DEFAULT_PREFIX
from es_simhash.mapping.meta import read_settings
from es_simhash.mapping.port import Port
from es_simhash.mapping.user_fields import FieldFault

# Migrations of both products compare the version of a panel, so it must have one. The form of a panel has not changed
# since this one.
_PANEL_VERSION = "7.9.3"

# Width of a dashboard; panels are placed by it.
_COLUMNS = 48

ALL_TIME = ("1970-01-01T00:00:00.000Z", "now+10y")
"""A range of time for the documents of one group: they may be years apart."""

_INDEX_REFERENCE = "kibanaSavedObjectMeta.searchSourceJSON.index"
_Saved = dict[str, Any]


def group_link(subject: Subject, field: str, value: str) -> str:
    """
    Return the address of the dashboard *one group*, with all of time and a filter: *field* has *value*. It is right
    below any base path and in any space; a ``'`` or ``!`` in *value* ends it early.
    """
    where = f"index:'{subject.id_of('index-pattern')}',key:'{field}',params:(query:'{value}')"
    meta = f"alias:!n,disabled:!f,negate:!f,type:phrase,{where}"
    found = f"(meta:({meta}),query:(match_phrase:('{field}':'{value}')))"
    begin, end = ALL_TIME
    time = f"time:(from:'{begin}',to:{end.replace('+', '%2B')})"
    return f"../app/dashboards#/view/{subject.id_of('group')}?_g=({time})&_a=(filters:!({found}))"


def build_dashboards(
    index: str,
    *,
    time_field: str | None = None,
    source_field: str | None = None,
    text_field: str | None = None,
    prefix: str = DEFAULT_PREFIX,
) -> list[dict[str, Any]]:
    """
    Return saved objects about near-duplicates, for Kibana 8 and 9 and for OpenSearch Dashboards 2 and 3.

    Write each on a line of its own (NDJSON) and import the file, under *Saved objects* or through the API. The same
    names give the same ids, so a second import replaces the first. No request is made: whether the fields are mapped
    is not checked (``make_dashboards`` of the clients does), and a panel about a field that no index maps is
    empty.

    Args:
        index:
            Name of an index, alias or data stream, a pattern, or several of them separated by commas.
        time_field:
            Date field of the documents. Without it there is no chart over time, and no choice of time.
        source_field:
            Keyword field that says where a document comes from. Without it there is no chart of sources.
        text_field:
            Field whose text is shown. The chart of the largest groups reads ten whole texts: leave it out where texts
            have megabytes.
        prefix:
            Name of the object that holds our fields.

    Returns:
        A data view, saved searches, panels and two dashboards. References name objects in the list only, and an
        object stands after those that it refers to.

    Raises:
        TypeError: If a name is not a string.
        InvalidInputError: If a name cannot be that of an index or a field.

    Examples:
        >>> pack = build_dashboards("news", time_field="published_at", text_field="body")
        >>> sorted({saved["type"] for saved in pack})
        ['dashboard', 'index-pattern', 'search', 'visualization']
        >>> [saved["attributes"]["title"] for saved in pack if saved["type"] == "dashboard"]
        ['Near-duplicates: news, one group', 'Near-duplicates: news']
    """
    subject = Subject(index, time_field, source_field, text_field, prefix)
    saved: dict[str, _Saved] = {}
    for kind, described in fill(read()["objects"], _values(subject)).items():
        parts = dict(described)
        saved[kind] = {
            "type": parts["type"],
            "id": subject.id_of(kind),
            **_ATTRIBUTES[parts["type"]](subject, parts, saved),
        }
    return list(saved.values())


def _values(subject: Subject) -> dict[str, Any]:
    """Return what the placeholders of the template stand for."""
    newest = [[subject.time_field, "desc"]] if subject.time_field else []
    names = {"duplicates": "Duplicates", "canonicals": "Canonicals", "without": "Without fingerprint"}
    hidden = (
        f"\n\nDocuments without the field `{subject.time_field}` are in no range of time, so this dashboard does not "
        "count them."
    )
    about = {
        "quoted_index": shlex.quote(subject.index),
        "hidden": hidden if subject.time_field else "",
        "lacking": "".join(f"\n- Note: {lacking}." for lacking in find_lacking(subject)),
        "links": " · ".join(f"[{words}](../app/discover#/view/{subject.id_of(kind)})" for kind, words in names.items()),
    }
    values = subject.values | {"id_of_overview": subject.id_of("overview")}
    return values | {
        "newest": newest,
        "newest_or_by_group": newest or [[subject.fields.group, "asc"]],
        "group_link": group_link(subject, subject.fields.group, "{{value}}"),
        "fingerprint_link": group_link(subject, subject.fields.fingerprint, "{{value}}"),
        "all_time_begin": ALL_TIME[0],
        "all_time_end": ALL_TIME[1],
        "about": fill(read_text("about.md"), about),
        "about_group": fill(read_text("about_group.md"), values),
    }


def _index_pattern(_subject: Subject, parts: _Saved, _saved: Mapping[str, _Saved]) -> _Saved:
    """Return the data view (in Dashboards: index pattern); its fields are read when it is first used."""
    attributes = parts["attributes"]
    return {"attributes": {**attributes, "fieldFormatMap": _dump(attributes["fieldFormatMap"])}, "references": []}


def _search(subject: Subject, parts: _Saved, _saved: Mapping[str, _Saved]) -> _Saved:
    return _with_source(subject, parts["attributes"], parts["filters"])


def _panel(subject: Subject, parts: _Saved, _saved: Mapping[str, _Saved]) -> _Saved:
    """Return a panel: Vega or markdown, or one whose search the product builds from its ``aggs``."""
    state = parts.get("state")
    if state is None:
        spec = chart_spec(parts["chart"])
        parts["description"] = spec["description"]
        state = {"type": "vega", "params": {"spec": json.dumps(spec, ensure_ascii=False, indent=2)}, "aggs": []}
    attributes = {
        "title": parts["title"],
        "description": parts["description"],
        "visState": _dump({"title": parts["title"], **state}),
        "uiStateJSON": "{}",
        "version": 1,
    }
    return _with_source(subject, attributes, parts.get("filters"))


def _dashboard(subject: Subject, parts: _Saved, saved: Mapping[str, _Saved]) -> _Saved:
    """Return a dashboard of what is *saved* by kind, and stands on it; it opens with the range of its time."""
    panels: list[_Saved] = []
    references: list[_Saved] = []
    top = 0
    for height, row in parts["rows"]:
        there = [panel for panel in row if panel[0] in saved]  # a pack does not have all
        total, left, passed = sum(width for _, _, width in there), 0, 0
        for name, shown, width in there:
            passed += width
            right = _COLUMNS * passed // total
            number = str(len(panels))
            place = {"x": left, "y": top, "w": right - left, "h": height, "i": number}
            form = {"version": _PANEL_VERSION, "panelIndex": number, "gridData": place}
            reference = f"panel_{number}"
            panels.append({**form, "panelRefName": reference, "title": shown, "embeddableConfig": {}})
            references.append({"name": reference, "type": saved[name]["type"], "id": saved[name]["id"]})
            left = right
        top += height if there else 0
    attributes = {
        "title": parts["title"],
        "description": parts["description"],
        "panelsJSON": _dump(panels),
        "optionsJSON": _dump({"hidePanelTitles": False, "useMargins": True}),
        "hits": 0,
        "version": 1,
        "timeRestore": bool(subject.time_field),
    }
    found = _with_source(subject, attributes) | {"references": references}
    if subject.time_field:
        found["attributes"] |= dict(zip(("timeFrom", "timeTo"), parts["time"], strict=True))
    return found


_ATTRIBUTES = {"index-pattern": _index_pattern, "search": _search, "visualization": _panel, "dashboard": _dashboard}


def _with_source(subject: Subject, attributes: Mapping[str, Any], filters: Mapping[str, Any] | None = None) -> _Saved:
    """Return the attributes and references of an object; with *filters*, by label, it searches the data view."""
    source: dict[str, Any] = {"query": {"query": "", "language": "kuery"}, "filter": []}
    references: list[_Saved] = []
    if filters is not None:
        names = [
            f"kibanaSavedObjectMeta.searchSourceJSON.filter[{number}].meta.index" for number in range(len(filters))
        ]
        pattern = {"type": "index-pattern", "id": subject.id_of("index-pattern")}
        source["filter"] = [_filter(*labelled, name) for labelled, name in zip(filters.items(), names, strict=True)]
        source["indexRefName"] = _INDEX_REFERENCE
        references = [{"name": name, **pattern} for name in (_INDEX_REFERENCE, *names)]
    found = {**attributes, "kibanaSavedObjectMeta": {"searchSourceJSON": _dump(source)}}
    return {"attributes": found, "references": references}


def _filter(label: str, query: dict[str, Any], reference: str) -> _Saved:
    """Return a filter that shows *label*. It holds the query itself, so neither product translates anything."""
    meta = {"alias": label, "disabled": False, "negate": False, "type": "custom", "key": "query", "value": _dump(query)}
    return {"meta": {**meta, "indexRefName": reference}, "query": query, "$state": {"store": "appState"}}


def _dump(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


_LACKING = {
    "time_field": "no chart over time, and no choice of time",
    "source_field": "no chart of sources",
    "text_field": "no texts in the lists and in the chart of the largest groups",
}


def find_lacking(subject: Subject) -> tuple[str, ...]:
    """Return what the pack has not, because a field is not named."""
    return tuple(f"without {role} there is {what}" for role, what in _LACKING.items() if getattr(subject, role) is None)


_ADVICE: Mapping[str, str] = {
    "no_index": "check the name",
    "not_mapped": "give another field",
    "no_date": "give a field of type date",
    "no_keyword": "give a field of type keyword",
    "no_doc_values": "give a field with doc values",
}


@dataclass(frozen=True, slots=True)
class DashboardPack:
    """
    Saved objects about an index, and what is wrong with the fields that they show.

    Attributes:
        objects:
            As :func:`build_dashboards` returns them.
        text_field:
            Field whose text is shown: the one given, else the first that the index records; ``None`` without any.
        faults:
            Fields that the panels cannot use; where one ``is_fatal``, a panel shows an error, or nothing at all.
        prefix:
            Name of the object that holds our fields.
        lacking:
            What the pack has not, because a field is not named.
    """

    objects: tuple[Mapping[str, Any], ...]
    text_field: str | None
    faults: tuple[FieldFault, ...]
    prefix: str
    lacking: tuple[str, ...] = ()

    def advice(self, fault: FieldFault) -> str:
        """Return what to do about one of the faults."""
        if fault.kind == "not_mapped" and fault.field.startswith(f"{self.prefix}."):
            return "add the fields of es_simhash with setup(index)"
        return _ADVICE[fault.kind]


async def read_pack(server: Port, subject: Subject) -> DashboardPack:
    """Return the pack of *subject*, with the recorded text field where it has none. Cost: one request."""
    answer = await server.patient.get_mapping(index=subject.index)
    mappings = {name: dict(described.get("mappings") or {}) for name, described in dict(answer).items()}
    if subject.text_field is None:
        recorded = (read_settings(mapping, prefix=subject.prefix) for mapping in mappings.values())
        names = [settings.text_fields[0] for settings in recorded if settings and settings.text_fields]
        subject = replace(subject, text_field=names[0] if names else None)
    objects = build_dashboards(**asdict(subject))
    faults = tuple(find_pack_faults(subject, mappings))
    return DashboardPack(tuple(objects), subject.text_field, faults, subject.prefix, find_lacking(subject))
