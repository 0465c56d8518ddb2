"""The pack: which objects it has, and where they stand on its two dashboards."""

from __future__ import annotations

import json
from typing import Any

from es_simhash.arguments import check_choice
from es_simhash.dashboards import charts
from es_simhash.dashboards.chart_parts import distances_of, exists, missing, over_time_of, sizes_of, sources_of
from es_simhash.dashboards.saved import (
    ALL_TIME,
    Panel,
    dashboard,
    filter_of,
    index_pattern,
    lens_panels,
    search,
    visualization,
)
from es_simhash.dashboards.subject import Subject, about_group, about_numbers
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
    pattern = index_pattern(subject)
    searches = _searches(subject)
    panels = _panels(subject)
    if product == "kibana":
        panels |= lens_panels(subject, _title(subject))
    group = dashboard(
        subject,
        "group",
        _title(subject, "one group"),
        "The documents of one group of near-duplicates.",
        rows=[
            (5, [Panel(panels["about_group"], "About this page")]),
            (30, [Panel(searches["group"], "Documents of the group")]),
        ],
        time=ALL_TIME,
    )
    overview = dashboard(
        subject,
        "overview",
        _title(subject),
        "How many documents are near-duplicates, of which source, in which groups.",
        rows=_rows(panels, searches),
        # The products' own choice, the last 15 minutes, is empty for most archives of texts.
        time=("now-1y", "now"),
    )
    return [pattern, *searches.values(), *panels.values(), group, overview]


def _title(subject: Subject, part: str = "") -> str:
    title = f"Near-duplicates: {subject.index}"
    return f"{title}, {part}" if part else title


def _searches(subject: Subject) -> dict[str, dict[str, Any]]:
    fields = subject.fields
    shown = [each for each in (subject.source_field, subject.text_field) if each]
    newest = [[subject.time_field, "desc"]] if subject.time_field else []
    grouped = [fields.group, fields.duplicate_of, fields.distance]
    return {
        "duplicates": search(
            subject,
            "duplicates",
            _title(subject, "duplicates"),
            "Documents that are near-duplicates of another, their canonical.",
            columns=[fields.duplicate_of, fields.distance, *shown],
            sort=newest or [[fields.group, "asc"]],
            filters=[filter_of(exists(fields.duplicate_of), "is a duplicate")],
        ),
        "canonicals": search(
            subject,
            "canonicals",
            _title(subject, "canonicals"),
            "Documents that stand for their group, or are alone.",
            columns=[fields.group, *shown],
            sort=newest or [[fields.group, "asc"]],
            filters=[
                filter_of(exists(fields.group), "is grouped"),
                filter_of(missing(fields.duplicate_of), "is no duplicate"),
            ],
        ),
        "without": search(
            subject,
            "without",
            _title(subject, "without fingerprint"),
            "Documents that no lookup finds, until es-simhash backfill gives them a fingerprint.",
            columns=shown,
            sort=newest,
            filters=[filter_of(missing(fields.fingerprint), "has no fingerprint")],
        ),
        "group": search(
            subject,
            "one-group",
            _title(subject, "documents of one group"),
            "Add a filter on one group. Without it, all groups follow one another.",
            columns=[*grouped, fields.fingerprint, *shown],
            sort=[[fields.group, "asc"], [fields.distance, "asc"]],
            filters=[filter_of(exists(fields.group), "is grouped")],
        ),
    }


def _panels(subject: Subject) -> dict[str, dict[str, Any]]:
    found = {
        "numbers": _vega(subject, "numbers", "numbers", charts.numbers_chart(subject)),
        "sizes": _vega(subject, "sizes", "sizes of groups", charts.sizes_chart(sizes_of(subject))),
        "distances": _vega(subject, "distances", "distances", charts.distances_chart(distances_of(subject))),
        "largest": _vega(subject, "largest", "largest groups", charts.largest_groups_chart(subject)),
        "blocks": _vega(subject, "blocks", "hot blocks", charts.hot_blocks_chart(subject)),
    }
    if subject.time_field:
        found["time"] = _vega(subject, "time", "documents over time", charts.over_time_chart(over_time_of(subject)))
    if subject.source_field:
        found["sources"] = _vega(subject, "sources", "share by source", charts.sources_chart(sources_of(subject)))
    for kind, title, words in (
        ("about", "what the numbers mean", about_numbers(subject)),
        ("about_group", "about the page of one group", about_group(subject)),
    ):
        params = {"markdown": words, "fontSize": 12, "openLinksInNewTab": False}
        found[kind] = visualization(subject, kind, _title(subject, title), "", type_="markdown", params=params)
    found["table"] = _table_of_groups(subject)
    return found


def _vega(subject: Subject, kind: str, title: str, spec: dict[str, Any]) -> dict[str, Any]:
    params = {"spec": json.dumps(spec, ensure_ascii=False, indent=2)}
    return visualization(subject, kind, _title(subject, title), spec["description"], type_="vega", params=params)


def _table_of_groups(subject: Subject) -> dict[str, Any]:
    """Return the table whose groups are links: charts cannot have links that both products follow."""
    fields = subject.fields
    terms = {
        "field": fields.group,
        "size": 100,
        "order": "desc",
        "orderBy": "1",
        "otherBucket": False,
        "otherBucketLabel": "Other",
        "missingBucket": False,
        "missingBucketLabel": "Missing",
        "customLabel": "Group",
    }
    largest = {"field": fields.distance, "customLabel": "Largest distance"}
    return visualization(
        subject,
        "table",
        _title(subject, "groups to open"),
        "The largest groups. A group is a link to its documents.",
        type_="table",
        params={
            "perPage": 10,
            "showPartialRows": False,
            "showMetricsAtAllLevels": False,
            "showTotal": False,
            "totalFunc": "sum",
            "percentageCol": "",
        },
        aggs=[
            {"id": "1", "enabled": True, "type": "count", "schema": "metric", "params": {"customLabel": "Duplicates"}},
            {"id": "2", "enabled": True, "type": "max", "schema": "metric", "params": largest},
            {"id": "3", "enabled": True, "type": "terms", "schema": "bucket", "params": terms},
        ],
        filters=[filter_of(exists(fields.duplicate_of), "is a duplicate")],
    )


def _rows(panels: dict[str, Any], searches: dict[str, Any]) -> list[tuple[int, list[Panel]]]:
    """Return what stands where on the dashboard of all groups."""
    about = Panel(panels["about"], "What the numbers mean", width=2)
    upper = [about]
    if "time" in panels:
        upper = [Panel(panels["time"], "Documents over time", width=3), about]
    middle = [Panel(panels["sizes"], "Groups by number of documents")]
    middle.append(Panel(panels["distances"], "Duplicates by distance"))
    if "sources" in panels:
        middle.insert(0, Panel(panels["sources"], "Share of duplicates by source"))
    largest = [Panel(panels["largest"], "Largest groups", width=2), Panel(panels["table"], "Groups to open")]
    last = [Panel(panels["blocks"], "Hot blocks", width=2), Panel(searches["duplicates"], "Duplicates", width=3)]
    lens = {"lens_time": "Time", "lens_sources": "Sources", "lens_groups": "Groups"}
    clickable = [Panel(panels[kind], f"{title}, to select") for kind, title in lens.items() if kind in panels]
    return [
        (7, [Panel(panels["numbers"], "Numbers")]),
        (17, upper),
        *([(16, clickable)] if clickable else []),
        (14, middle),
        (16, largest),
        (18, last),
    ]
