"""How the machine makes a step, by our library or as another program, and how it looks at all documents."""

from __future__ import annotations

import inspect
import secrets
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine

from es_simhash import AsyncSimHashClient, SimHashClient, SimHashError
from tests.estates.model import Model, Place, Seen, Settings, see
from tests.estates.values import REMOVED, routed
from tests.estates.wire import Wire
from tests.servers.fixtures import Calls, make_client
from tests.servers.servers import Server


def size_of(record: dict[str, Any]) -> int:
    """Return the size of shingles that an index records, which is all in which schemes differ here."""
    return record["scheme"]["parameters"]["size"]


class Base(RuleBasedStateMachine):
    """One estate, of indices whose names nobody else uses; the test makes subclasses that have a server."""

    server: Server
    call: Callable[[Any], Any]
    run: Callable[[Any], Any]
    client_errors: tuple[type[Exception], ...]
    tally: Counter[str]  # what calls came to, over all examples: a rule that only ever fails shows here

    def __init__(self) -> None:
        super().__init__()
        self.base = f"estate-{secrets.token_hex(16)}"
        self.model = Model()
        self.wire = Wire(is_on=False)
        self.faults: list[str] = []  # of the last step
        self.connections: list[Any] = []
        self.clients: dict[str, Any] = {}
        self.shards: dict[tuple[str, str], int] = {}
        self.number_of_steps = 0
        self.versions: dict[Place, tuple[int | None, ...]] = {}  # of all documents, before the present step
        self.replication: dict[str, str] = {}  # of a and b, where it is not that of documents
        self.folder = tempfile.TemporaryDirectory(prefix="estate-")  # of removals

    # How a step is made

    def ask(self, who: str, method: str, *args: Any, may_fail: bool = False, **options: Any) -> tuple[Any, Any]:
        """
        Call our library; return what it gave, in a list where it streams, and the error that it ended with.

        Only its own errors and the search client's count, and only where the step *may_fail* or the wire was faulty.
        """
        before, self.wire.is_on = len(self.wire.log), who.endswith("wired")
        result, error = None, None
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", UserWarning)
                result = getattr(self.clients[who], method)(*args, **options)
                if inspect.isgenerator(result):
                    streamed, result = result, []
                    for each in streamed:
                        result.append(each)
            for each in told:
                note(f"  warning: {each.message}")
        except (SimHashError, *self.client_errors) as caught:
            error = caught
        finally:
            self.wire.is_on = False
            self.faults = self.wire.log[before:]
            for line in self.faults:
                note(f"  wire: {line}")
        self.tally[f"{method}: {type(error).__name__ if error else 'done'}"] += 1
        self.tally["faults"] += len(self.faults)
        if error is not None:
            note(f"  {type(error).__name__}: {str(error)[:200]}")
            if not (may_fail or self.faults):
                raise error
        return result, error

    def name(self, where: str) -> str:
        """Return the real name, or names, of *where*."""
        return ",".join(f"{self.base}-{part}" for part in where.split(","))

    def mappings(self, where: str) -> dict[str, dict[str, Any]]:
        """Return concrete index to what it records of our fields; an empty record where it never had any."""
        return self._records(f"/{self.name(where)}")

    def _records(self, path: str) -> dict[str, dict[str, Any]]:
        found = self.server.request("GET", f"{path}/_mapping?ignore_unavailable=true", missing_ok=True) or {}
        records = {}
        for name, each in sorted(found.items()):
            meta = each["mappings"].get("_meta", {}).get("es_simhash", {})
            records[name] = meta.get("simhash", {})
            fields = each["mappings"].get("properties", {}).get("simhash", {}).get("properties", {})
            assert fields.get("fingerprint", {}).get("type", "keyword") == "keyword", f"{name} maps our fields wrongly"
            if fields and not records[name]:
                records[name] = {"scheme": {"parameters": {"size": REMOVED}}}
        return records

    def sizes_of(self, where: str) -> dict[str, int]:
        """Return concrete index to the size of its shingles, which is its scheme, for those that have our fields."""
        return {name: size_of(record) for name, record in self.mappings(where).items() if record}

    def settings_of(self, index: str) -> Settings:
        """Return what decides our fields in a concrete index."""
        record = self._records(f"/{index}").get(index)
        return Settings(size_of(record), "passages" in record) if record else Settings(4)

    def is_healthy(self, where: str) -> bool:
        """Return whether all it names is there, and agrees on a scheme."""
        known = set(self.sizes_of(where).values())
        return len(known) == 1 and REMOVED not in known and all(map(self.mappings, where.split(",")))

    def has_text_fields(self, where: str) -> bool:
        """Return whether each index that has our fields records its text field; a backfill of no text records none."""
        return all(each.get("text_fields") for each in self.mappings(where).values() if each)

    def shard_of(self, index: str, value: str) -> int:
        """Return the shard to which *value*, an id or a routing value, leads."""
        if (index, value) not in self.shards:
            found = self.server.request("GET", f"/{index}/_search_shards?routing={value}")
            self.shards[index, value] = found["shards"][0][0]["shard"]
        return self.shards[index, value]

    def place(self, index: str, id: str, routing: str | None) -> Place:
        """Return where a document is."""
        return Place(index, self.shard_of(index, id if routing is None else routing), id)

    def _see(self, hit: dict[str, Any]) -> Seen:
        return see(hit, self.place(hit["_index"], hit["_id"], hit.get("_routing")).shard)

    def visible(self, where: str, routing: str | None = None) -> list[Seen]:
        """Return what a search of everything shows now; where *routing* leads is the server's to say."""
        path = f"/{self.name(where)}/_search?ignore_unavailable=true{'' if routing is None else f'&routing={routing}'}"
        body = {"size": 10_000, "sort": "_doc", "seq_no_primary_term": True}
        hits = self.server.request("POST", path, body, missing_ok=True)
        return [self._see(hit) for hit in hits["hits"]["hits"]] if hits else []

    def look(self) -> list[Seen]:
        """Make everything visible, and compare all of it with the model."""
        self.server.request("POST", f"/{self.base}-*/_refresh")
        seen = self.visible("*")
        self.model.check(seen)
        return seen

    def seen_in(self, where: str) -> list[Seen]:
        """Return all documents of *where*, compared with the model before."""
        self.look()
        return self.visible(where)

    def connect(self) -> None:
        """Make clients that remember nothing."""

        async def make(**options: Any) -> Any:
            return make_client(self.server, asynchronous=True, **options)

        if not self.connections:
            wired = make_client(self.server, **self.wire.options(self.server.product))
            looped_wired = self.run(make(**self.wire.options(self.server.product, asynchronous=True)))
            self.connections = [make_client(self.server), wired, self.run(make()), looped_wired]
        plain, wired, looped, looped_wired = self.connections
        self.clients = {"one": SimHashClient(plain), "two": SimHashClient(plain), "wired": SimHashClient(wired)}
        self.clients["async"] = Calls(AsyncSimHashClient(looped), self.call)
        self.clients["async wired"] = Calls(AsyncSimHashClient(looped_wired), self.call)

    def pick(self, number: int) -> Place | None:
        """Return a document that is there."""
        places = sorted(place for place, states in self.model.states.items() if states != [None])
        return places[number % len(places)] if places else None

    def _routed(self, place: Place) -> str:
        return routed(self.model.states[place][0].routing)
