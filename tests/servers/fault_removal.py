"""Applies a plan of removal, or restores an archive, a few documents at a time. Tests of faults run it, and kill it."""

from __future__ import annotations

import sys

from es_simhash import SimHashClient
from es_simhash.removal.apply import apply_removal
from es_simhash.removal.make_plan import RemovalSizes
from es_simhash.removal.restore import restore
from tests.servers.fixtures import make_client
from tests.servers.servers import detect

SIZES = RemovalSizes(removed=3, restored=3)


def main(url: str, what: str, *files: str) -> None:
    """Do *what*, and print a line for each document."""
    with make_client(detect(url)) as client:
        simhash = SimHashClient(client)
        if what == "apply":
            path, *decisions = files
            flow = apply_removal(simhash._server(), path, decisions=decisions, sizes=SIZES)
        else:
            flow = restore(simhash._server(), files, sizes=SIZES)
        for each in simhash._stream(flow):
            print(f"{each.action}  {each.id}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
