"""What the steps of the machine draw: names, texts, policies, options and documents. No step is made here."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from es_simhash.mapping.mapping import build_mapping
from tests.estates.model import write_text

FIELDS = {
    "body": {"type": "text"},
    "n": {"type": "long"},
    "other": {"type": "object", "enabled": False},
    "@timestamp": {"type": "date"},
}
EXTRAS = {
    "": {},
    "odd": {"other": {"a.b": 1, "c": [None, 1.0, 2**60, "\u2028 ü"], "d": {}}},
    "lists": {"tags": ["x", "x"], "note": None, "empty": []},
}
FEW = 1  # the alias few shows documents whose n is at most this
REMOVED = 0  # what stands for the size of shingles of an index that our fields were taken out of
IDS = tuple(f"d{number}" for number in range(12))
WRITTEN = ("written", "tagged")

texts = st.builds(
    write_text,
    st.sampled_from((0, 0, 0, 1, 2, 3, 3, 4, -1)),
    st.one_of(st.just([]), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=2)),
)
clients = st.sampled_from(("one", "two", "async", "wired", "wired", "async wired"))
routings = st.sampled_from((None, None, "r1", "r2"))
written_to = st.sampled_from(("a", "b", "log"))
looked_at = st.sampled_from(("a", "b", "log", "both", "few", "a,log", "*"))
planned = st.sampled_from(("a", "a", "few", "few", "both", "log", "*"))
sizes = st.sampled_from((4, 4, 5))
distances = st.integers(0, 12)
policies = st.sampled_from(("tag", "tag", "tag", "skip", None))
# How an ingest looks up, and how many documents a batch has.
ways = st.sampled_from((("server", 500), ("memory", 500), ("memory", 2)))
GROUPING = {"rule": "star", "max_distance": 3, "canonical": ["simhash.at"], "similarity": None}
groupings = st.fixed_dictionaries(
    {"verify": st.just(False)}, optional={"max_distance": distances, "canonical": st.just("id")}
)


class Write(NamedTuple):
    """A document that our ingest is given."""

    kind: str
    id: str
    text: str
    routing: str | None
    n: int
    extra: str

    def source(self) -> dict[str, Any]:
        """Return the document, or the part of it that is updated."""
        changed = {"body": self.text, "n": self.n}
        if self.kind == "update":
            return changed
        return {"@timestamp": "2026-01-01T00:00:00Z", **changed, **EXTRAS[self.extra]}

    def action(self) -> dict[str, Any]:
        """Return the action of a bulk helper."""
        header = {"_op_type": self.kind, "_id": self.id, "_routing": self.routing}
        header = {key: value for key, value in header.items() if value is not None}
        return {**header, "doc" if self.kind == "update" else "_source": self.source()}


writes = st.builds(
    Write,
    st.sampled_from(("index", "index", "index", "create", "update")),
    st.sampled_from(IDS),
    texts,
    routings,
    st.integers(0, 3),
    st.sampled_from(tuple(EXTRAS)),
)


def settings(shards: int) -> dict[str, Any]:
    """Return settings of an index; nothing becomes visible by itself, so that it depends on the steps alone."""
    return {"number_of_shards": shards, "number_of_replicas": 0, "refresh_interval": "-1"}


def mappings() -> dict[str, Any]:
    """Return a mapping with our fields, as a template has it."""
    ours = build_mapping(text_field="body")
    return {**ours, "properties": {**ours["properties"], **FIELDS}}


def routed(routing: str | None) -> str:
    """Return the query string for a routing value."""
    return "" if routing is None else f"?routing={routing}"
