"""Lines of an archive: the same document comes out that went in, however the line is spaced and ordered."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.removal.archive import parse_archive_line, to_archive_line
from es_simhash.removal.records import Archived
from es_simhash.transport.names import Key

# What looks like a part of a line, inside a value.
ODD = [', "_source": {', '", "_source": {"a": 1}, "', "_source", '{"_source"', "\\", "\ud800", "\u2028", ""]
TEXTS = st.sampled_from(ODD) | st.text(max_size=5)
SOURCES = st.dictionaries(TEXTS, TEXTS | st.integers() | st.dictionaries(TEXTS, TEXTS, max_size=2), max_size=3)


@settings(max_examples=60)
@given(
    st.tuples(TEXTS, TEXTS, TEXTS), st.none() | TEXTS, SOURCES, st.sampled_from([None, 1]), st.lists(TEXTS, max_size=2)
)
def test_a_line_is_read_as_it_was_written(texts, routing, source, indent, together):
    """Also if values look like parts of a line, and if another program has written it anew."""
    index, id_, canonical = texts
    source = json.dumps(source, indent=indent)
    archived = Archived(
        index, id_, routing, source, Key(index, canonical, routing), "0" * 64, "2026-01-01", tuple(together)
    )
    line = to_archive_line(archived)
    found = parse_archive_line(line)
    assert (found, json.loads(found.source)) == (replace(archived, source=found.source), json.loads(source))
    plain = json.loads(line)
    for other in (json.dumps(plain, separators=(",", ":")), json.dumps(plain, sort_keys=True), json.dumps(plain)):
        again = parse_archive_line(other)
        assert again == replace(archived, source=again.source)
        assert json.loads(again.source) == json.loads(source)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"_source": {', '"_source": ['),
        ('"n": 1}', '"n": 1'),
        ('"n": 1}', '"n": 1}, "_source": 2'),
        ('"n": 1}', '"n": 1} x'),
        ('{"_index"', '["_index"'),
        ('"plan"', '"plot"'),
        ('"canonical": {', '"canonical": {"_source": {}, '),
    ],
)
def test_a_line_that_is_broken(old, new):
    """A ValueError, and no other document; a member that is not known is no fault."""
    archived = Archived("news", "a", None, '{"n": 1}', Key("news", "b"), "0" * 64, "2026-01-01")
    line = to_archive_line(archived).replace(old, new, 1)
    if old.startswith('"canonical"'):
        assert parse_archive_line(line) == archived
        return
    with pytest.raises(ValueError, match=r".*"):
        parse_archive_line(line)
