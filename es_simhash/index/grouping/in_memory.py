"""
Lookups among fingerprints in memory: exact, at any distance.

Used for the few thousand documents that a writer has in flight, and for one page of hits. ``all_pairs`` finds the
pairs of many fingerprints. No server is asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from es_simhash.hashing import from_hex, hamming_distance
from es_simhash.index.documents import read_text
from es_simhash.index.fields import DEFAULT_PREFIX, Fields
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, check_max_distance
from es_simhash.index.rescore import check_hits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["InMemoryLookup", "distinct"]

_T = TypeVar("_T")


class InMemoryLookup(Generic[_T]):
    """
    Items by fingerprint, in the order in which they were added.

    A lookup compares its fingerprint with all of them, vectorised: about 25 microseconds for 20,000, at any distance.
    No table of blocks is faster at that size.
    """

    def __init__(self, items: Iterable[tuple[int, _T]] = ()) -> None:
        self._items: list[tuple[int, _T]] = []
        self._fingerprints: NDArray[np.uint64] | None = None
        for fingerprint, item in items:
            self.add(fingerprint, item)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, fingerprint: int, item: _T) -> None:
        """Add *item* under *fingerprint*, unsigned 64 bits; several items may share one."""
        import numpy as np  # noqa: PLC0415 -- takes longer to load than all the rest

        place = len(self._items)
        if self._fingerprints is None or place == len(self._fingerprints):
            grown = np.zeros(max(1024, 2 * place), np.uint64)
            if self._fingerprints is not None:
                grown[:place] = self._fingerprints
            self._fingerprints = grown
        self._fingerprints[place] = fingerprint
        self._items.append((fingerprint, item))

    def find(self, fingerprint: int, max_distance: int) -> list[tuple[int, _T]]:
        """
        Return (distance in bits, item) of every item within *max_distance* of *fingerprint*, in the order added.
        """
        if self._fingerprints is None:
            return []
        from es_simhash.hashing.kernels import distances as distances_of  # noqa: PLC0415 -- loads numpy

        distances = distances_of(fingerprint, self._fingerprints[: len(self._items)])
        near = (distances <= max_distance).nonzero()[0].tolist()
        return [(int(distances[place]), self._items[place][1]) for place in near]


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
