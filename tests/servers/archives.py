"""What tests of ``restore`` share: archives, written as a removal writes them, and documents as bytes."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from urllib.parse import quote

from es_simhash import fingerprint_fields
from es_simhash.hashing import fingerprint
from es_simhash.mapping.mapping import build_mapping
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from es_simhash.transport.protocol import Key
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


def write_archive(path, lines, at=AT, header=None):
    """Make a removal that archived ``(index, id, routing, source, canonical)``."""
    removals = [
        PlannedRemoval(
            PlannedDocument(id_, index, routing, 1, 1, "d"),
            PlannedDocument(canonical, index, None, 1, 1, "d"),
            3,
            0.9,
            "same",
        )
        for index, id_, routing, _, canonical in lines
    ]
    uuids = {each.document.index: "u" for each in removals}
    fields = dict.fromkeys(uuids, ())
    with PlanWriter(path) as writer:
        for each in removals:
            writer.add(each)
        found = header or PlanHeader(uuids, "simhash", {"rule": "star"}, at=at, decided_by=fields)
        writer.finish(replace(found, count=len(removals)))
    archived = [
        Archived(index, id_, routing, source, Key(index, canonical), number, 3)
        for number, (index, id_, routing, source, canonical) in enumerate(lines)
    ]
    with RemovalFile(path, writes=True) as removal:
        for begin in range(0, len(archived), 3):
            part = archived[begin : begin + 3]
            removal.append(part, [each.line for each in part], at)
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
