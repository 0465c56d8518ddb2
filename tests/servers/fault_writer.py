"""A writer in a process of its own, to be killed: ingests numbered documents, or backfills. Run by the fault tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from es_simhash import SimHashClient
from es_simhash.upkeep import backfill


def main(product, url, job, index, file=None, *rest):
    """Do *job*: an ingest has the documents in *file*, one JSON object a line."""
    if product == "opensearch":
        from opensearchpy import OpenSearch

        client = OpenSearch([url], timeout=120)
    else:
        from elasticsearch import Elasticsearch

        client = Elasticsearch([url], request_timeout=120)
    simhash = SimHashClient(client)
    if job == "ingest":
        documents = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
        for report in simhash.ingest(index, documents, max_distance=int(rest[0]), verify=False):
            assert report.action in ("written", "tagged", "unchanged"), report
    else:
        backfill.PAGE_DOCUMENTS = 20
        for _ in simhash.backfill(index, text_field="body"):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
