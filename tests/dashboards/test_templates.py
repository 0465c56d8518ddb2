"""The template of the packs: what their placeholders and keys mean, and that each part is used."""

import json
import re

import pytest

from es_simhash import build_dashboards
from es_simhash.dashboards.charts import fill, read


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


def test_a_name_like_a_placeholder_stays_a_name():
    """Fields and indices may have any name."""
    name = "${group} $if"
    pack = build_dashboards("${prefix}", time_field=name, source_field=name, text_field=name)
    assert {each["attributes"]["title"].partition(":")[2].partition(",")[0] for each in pack[1:]} == {" ${prefix}"}
    assert json.dumps(pack).count("${group} $if") > 10
    assert not set(re.findall(r"\$\{\w+\}", json.dumps(pack))) - {"${prefix}", "${group}"}


def test_every_part_is_used():
    """No part is left in the file that no chart and no panel has."""
    assert set(re.findall(r'"\$use": "(\w+)"', json.dumps(read()))) == set(read()["parts"])
