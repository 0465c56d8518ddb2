"""The pack of saved objects: attributes that every product takes, closed references, stable ids, names of all kinds."""

from __future__ import annotations

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
    """Every row is 48 wide, panels do not overlap, and each has the version that migrations compare."""
    for each in by_type(pack, "dashboard").values():
        panels = json.loads(each["attributes"]["panelsJSON"])
        taken = set()
        for number, panel in enumerate(panels):
            place = panel["gridData"]
            assert place["i"] == panel["panelIndex"] == str(number)
            assert panel["panelRefName"] == f"panel_{number}"
            assert panel["version"] == "7.9.3"
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken
            taken |= cells
        assert {x for x, _ in taken} == set(range(48))
        assert len(taken) == 48 * (1 + max(y for _, y in taken))


def test_panels_exist_for_the_fields_given(pack, request):
    """A chart over time needs a time field, a chart of sources a source field; all others are always there."""
    given = request.node.callspec.params["pack"]
    titles = {title.partition(", ")[2] for title in by_type(pack, "visualization")}
    always = {"numbers", "sizes of groups", "largest groups", "groups to open"}
    assert always <= titles
    assert ("documents over time" in titles) == ("time_field" in given)
    assert ("share by source" in titles) == ("source_field" in given)
    assert ("story" in json.dumps(pack)) == ("text_field" in given)
    [pattern] = by_type(pack, "index-pattern").values()
    assert pattern["attributes"].get("timeFieldName") == given.get("time_field")
    for body in bodies(pack):
        query = body["query"]["bool"]
        assert query["must"] == ["%dashboard_context-must_clause%"]
        assert query["must_not"] == ["%dashboard_context-must_not_clause%"]
        assert query["filter"][0] == "%dashboard_context-filter_clause%"
        time = {"range": {given.get("time_field"): {"%timefilter%": True}}}
        assert query["filter"][1:] == [time] * ("time_field" in given)
        assert body["size"] == 0
    for each in by_type(pack, "dashboard").values():
        assert each["attributes"]["timeRestore"] == ("time_field" in given)
        # A time that is restored and not named is an error in both products.
        assert {"timeFrom", "timeTo"} <= each["attributes"].keys() or not each["attributes"]["timeRestore"]


def bodies(pack, index="news"):
    """Return the body of the search of each chart."""
    states = [json.loads(each["attributes"]["visState"]) for each in by_type(pack, "visualization").values()]
    specs = [json.loads(state["params"]["spec"]) for state in states if state["type"] == "vega"]
    urls = [data["url"] for spec in specs for data in spec["data"] if "url" in data]
    assert len(urls) == len(specs) >= 3
    assert {url["index"] for url in urls} == {index}
    assert all(url.keys() == {"index", "body"} for url in urls)
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
    formats = json.loads(by_type(pack, "index-pattern")["news"]["attributes"]["fieldFormatMap"])
    assert formats.keys() == {"2nd.group", "2nd.duplicate_of", "2nd.fingerprint"}
    group = by_type(pack, "dashboard")["Near-duplicates: news, one group"]
    for field, format_ in formats.items():
        assert format_["id"] == "url"
        assert format_["params"]["labelTemplate"] == "{{value}}"
        address, _, state = format_["params"]["urlTemplate"].partition("?")
        assert address == f"../app/dashboards#/view/{group['id']}"
        wanted = "2nd.fingerprint" if field == "2nd.fingerprint" else "2nd.group"
        view = by_type(pack, "index-pattern")["news"]["id"]
        meta = (
            f"alias:!n,disabled:!f,negate:!f,type:phrase,index:'{view}',key:'{wanted}',params:(query:'{{{{value}}}}')"
        )
        filters = f"(filters:!((meta:({meta}),query:(match_phrase:('{wanted}':'{{{{value}}}}')))))"
        assert state == f"_g=(time:(from:'1970-01-01T00:00:00.000Z',to:now%2B10y))&_a={filters}"


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
    assert found.keys() == {("no_date", "day"), ("no_keyword", "agency"), ("not_mapped", "body")}
    assert found["no_date", "day"].indices == ("a",)
    assert found["no_keyword", "agency"].instead == "agency.raw"
    assert not found["not_mapped", "body"].is_fatal
    assert found["no_date", "day"].is_fatal
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
