"""
An index by hand: answers what a flow asks as a server would that holds some fingerprints.
"""

from __future__ import annotations

from itertools import islice

from es_simhash.flows.context import Context
from es_simhash.flows.lookup.find import find
from es_simhash.flows.lookup.options import Options
from es_simhash.index.documents import fingerprint_fields
from es_simhash.index.mapping import build_mapping
from es_simhash.index.plan_cost import IndexStats
from tests.flows.by_hand import ServerError, drive

WHOLE = {"total": 1, "successful": 1, "failed": 0}


def hit(number, fingerprint):
    value = fingerprint_fields(fingerprint)["simhash"]["fingerprint"]
    return {"_index": "i", "_id": str(number), "fields": {"simhash.fingerprint": [value]}, "sort": [number]}


class Index:
    """Answers calls as an index does that holds *fingerprints*."""

    def __init__(self, fingerprints, *, window=10_000, has_shard_doc=True, mapping=None, has_pit=True):
        self.hits = [hit(n, each) for n, each in enumerate(fingerprints)]
        self.window = window
        self.has_shard_doc = has_shard_doc
        self.has_pit = has_pit
        self.mapping = mapping or build_mapping()
        self.shards = [WHOLE]
        self.open = set()

    def __call__(self, call):
        # Else a cancellation before the answer would leave open what nobody knows of.
        assert call.opens == (call.api == "open_point_in_time" or "scroll" in call.arguments)
        return getattr(self, call.api)(**call.arguments)

    def get_mapping(self, index, filter_path=None):
        return {"i": {"mappings": self.mapping}}

    def search(self, body, index=None, scroll=None):
        if scroll and body.get("track_total_hits", True) is not True:
            return ServerError(400, "disabling [track_total_hits] is not allowed in a scroll context")
        if body["size"] > self.window:
            return ServerError(400, "Result window is too large, from + size must be ... [index.max_result_window]")
        if "_shard_doc" in str(body.get("sort")) and not self.has_shard_doc:
            return ServerError(400, "No mapping found for [_shard_doc] in order to sort on")
        after = body.get("search_after", [-1])[0]
        found = (each for each in self.hits if each["sort"][0] > after and holds(each, body))
        hits = [as_asked(each, body) for each in islice(found, body["size"])]
        shards = self.shards.pop(0) if len(self.shards) > 1 else self.shards[0]
        answer = {"_shards": shards, "timed_out": False, "hits": {"total": {"value": len(self.hits)}, "hits": hits}}
        if scroll:
            self.open.add("scroll")
            self.rest = self.hits[len(hits) :]
            self.page = body["size"]
            answer["_scroll_id"] = "s"
        return answer

    def scroll(self, body):
        hits, self.rest = self.rest[: self.page], self.rest[self.page :]
        return {"_shards": WHOLE, "timed_out": False, "hits": {"hits": hits}, "_scroll_id": "s"}

    def clear_scroll(self, body):
        self.open.discard("scroll")
        return {}

    def open_point_in_time(self, index, keep_alive):
        if not self.has_pit:
            return ServerError(405, "no")
        self.open.add("pit")
        return {"id": "p", "_shards": WHOLE}

    def close_point_in_time(self, body):
        self.open.discard("pit")
        return {}

    def msearch(self, body):
        return {"responses": [{**self.search(line), "status": 200} for line in body[1::2]]}


def holds(found, body):
    """Return whether a hit has the terms that a filter wants outright; should clauses are not looked at."""
    digits = found.get("fields", {}).get("simhash.fingerprint", [""])[0]
    terms = {f"simhash.block{i}": digits[4 * i : 4 * i + 4] for i in range(4)} | {"simhash.fingerprint": digits}
    wanted = [part["terms"] for part in body["query"].get("bool", {}).get("filter", []) if "terms" in part]
    return all(terms[field] in values for part in wanted for field, values in part.items())


def as_asked(found, body):
    """Return a hit as a server gives it: without an id where no stored fields are wanted."""
    return {k: v for k, v in found.items() if k != "_id"} if body.get("stored_fields") == "_none_" else found


def look(index, *, fingerprint=0, fail_at=None, failure=None, context=None, **options):
    context = context or Context()
    if context.recall_stats("i") is None:
        context.learn_stats("i", IndexStats())  # so that no call asks for it
    flow = find(context, "i", None, fingerprint, Options(**options))
    return drive(flow, index, fail_at=fail_at, failure=failure)
