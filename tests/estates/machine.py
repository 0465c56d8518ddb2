"""
An estate of indices under random, readable steps: each step is made on a real server and on the model, then compared.

To add a rule: decorate a method with ``@rule``, make the step with ``self.ask`` (our library) or with
``self.server.request`` (another program), and tell ``self.model`` what must have become of the documents. Invariants
look after the rest.
"""

from __future__ import annotations

import inspect
import random
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import note, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from es_simhash import AsyncSimHashClient, SimHashClient, SimHashError
from es_simhash.index.mapping import build_mapping
from tests.estates.model import (
    Doc,
    Model,
    Place,
    Seen,
    distance,
    expected_groups,
    fingerprint,
    see,
    to_user,
    told_groups,
    write_text,
)
from tests.estates.wire import Wire
from tests.server.conftest import Calls, make_client
from tests.server.servers import Server

# What the machine does not do yet, and why. Take a line out once the fault is corrected.
WAITING: dict[str, str] = {}

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
REMOVED = "none any more"  # the scheme of an index that our fields were taken out of
IDS = tuple(f"d{number}" for number in range(12))
WRITTEN = ("written", "tagged", "replaced")

texts = st.builds(
    write_text,
    st.sampled_from((0, 0, 0, 1, 2, -1)),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=2),
)
clients = st.sampled_from(("one", "two", "async", "wired", "wired"))
routings = st.sampled_from((None, None, "r1", "r2"))
written_to = st.sampled_from(("a", "b", "log", "stream"))
looked_at = st.sampled_from(("a", "b", "log", "stream", "both", "a,log", "*"))
schemes = st.sampled_from(("shingles", "shingles", "words"))
distances = st.integers(0, 12)
policies = st.sampled_from(("tag", "tag", "skip", "replace", None))
GROUPING = {"rule": "star", "max_distance": 3, "canonical": "id"}
groupings = st.fixed_dictionaries(
    {},
    optional={
        "rule": st.sampled_from(("star", "connected")),
        "max_distance": distances,
        "canonical": st.sampled_from(("id", "longest")),
    },
)


class Write(NamedTuple):
    """A document that our ingest is given."""

    kind: str
    id: str | None
    text: str
    routing: str | None
    n: int
    extra: str

    def source(self) -> dict[str, Any]:
        """Return the document, or the part of it that is updated."""
        changed = {"body": self.text, "n": self.n}
        return (
            changed
            if self.kind == "update"
            else {"@timestamp": "2026-01-01T00:00:00Z", **changed, **EXTRAS[self.extra]}
        )

    def action(self) -> dict[str, Any]:
        """Return the action of a bulk helper."""
        header = {"_op_type": self.kind, "_id": self.id, "_routing": self.routing}
        header = {key: value for key, value in header.items() if value is not None}
        return {**header, "doc" if self.kind == "update" else "_source": self.source()}


writes = st.builds(
    Write,
    st.sampled_from(("index", "index", "create", "update")),
    st.sampled_from((None, *IDS)),
    texts,
    routings,
    st.integers(0, 3),
    st.sampled_from(tuple(EXTRAS)),
)


class Estate(RuleBasedStateMachine):
    """One estate, of indices whose names nobody else uses; the test makes subclasses that have a server."""

    server: Server
    call: Callable[[Any], Any]
    run: Callable[[Any], Any]
    client_errors: tuple[type[Exception], ...]
    chance: random.Random  # makes ids for documents that have none
    tally: Counter[str]  # what calls came to, over all examples: a rule that only ever fails shows here

    def __init__(self) -> None:
        super().__init__()
        self.base = f"estate-{secrets.token_hex(16)}"
        self.model = Model()
        self.wire = Wire(is_on=False)
        self.faults: list[str] = []  # of the last step
        self.connections: list[Any] = []
        self.chance.seed(0)
        self.clients: dict[str, Any] = {}
        self.shards: dict[tuple[str, str], int] = {}
        self.has_template = True  # whether what log rolls over to has our fields
        self.number_of_steps = 0
        self.folder = tempfile.TemporaryDirectory(prefix="estate-")  # of archives

    # How a step is made

    def ask(self, who: str, method: str, *args: Any, may_fail: bool = False, **options: Any) -> tuple[Any, Any]:
        """
        Call our library; return what it gave, in a list where it streams, and the error that it ended with.

        Only its own errors and the search client's count, and only where the step *may_fail* or the wire was faulty.
        """
        before, self.wire.is_on = len(self.wire.log), who == "wired"
        result, error = None, None
        try:
            result = getattr(self.clients[who], method)(*args, **options)
            if inspect.isgenerator(result):
                streamed, result = result, []
                for each in streamed:
                    result.append(each)
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
        """Return the real name, or names, of *where*; the embedded Elasticsearch has no data streams, only ``log``."""
        if self.server.product == "elasticsearch":
            where = where.replace("stream", "log")
        return ",".join(f"{self.base}-{part}" for part in where.split(","))

    def mappings(self, where: str) -> dict[str, dict[str, Any]]:
        """Return concrete index to what it records of our fields; an empty record where it never had any."""
        path = f"/{self.name(where)}/_mapping?ignore_unavailable=true"
        found = self.server.request("GET", path, missing_ok=True) or {}
        records = {}
        for name, each in sorted(found.items()):
            meta = each["mappings"].get("_meta", {}).get("es_simhash", {})
            records[name] = meta.get("simhash", {})
            fields = each["mappings"].get("properties", {}).get("simhash", {}).get("properties", {})
            assert fields.get("fingerprint", {}).get("type", "keyword") == "keyword", f"{name} maps our fields wrongly"
            if fields and not records[name]:
                records[name] = {"scheme": {"name": REMOVED}}
        return records

    def schemes_of(self, where: str) -> dict[str, str]:
        """Return concrete index to the name of its scheme, for those that have our fields."""
        return {name: record["scheme"]["name"] for name, record in self.mappings(where).items() if record}

    def is_healthy(self, where: str) -> bool:
        """Return whether all it names is there, and agrees on a scheme."""
        known = set(self.schemes_of(where).values())
        return len(known) == 1 and REMOVED not in known and all(map(self.mappings, where.split(",")))

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
        hits = self.server.request("POST", path, {"size": 10_000, "sort": "_doc"}, missing_ok=True)
        return [self._see(hit) for hit in hits["hits"]["hits"]] if hits else []

    def look(self) -> list[Seen]:
        """Make everything visible, and compare all of it with the model."""
        self.server.request("POST", f"/{self.base}-*/_refresh")
        seen = self.visible("*")
        self.model.check(seen, is_all=True)
        return seen

    def seen_in(self, where: str) -> list[Seen]:
        """Return all documents of *where*, compared with the model before."""
        names = self.mappings(where)
        return [each for each in self.look() if each.place.index in names]

    @invariant()
    def nothing_is_lost(self) -> None:
        """Read each known document by its id, which shows what searches do not show yet."""
        known = {place: [each for each in states if each] for place, states in self.model.states.items()}
        known = {place: states for place, states in known.items() if states}
        docs = [{"_index": place.index, "_id": place.id, "routing": known[place][0].routing} for place in known]
        if docs:
            answer = self.server.request("POST", "/_mget", {"docs": docs})["docs"]
            self.model.check([self._see(each) for each in answer if each.get("found")], is_all=False)

    @invariant()
    def lookups_are_right(self) -> None:
        """Look up something that is there, another way after each step."""
        self.number_of_steps += 1
        place = self.pick(self.number_of_steps)
        if place and (doc := self.model.states[place][0]):
            where = ("a", "log", "both", "stream", "*")[self.number_of_steps % 5]
            kind = ("text", "many", "stream", "of")[self.number_of_steps % 4]
            self.compare_lookup("two", where, kind, doc.source["body"], self.number_of_steps % 13, {})

    # The estate itself

    @initialize(
        seed=st.integers(0, 999),
        shards=st.integers(1, 3),
        scheme=schemes,
        given=st.lists(writes, min_size=4, max_size=12),
        on_duplicate=policies,
        has_template=st.sampled_from((True, True, False)),
    )
    def begin(self, seed, shards, scheme, given, on_duplicate, has_template) -> None:
        """Index a; log, an alias that rolls over; on OpenSearch stream, a data stream."""
        self.wire = Wire(seed=seed, share=0.25, is_on=False)
        self.connect()
        self.create("a", shards, scheme)
        self.create("b", 2, "shingles")
        self.create("log-000001", 2, "shingles")
        self.add_alias("a", "both")
        self.add_alias("b", "both")
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
        for where in ("a", "log", "stream"):
            self.ingest("one", where, given, on_duplicate, {})

    def teardown(self) -> None:
        """Compare once more, and leave nothing behind."""
        self.folder.cleanup()
        try:
            if self.clients:
                self.look()
        finally:
            self.server.remove(self.base)
            for alias in ("log", "stream"):
                self.server.request("DELETE", f"/_index_template/{self.base}-{alias}", missing_ok=True)
            for connection in self.connections:
                self.call(connection.close())

    def connect(self) -> None:
        """Make clients that remember nothing."""

        async def make() -> Any:
            return make_client(self.server, asynchronous=True)

        if not self.connections:
            wired = make_client(self.server, **self.wire.options(self.server.product))
            self.connections = [make_client(self.server), wired, self.run(make())]
        plain, wired, looped = self.connections
        self.clients = {"one": SimHashClient(plain), "two": SimHashClient(plain), "wired": SimHashClient(wired)}
        self.clients["async"] = Calls(AsyncSimHashClient(looped), self.call)

    def forget(self) -> None:
        """Note that clients may remember what is no longer so: they must notice."""
        if "memory" in WAITING:
            self.connect()

    def create(self, where: str, shards: int, scheme: str, **options: Any) -> None:
        """Create an index with our fields."""
        options |= {"mappings": {"properties": FIELDS}, "settings": settings(shards)}
        self.ask("one", "create_index", self.name(where), scheme=scheme, text_field="body", **options)
        self.forget()

    def add_alias(self, where: str, alias: str, **options: Any) -> None:
        """Add an alias to an index."""
        action = {"index": self.name(where), "alias": self.name(alias), **options}
        self.server.request("POST", "/_aliases", {"actions": [{"add": action}]})

    @rule(
        what=st.sampled_from(("create", "create without us", "delete", "roll over", "remove")),
        where=st.sampled_from(("a", "b")),
        shards=st.integers(1, 3),
        scheme=schemes,
        options=st.fixed_dictionaries({}, optional={"value": st.booleans(), "max_distance": distances}),
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
            self.add_alias(where, "both")
        self.forget()

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
            ours = with_our_mapping or "unmapped rollover" in WAITING
            body = {"settings": settings(1), "mappings": mappings("shingles") if ours else {"properties": FIELDS}}
        self.server.request("POST", f"/{self.name(where)}/_rollover", body)

    def remove(self, who: str, where: str) -> None:
        """Our fields go."""
        self.look()
        _, error = self.ask(who, "remove", self.name(where), may_fail=not self.schemes_of(where))
        if error is None or self.faults:
            self._give_fingerprints(where, is_sure=error is None, remove=True)

    @rule(where=looked_at, compare=st.booleans())
    def refresh(self, where, compare) -> None:
        """What was written becomes visible; nothing is there that nobody wrote, and nothing twice."""
        if compare:
            self.look()
        self.server.request("POST", f"/{self.name(where)}/_refresh?ignore_unavailable=true", missing_ok=True)

    # Other programs

    def pick(self, number: int) -> Place | None:
        """Return a document that is there."""
        places = sorted(place for place, states in self.model.states.items() if states != [None])
        return places[number % len(places)] if places else None

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
            index, routing = max(found), routing_of(id, routing)
            source = {"body": "", "n": 1} | patch
            self.server.request("PUT", f"/{index}/_doc/{id}{routed(routing)}", source)
            self.model.change(self.place(index, id, routing), lambda _: Doc(to_user(source), None, routing))
        elif what == "patch" and place:
            path = f"/{place.index}/_update/{place.id}{self._routed(place)}"
            self.server.request("POST", path, {"doc": patch})
            self.model.change(place, lambda old: replace(old, user=to_user(old.source | patch)))
        elif what == "delete" and place:
            self.server.request("DELETE", f"/{place.index}/_doc/{place.id}{self._routed(place)}")
            self.model.change(place, lambda _: None)

    def _routed(self, place: Place) -> str:
        return routed(self.model.states[place][0].routing)

    # Our writes

    @rule(
        who=clients,
        where=written_to,
        given=st.lists(writes, min_size=1, max_size=6),
        on_duplicate=policies,
        grouping=groupings,
    )
    def ingest(self, who, where, given, on_duplicate, grouping) -> None:
        """Write documents, and believe each report."""
        records = self.mappings(where)
        # What a search shows and is still so; the rest changes once ingest makes it visible.
        before = [each for each in self.visible(where) if self.model.states.get(each.place) == [each.doc]]
        prints: dict[str, set[int]] = {}  # that an id has had
        for place, states in self.model.states.items():
            prints.setdefault(place.id, set()).update(each.fingerprint for each in states if each and each.fingerprint)
        if on_duplicate is None or any("grouping" in each for each in records.values()):
            grouping = {}
        given = [self._adapted(each, where) for each in given]
        if on_duplicate is None and "no id, no groups" in WAITING:
            given = [each._replace(id=each.id or IDS[0]) for each in given]
        is_refused = self.name(where).endswith("log") and not self.has_template
        may_fail = not self.is_healthy(where) or is_refused
        actions = [each.action() for each in given]
        reports, error = self.ask(
            who, "ingest", self.name(where), actions, on_duplicate=on_duplicate, may_fail=may_fail, **grouping
        )
        if not records:
            assert error is not None
            return
        reports = reports or []
        assert [each.position for each in reports] == list(range(len(reports)))
        assert error is not None or len(reports) == len(given)
        index = max(records)
        scheme = self.schemes_of(where).get(index, "shingles")
        for each, report in zip_longest(given, reports):
            self._believe(each, report, index, scheme)
        if error is None and on_duplicate is not None and not self.faults:
            self._judge_decisions(self.mappings(where)[index]["grouping"], before, prints, zip(given, reports), scheme)

    def _adapted(self, write: Write, where: str) -> Write:
        """Return *write* as *where* can take it: a data stream only takes new documents, without routing."""
        if write.id is None and write.kind == "update":
            write = write._replace(kind="index")
        if self.name(where).endswith("stream"):
            return write._replace(kind="create", routing=None)
        return write._replace(routing=routing_of(write.id, write.routing))

    def _believe(self, write: Write, report: Any, index: str, scheme: str) -> None:
        """Let the model become what *report* says of *write*; without a report, anything may have happened."""
        bits = fingerprint(write.text, scheme)

        def new(old: Doc | None) -> Doc | None:
            if write.kind == "update":
                # An update that names another routing value for the same shard changes it on Elasticsearch alone.
                renamed = write.routing if self.server.product == "elasticsearch" else None
                return old and Doc(to_user(old.source | write.source()), bits, renamed or old.routing)
            return old if old and write.kind == "create" else Doc(to_user(write.source()), bits, write.routing)

        if report is not None and report.action == "skipped":
            return
        id_ = write.id or (report and report.id)
        is_written = report is not None and report.action in WRITTEN
        if is_written:
            told = (report.id, report.index, report.fingerprinted)
            assert told == (id_, index, bits is not None), report
        if not is_written and id_ is None:
            self.model.loose.append(new(None))
            return
        place = self.place(index, id_, write.routing)
        exists = self.model.states.get(place, [None])
        if is_written and not self.faults:
            assert write.kind != "create" or None in exists, f"{report}, though it was there"
            assert write.kind != "update" or exists != [None], f"{report}, though it was not there"
        if report is not None and not is_written and not self.faults:
            refusable = {"create": exists != [None], "update": None in exists}
            assert report.action == "refused", report
            assert refusable.get(write.kind), report
            return
        self.model.change(place, new, is_sure=is_written)

    def _judge_decisions(
        self,
        grouping: dict[str, Any],
        before: list[Seen],
        prints: dict[str, set[int]],
        written: Iterable[tuple[Write, Any]],
        scheme: str,
    ) -> None:
        """Judge what ingest took for duplicates: by what was visible before, and what each id has had, *prints*."""
        written = list(written)
        touched = {each.id for each, _ in written}
        canonicals = [
            each
            for each in before
            if each.doc.fingerprint is not None and "duplicate_of" not in each.ours and each.place.id not in touched
        ]
        for write, report in written:
            own = fingerprint(write.text, scheme)
            if own is not None and report.action in ("tagged", "skipped"):
                bits = {distance(own, each) for each in prints.get(report.canonical, ())}
                assert report.distance in bits or grouping["rule"] == "connected", f"{report}: {sorted(bits)}"
                assert report.distance <= grouping["max_distance"] or grouping["rule"] == "connected", report
            # A canonical that is replaced, and whose successor is written anew, is nobody's: reconcile ends that.
            if own is not None and report.action == "written" and all(each.action != "replaced" for _, each in written):
                missed = [
                    each for each in canonicals if distance(own, each.doc.fingerprint) <= grouping["max_distance"]
                ]
                assert not missed, f"{report} is near {missed}"
            if own is not None and report.id is not None:
                prints.setdefault(report.id, set()).add(own)

    def _give_fingerprints(self, where: str, *, is_sure: bool, remove: bool = False) -> None:
        """Let every document of *where* have the fingerprint of its text, or none."""
        names, schemes = self.mappings(where), self.schemes_of(where)
        for place in self.model.states:
            if place.index in names:
                scheme = schemes.get(place.index, "shingles")

                def new(old: Doc | None, scheme: str = scheme) -> Doc | None:
                    bits = old and not remove and fingerprint(old.source["body"], scheme)
                    return old and replace(old, fingerprint=None if remove else bits)

                self.model.change(place, new, is_sure=is_sure)

    @rule(who=clients, where=looked_at, dry_run=st.sampled_from((False, False, True)))
    def backfill(self, who, where, dry_run) -> None:
        """Every document gets the fingerprint of its present text."""
        self.look()
        known = set(self.schemes_of(where).values())
        may_fail = len(known) > 1 or REMOVED in known or not all(map(self.mappings, where.split(",")))
        reports, error = self.ask(
            who, "backfill", self.name(where), text_field="body", dry_run=dry_run, may_fail=may_fail
        )
        if not dry_run:
            before = {place: list(states) for place, states in self.model.states.items()}
            self._give_fingerprints(where, is_sure=error is None)
            changed = sum(before[place] != states for place, states in self.model.states.items())
            assert error or self.faults or reports[-1].changed == changed, f"{reports[-1]}: {changed} had to change"

    # Groups

    def grouping_of(self, where: str) -> list[dict[str, Any]]:
        """Return the different groupings that the indices of *where* record."""
        found: list[dict[str, Any]] = []
        for record in self.mappings(where).values():
            if "grouping" in record and record["grouping"] not in found:
                found.append(record["grouping"])
        return found

    @rule(who=clients, where=looked_at, grouping=groupings, dry_run=st.sampled_from((False, False, True)))
    def reconcile(self, who, where, grouping, dry_run) -> None:
        """Groups become what the rule says of all documents, and a second run finds nothing to do."""
        seen = self.seen_in(where)
        recorded = self.grouping_of(where)
        may_fail = not self.is_healthy(where) or len(recorded) > 1
        report, error = self.ask(
            who,
            "reconcile",
            self.name(where),
            dry_run=dry_run,
            may_fail=may_fail,
            **({} if recorded else grouping),
        )
        if error is None and not dry_run and report.is_settled:
            now = self.seen_in(where)
            expected = expected_groups(seen, self.grouping_of(where)[0])
            assert told_groups(now) in expected, f"{told_groups(now)} must be {expected[0]}"
            again, _ = self.ask("one", "reconcile", self.name(where))
            assert again is None or again.changed == 0, again
        assert error or dry_run or report.is_settled or self.faults, report

    @rule(
        who=clients,
        where=looked_at,
        grouping=groupings,
        action=st.sampled_from(("tag", "delete")),
        dry_run=st.booleans(),
    )
    def dedupe(self, who, where, grouping, action, dry_run) -> None:
        """Duplicates are shown, tagged or deleted; their canonicals stay."""
        seen = self.seen_in(where)
        recorded = self.grouping_of(where)
        may_fail = not self.is_healthy(where) or len(recorded) > 1
        options = {**({} if recorded else grouping), "action": action, "dry_run": dry_run}
        if action == "delete":  # by bits alone, as the model groups
            options |= {"verify": False, "max_share": 1.0}
        if action == "delete" and not dry_run:
            options["archive"] = Path(tempfile.mkdtemp(dir=self.folder.name)) / "removed.gz"
        records, error = self.ask(who, "dedupe", self.name(where), may_fail=may_fail, **options)
        applied = (recorded or self.grouping_of(where) or [GROUPING | grouping])[0]
        answers = expected_groups(seen, applied)
        duplicates = [{place for place in answer if answer[place][1] is not None} for answer in answers]
        if action == "delete" and not dry_run:
            done = Counter((each.index, each.id) for each in records or () if each.action == "deleted")
            for each in seen:
                told = (each.place.index, each.place.id)
                possible = any(each.place in some for some in duplicates)
                assert (
                    possible
                    or not done[told]
                    or done[told] < sum((other.place.index, other.place.id) == told for other in seen)
                ), f"{each} was deleted, and is no duplicate"
                if done[told] or (possible and self.faults):
                    is_sure = bool(done[told]) and len(duplicates) == 1
                    self.model.change(each.place, lambda _: None, is_sure=is_sure)
        if may_fail or error or self.faults or not records:
            return
        told = Counter((each.index, each.id) for each in records)
        wanted = [Counter((place.index, place.id) for place in some) for some in duplicates]
        # A document whose fingerprint is not the one of its present text is not deleted.
        assert any(told <= some if action == "delete" else told == some for some in wanted), records

    @rule(who=clients, where=looked_at)
    def groups(self, who, where) -> None:
        """Groups are read as the documents say."""
        may_fail = not self.is_healthy(where) or not self.grouping_of(where)
        found, error = self.ask(who, "groups", self.name(where), may_fail=True)
        if error is not None:
            assert may_fail or self.faults or "never grouped" in str(error), error
            return
        seen = [each for each in self.visible(where) if each.doc.fingerprint is not None]
        names = {each.ours["group"] for each in self.visible(where) if "duplicate_of" in each.ours}
        wanted = {name: Counter() for name in names}
        for each in seen:
            if each.ours.get("group") in names:
                wanted[each.ours["group"]][each.place.index, each.place.id] += 1
        told = {each.id: Counter((member.index, member.id) for member in each.members) for each in found}
        assert told == wanted

    # Lookups

    @rule(
        who=clients,
        where=looked_at,
        kind=st.sampled_from(("text", "text", "fingerprint", "many", "stream", "of")),
        text=texts,
        max_distance=st.one_of(distances, distances, st.just(64)),
        options=st.fixed_dictionaries(
            {},
            optional={
                "n": st.integers(0, 3),
                "size": st.integers(1, 5),
                "exclude_ids": st.lists(st.sampled_from(IDS), max_size=3),
                "routing": st.sampled_from(("r1", "r2")),
                "on_incomplete": st.just("return"),
                "plan": st.integers(0, 5),
            },
        ),
    )
    def look_up(self, who, where, kind, text, max_distance, options) -> None:
        """An answer is complete and right, or says that it is not."""
        self.compare_lookup(who, where, kind, text, max_distance, dict(options))

    def compare_lookup(
        self, who: str, where: str, kind: str, text: str, max_distance: int, options: dict[str, Any]
    ) -> None:
        """Look up, and compare with what is near of all that a search shows."""
        known = set(self.schemes_of(where).values()) - {REMOVED}
        fits = self._condition(options)
        bits = fingerprint(text, min(known, default="shingles"))
        seen = self.visible(where, options.get("routing"))
        own = ""
        if kind == "of":
            holders = [each for each in seen if each.doc.fingerprint is not None]
            if not holders:
                return
            own = min(each.place.id for each in holders)
            prints = {each.doc.fingerprint for each in holders if each.place.id == own}
            bits = min(prints)
        if bits is None and kind == "fingerprint":
            return
        if kind == "stream":
            options = {key: value for key, value in options.items() if key not in ("size", "on_incomplete")}
        if "plan" in options:
            plans, error = self.ask("one", "explain_plan", self.name(where), max_distance=max_distance, may_fail=True)
            number = options.pop("plan")
            usable = [each.plan for each in plans or () if can_run(each.plan, self.server.product)]
            if usable:
                options["plan"] = usable[number % len(usable)]
        method, args = {
            "text": ("find_near_dups", {"text": text}),
            "fingerprint": ("find_near_dups", {"fingerprint": bits}),
            "many": ("find_near_dups_many", {"texts": [text, text]}),
            "stream": ("stream_near_dups", {"text": text}),
            "of": ("find_near_dups_of", {"id": own}),
        }[kind]
        # A text without features is near to nothing, wherever it is looked for.
        must_fail = bits is not None and (len(known) > 1 or not all(map(self.mappings, where.split(","))))
        may_fail = not self.is_healthy(where) or (kind == "of" and len(prints) > 1)
        answer, error = self.ask(
            who, method, self.name(where), max_distance=max_distance, may_fail=may_fail, **args, **options
        )
        if error is not None:
            return
        near = [
            (each.place.index, each.place.id, distance(bits, each.doc.fingerprint))
            for each in seen
            if bits is not None and each.doc.fingerprint is not None and fits(each)
        ]
        near = [each for each in near if each[2] <= max_distance]
        size = options.get("size")
        for each in answer if kind == "many" else [answer]:
            if isinstance(each, Exception):
                assert may_fail or self.faults, repr(each)
                continue
            is_complete = getattr(each, "complete", True)
            assert is_complete or self.faults or may_fail, each.reasons
            assert not must_fail or not is_complete, f"an answer though the schemes are {known}"
            judge(each, near, is_complete=is_complete, size=size, without=own)
            self.tally[f"lookups that found {'some' if near else 'none'}"] += 1

    def _condition(self, options: dict[str, Any]) -> Callable[[Seen], bool]:
        """Put the filter into *options*, and return whether they let a document through."""
        n = options.pop("n", None)
        if n is not None:
            options["filter"] = {"term": {"n": n}}
        excluded = options.get("exclude_ids", ())

        def fits(each: Seen) -> bool:
            return each.place.id not in excluded and (n is None or each.doc.source.get("n") == n)

        return fits

    @rule(who=clients, where=looked_at, against=st.sampled_from((None, None, "a", "log")), max_distance=distances)
    def pairs(self, who, where, against, max_distance) -> None:
        """Every pair within an index, or between two, once."""
        known = set(self.schemes_of(where).values()) | set(self.schemes_of(against or where).values())
        may_fail = len(known) != 1 or not (self.is_healthy(where) and self.is_healthy(against or where))
        other = None if against is None else self.name(against)
        found, error = self.ask(who, "pairs", self.name(where), other, max_distance=max_distance, may_fail=may_fail)
        if error is not None or may_fail:
            return
        one, two = ([each for each in self.visible(name) if each.doc.fingerprint] for name in (where, against or where))
        wanted = set()
        for a in one:
            for b in two:
                bits = distance(a.doc.fingerprint, b.doc.fingerprint)
                if a.place != b.place and bits <= max_distance:
                    wanted.add((frozenset((a.place[::2], b.place[::2])), bits))
        told = [(frozenset(((p.index, p.id), (p.other_index, p.other_id))), p.distance) for p in found]
        assert set(told) == wanted, f"not told: {wanted - set(told)}; wrong: {set(told) - wanted}"
        assert len(told) == len(wanted) or against is not None, "a pair is told twice"


def judge(answer: Any, near: list[tuple[str, str, int]], *, is_complete: bool, size: int | None, without: str) -> None:
    """Compare an answer with (index, id, distance) of all that is near; *without* is the id asked about."""
    found = Counter((each.index, each.id, each.distance) for each in answer)
    everything = Counter(near)
    others = Counter(each for each in near if each[1] != without)
    note(f"  found {sorted(found.elements())}")
    assert found <= everything, f"found, and not near: {found - everything}"
    if is_complete and size is None:
        assert others <= found, f"near, and not found: {others - found}"
    elif is_complete:
        told = sorted(each[2] for each in found.elements())
        least = sorted(each[2] for each in others.elements())[:size]
        assert without or told == least, f"the nearest {size} are at {least}, not at {told}"


def can_run(plan: Any, product: str) -> bool:
    """Return whether the server can carry *plan* out: the embedded Elasticsearch has no scripts."""
    return product == "opensearch" or not plan.script


def settings(shards: int) -> dict[str, Any]:
    """Return settings of an index; nothing becomes visible by itself, so that it depends on the steps alone."""
    return {"number_of_shards": shards, "number_of_replicas": 0, "refresh_interval": "-1"}


def mappings(scheme: str) -> dict[str, Any]:
    """Return a mapping with our fields, as a template has it."""
    ours = build_mapping(scheme=scheme, text_field="body")
    return {**ours, "properties": {**ours["properties"], **FIELDS}}


def routing_of(id: str | None, routing: str | None) -> str | None:
    """Return the routing value of a document; while twins wait, an id has always the same."""
    if "twins" in WAITING:
        return "r1" if id in IDS[9:] else None
    return routing


def routed(routing: str | None) -> str:
    """Return the query string for a routing value."""
    return "" if routing is None else f"?routing={routing}"
