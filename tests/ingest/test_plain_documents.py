"""Most documents are read by a short way: what is sent of them is what the long way sends."""

import json

from hypothesis import example, given, strategies as st

from es_simhash import DEFAULT_SCHEME, fingerprint_fields, get_scheme
from es_simhash.ingest.ingest_options import IngestOptions
from es_simhash.ingest.reading import Source, WriteTarget
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.meta import IndexSettings

TARGET = WriteTarget(Resolved(), IndexSettings(get_scheme(DEFAULT_SCHEME), ("body",)))


class LongWay(Source):
    """Reads every document as if it were an unusual one."""

    def _read_plain(self, action):
        return None


texts = st.sampled_from(["The boat leaves at nine.", "夜行列车九点出发", "", " ", "\ud83d", None, 7, ["a b c d", "e"]])
values = texts | st.sampled_from(
    [{"x": 1}, fingerprint_fields(5)["simhash"], {"group": "g"}, "index", 1.5, float("nan")]
)
names = st.sampled_from(
    [
        *("body", "n", "_id", "_index", "_source", "_routing", "routing", "version", "_op_type", "action", "canonical"),
        *("simhash", "simhash.group", "simhash.fingerprint", "simhash.other", "title", ""),
    ]
)
documents = st.dictionaries(names, values, max_size=4).flatmap(
    lambda own: st.fixed_dictionaries(
        {}, optional={"body": texts, "_id": st.sampled_from(["1", "é", "", None, 3])}
    ).map(lambda usual: own | usual)
)
wrapped = st.builds(
    lambda source, id_, index: {"_source": source, **id_, **index},
    documents,
    st.sampled_from([{}, {"_id": "w"}, {"_id": 5}]),
    st.sampled_from([{}, {"_index": "i"}, {"_index": "other"}, {"_index": None}]),
)
actions = documents | wrapped


def as_line(action):
    try:
        return json.dumps(action, allow_nan=False)
    except ValueError:
        return action


def in_order(line):
    """Return an action line with its members in one order, and any other as it is, with what is written as text."""
    line = json.loads(line) if isinstance(line, str) and line[:1] == "{" else line
    [*names] = line if isinstance(line, dict) else ()
    return {names[0]: dict(sorted(line[names[0]].items()))} if names in (["index"], ["create"]) else line


def read(kind, given, **options):
    source = kind("i", given, target=TARGET, options=IngestOptions(**options), prefix="simhash")
    batch = source.take()
    return str(batch.failure), [
        (
            item.position,
            item.problem,
            item.outcome,
            item.document and (item.document.id, item.document.fingerprint),
            lines,
        )
        for item in batch.items
        for lines in [None if item.operation is None else [*map(in_order, item.operation.lines("simhash"))]]
    ]


TEXT = {"body": "The boat leaves at nine."}
LINE = {"id": "1", "index": "i", "seq_no": 0, "primary_term": 1, "canonical": {"id": "2"}, "distance": 0}


@example(
    [TEXT, {"_id": "1", **TEXT}, {"_id": "1", "_source": TEXT}, {"_index": "i", "_id": "1", "_source": TEXT}],
    "index",
    True,
)
@example(
    [{"_id": "\ud83d", **TEXT}, {"_index": "other", "_id": "1", "_source": TEXT}, {**TEXT, **LINE}], "create", True
)
@given(st.lists(actions | actions.map(as_line), max_size=6), st.sampled_from(["index", "create"]), st.booleans())
def test_both_ways_send_the_same(given, op_type, is_deciding):
    """Also where a document has names of an action, of our fields, or of our reports."""
    options = {"op_type": op_type, "on_duplicate": "tag" if is_deciding else None, "id_from": "content"}
    long = repr(read(LongWay, given, **options))  # NaN is not equal to itself
    assert repr(read(Source, given, **options)) == long
