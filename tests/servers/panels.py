"""
A model of what Kibana and OpenSearch Dashboards do with a Vega panel: they replace the placeholders of its search,
send it, put the answer in its place, and set size and colours.

Written after reading their sources (``es_query_parser.ts``, ``opensearch_query_parser.ts``, ``vega_parser.ts``).
"""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime

FONT = "Inter, 'Open Sans', 'Noto Sans CJK SC', sans-serif"

# The intervals that both products choose from: up to the first number of milliseconds the second.
_INTERVALS = [
    (500, "100ms"), (5_000, "1s"), (7_500, "5s"), (15_000, "10s"), (45_000, "30s"), (180_000, "1m"),
    (450_000, "5m"), (1_200_000, "10m"), (2_700_000, "30m"), (7_200_000, "1h"), (21_600_000, "3h"),
    (86_400_000, "12h"), (604_800_000, "24h"), (1_814_400_000, "1w"), (3_628_799_999, "30d"),
]  # fmt: skip
_CALENDAR = {"1m", "1h", "1d", "1w", "1M", "1q", "1y"}


def spec_of(panel):
    """Return the Vega specification of a saved visualization."""
    return json.loads(json.loads(panel["attributes"]["visState"])["params"]["spec"])


def expand(request, *, product, span, context=None):
    """
    Return the body that a product sends for the *request* of a panel, which stands below ``data.url``.
    Kibana renames ``interval``, Dashboards leaves it. *span*: first and last moment chosen, in milliseconds since 1970.
    *context*: the filters of the dashboard, as ``must``, ``filter`` and ``must_not``.
    """
    body = copy.deepcopy(request["body"])
    _replace(body["query"], product, span, context or {}, is_query=True)
    _replace(body["aggs"], product, span, {}, is_query=False)
    return body


def _replace(part, product, span, context, *, is_query, key=None):
    if isinstance(part, list):
        replaced = []
        for each in part:
            clause = each[19:-8] if isinstance(each, str) and each.startswith("%dashboard_context-") else None
            if clause and is_query:
                replaced += context.get(clause, [])
            else:
                replaced.append(each)
                _replace(each, product, span, context, is_query=is_query)
        part[:] = replaced
        return
    if not isinstance(part, dict):
        return
    for name in list(part):
        below = part[name]
        if not isinstance(below, dict):
            _replace(below, product, span, context, is_query=is_query, key=name)
        elif name == "interval" and below.get("%autointerval%"):
            size = 50 if below["%autointerval%"] is True else below["%autointerval%"]
            chosen = _interval((span[1] - span[0]) / size)
            if product == "opensearch":
                part["interval"] = chosen
            else:
                assert key == "date_histogram"
                del part["interval"]
                part["calendar_interval" if chosen in _CALENDAR else "fixed_interval"] = chosen
        elif below.get("%timefilter%") in {"min", "max"}:
            part[name] = span[0] if below["%timefilter%"] == "min" else span[1]
        elif below.get("%timefilter%") is True:
            del below["%timefilter%"]
            below |= {"gte": _iso(span[0]), "lte": _iso(span[1]), "format": "strict_date_optional_time"}
        else:
            _replace(below, product, span, context, is_query=is_query, key=name)


def _interval(milliseconds):
    return next((name for limit, name in _INTERVALS if milliseconds <= limit), "1y")


def _iso(milliseconds):
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_answer(spec, answer, *, width=600, height=300):
    """Return the specification as a product gives it to Vega: the answer instead of the search, size and colours."""
    drawn = copy.deepcopy(spec)
    drawn["data"][0].pop("url")
    drawn["data"][0]["values"] = answer
    drawn |= {"width": width, "height": height, "background": "#ffffff"}
    label, title = {"fill": "#343741", "font": FONT}, {"fill": "#1a1c21", "font": FONT}
    drawn["config"] = {
        "style": {"guide-label": label, "guide-title": title, "group-title": title},
        "axis": dict.fromkeys(("gridColor", "tickColor", "domainColor"), "#e0e5ee"),
    }
    return drawn
