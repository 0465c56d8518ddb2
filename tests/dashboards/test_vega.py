"""
The expressions in the charts: what the checker of OpenSearch Dashboards refuses is not in them.

The rules are those of ``vega_validation.ts`` there, applied to the tokens of an expression.
"""

from __future__ import annotations

import json
import re

import pytest

from es_simhash import build_dashboards

EXPRESSION_KEYS = {"expr", "update", "test", "calculate", "filter", "signal"}
# Names that are refused as a property, as a name, or as a function; here as any word of an expression.
REFUSED = {
    *("ownerDocument", "defaultView", "contentDocument", "contentWindow", "view", "innerHTML", "outerHTML"),
    *("insertAdjacentHTML", "createElement", "createElementNS", "getElementById", "getElementsByClassName"),
    *("getElementsByTagName", "querySelector", "querySelectorAll", "__proto__", "prototype", "constructor"),
    *("window", "document", "global", "globalThis", "top", "parent", "frames", "self"),
    *("eval", "Function", "setTimeout", "setInterval", "setImmediate", "execScript", "atob", "btoa"),
}
# Access in brackets: a literal or one name is allowed, and nothing else.
COMPUTED = re.compile(r"[\w$\])]\s*\[(?!\s*(?:'[^']*'|[\w$]+)\s*\])")


def expressions(part):
    """Return every expression in a specification."""
    if isinstance(part, list):
        for each in part:
            yield from expressions(each)
    elif isinstance(part, dict):
        for key, below in part.items():
            if key in EXPRESSION_KEYS and isinstance(below, str):
                yield below
            yield from expressions(below)


def refused(expression):
    """Return what the checker would refuse in *expression*, and more."""
    return {*re.findall(r"[\w$]+", expression)} & REFUSED | {*COMPUTED.findall(expression)}


def specs(name="body"):
    """Return each specification of a full pack."""
    for each in build_dashboards("news", time_field=name, source_field=name, text_field=name):
        state = json.loads(each["attributes"].get("visState", "{}"))
        if state.get("type") == "vega":
            yield each["attributes"]["title"], json.loads(state["params"]["spec"])


@pytest.mark.parametrize("name", ["body", "constructor", "view.document"])
def test_the_checker_of_dashboards_has_nothing_to_refuse(name):
    """Also where a field has a name that it refuses: names of fields are in no expression."""
    for title, spec in specs(name):
        found = list(expressions(spec))
        assert found
        assert [each for each in found if refused(each)] == [], title


def test_specifications_are_vega_5_and_fill_their_panel():
    """Both products read the address of the schema, and set width and height themselves."""
    found = list(specs())
    assert len(found) == 5
    for title, spec in found:
        assert spec["$schema"] == "https://vega.github.io/schema/vega/v5.json", title
        assert spec.keys().isdisjoint({"width", "height", "usermeta"})
        assert spec["autosize"] == {"type": "fit", "contains": "padding"}
        assert spec["description"]
        # Dashboards reads this key too.
        assert spec["config"] == {"kibana": {"hideWarnings": True}}
        assert [data["name"] for data in spec["data"] if "url" in data] == ["response"]
        text = json.dumps(spec)
        # Functions that only one of the two products has.
        assert "AddFilter" not in text
        assert "SetTimeFilter" not in text
