"""
A fake server that holds one index in memory and answers the calls of an operation.

It keeps versions, visibility by refresh, and points in time as a server does. ``by_hand.py`` carries
operations out against it.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections import Counter
from typing import Any

from es_simhash import build_mapping, fingerprint_fields
from es_simhash.mapping.meta import marker_name, read_settings
from es_simhash.mapping.user_fields import milliseconds_of
from tests.transport.by_hand import ServerError

INDEX = "i"
WHOLE = {"total": 1, "successful": 1, "failed": 0}


def unmarked(**options):
    """Return the mapping of an index that was made before there were markers."""
    mapping = build_mapping(**options)
    del mapping["properties"]["simhash"]["properties"][marker_name(read_settings(mapping))]
    return mapping


SHARDS = 3


class FakeServer:
    """
    One index with *documents*, sources by id, all visible; searches without another order sort by id.
    It may lack points in time or the order ``_shard_doc``: then some documents share a place. *open*: points in time
    that nobody has closed. *shards*: what the next searches say of their shards; the last stays.
    *refuse*: from the header of a bulk operation to the status it is refused with. *broken*: ids that a multi-get
    cannot read now.
    """

    def __init__(self, documents=None, *, has_pit=True, has_shard_doc=True, is_opensearch=False, mapping=None):
        self.mapping = mapping or build_mapping(text_field="body")
        self.mapping["properties"].setdefault("body", {"type": "text"})
        self.has_pit, self.has_shard_doc, self.is_opensearch = has_pit, has_shard_doc, is_opensearch
        self.shards = [WHOLE]
        self.docs: dict[str, dict[str, Any]] = {}
        self.sequence = 0
        self.open: dict[str, Any] = {}
        self.given = 0
        self.refuse = lambda header: None
        self.broken: set[str] = set()
        for id_, source in (documents or {}).items():
            self.put(id_, source)
        self.refresh(INDEX)

    def put(self, id_, source):
        """Write as any other program would; return the version."""
        self.sequence += 1
        self.docs[id_] = {"source": copied(source), "version": (self.sequence, 1)}
        return self.sequence, 1

    def source(self, id_):
        return self.docs[id_]["source"]

    def __call__(self, call):
        return getattr(self, call.api)(**call.arguments)

    def get_mapping(self, index, filter_path=None, ignore_unavailable=None):
        return {INDEX: {"mappings": copied(self.mapping)}}

    def put_mapping(self, index, body):
        ours = body.get("properties", {}).get("simhash", {}).get("properties", {})
        self.mapping["properties"]["simhash"]["properties"] |= copied(ours)
        self.mapping["_meta"] = copied(body.get("_meta", self.mapping["_meta"]))
        return {}

    def get_alias(self, index):
        return {INDEX: {}}

    def get_settings(self, index, name=None):
        return {INDEX: {"settings": {"index": {"uuid": "u", "number_of_shards": "1"}}}}

    def index_stats(self, index, metric, level, filter_path):
        numbers = {"max_seq_no": self.sequence, "global_checkpoint": self.sequence}
        copies = [{"routing": {"primary": True}, "seq_no": numbers}]
        return {"_shards": {"failed": 0}, "indices": {INDEX: {"uuid": "u", "shards": {"0": copies}}}}

    def refresh(self, index):
        self.shown = dict(self.docs)  # a write replaces what is there, and changes nothing in it
        return {"_shards": {"failed": 0}}

    def open_point_in_time(self, index, keep_alive):
        if not self.has_pit:
            return ServerError(405, "no such endpoint")
        self.given += 1
        name = f"pit{self.given}"
        self.open[name] = self.shown
        return {"pit_id" if self.is_opensearch else "id": name, "_shards": WHOLE}

    def close_point_in_time(self, body):
        return self._close(body["pit_id"] if self.is_opensearch else [body["id"]])

    def search(self, body, index=None, preference=None, filter_path=None):
        if "_shard_doc" in str(body.get("sort")) and not self.has_shard_doc:
            return ServerError(400, "No mapping found for [_shard_doc] in order to sort on")
        held = self.open[body["pit"]["id"]] if "pit" in body else self.shown
        if "fingerprints" in body.get("aggs", ()):
            return self._fingerprints(held, body)
        if "documents" in body.get("aggs", ()):
            return self._count(held, body)
        if "aggs" in body:
            return self._composite(held, body)
        hits = self._hits(held, body)
        shards = self.shards.pop(0) if len(self.shards) > 1 else self.shards[0]
        answer = {**self._page(hits[: body["size"]]), "_shards": shards}
        answer["hits"]["total"]["value"] = len(hits)
        return answer

    def _close(self, names):
        [name] = names
        return ServerError(404) if self.open.pop(name, None) is None else {}

    def msearch(self, body, filter_path=None):
        return {"responses": [{**self.search(each), "status": 200} for each in body[1::2]]}

    def mget(self, body):
        return {"docs": [self._get(each["_id"], each.get("_source", True)) for each in body["docs"]]}

    def bulk(self, body):
        lines, items = iter(body), []
        for line in lines:
            [(kind, header)] = (json.loads(line) if isinstance(line, str) else line).items()
            body = next(lines)
            body = json.loads(body) if isinstance(body, str) else body
            items.append({kind: {"_index": INDEX, "_id": header["_id"], **self._write(kind, header, body)}})
        return {"items": items}

    def _write(self, kind, header, body):
        id_, held = header["_id"], self.docs.get(header["_id"])
        status = self.refuse(header)
        if status is None and kind == "update" and held is None:
            status = 404
        if status is None and kind == "create" and held is not None:
            status = 409
        if status is None and kind == "update" and "doc" not in body:  # it runs no scripts
            status = 400
        if (
            status is None
            and "if_seq_no" in header
            and (header["if_seq_no"], header["if_primary_term"]) != (held["version"])
        ):
            status = 409
        if status == 200:  # an ingest pipeline drops it
            return {"status": 200, "result": "noop"}
        if status is not None:
            return {"status": status, "error": {"type": "refused", "reason": f"status {status}"}}
        version = self.put(id_, merged(held["source"], body["doc"]) if kind == "update" else body)
        return {"status": 200, "_seq_no": version[0], "_primary_term": version[1]}

    def _get(self, id_, wanted):
        if id_ in self.broken:
            error = {"type": "es_rejected_execution_exception", "reason": "full"}
            return {"_index": INDEX, "_id": id_, "error": error}
        if id_ not in self.docs:
            return {"_index": INDEX, "_id": id_, "found": False}
        return {"_index": INDEX, "_id": id_, "found": True, **self._shape(self.docs[id_], wanted)}

    @staticmethod
    def _shape(held, wanted):
        sequence, term = held["version"]
        tops = {name.split(".")[0] for name in wanted} if isinstance(wanted, (list, tuple)) else None
        source = {key: value for key, value in held["source"].items() if tops is None or key in tops}
        shown = {} if wanted is False else {"_source": copied(source)}
        return {"_seq_no": sequence, "_primary_term": term, **shown}

    def _hits(self, held, body):
        asked = [{"field": each} if isinstance(each, str) else each for each in body.get("docvalue_fields", ())]
        part = body.get("slice", {"id": 0, "max": 1})
        [after] = body.get("search_after", [-1])[:1]
        return [
            {
                "_index": INDEX,
                "_id": id_,
                "sort": [place if self.has_shard_doc else place // SHARDS],
                "fields": docvalues(each["source"], asked),
                **self._shape(each, body.get("_source", True)),
            }
            for place, (id_, each) in enumerate(sorted(held.items()))
            if (place if self.has_shard_doc else place // SHARDS) > after
            and place % part["max"] == part["id"]
            and is_match(body["query"], id_, each["source"])
        ]

    @staticmethod
    def _page(hits):
        return {"_shards": WHOLE, "timed_out": False, "hits": {"total": {"value": len(hits)}, "hits": hits}}

    def _fingerprints(self, held, body):
        """Answer a search for the fingerprints of operations by number, of documents that match."""
        numbers, *filters = body["query"]["bool"]["filter"]
        first, last = (numbers["range"]["_seq_no"].get(bound) for bound in ("gte", "lte"))
        found = [
            each
            for id_, each in held.items()
            if first <= each["version"][0] <= (last or self.sequence)
            and all(is_match(query, id_, each["source"]) for query in filters)
        ]
        listing = body["aggs"]["fingerprints"]["scripted_metric"]["params"]
        keys = sorted({value_of(document["source"], listing["field"]) for document in found} - {None})
        if listing["field"] == "simhash.value":
            keys = sorted(map(int, keys))
        shards = self.shards.pop(0) if len(self.shards) > 1 else self.shards[0]
        results = {
            "fingerprints": {"value": [keys[: listing["most"] + 1], None]},
            "last": {"value": max((each["version"][0] for each in found), default=None)},
        }
        for name in body["aggs"].keys() - results.keys():
            query = body["aggs"][name]["filter"]
            results[name] = {"doc_count": sum(is_match(query, "", each["source"]) for each in found)}
        return {**self._page([]), "_shards": shards, "aggregations": results}

    def _count(self, held, body):
        """Count the documents that have a field."""
        name = body["aggs"]["documents"]["value_count"]["field"]
        shards = self.shards.pop(0) if len(self.shards) > 1 else self.shards[0]
        found = [each for id_, each in held.items() if is_match(body["query"], id_, each["source"])]
        count = sum(value_of(each["source"], name) is not None for each in found)
        last = max((each["version"][0] for each in found), default=None)
        results = {"documents": {"value": count}, "last": {"value": last}}
        return {**self._page([]), "_shards": shards, "aggregations": results}

    def _composite(self, held, body):
        [(name, agg)] = body["aggs"].items()
        wanted = agg["composite"]["sources"][0]["value"]["terms"]["field"]
        matching = (each["source"] for id_, each in held.items() if is_match(body["query"], id_, each["source"]))
        counts = Counter(value for source in matching if (value := value_of(source, wanted)) is not None)
        keys = sorted(key for key in counts if key > agg["composite"].get("after", {"value": ""})["value"])
        found = [{"key": {"value": key}, "doc_count": counts[key]} for key in keys[: agg["composite"]["size"]]]
        return {**self._page([]), "aggregations": {name: {"buckets": found}}}


class Candidates(FakeServer):
    """
    A server that only reads, whose documents with these *fingerprints* all match the should clauses of a query.
    A test so decides how many candidates there are. *hits*: the documents, with the numbers from 0 as ids.
    """

    def __init__(self, fingerprints, *, mapping=None, **options):
        super().__init__(mapping=mapping or build_mapping(), **options)
        self.hits = [_hit(number, each) for number, each in enumerate(fingerprints)]

    def _hits(self, held, body):
        [after] = body.get("search_after", [-1])[:1]
        filters = body["query"].get("bool", {}).get("filter", [])
        wanted = [item for part in filters if "terms" in part for item in part["terms"].items()]
        return [each for each in self.hits if each["sort"][0] > after and _has_terms(each, wanted)]


def copied(value):
    """Return a copy of a JSON value, many times faster than ``copy.deepcopy``."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


@functools.cache
def _digits(fingerprint):
    return fingerprint_fields(fingerprint)["simhash"]["fingerprint"]


def _hit(number, fingerprint):
    found = {"simhash.fingerprint": [_digits(fingerprint)]}
    return {"_index": INDEX, "_id": str(number), "fields": found, "sort": [number]}


def _has_terms(hit, wanted):
    if not wanted:
        return True
    digits = hit.get("fields", {}).get("simhash.fingerprint", [""])[0]
    terms = {f"simhash.block{i}": digits[4 * i : 4 * i + 4] for i in range(4)} | {"simhash.fingerprint": digits}
    return all(terms[field] in values for field, values in wanted)


def merged(held, change):
    """Return *held* with *change* put into it, as an update by a partial document does."""
    both = isinstance(held, dict) and isinstance(change, dict)
    return held | {key: merged(held.get(key), value) for key, value in change.items()} if both else change


def docvalues(source, asked):
    found = {}
    for each in asked:
        value = value_of(source, each["field"])
        if value is not None:
            is_moment = each.get("format") == "epoch_millis"
            found[each["field"]] = [str(milliseconds_of(value)) if is_moment else value]
    return found


def value_of(source, name):
    """Return the value at the dotted *name*."""
    for part in name.split("."):
        source = source.get(part) if isinstance(source, dict) else None
    return source


def is_match(query, id_, source):
    """Return whether a document matches *query*, of the kinds that operations send."""
    [(kind, body)] = query.items()
    if kind == "bool":
        every = [body.get(name, []) for name in ("filter", "must", "should", "must_not")]
        filters, musts, shoulds, nots = [each if isinstance(each, list) else [each] for each in every]
        least = body.get("minimum_should_match", 0 if filters or musts or not shoulds else 1)
        return (
            all(is_match(each, id_, source) for each in filters + musts)
            and sum(is_match(each, id_, source) for each in shoulds) >= least
            and not any(is_match(each, id_, source) for each in nots)
        )
    if kind in ("match_all", "match_none"):
        return kind == "match_all"
    if kind == "script":
        return True  # what it leaves out is rescored away all the same
    if kind == "ids":
        return id_ in body["values"]
    if kind == "exists":
        return value_of(source, body["field"]) is not None
    if kind == "multi_match":
        phrase = " ".join(re.findall(r"\w+", body["query"].lower()))
        texts = (" ".join(re.findall(r"\w+", str(value_of(source, name)).lower())) for name in body["fields"])
        return any(f" {phrase} " in f" {text} " for text in texts)
    [(name, wanted)] = body.items()
    if name == "_index":
        return INDEX in wanted
    value = value_of(source, name)
    if kind == "range":
        tests = {"gt": operator.gt, "gte": operator.ge, "lte": operator.le}
        return value is not None and all(tests[name](value, bound) for name, bound in wanted.items())
    values = value if isinstance(value, list) else [value]
    return any(each in (wanted if kind == "terms" else [wanted]) for each in values)
