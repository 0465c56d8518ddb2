"""Steps that bring an index into a state: shrunk, so that numbers repeat; blocked, so that nothing is written."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.estates.surroundings import Surroundings
from tests.estates.values import clients
from tests.servers.support import resize

OPERATIONS = {
    "backfill": {"text_field": "body"},
    "reconcile": {},
    "ingest": {"documents": [{"_id": "blocked", "body": "a text that cannot be written", "n": 1}]},
    "remove_fields": {"groups_only": True},
}


class States(Surroundings):
    """Indices are resized and blocked."""

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

    @rule(
        who=clients,
        where=st.sampled_from(("a", "b")),
        block=st.sampled_from(("write", "read_only", "read_only_allow_delete")),
        method=st.sampled_from(tuple(OPERATIONS)),
    )
    def work_on_a_blocked_index(self, who, where, block, method) -> None:
        """Nothing changes, and an ingest says that it was refused."""
        if not self.mappings(where):
            return
        before = {each.place: each.raw for each in self.look()}
        path = f"/{self.name(where)}/_settings"
        self.server.request("PUT", path, {f"index.blocks.{block}": True})
        try:
            found, error = self.ask(who, method, self.name(where), **OPERATIONS[method], may_fail=True)
        finally:
            self.server.request("PUT", path, {f"index.blocks.{block}": None})
        self.tally[f"blocked {method}: {type(error).__name__ if error else 'done'}"] += 1
        assert before == {each.place: each.raw for each in self.look()}
        if method == "ingest" and error is None:
            assert [each.action for each in found] in (["refused"], ["skipped"], []), found
