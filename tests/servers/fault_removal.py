"""Applies a plan of removal, or restores an archive, a few documents at a time. Tests of faults run it, and kill it."""

from __future__ import annotations

import sys

from es_simhash import SimHashClient
from es_simhash.removal import apply, restore
from tests.servers.fixtures import make_client
from tests.servers.servers import detect

apply.BATCH_DOCUMENTS = restore.BATCH_DOCUMENTS = 3


def main(url: str, what: str, *files: str) -> None:
    """Do *what*, and print a line for each document."""
    with make_client(detect(url)) as client:
        simhash = SimHashClient(client)
        if what == "apply":
            path, *decisions = files
            records = simhash.apply_removal(path, decisions=decisions)
        else:
            records = simhash.restore(files)
        for each in records:
            print(f"{each.action}  {each.id}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
