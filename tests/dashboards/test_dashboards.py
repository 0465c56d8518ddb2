"""The pack of saved objects: attributes that every product takes, closed references, stable ids, names of all kinds."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from es_simhash import InvalidInputError, build_dashboards
from es_simhash.dashboards.charts import Subject, fill, find_pack_faults, read
from es_simhash.mapping.mapping import build_mapping

# Attributes that both Kibana (`schema` of its saved object types, which refuses others) and Dashboards (`mappings` of
# its types, in a strict index) know.
ATTRIBUTES = {
    "index-pattern": {"title", "timeFieldName", "fields", "fieldFormatMap", "sourceFilters", "type", "typeMeta"},
    "search": {"title", "description", "columns", "sort", "hits", "version", "kibanaSavedObjectMeta"},
    "visualization": {"title", "description", "visState", "uiStateJSON", "version", "kibanaSavedObjectMeta"},
    "dashboard": {
        *("title", "description", "hits", "kibanaSavedObjectMeta", "optionsJSON", "panelsJSON", "refreshInterval"),
        *("timeFrom", "timeRestore", "timeTo", "version"),
    },
}
FIELDS = {"time_field": "published_at", "source_field": "agency", "text_field": "story"}
CHOICES = [{}, {"time_field": FIELDS["time_field"]}, {"text_field": FIELDS["text_field"]}, FIELDS]


@pytest.fixture(params=CHOICES, ids=lambda choice: "+".join(choice) or "no fields")
def pack(request):
    """A pack with each choice of fields."""
    return build_dashboards("news", **request.param)


def by_type(pack, type_):
    """Return the objects of one type by title."""
    return {each["attributes"]["title"]: each for each in pack if each["type"] == type_}


def test_every_product_imports_the_pack(pack):
    """
    Dashboards indexes strictly, and Kibana refuses an attribute that its schema lacks. An import with one reference
    that is missing reports success and imports nothing; an object stands after what it refers to.
    """
    seen = set()
    for each in pack:
        assert each.keys() == {"type", "id", "attributes", "references"}
        assert each["attributes"].keys() <= ATTRIBUTES[each["type"]]
        assert each["attributes"].get("kibanaSavedObjectMeta", {}).keys() <= {"searchSourceJSON"}
        assert {(reference["type"], reference["id"]) for reference in each["references"]} <= seen
        seen.add((each["type"], each["id"]))
        source = json.loads(each["attributes"].get("kibanaSavedObjectMeta", {}).get("searchSourceJSON", "{}"))
        used = [source[key] for key in source if key == "indexRefName"]
        used += [filter_["meta"]["indexRefName"] for filter_ in source.get("filter", ())]
        used += [panel["panelRefName"] for panel in json.loads(each["attributes"].get("panelsJSON", "[]"))]
        assert sorted(used) == sorted({reference["name"] for reference in each["references"]})
    assert len(seen) == len(pack)


INDICES = ["news-*", "logs-app-default", "a,b,-c*", "es:news", ".ds-news-000001", "l'index", "新闻"]


@pytest.mark.parametrize("index", INDICES)
def test_names_of_indices(index):
    """One data view, whose name the search of each chart has; ids depend on the names of index and prefix alone."""
    pack = build_dashboards(index, time_field="@timestamp")
    [pattern] = by_type(pack, "index-pattern").values()
    assert pattern["attributes"]["title"] == index
    assert json.dumps(index, ensure_ascii=False) in json.loads(pack[5]["attributes"]["visState"])["params"]["spec"]
    ids = {each["id"] for each in build_dashboards(index)}
    assert ids < {each["id"] for each in pack}
    for others in (build_dashboards("news"), build_dashboards(index, prefix="second")):
        assert ids.isdisjoint(each["id"] for each in others)


def test_panels_fill_the_dashboard_without_overlap(pack):
    """Every row is 48 wide, and each panel has the version that migrations compare."""
    for each in by_type(pack, "dashboard").values():
        panels = json.loads(each["attributes"]["panelsJSON"])
        cells = []
        for number, panel in enumerate(panels):
            place = panel["gridData"]
            assert place["i"] == panel["panelIndex"] == str(number)
            assert (panel["panelRefName"], panel["version"]) == (f"panel_{number}", "7.9.3")
            across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
            cells += itertools.product(across, down)
        height = 1 + max(y for _, y in cells)
        assert sorted(cells) == list(itertools.product(range(48), range(height)))


def test_panels_exist_for_the_fields_given(pack, request):
    """A chart over time needs a time field, a chart of sources a source field; all others are always there."""
    given = request.node.callspec.params["pack"]
    titles = {title.partition(", ")[2] for title in by_type(pack, "visualization")}
    assert {"numbers", "sizes of groups", "largest groups", "groups to open"} <= titles
    wanted = {"documents over time": "time_field", "share by source": "source_field"}
    assert titles & wanted.keys() == {title for title, field in wanted.items() if field in given}
    assert ("story" in json.dumps(pack)) == ("text_field" in given)
    [pattern] = by_type(pack, "index-pattern").values()
    assert pattern["attributes"].get("timeFieldName") == given.get("time_field")
    for body in bodies(pack):
        query = body["query"]["bool"]
        assert query["must"] == ["%dashboard_context-must_clause%"]
        assert query["must_not"] == ["%dashboard_context-must_not_clause%"]
        time = [{"range": {given["time_field"]: {"%timefilter%": True}}}] if "time_field" in given else []
        assert query["filter"] == ["%dashboard_context-filter_clause%", *time]
        assert body["size"] == 0
    for each in by_type(pack, "dashboard").values():
        assert each["attributes"]["timeRestore"] == ("time_field" in given)
        # A time that is restored and not named is an error in both products.
        assert {"timeFrom", "timeTo"} <= each["attributes"].keys() or not each["attributes"]["timeRestore"]


def specs_of(pack):
    """Return the Vega specification of each chart by its title."""
    states = {
        title: json.loads(each["attributes"]["visState"]) for title, each in by_type(pack, "visualization").items()
    }
    return {title: json.loads(state["params"]["spec"]) for title, state in states.items() if state["type"] == "vega"}


def bodies(pack, index="news"):
    """Return the body of the search of each chart."""
    specs = specs_of(pack).values()
    urls = [data["url"] for spec in specs for data in spec["data"] if "url" in data]
    assert len(urls) == len(specs) >= 3
    assert all(url.keys() == {"index", "body"} and url["index"] == index for url in urls)
    return [url["body"] for url in urls]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "body*"])
def test_names_that_cannot_be(name):
    """Refused by the name of the argument before anything is built."""
    for role in FIELDS:
        with pytest.raises(InvalidInputError, match=role):
            build_dashboards("news", **{role: name})
    for index in (name.replace("*", "?"), "a,,b", ",a", 'a"b', "a/b", "a\\b", "<news-{now/d}>", "a|b", "#a"):
        with pytest.raises(InvalidInputError, match="index"):
            build_dashboards(index)


@pytest.mark.parametrize("name", ["it's", 'the "text"', "back\\slash", "a.b-c d", "</script>", "正文", "${group} $if"])
def test_fields_with_any_name(name):
    """The JSON inside the JSON holds the name unchanged, also one like a placeholder."""
    pack = build_dashboards("${prefix}", time_field=name, source_field=name, text_field=name)
    assert json.loads(json.dumps(pack)) == pack
    ranges = [body["query"]["bool"]["filter"][1]["range"] for body in bodies(pack, "${prefix}")]
    assert all(found == {name: {"%timefilter%": True}} for found in ranges)
    sources = [
        body["aggs"]["sources"]["terms"]["field"] for body in bodies(pack, "${prefix}") if "sources" in body["aggs"]
    ]
    assert sources == [name]
    assert {saved["attributes"]["title"].partition(":")[2].partition(",")[0] for saved in pack[1:]} == {" ${prefix}"}
    assert not set(re.findall(r"\$\{\w+\}", json.dumps(pack))) - {"${prefix}", "${group}"}
    assert set(re.findall(r'"\$use": "(\w+)"', json.dumps(read()))) == set(read()["parts"])  # all are used


def test_values_link_to_their_group():
    """The formats of our fields lead to the dashboard of one group, with a filter in Rison."""
    pack = build_dashboards("news", prefix="2nd")
    view = by_type(pack, "index-pattern")["news"]
    group = by_type(pack, "dashboard")["Near-duplicates: news, one group"]
    formats = json.loads(view["attributes"]["fieldFormatMap"])
    linked = {"2nd.group": "2nd.group", "2nd.duplicate_of": "2nd.group", "2nd.fingerprint": "2nd.fingerprint"}
    assert formats.keys() == linked.keys()
    for field, wanted in linked.items():
        where = f"index:'{view['id']}',key:'{wanted}',params:(query:'{{{{value}}}}')"
        meta = f"alias:!n,disabled:!f,negate:!f,type:phrase,{where}"
        filters = f"(filters:!((meta:({meta}),query:(match_phrase:('{wanted}':'{{{{value}}}}')))))"
        time = "(time:(from:'1970-01-01T00:00:00.000Z',to:now%2B10y))"
        url = f"../app/dashboards#/view/{group['id']}?_g={time}&_a={filters}"
        assert formats[field] == {"id": "url", "params": {"labelTemplate": "{{value}}", "urlTemplate": url}}


def mapping(**fields):
    """Return a mapping with our fields and *fields*."""
    built = build_mapping(text_field="body")
    return {**built, "properties": built["properties"] | fields}


def test_faults_of_a_mapping_are_data():
    """What is not mapped, what has the wrong type, and whether that is so everywhere."""
    subject = Subject("news", "day", "agency", "body")
    keyword = {"type": "text", "fields": {"raw": {"type": "keyword"}}}
    first = mapping(day={"type": "keyword"}, agency=keyword, body={"type": "text"})
    second = mapping(day={"type": "date"}, agency={"type": "keyword"})
    found = {(fault.kind, fault.field): fault for fault in find_pack_faults(subject, {"a": first, "b": second})}
    assert {key: fault.is_fatal for key, fault in found.items()} == {
        ("no_date", "day"): True, ("no_keyword", "agency"): True, ("not_mapped", "body"): False,
    }  # fmt: skip
    assert found["no_date", "day"].indices == ("a",)
    assert found["no_keyword", "agency"].instead == "agency.raw"
    off = mapping(day={"type": "date", "doc_values": False}, agency=keyword | {"type": "keyword", "doc_values": False})
    faults = [(fault.kind, fault.instead) for fault in find_pack_faults(Subject("news", "day", "agency"), {"a": off})]
    assert faults == [("no_date", None), ("no_keyword", "agency.raw")]
    fine = mapping(day={"type": "date_nanos"}, body={"type": "text"}, **{"source.agency": {"type": "long"}})
    fine["properties"]["agency"] = {"type": "alias", "path": "source.agency"}
    assert find_pack_faults(subject, {"a": fine}) == []
    assert [fault.kind for fault in find_pack_faults(subject, {})] == ["no_index"]
    bare = find_pack_faults(Subject("news"), {"a": {"properties": {"n": {"type": "long"}}}})
    assert {fault.field for fault in bare} == {
        f"simhash.{each}" for each in ("fingerprint", "group", "duplicate_of", "distance")
    }
    assert all(fault.is_fatal and str(fault) for fault in bare)


@pytest.mark.parametrize(
    ("part", "filled"),
    [
        ("${number}", 3),
        ("at most ${number} of ${name}", "at most 3 of ${number}"),
        ({"${name}": "${name}"}, {"${number}": "${number}"}),
        (["${nothing}", {"a": "${nothing}", "b": [0, False, "${name}"]}], [{"b": [0, False, "${number}"]}]),
        (
            [{"$if": "nothing", "a": 1}, {"$if": "number", "$why": "a comment", "a": "$x {y} {{z}}"}],
            [{"a": "$x {y} {{z}}"}],
        ),
        ({"$use": "answer", "name": "${name}", "path": "a.b"}, None),
    ],
)
def test_filling(part, filled):
    """A value is put in as it is, also one that looks like a placeholder; what is None is left out."""
    values = {"number": 3, "name": "${number}", "nothing": None}
    before = json.dumps(part)
    found = fill(part, values)
    if filled is None:
        answer = "length(data('response')) ? data('response')[0].aggregations.a.b : 0"
        filled = {"name": "${number}", "update": answer}
    assert found == filled
    assert json.dumps(part) == before


# The rules of `vega_validation.ts` of Dashboards, applied to the tokens of an expression.
EXPRESSION_KEYS = {"expr", "update", "test", "calculate", "filter", "signal"}
# Names that are refused as a property, as a name, or as a function; here as any word of an expression.
REFUSED = re.compile(
    r"""(?<![\w$])(?:
    ownerDocument|defaultView|contentDocument|contentWindow|view|innerHTML|outerHTML|insertAdjacentHTML
    |createElement|createElementNS|getElementById|getElementsByClassName|getElementsByTagName|querySelector
    |querySelectorAll|__proto__|prototype|constructor|window|document|global|globalThis|top|parent|frames
    |self|eval|Function|setTimeout|setInterval|setImmediate|execScript|atob|btoa
    )(?![\w$])""",
    re.VERBOSE,
)
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


@pytest.mark.parametrize("name", ["body", "constructor", "view.document"])
def test_specifications_of_charts(name):
    """
    Vega 5 that the checker of Dashboards takes, also where a field has a name that it refuses: names of fields are in
    no expression. Both products read the address of the schema, and set width and height themselves.
    """
    found = specs_of(build_dashboards("news", time_field=name, source_field=name, text_field=name))
    assert len(found) == 5
    for title, spec in found.items():
        own = list(expressions(spec))
        assert own
        refused = [each for each in own if REFUSED.search(each) or COMPUTED.search(each)]
        assert refused == [], title
        assert spec["$schema"] == "https://vega.github.io/schema/vega/v5.json", title
        assert spec.keys().isdisjoint({"width", "height", "usermeta"})
        assert spec["autosize"] == {"type": "fit", "contains": "padding"}
        assert spec["description"]
        assert spec["config"] == {"kibana": {"hideWarnings": True}}  # Dashboards reads this key too
        assert [data["name"] for data in spec["data"] if "url" in data] == ["response"]
        # Functions that only one of the two products has.
        assert not re.search("AddFilter|SetTimeFilter", json.dumps(spec))
