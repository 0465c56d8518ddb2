"""What tests of ``restore`` share: archives, written as a removal writes them, and documents as bytes."""

from __future__ import annotations

import json
import urllib.request
from urllib.parse import quote

from es_simhash import fingerprint_fields
from es_simhash.hashing import fingerprint
from es_simhash.mapping.mapping import build_mapping
from es_simhash.removal.records import Archived, PlannedRemoval
from es_simhash.removal.removal_file import RemovalFile
from tests.servers.removals import document, write_plan
from tests.servers.support import send_lines

AT = "2026-11-22T00:00:00.000Z"


def raw_source(server, index, id_, routing=None):
    """Return the bytes of a document's ``_source``."""
    more = "" if routing is None else f"?routing={quote(routing)}"
    with urllib.request.urlopen(f"{server.url}/{index}/_source/{quote(id_, safe='')}{more}") as answer:  # noqa: S310
        return answer.read()


def put_raw(server, index, id_, source, routing=None):
    """Index a document whose ``_source`` has exactly this text."""
    header = {"index": {"_index": index, "_id": id_} | ({} if routing is None else {"routing": routing})}
    body = f"{json.dumps(header)}\n{source}\n".encode()
    answer = server.request("POST", "/_bulk?refresh=true", body)
    assert not answer["errors"], answer


def write_archive(path, rows, at=AT):
    """Make a removal that archived ``(index, id, routing, source, canonical)``."""
    lines = [
        PlannedRemoval(document(id_, index, routing), document(canonical, index), 3, 0.9, "same")
        for index, id_, routing, _, canonical in rows
    ]
    write_plan(path, lines, grouping={"rule": "star"}, at=at)
    with RemovalFile(path, writes=True) as removal:
        for number, (line, row) in enumerate(zip(lines, rows, strict=True)):
            removal.append([Archived(*line.document.key, row[3], line.canonical.key, number, 3)], [number], at)
    return path


def delete(server, index, ids):
    """Delete documents as another program would."""
    send_lines(server, [{"delete": {"_index": index, "_id": id_}} for id_ in ids])


def source_of(text, **more):
    """Return a source with its fingerprint."""
    return json.dumps({"body": text, **more, **fingerprint_fields(fingerprint(text))})


def map_index(server, index):
    """Make *index* with our mapping, and with a field whose values may be anything; return its name."""
    mapping = build_mapping(text_field="body")
    mapping["properties"] |= {"body": {"type": "text"}, "odd": {"type": "object", "enabled": False}}
    server.request("PUT", f"/{index}", {"mappings": mapping})
    return index
