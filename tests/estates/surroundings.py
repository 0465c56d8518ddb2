"""Steps that change the estate itself, and what other programs write."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from es_simhash import get_scheme
from tests.estates.model import Doc, to_user
from tests.estates.values import (
    FEW,
    FIELDS,
    IDS,
    clients,
    distances,
    looked_at,
    mappings,
    policies,
    routed,
    routings,
    settings,
    sizes,
    texts,
    writes,
)
from tests.estates.wire import Wire
from tests.estates.writes import Writes


class Surroundings(Writes):
    """Indices come and go, and other programs write."""

    @initialize(
        seed=st.integers(0, 999),
        shards=st.integers(1, 3),
        size=sizes,
        passages=st.booleans(),
        given=st.lists(writes, min_size=4, max_size=12),
        on_duplicate=policies,
        by_segments=st.booleans(),
    )
    def begin(self, seed, shards, size, passages, given, on_duplicate, by_segments) -> None:
        """Indices a and b, behind both and few; log, an alias that rolls over."""
        self.wire = Wire(seed=seed, share=0.25, is_on=False)
        if by_segments and self.server.product == "opensearch":
            self.replication = {"replication.type": "SEGMENT"}
        self.connect()
        self.create("a", shards, size, passages=passages)
        self.create("b", 2, size, passages=passages)
        self.create("log-000001", 2, 4)
        self.add_alias("log-000001", "log", is_write_index=True)
        template = {"settings": settings(2), "mappings": mappings()}
        body = {"index_patterns": [f"{self.base}-log-*"], "template": template, "priority": 900}
        self.server.request("PUT", f"/_index_template/{self.base}-log", body)
        for where in ("a", "b"):
            self.ingest("one", where, given, on_duplicate, {"verify": False})

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
            self.server.request("DELETE", f"/_index_template/{self.base}-log", missing_ok=True)
            for connection in self.connections:
                self.call(connection.close())

    def create(self, where: str, shards: int, size: int, **options: Any) -> None:
        """Create an index with our fields."""
        plain = {**settings(shards), **self.replication}
        options |= {"mappings": {"properties": FIELDS}, "settings": plain}
        self.ask(
            "one",
            "create_index",
            self.name(where),
            scheme=get_scheme("shingles", size=size),
            text_field="body",
            **options,
        )
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
        size=sizes,
        options=st.fixed_dictionaries(
            {}, optional={"value": st.booleans(), "max_distance": distances, "passages": st.booleans()}
        ),
        who=clients,
    )
    def change_the_estate(self, what, where, shards, size, options, who) -> None:
        """Indices are made, deleted, rolled over, and left without our fields."""
        if what == "roll over":
            self.server.request("POST", f"/{self.name('log')}/_rollover")
        elif what == "delete":
            self.delete_index(where)
        elif what == "remove":
            self.remove(who, where if shards > 1 else "*")
        elif not self.mappings(where):
            if what == "create":
                self.create(where, shards, size, **options)
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

    def remove(self, who: str, where: str) -> None:
        """Our fields go."""
        self.look()
        _, error = self.ask(who, "remove_fields", self.name(where), may_fail=not self.sizes_of(where))
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
