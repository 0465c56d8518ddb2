"""
What finding all pairs may use of the machine: threads, memory, and a file for what memory does not hold.

Values only: no thread is started and no file is opened here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from es_simhash.arguments import check_count

__all__ = ["Resources"]

MOST_THREADS = 1_024
LEAST_BYTES = 1 << 20
MOST_BYTES = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """
    What finding all pairs may use.

    Attributes:
        threads:
            How many threads search; ``None`` for one for each core.
        memory_bytes:
            How much all threads together sort at once, in bytes; ``None`` for 2 GiB. Fingerprints, ids and the pairs
            of a grouping come on top.
        spill:
            Opens an empty temporary file, for the pairs that memory does not hold; ``None`` keeps all in memory.

    Raises:
        TypeError: If threads or memory_bytes is no int.
        InvalidInputError: If one is out of range.
    """

    threads: int | None = None
    memory_bytes: int | None = None
    spill: Callable[[], IO[bytes]] | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_count("threads", self.threads, 1, MOST_THREADS)
        if self.memory_bytes is not None:
            check_count("memory_bytes", self.memory_bytes, LEAST_BYTES, MOST_BYTES)
