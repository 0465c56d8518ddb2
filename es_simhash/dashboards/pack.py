"""
The pack: saved objects that Kibana 8 and 9 and OpenSearch Dashboards 2 and 3 import, and its two dashboards.

``template.json`` has them, what they show, and what stands where. No object names its version, so every importer runs
all its migrations. Attributes are those that all four know (``tests/dashboards/test_dashboards.py``).
:func:`read_pack` alone asks a server.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from es_simhash.dashboards.charts import Subject, fill, find_pack_faults, read, read_text
from es_simhash.mapping.fields import DEFAULT_PREFIX
from es_simhash.mapping.meta import read_settings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import refuse_closed
from es_simhash.mapping.user_fields import FieldFault

# Migrations of both products compare the version of a panel, so it must have one. The form of a panel has not changed
# since this one.
_PANEL_VERSION = "7.9.3"

# Width of a dashboard; panels are placed by it.
_COLUMNS = 48

ALL_TIME = ("1970-01-01T00:00:00.000Z", "now+10y")
"""A range of time for the documents of one group: they may be years apart."""


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
    values = _values(subject)
    saved: dict[str, dict[str, Any]] = {}
    for kind, part in read()["objects"].items():
        panels, references = _lay_out(part.get("rows", ()), saved)
        own = {"id": subject.id_of(kind), "panels": panels, "references": references}
        if (found := fill(part, values | own)) is not None:
            saved[kind] = found
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
        "links": " · ".join(f"[{words}](../app/discover#/view/{subject.id_of(kind)})" for kind, words in names.items()),
    }
    values = subject.values | {
        "id_of_overview": subject.id_of("overview"),
        "id_of_index": subject.id_of("index-pattern"),
    }
    begin, end, year_ago, today = (*ALL_TIME, "now-1y", "now") if subject.time_field else (None,) * 4
    return values | {
        "newest": newest,
        "newest_or_by_group": newest or [[subject.fields.group, "asc"]],
        "group_link": group_link(subject, subject.fields.group, "{{value}}"),
        "fingerprint_link": group_link(subject, subject.fields.fingerprint, "{{value}}"),
        "has_time": bool(subject.time_field),
        "all_time_begin": begin,
        "all_time_end": end,
        "a_year_ago": year_ago,
        "now": today,
        "about": fill(read_text("about.md"), about),
        "about_group": fill(read_text("about_group.md"), values),
    }


def _lay_out(
    rows: Iterable[tuple[int, Sequence[tuple[str, str, int]]]], saved: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the panels of a dashboard, of what is *saved* by kind, and the references to them."""
    panels: list[dict[str, Any]] = []
    references: list[dict[str, Any]] = []
    top = 0
    for height, row in rows:
        there = [panel for panel in row if panel[0] in saved]  # a pack does not have all
        total, left, passed = sum(width for _, _, width in there), 0, 0
        for name, shown, width in there:
            passed += width
            right = _COLUMNS * passed // total
            number, reference = str(len(panels)), f"panel_{len(panels)}"
            place = {"x": left, "y": top, "w": right - left, "h": height, "i": number}
            form = {"version": _PANEL_VERSION, "panelIndex": number, "gridData": place}
            panels.append({**form, "panelRefName": reference, "title": shown, "embeddableConfig": {}})
            references.append({"name": reference, "type": saved[name]["type"], "id": saved[name]["id"]})
            left = right
        top += height if there else 0
    return panels, references


_ADVICE: Mapping[str, str] = {
    "no_index": "check the name",
    "not_mapped": "give another field",
    "no_date": "give a field of type date",
    "no_keyword": "give a field of type keyword",
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
    """

    objects: tuple[Mapping[str, Any], ...]
    text_field: str | None
    faults: tuple[FieldFault, ...]
    prefix: str

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
    if faults:
        await refuse_closed(server, subject.index)
    return DashboardPack(tuple(objects), subject.text_field, faults, subject.prefix)
