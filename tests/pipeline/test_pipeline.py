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
# What follows a dot behind these is a key of a map.
MAPS = {"params", "ctx", "_source"}


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
    """Return the calls in *source*: the classes that the object may be of (empty if not known), name and arguments."""
    text = re.sub(r"'[^']*'", "''", source)
    own = set(re.findall(r"^[\w\[\]]+ (\w+)\(", text, re.MULTILINE))
    declared = {}
    for type_, name in re.findall(r"\b([A-Z]\w*|def)(?:\[\])* (\w+)\b", text):
        declared.setdefault(name, set()).add(type_)
    for match in re.finditer(r"(new )?(\.)?\b([A-Za-z_]\w*)(\()?", text):
        made, dot, name, opened = match.groups()
        number = arguments(text, match.end()) if opened else None
        if made:
            if opened:
                yield {name}, "new", number
        elif dot:
            classes = receiver(text, match.start(), declared)
            if classes is not None:
                yield classes, name, number
        elif opened and name not in own | WORDS:
            yield {"-"}, name, number
        elif name[0].isupper() and not text.startswith(".", match.end()):
            yield {name}, "class", None


def arguments(text, start):
    """Return how many arguments a call has whose parenthesis is open before *start*."""
    depth, number = 1, 0
    for place in range(start, len(text)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[place], 0)
        number += text[place] == "," and depth == 1
        if not depth:
            return number + 1 if text[start:place].strip() else 0
    raise AssertionError(text[start:])


def receiver(text, end, declared):
    """Return the classes of what stands before *end*; empty if not known, ``None`` for a map whose key follows."""
    depth, start = 0, end
    while start and (depth or text[start - 1] in ")]" or re.match(r"[\w.]", text[start - 1])):
        start -= 1
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(text[start], 0)
    before = text[start:end]
    if cast := re.match(r"\(\((\w+)\) ", before):
        return {cast[1]} if before.endswith(")") and before.count("(") - before.count("((") else set()
    name = re.split(r"[\[(]", before)[0]
    if before in MAPS or (name.rpartition(".")[2] in MAPS and "(" not in before and "[" not in before):
        return None if not text[end + 1 :].lstrip("_abcdefghijklmnopqrstuvwxyz").startswith("(") else {"Map"}
    if re.fullmatch(r"[A-Z]\w*", before):
        return {before}
    classes = declared.get(name, {"def"}) if "(" not in before else {"def"}
    return set() if "def" in classes else classes


@pytest.mark.parametrize("context", ["ingest", "filter", "field", "update"])
def test_every_call_is_in_the_table(context):
    """With its number of arguments, for this context; and what nothing calls is not in the table."""
    unknown, used = set(), set()
    for kind, source in scripts():
        if kind != context:
            continue
        for classes, name, number in calls(source):
            shown = "" if number is None else str(number)
            rows = [
                place
                for place, row in enumerate(ROWS)
                if (row["name"], row["arguments"]) == (name, shown)
                and context in row["contexts"].split()
                and (not classes or row["class"] in classes)
            ]
            used.update(rows)
            if not rows:
                unknown.add((" ".join(sorted(classes)), name, shown))
    assert unknown == set()
    assert [row for place, row in enumerate(ROWS) if context in row["contexts"].split() and place not in used] == []


def test_a_new_call_is_noticed():
    """On a class of the table too, or with another number of arguments."""
    known = {(row["class"], row["name"], row["arguments"]) for row in ROWS}
    for source in ("String s = ''; s.strip()", "Long.toString(1, 16)", "new TreeMap()", "sha1('')", "doc['a'].min"):
        found = [(classes, name, number) for classes, name, number in calls(source) if name != "class"]
        [(classes, name, number)] = found
        rows = [row for row in known if row[1:] == (name, str(number) if number is not None else "")]
        assert not [row for row in rows if not classes or row[0] in classes], source


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
    """Of every code point there is."""
    tables, expansions = character_tables(), expansion_values()
    seen = HASHED | DIAERESIS | RING
    for code, entry in enumerate(character_entries(np.arange(CODE_POINTS, dtype=np.uint32)).tolist()):
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
