"""The pack: its objects, and its two dashboards. ``objects.json`` says what they show, and what stands where."""

from __future__ import annotations

import json
import shlex
from typing import Any

from es_simhash.arguments import check_choice
from es_simhash.dashboards.charts import panel_chart
from es_simhash.dashboards.saved import ALL_TIME, Panel, dashboard, index_pattern, search, visualization
from es_simhash.dashboards.subject import Subject
from es_simhash.dashboards.templates import fill, read, read_text
from es_simhash.mapping.fields import DEFAULT_PREFIX


def build_dashboards(
    index: str,
    *,
    time_field: str | None = None,
    source_field: str | None = None,
    text_field: str | None = None,
    product: str | None = None,
    prefix: str = DEFAULT_PREFIX,
) -> list[dict[str, Any]]:
    """
    Return saved objects about near-duplicates, for Kibana 8 and 9 and for OpenSearch Dashboards 2 and 3.

    Write each on a line of its own (NDJSON) and import the file, under *Saved objects* or through the API. The same
    names give the same ids, so a second import replaces the first. No request is made: whether the fields are mapped
    is not checked (``es-simhash dashboards --check`` does), and a panel about a field that no index maps is empty.

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
        product:
            ``None`` for a pack that both products take. ``"kibana"`` adds Lens panels, where a click becomes a filter;
            OpenSearch Dashboards refuses that pack.
        prefix:
            Name of the object that holds our fields.

    Returns:
        A data view, saved searches, panels and two dashboards. References name objects in the list only, and an
        object stands after those that it refers to.

    Raises:
        TypeError: If a name is not a string.
        InvalidInputError: If a name cannot be that of an index or a field, or *product* is another word.

    Examples:
        >>> pack = build_dashboards("news", time_field="published_at", text_field="body")
        >>> sorted({each["type"] for each in pack})
        ['dashboard', 'index-pattern', 'search', 'visualization']
        >>> [each["attributes"]["title"] for each in pack if each["type"] == "dashboard"]
        ['Near-duplicates: news, one group', 'Near-duplicates: news']
    """
    subject = Subject(index, time_field, source_field, text_field, prefix)
    check_choice("product", product, ("kibana", None))
    searches = _searches(subject)
    panels = _panels(subject)
    if product == "kibana":
        panels |= _lens_panels(subject)
    group = dashboard(
        subject,
        "group",
        _title(subject, "one group"),
        "The documents of one group of near-duplicates.",
        rows=_rows("group", searches | panels),
        time=ALL_TIME,
    )
    overview = dashboard(
        subject,
        "overview",
        _title(subject),
        "How many documents are near-duplicates, of which source, in which groups.",
        rows=_rows("overview", searches | panels),
        # The products' own choice, the last 15 minutes, is empty for most archives of texts.
        time=("now-1y", "now"),
    )
    return [index_pattern(subject), *searches.values(), *panels.values(), group, overview]


def _title(subject: Subject, part: str = "") -> str:
    title = f"Near-duplicates: {subject.index}"
    return f"{title}, {part}" if part else title


def _searches(subject: Subject) -> dict[str, dict[str, Any]]:
    newest = [[subject.time_field, "desc"]] if subject.time_field else []
    sorts = {"newest": newest, "newest_or_by_group": newest or [[subject.fields.group, "asc"]]}
    found = fill(read("objects.json")["searches"], subject.values | sorts)
    return {
        kind: search(subject, kind, **each | {"title": _title(subject, each["title"])}) for kind, each in found.items()
    }


def _panels(subject: Subject) -> dict[str, dict[str, Any]]:
    found = {}
    absent = {kind for kind, field in (("time", subject.time_field), ("sources", subject.source_field)) if not field}
    for kind, title in read("objects.json")["charts"].items():
        if kind not in absent:
            spec = panel_chart(subject, kind)
            params = {"spec": json.dumps(spec, ensure_ascii=False, indent=2)}
            description = spec["description"]
            found[kind] = visualization(subject, kind, _title(subject, title), description, type_="vega", params=params)
    for kind, title, text in (
        ("about", "what the numbers mean", _about_numbers(subject)),
        ("about_group", "about the page of one group", _about_group(subject)),
    ):
        markdown = {"markdown": text, "fontSize": 12, "openLinksInNewTab": False}
        found[kind] = visualization(subject, kind, _title(subject, title), "", type_="markdown", params=markdown)
    found["table"] = visualization(
        subject,
        "table",
        _title(subject, "groups to open"),
        "The largest groups. A group is a link to its documents.",
        type_="table",
        **fill(read("objects.json")["table"], subject.values),
    )
    return found


def _about_numbers(subject: Subject) -> str:
    """Return what stands beside the charts."""
    names = {"duplicates": "Duplicates", "canonicals": "Canonicals", "without": "Without fingerprint"}
    links = " · ".join(f"[{words}](../app/discover#/view/{subject.id_of(kind)})" for kind, words in names.items())
    hidden = (
        f"\n\nDocuments without the field `{subject.time_field}` are in no range of time, so this dashboard does not "
        "count them."
        if subject.time_field
        else ""
    )
    return str(
        fill(read_text("about.md"), {"quoted_index": shlex.quote(subject.index), "hidden": hidden, "links": links})
    )


def _about_group(subject: Subject) -> str:
    """Return what stands above the documents of one group."""
    return str(fill(read_text("about_group.md"), subject.values | {"id_of_overview": subject.id_of("overview")}))


def _lens_panels(subject: Subject) -> dict[str, dict[str, Any]]:
    """Return the panels that only Kibana has; a click in them becomes a filter."""
    values = subject.values | {"title": _title(subject), "id_of_pattern": subject.id_of("index-pattern")}
    ids = {kind: subject.id_of(kind.replace("_", "-")) for kind in read("lens.json")}
    found = {kind: fill(each, values | {"id": ids[kind]}) for kind, each in read("lens.json").items()}
    return {kind: each for kind, each in found.items() if each}


def _rows(name: str, saved: dict[str, dict[str, Any]]) -> list[tuple[int, list[Panel]]]:
    """Return what stands where on a dashboard, without the objects that this pack does not have."""
    rows = [
        (height, [Panel(saved[kind], title, width) for kind, title, width in panels if kind in saved])
        for height, panels in read("objects.json")[name]
    ]
    return [(height, panels) for height, panels in rows if panels]
