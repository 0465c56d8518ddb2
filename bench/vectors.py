"""
Indices of random fingerprints with planted neighbours, for the lookup benchmarks: made once, kept in a folder.

With fewer random bits a block has fewer values, so that posting lists are as long as in a larger index: at 12 bits
as with 16 times the documents, at 8 bits with 256 times. Only random bits are flipped, so that a neighbour's blocks
stay among the values there are.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from es_simhash import SimHashClient
from es_simhash.groups.assign import group_fingerprints
from es_simhash.mapping.fields import group_fields, to_signed
from es_simhash.servers import EmbeddedServer, embedded_server

INDEX = "fingerprints"
QUERIES = 60
AT = "2026-01-01T00:00:00.000Z"
LARGEST_DISTANCE = 16


@dataclass(frozen=True)
class Planted:
    """
    What an index holds.

    Attributes:
        fingerprints:
            uint64, one a document; the document's id is its position.
        queries:
            uint64, the fingerprints that have planted neighbours at every distance from 0 to 16.
    """

    fingerprints: np.ndarray
    queries: np.ndarray

    def truth(self, query: int, max_distance: int) -> set[str]:
        """Return the ids within *max_distance* of *query*, by exhaustive comparison."""
        distances = np.bitwise_count(self.fingerprints ^ np.uint64(query))
        return {str(position) for position in np.nonzero(distances <= max_distance)[0]}


class Corpus:
    """Random fingerprints, a twentieth of which have a near-duplicate, and grouped documents that hold them."""

    WITHIN = 3
    """Largest distance of the groups in bits."""

    def __init__(self, documents: int) -> None:
        chance = np.random.default_rng(7)
        self.values = chance.integers(0, 2**64, documents, dtype=np.uint64)
        copies = documents // 20
        self.values[-copies:] = self.values[:copies]
        for _ in range(3):
            self.values[-copies:] ^= np.uint64(1) << chance.integers(0, 64, copies, dtype=np.uint64)
        self.canonical = group_fingerprints(self.values, self.WITHIN)

    def groups(self, place: int) -> dict[str, Any]:
        """Return the group fields of a document."""
        canonical = int(self.canonical[place])
        if canonical == place:
            return group_fields(f"d{place:09}", at=AT)
        distance = int(self.values[place] ^ self.values[canonical]).bit_count()
        return group_fields(f"d{canonical:09}", canonical=f"d{canonical:09}", distance=distance, at=AT)

    def lines(self, first: int, last: int, *, fields: bool = True, ungrouped_from: int | None = None) -> str:
        """Return the lines of the documents from *first* up to *last*, with our fields or without."""
        # Made by hand: json.dumps would take longer than the server.
        lines = []
        canonicals = self.canonical[first:last].tolist()
        for place, value, canonical in zip(
            range(first, last), self.values[first:last].tolist(), canonicals, strict=True
        ):
            ours = ""
            if fields:
                digits = f"{value:016x}"
                blocks = ",".join(f'"block{block}":"{digits[4 * block : 4 * block + 4]}"' for block in range(4))
                ours = f',"simhash":{{"fingerprint":"{digits}",{blocks},"value":"{to_signed(value)}"'
                if ungrouped_from is None or place < ungrouped_from:
                    ours += f',"group":"d{canonical:09}","at":"{AT}"'
                    if canonical != place:
                        distance = int(self.values[place] ^ self.values[canonical]).bit_count()
                        ours += f',"duplicate_of":"d{canonical:09}","distance":{distance}'
                ours += "}"
            lines.append(f'{{"index":{{"_id":"d{place:09}"}}}}')
            lines.append(f'{{"text":"report {place} of station {place % 977}"{ours}}}')
        return "\n".join(lines) + "\n"

    def truth(self, value: int, max_distance: int) -> set[str]:
        """Return the ids within *max_distance* of *value*."""
        near = np.flatnonzero(np.bitwise_count(self.values ^ np.uint64(value)) <= max_distance)
        return {f"d{place:09}" for place in near.tolist()}


def plant(documents: int, bits: int, *, seed: int = 7) -> Planted:
    """Return *documents* fingerprints of which each block's upper *bits* are random, neighbours planted among them."""
    chance = np.random.default_rng(seed)
    mask = sum(((0xFFFF << (16 - bits)) & 0xFFFF) << (16 * block) for block in range(4))
    found = chance.integers(0, 2**64, documents, dtype=np.uint64) & np.uint64(mask)
    free = [bit for bit in range(64) if mask >> bit & 1]
    queries = found[:QUERIES].copy()
    place = QUERIES
    for query in queries:
        for distance in range(LARGEST_DISTANCE + 1):
            flips = sum(1 << int(bit) for bit in chance.choice(free, distance, replace=False))
            found[place] = query ^ np.uint64(flips)
            place += 1
    return Planted(found, queries)


def serve(
    product: str, folder: Path, documents: int, bits: int, *, merged: bool = False
) -> tuple[EmbeddedServer, Any, Planted]:
    """
    Return a running server whose index holds what :func:`plant` gives, its client, and that.

    The folder keeps the index, so that only the first call fills it. It has as many segments as writing it left, or
    one, where it is to be *merged*.
    """
    planted = plant(documents, bits)
    data = folder / f"{product}-{documents}-{bits}{'-merged' if merged else ''}"
    data.mkdir(parents=True, exist_ok=True)
    server = embedded_server(product, data=data, heap="2g")
    client = connect(server)
    if not (data / "filled").exists():
        fill(client, planted.fingerprints)
        if merged:
            client.indices.forcemerge(index=INDEX, max_num_segments=1)
        (data / "filled").touch()
    # Benchmarks ask the same questions again and again, users do not: no answer may come from the cache of filters.
    client.indices.close(index=INDEX)
    client.indices.put_settings(index=INDEX, body={"index": {"queries.cache.enabled": False}})
    client.indices.open(index=INDEX)
    client.cluster.health(index=INDEX, wait_for_status="green")
    return server, client, planted


def connect(server: EmbeddedServer) -> Any:
    """Return a client of the server's own kind."""
    if server.product == "opensearch":
        from opensearchpy import OpenSearch

        return OpenSearch([server.url], timeout=300)
    from elasticsearch import Elasticsearch

    return Elasticsearch(server.url, request_timeout=300)


def fill(client: Any, fingerprints: np.ndarray) -> None:
    """Index one document for each of *fingerprints*, with our fields and nothing else, in one shard."""
    client.indices.delete(index=INDEX, ignore_unavailable=True)
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
    SimHashClient(client).create_index(INDEX, settings=settings)
    write_documents(client, INDEX, fingerprints)
    client.indices.put_settings(index=INDEX, body={"index": {"refresh_interval": "1s"}})
    client.indices.flush(index=INDEX)


def write_documents(client: Any, index: str, fingerprints: np.ndarray, *, first: int = 0, chunk: int = 5_000) -> None:
    """
    Write a document that holds our fields and nothing else for each of *fingerprints*, and refresh.

    Its id is its position, counted from *first*.
    """
    signed = fingerprints.view(np.int64)
    for start in range(0, len(fingerprints), chunk):
        lines = []
        for position in range(start, min(start + chunk, len(fingerprints))):
            digits = f"{int(fingerprints[position]):016x}"
            blocks = ",".join(f'"block{i}":"{digits[4 * i : 4 * i + 4]}"' for i in range(4))
            lines.append(f'{{"index":{{"_id":"{first + position}"}}}}')
            lines.append(f'{{"simhash":{{"fingerprint":"{digits}",{blocks},"value":{int(signed[position])}}}}}')
        answer = client.bulk(index=index, body="\n".join(lines) + "\n")
        if answer["errors"]:
            raise RuntimeError(json.dumps(answer["items"][0]))
        if start % 100_000 == 0:
            print(f"{start:,} of {len(fingerprints):,} indexed", file=sys.stderr)
    client.indices.refresh(index=index)


if __name__ == "__main__":
    product, where, number, random_bits = sys.argv[1:]
    running, _, _ = serve(product, Path(where), int(number), int(random_bits))
    running.stop()
