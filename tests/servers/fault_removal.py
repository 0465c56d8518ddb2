"""Applies a plan of removal, a few documents at a time. Tests of faults run it, and kill it."""

import sys

from es_simhash import SimHashClient
from es_simhash.removal import apply
from tests.servers.fixtures import make_client
from tests.servers.servers import detect

apply.BATCH_DOCUMENTS = 3

if __name__ == "__main__":
    url, path = sys.argv[1:]
    with make_client(detect(url)) as client:
        for record in SimHashClient(client).apply_removal(path):
            print(f"{record.action}  {record.id}", flush=True)  # noqa: T201 -- the test reads it
