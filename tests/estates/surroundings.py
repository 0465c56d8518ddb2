"""Steps that change the estate itself, and what other programs write."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.estates.model import Doc, to_user
from tests.estates.values import (
    FEW,
    FIELDS,
    IDS,
    PIPELINES,
    clients,
    distances,
    looked_at,
    mappings,
    policies,
    routed,
    routings,
    schemes,
    settings,
    texts,
    writes,
)
from tests.estates.wire import Wire
from tests.estates.writes import Writes
from tests.servers.support import resize


class Surroundings(Writes):
    """Indices come and go, and other programs write."""

    @initialize(
        seed=st.integers(0, 999),
        shards=st.integers(1, 3),
        scheme=schemes,
        passages=st.booleans(),
        given=st.lists(writes, min_size=4, max_size=12),
        on_duplicate=policies,
        has_template=st.sampled_from((True, True, False)),
        by_segments=st.booleans(),
    )
    def begin(self, seed, shards, scheme, passages, given, on_duplicate, has_template, by_segments) -> None:
        """Indices a and b, behind both and few; log, an alias that rolls over; on OpenSearch stream, a data stream."""
        self.wire = Wire(seed=seed, share=0.25, is_on=False)
        if by_segments and self.server.product == "opensearch":
            self.replication = {"replication.type": "SEGMENT"}
        self.connect()
        self.create("a", shards, scheme, passages=passages)
        self.create("b", 2, scheme, passages=passages)
        self.create("log-000001", 2, "shingles")
        self.add_alias("log-000001", "log", is_write_index=True)
        template = {"settings": settings(2), "mappings": mappings("shingles")}
        body = {"index_patterns": [f"{self.base}-log-*"], "template": template, "priority": 900}
        self.has_template = has_template
        if has_template:
            self.server.request("PUT", f"/_index_template/{self.base}-log", body)
        if self.server.product == "opensearch":
            body |= {"index_patterns": [self.name("stream")], "data_stream": {}}
            self.server.request("PUT", f"/_index_template/{self.base}-stream", body)
            self.server.request("PUT", f"/_data_stream/{self.name('stream')}")
            for name, processor in PIPELINES.items():
                self.server.request("PUT", f"/_ingest/pipeline/{self.base}-{name}", {"processors": [processor]})
        for where in ("a", "b", "stream"):
            self.ingest("one", where, given, on_duplicate, {"verify": False}, 1)

    def teardown(self) -> None:
        """Compare once more, and leave nothing behind."""
        self.folder.cleanup()
        try:
            if self.clients and sys.exc_info()[0] is None:  # another fault would hide the one that was found
                self.look()
        finally:
            self.server.remove(self.base)
            left = self.server.request("GET", f"/{self.base}*?expand_wildcards=all", missing_ok=True)
            assert not left, f"{[*left]} would take memory of the server"
            for alias in ("log", "stream"):
                self.server.request("DELETE", f"/_index_template/{self.base}-{alias}", missing_ok=True)
            for name in PIPELINES:
                self.server.request("DELETE", f"/_ingest/pipeline/{self.base}-{name}", missing_ok=True)
            for connection in self.connections:
                self.call(connection.close())

    def create(self, where: str, shards: int, scheme: str, **options: Any) -> None:
        """Create an index with our fields."""
        plain = {**settings(shards), **self.replication}
        options |= {"mappings": {"properties": FIELDS}, "settings": plain}
        self.ask("one", "create_index", self.name(where), scheme=scheme, text_field="body", **options)
        self.add_common_aliases(where)

    def add_common_aliases(self, where: str) -> None:
        """Add both, and few, which has a filter."""
        if where in ("a", "b"):
            self.add_alias(where, "both")
            self.add_alias(where, "few", filter={"range": {"n": {"lte": FEW}}})

    def add_alias(self, where: str, alias: str, **options: Any) -> None:
        """Add an alias to an index."""
        action = {"index": self.name(where), "alias": self.name(alias), **options}
        self.server.request("POST", "/_aliases", {"actions": [{"add": action}]})

    @rule(
        what=st.sampled_from(("create", "create without us", "delete", "roll over", "remove")),
        where=st.sampled_from(("a", "b")),
        shards=st.integers(1, 3),
        scheme=schemes,
        options=st.fixed_dictionaries(
            {}, optional={"value": st.booleans(), "max_distance": distances, "passages": st.booleans()}
        ),
        who=clients,
    )
    def change_the_estate(self, what, where, shards, scheme, options, who) -> None:
        """Indices are made, deleted, rolled over, and left without our fields."""
        if what == "roll over":
            self.roll_over("log" if where == "a" else "stream", with_our_mapping=shards > 1)
        elif what == "delete":
            self.delete_index(where)
        elif what == "remove":
            self.remove(who, where if shards > 1 else "*")
        elif not self.mappings(where):
            if what == "create":
                self.create(where, shards, scheme, **options)
            else:
                body = {"mappings": {"properties": FIELDS}, "settings": settings(shards)}
                self.server.request("PUT", f"/{self.name(where)}", body)
                self.add_common_aliases(where)

    def delete_index(self, where: str) -> None:
        """Delete an index."""
        for name in self.mappings(where):
            self.server.request("DELETE", f"/{name}")
            self.model.drop(name)
            self.shards = {key: shard for key, shard in self.shards.items() if key[0] != name}

    def roll_over(self, where: str, *, with_our_mapping: bool) -> None:
        """A new index behind log or stream; behind log perhaps without our mapping."""
        body = {}
        if self.name(where).endswith("log"):
            mapping = mappings("shingles") if with_our_mapping else {"properties": FIELDS}
            body = {"settings": settings(1), "mappings": mapping}
        self.server.request("POST", f"/{self.name(where)}/_rollover", body)

    def remove(self, who: str, where: str) -> None:
        """Our fields go."""
        self.look()
        _, error = self.ask(who, "remove_fields", self.name(where), may_fail=not self.schemes_of(where))
        if error is None or self.faults:
            self._give_fingerprints(where, is_sure=error is None, remove=True)

    @rule(where=looked_at, compare=st.booleans())
    def refresh(self, where, compare) -> None:
        """What was written becomes visible; nothing is there that nobody wrote, and nothing twice."""
        if compare:
            self.look()
        self.server.request("POST", f"/{self.name(where)}/_refresh?ignore_unavailable=true", missing_ok=True)

    @rule(
        what=st.sampled_from(("put", "patch", "patch", "delete")),
        where=st.sampled_from(("a", "b", "log")),
        id=st.sampled_from(IDS),
        routing=routings,
        number=st.integers(0, 99),
        patch=st.fixed_dictionaries({}, optional={"body": texts, "n": st.integers(0, 3)}),
    )
    def write_by_another_program(self, what, where, id, routing, number, patch) -> None:
        """A whole document without our fields; some fields, so that a fingerprint may be stale; or a delete."""
        place = self.pick(number)
        if what == "put" and (found := self.mappings(where)):
            index = max(found)
            source = {"body": "", "n": 1} | patch
            self.server.request("PUT", f"/{index}/_doc/{id}{routed(routing)}", source)
            self.model.change(self.place(index, id, routing), lambda _: Doc(to_user(source), routing=routing))
        elif what == "patch" and place:
            path = f"/{place.index}/_update/{place.id}{self._routed(place)}"
            self.server.request("POST", path, {"doc": patch})
            self.model.change(place, lambda old: replace(old, user=to_user(old.source | patch)))
        elif what == "delete" and place:
            self.server.request("DELETE", f"/{place.index}/_doc/{place.id}{self._routed(place)}")
            self.model.change(place, lambda _: None)

    @rule(where=st.sampled_from(("a", "b")))
    def resize(self, where) -> None:
        """The index has one shard, or two of one, and all its documents with the numbers that they had."""
        self.look()
        name, temporary = self.name(where), self.name(f"{where}-resized")
        moved = {place: states for place, states in self.model.states.items() if place.index == name}
        if not self.mappings(where) or len({place.id for place in moved}) < len(moved):
            return  # with two documents of one id in a shard, whatever is written there takes both
        shards = len(self.server.request("GET", f"/{name}/_search_shards")["shards"])
        resize(self.server, name, temporary, 1 if shards > 1 else 2, kind="shrink" if shards > 1 else "split")
        resize(self.server, temporary, name, 1 if shards > 1 else 2, kind="clone")
        self.add_common_aliases(where)
        self.tally[f"resized, {len(moved)} documents"] += 1
        self.model.drop(name)
        self.shards = {key: shard for key, shard in self.shards.items() if key[0] != name}
        for place, states in moved.items():
            self.model.states[self.place(name, place.id, states[0].routing)] = states
        self.look()
