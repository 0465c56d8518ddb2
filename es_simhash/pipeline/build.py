"""Builds the ingest pipeline and the stored search template, and refuses the schemes that a server cannot compute."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.errors import SchemeError
from es_simhash.hashing import BLOCKS, DEFAULT_SCHEME, Scheme, get_scheme
from es_simhash.lookup.plan import LookupPlan, plan_lookup
from es_simhash.mapping.fields import DEFAULT_PREFIX, FINGERPRINTED, WITHOUT_FINGERPRINT, Fields
from es_simhash.mapping.meta import check_text_fields
from es_simhash.pipeline.script_source import character_tables, script_source

# By the tag of its processor a pipeline is known as ours.
_TAG = "es-simhash"

# What a pipeline is for, among its parameters: another one of the same purpose may take its place.
_PURPOSE = ("scheme", "text_fields", "prefix", "value")

# Read from the fingerprint itself: another program may have rounded the signed copy, and some indices have none.
_LEAST = (
    "int least = 65; long wanted = Long.parseUnsignedLong(params.wanted, 16); for (def each : doc[params.field]) "
    "{ least = (int) Math.min(least, Long.bitCount(wanted ^ Long.parseUnsignedLong(each, 16))); }"
)

_NEAR = f"{_LEAST} return least <= params.most;"
_DISTANCE = f"{_LEAST} return least;"


def build_pipeline(
    *,
    scheme: str | Scheme = DEFAULT_SCHEME,
    text_field: str | Sequence[str],
    prefix: str = DEFAULT_PREFIX,
    value: bool = True,
) -> dict[str, Any]:
    """
    Return an ingest pipeline that gives each document the fingerprint of its text, bit for bit as in Python.

    It is one script processor, of about 180 KB. A document without the text field stays as it is. What has no
    fingerprint for another reason is written without one, and ``error`` below the prefix says why: ``not_text`` (a
    value is a number or an object), ``too_long`` (a million characters or more) or ``failed``. It needs Painless, as
    every Elasticsearch and OpenSearch has it.

    Args:
        scheme:
            ``shingles``, with any size and weighting.
        text_field:
            Field or fields that the text comes from, in order.
        prefix:
            Name of the object that holds the fields.
        value:
            Whether documents get the signed 64-bit copy too.

    Raises:
        TypeError: If an argument has the wrong type.
        SchemeError: If the scheme is unknown, or a server cannot compute it; the message says what to do instead.
        InvalidInputError: If another argument cannot be used.

    Examples:
        >>> pipeline = build_pipeline(text_field="body")
        >>> pipeline["processors"][0]["script"]["params"]["text_fields"]
        ['body']
    """
    resolved = _computable(get_scheme(scheme))
    names = check_text_fields(text_field)
    fields = Fields(prefix)
    parameters = {
        "scheme": resolved.to_dict(),
        "text_fields": list(names),
        "prefix": prefix,
        "value": bool(value),
        "owned": list(FINGERPRINTED),
        "bare": list(WITHOUT_FINGERPRINT),
        "tables": list(character_tables()),
        "plans": _plans(),
        "near": _NEAR,
        "distance": _DISTANCE,
    }
    failed = {"set": {"field": fields.error, "value": "failed", "ignore_failure": True}}
    script = {
        "lang": "painless",
        "source": script_source(resolved),
        "params": parameters,
        "tag": _TAG,
        "on_failure": [failed],
    }
    return {
        "description": f"es_simhash: fingerprints of {', '.join(names)}, scheme {resolved}",
        "processors": [{"script": script}],
    }


def purpose_of(pipeline: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what *pipeline* computes and where it puts it; ``None`` if :func:`build_pipeline` did not make it."""
    match pipeline.get("processors"):
        case [{"script": {"tag": str(tag), "params": dict(parameters)}}] if (
            tag == _TAG and "on_failure" not in pipeline
        ):
            return {name: parameters.get(name) for name in _PURPOSE}
    return None


def _computable(scheme: Scheme) -> Scheme:
    """Return *scheme*; raise SchemeError if a server cannot compute it."""
    reasons = (
        scheme.name == "keywords" and "its words need a dictionary and jieba",
        scheme.preprocess and f"it has no step {', '.join(scheme.preprocess)}",
        scheme.parameters["hash"] != "xxh3_64" and "it has only the hash xxh3_64",
    )
    if reason := next(filter(None, reasons), None):
        raise SchemeError(
            f"an ingest pipeline cannot compute scheme {scheme}: {reason}: compute the fingerprints with ingest or "
            "with_fingerprints, or choose scheme shingles"
        )
    return scheme


def _plans() -> list[dict[str, Any]]:
    """
    Return for each distance, from 0 up to the first scan, the radius of each block and how many must match.
    They are cheap for a million documents: the server does not know how many there are.
    """
    found: list[dict[str, Any]] = []
    while not plan_lookup(len(found)).is_scan:
        plan = LookupPlan(len(found), max(BLOCKS, len(found) + 1))
        radii = [radius for (radius,) in plan.radii]
        found.append({"radii": radii, "minimum_should_match": plan.minimum_should_match})
    return found


_SIZE = 1_000

# Without its block the search would silently miss documents, so a missing one makes the search unreadable.
_TERM = '{{"term":{{"{field}":"{{{{{name}}}}}"{{{{^{name}}}}} {name} is missing{{{{/{name}}}}}}}}}'


def build_search_template(*, prefix: str = DEFAULT_PREFIX) -> dict[str, Any]:
    """
    Return a stored script: the search for the candidates of a fingerprint, among them all within 3 bits.

    Two fingerprints that differ in at most 3 bits share one of four blocks. The caller compares the fingerprints of the
    hits, all 64 bits, and drops those that are too far. It needs no Painless. Its parameters are the four blocks, as
    the object below *prefix* of a document has them, and ``size``, 1,000 by default.

    Args:
        prefix:
            Name of the object that holds the fields.

    Raises:
        TypeError: If *prefix* is not a string.
        InvalidInputError: If it cannot be used.

    Examples:
        >>> build_search_template()["script"]["lang"]
        'mustache'
    """
    fields = Fields(prefix)
    terms = ",".join(_TERM.format(field=field, name=f"block{number}") for number, field in enumerate(fields.blocks))
    rest = {"_source": False, "track_total_hits": True, "docvalue_fields": [fields.fingerprint]}
    source = (
        f'{{"size":{{{{size}}}}{{{{^size}}}}{_SIZE}{{{{/size}}}},'
        f'"query":{{"bool":{{"filter":{{"bool":{{"should":[{terms}],"minimum_should_match":1}}}}}}}},'
        f"{json.dumps(rest, separators=(',', ':'))[1:]}"
    )
    return {"script": {"lang": "mustache", "source": source}}
