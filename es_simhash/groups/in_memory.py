"""Near-duplicates among the hits of one page. No requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from es_simhash.hashing import from_hex, hamming_distance
from es_simhash.lookup.near_dups import check_hits
from es_simhash.mapping.documents import read_text
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, check_max_distance


def distinct(
    hits: Iterable[Mapping[str, Any]], max_distance: int = DEFAULT_MAX_DISTANCE, *, prefix: str = DEFAULT_PREFIX
) -> list[Mapping[str, Any]]:
    """
    Return *hits* without those that are near-duplicates of a hit before them, in their order.

    It thins one page of any search's results. Only this page is compared, so a near-duplicate of a hit on an earlier
    page stays. A hit without a fingerprint stays too.

    Args:
        hits:
            Hits as a search answered them (``response["hits"]["hits"]``), with the fingerprint in their ``_source``,
            or among their ``docvalue_fields`` or ``fields``.
        max_distance:
            Largest distance of a near-duplicate in bits, inclusive, 0 to 64.
        prefix:
            Name of the object that holds the fields.

    Raises:
        TypeError: If max_distance is not an int.
        InvalidInputError: If it is out of range, or a hit's fingerprint is no fingerprint.

    Examples:
        >>> page = [{"_id": str(n), "fields": {"simhash.fingerprint": [f"{n:016x}"]}} for n in (0, 1, 255)]
        >>> [hit["_id"] for hit in distinct(page, 3)]
        ['0', '255']
    """
    check_max_distance(max_distance)
    kept: list[int] = []
    found = []
    for hit in check_hits(hits):
        fingerprint = _fingerprint_of(hit, Fields(prefix).fingerprint)
        if fingerprint is None:
            found.append(hit)
        elif all(hamming_distance(fingerprint, each) > max_distance for each in kept):
            kept.append(fingerprint)
            found.append(hit)
    return found


def _fingerprint_of(hit: Mapping[str, Any], name: str) -> int | None:
    values = (hit.get("fields") or {}).get(name) or []
    digits = values[0] if values else read_text(hit.get("_source") or {}, (name,))
    return None if digits is None else from_hex(digits)
