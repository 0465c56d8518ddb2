"""
The ingest pipeline without a server: its tables and script, and the calls in all our scripts.

A server compiles a script only if it calls what its allow lists name, in the context of the script. No test can run a
script on Elasticsearch, so a call that is new here must be looked up in its lists, and then be added to the table
``tests/painless_names.tsv``.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import es_simhash
from es_simhash import SchemeError, build_pipeline, fingerprints, get_scheme, to_hex
from es_simhash.hashing.characters import (
    BASE,
    CODE_POINTS,
    DIAERESIS,
    FIRST_EXPANSION,
    HASHED,
    RING,
    SEPARATOR,
    UNASSIGNED,
    character_entries,
    expansion_values,
)
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import candidate_clauses
from es_simhash.pipeline.script_source import character_tables, find_differences, probe_documents
from es_simhash.upkeep.remove_fields import _script

ROWS = list(
    csv.DictReader(
        (Path(__file__).parents[1] / "painless_names.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t"
    )
)
WORDS = {"if", "for", "while", "return", "else", "int", "long", "double", "boolean", "char"}


def scripts():
    """Return each of our scripts with its context."""
    found = []
    schemes = [get_scheme("shingles", size=size) for size in (1, 2, 4, 16)]
    schemes += [get_scheme("shingles", weighting=each) for each in ("linear", "log", "set")]
    for scheme in schemes:
        script = build_pipeline(scheme=scheme, text_field="body")["processors"][0]["script"]
        found.append(("ingest", script["source"]))
        found += [("filter", script["params"]["near"]), ("field", script["params"]["distance"])]
    plan = LookupPlan(64, script=True)
    for given in ([1], [1, 2]):
        found.append(("filter", candidate_clauses(given, plan)[-1]["script"]["script"]["source"]))
    found += [("update", _script(["group"], "simhash")["script"]["source"])]
    return [(context.replace("script", "field"), source) for context, source in dict.fromkeys(found)]


def calls(source):
    """Return the calls in *source*: the class, where it stands there, the name, the number of arguments."""
    text = re.sub(r"'[^']*'", "''", source)
    own = set(re.findall(r"^[\w\[\]]+ (\w+)\(", text, re.MULTILINE))
    for match in re.finditer(r"(new |[A-Z]\w*\.|\.)?\b([A-Za-z_]\w*)\(", text):
        before, name = match.groups()
        if before == "new ":
            yield name, "new", arguments(text, match.end())
        elif before or name not in own | WORDS:
            yield (before or "-.")[:-1], name, arguments(text, match.end())
    for name in re.findall(r"\b([A-Z]\w*)(?:\[\])*\)? \w|instanceof ([A-Z]\w*)", text):
        yield "".join(name), "class", None
    for name in re.findall(r"\.(length)\b|\bheld\.(value)\b", text):
        yield "", "".join(name), None


def arguments(text, start):
    """Return how many arguments a call has whose parenthesis is open before *start*."""
    depth, number = 1, 0
    for place in range(start, len(text)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[place], 0)
        number += text[place] == "," and depth == 1
        if not depth:
            return number + 1 if text[start:place].strip() else 0
    raise AssertionError(text[start:])


def rows_of(call, context):
    """Return the places in the table that a call may be, in a script of *context*."""
    class_, name, number = call
    wanted = name, "" if number is None else str(number)
    return [
        place
        for place, row in enumerate(ROWS)
        if (row["name"], row["arguments"]) == wanted
        and context in row["contexts"].split()
        and (not class_ or row["class"] == class_)
    ]


@pytest.mark.parametrize("context", ["ingest", "filter", "field", "update"])
def test_every_call_is_in_the_table(context):
    """With its number of arguments, for this context; and what nothing calls is not in the table."""
    found = {call for kind, source in scripts() if kind == context for call in calls(source)}
    assert {call for call in found if not rows_of(call, context)} == set()
    used = {place for call in found for place in rows_of(call, context)}
    assert [row for place, row in enumerate(ROWS) if context in row["contexts"].split() and place not in used] == []


@pytest.mark.parametrize("source", ["s.strip()", "Long.toString(1, 16)", "new TreeMap()", "sha1('')", "Locale l"])
def test_a_new_call_is_noticed(source):
    """On a class of the table too, or with another number of arguments."""
    assert [call for call in calls(source) if not rows_of(call, "ingest")]


def test_no_other_file_has_a_script():
    """A script that is elsewhere would not be held to the table."""
    root = Path(es_simhash.__file__).parent
    holders = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r'"lang"[:,] "painless"', path.read_text(encoding="utf-8"))
    }
    assert holders == {"upkeep/remove_fields.py", "lookup/query.py", "pipeline/build.py"}


def values_of(tables, code):
    """Return the letters of a code point, or what it adds, as the script finds them."""
    place = (ord(tables.blocks[code >> 7]) - 0x100) * 256 + 2 * (code & 127)
    how, record = tables.entries[place : place + 2]
    if how in "DSU":
        return {"D": [], "S": [SEPARATOR], "U": [code]}[how]
    if how not in "XM":
        return [ord(how)]
    parts = tables.records[ord(record) - 0x100 :]
    pairs = [parts[at : at + 2] for at in range(1, 2 * (ord(parts[0]) - 0x30), 2)]
    return [(ord(high) - 0x4000 << 13) + ord(low) - 0x4000 for high, low in pairs]


def test_the_entries_are_those_of_the_pinned_table():
    """Of every code point there is; parts of the table that are alike, of code points alike, are read once."""
    tables, expansions = character_tables(), expansion_values()
    entries = character_entries(np.arange(CODE_POINTS, dtype=np.uint32)).reshape(-1, 128)
    seen = HASHED | DIAERESIS | RING
    for number in {(letter, row.tobytes()): n for n, (letter, row) in enumerate(zip(tables.blocks, entries))}.values():
        for code, entry in enumerate(entries[number].tolist(), 128 * number):
            values = expansions[entry - FIRST_EXPANSION] if FIRST_EXPANSION <= entry <= BASE else [entry]
            expected = [value & seen for value in values]
            assert values_of(tables, code) == ([] if entry <= UNASSIGNED or expected == [0] else expected), hex(code)


def test_no_string_has_a_character_that_json_could_lose():
    """No surrogate, and nothing below the space."""
    for table in character_tables():
        assert not any(character < " " or "\ud800" <= character <= "\udfff" for character in table)


def test_a_pipeline_is_plain_and_small():
    """At most 200 KB of JSON, of which the script has less than a server's limit of 65,535 bytes."""
    pipeline = build_pipeline(scheme=get_scheme("shingles", size=16), text_field=["title", "body"])
    [processor] = pipeline["processors"]
    assert len(json.dumps(pipeline, ensure_ascii=False).encode()) < 200_000
    assert len(processor["script"]["source"].encode()) < 65_535
    assert "${" not in processor["script"]["source"]


@pytest.mark.parametrize(
    "scheme", ["keywords", get_scheme("shingles", hash="md5"), get_scheme("shingles", preprocess="html")], ids=str
)
def test_what_a_server_cannot_compute_is_refused(scheme):
    """With the reason, and what to do instead."""
    with pytest.raises(SchemeError, match="an ingest pipeline cannot compute .*: compute the fingerprints with ingest"):
        build_pipeline(scheme=scheme, text_field="body")


def test_a_server_that_makes_other_bits_is_noticed():
    """One answer differs, and is named."""
    scheme = get_scheme("shingles")
    documents = probe_documents("body.text", prefix="p")
    texts = [each["_source"]["body.text"] for each in documents]

    right = [{} if each is None else {"p": {"fingerprint": to_hex(each)}} for each in fingerprints(texts)]
    answers = [{"doc": {"_source": each}} for each in right]
    assert find_differences(answers, scheme, prefix="p") == []
    answers[3] = {"doc": {"_source": {}}}
    assert find_differences(answers, scheme, prefix="p") == [texts[3]]
