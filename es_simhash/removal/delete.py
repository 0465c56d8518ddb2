"""
Deletes documents of a known version, and writes archived documents back without overwriting any. A client may send a
request again after its answer was lost, and the second answer is a conflict (409). So what was not confirmed is read
again: a document that is gone was deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import IncompleteSearchError, shorten
from es_simhash.mapping.port import Port
from es_simhash.removal.may_delete import Version, is_unreadable, is_written, version_of
from es_simhash.removal.records import Archived, PlannedDocument
from es_simhash.transport.conversation import rounds
from es_simhash.transport.protocol import Key
from es_simhash.transport.refusals import may_be_lost
from es_simhash.writes.bulk import CONFLICT, MISSING, send_bulk, send_surely
from es_simhash.writes.operations import Operation, Outcome, Refusal


@dataclass(frozen=True, slots=True)
class Deletion:
    """The outcome of a deletion; *refusal* is ``None`` if the document is gone, or has another version now."""

    is_deleted: bool
    refusal: Refusal | None = None


async def read_documents(
    server: Port, keys: Sequence[Key], *, with_source: bool = False
) -> dict[Key, Mapping[str, Any]]:
    """
    Return the multi-get item of each document as it is now, whether a search can see it or not; *with_source* as text.
    A document that the server cannot read now is asked for up to nine times; its last item has the error.
    """
    found: dict[Key, Mapping[str, Any]] = {}

    async def read(waiting: Sequence[Key]) -> list[Key]:
        # A document that says that its _source is wanted gets none of the vectors in it.
        docs = [key.header() | ({} if with_source else {"_source": False}) for key in waiting]
        answer = await server.patient.mget(body={"docs": docs}, raw_source=with_source)
        for key, item in zip(waiting, answer["docs"], strict=True):
            # A source that was asked for and did not come is one without fields.
            found[key] = {"_source": "{}", **item} if with_source and item.get("found") else item
        return [key for key in waiting if is_unreadable(found[key])]

    await rounds(server, list(dict.fromkeys(keys)), read)
    return found


async def read_planned(server: Port, documents: Sequence[PlannedDocument]) -> dict[Key, Mapping[str, Any]]:
    """Return what :func:`read_documents` does; those that were written since the plan have their source."""
    items = await read_documents(server, [document.key for document in documents])
    written = [document.key for document in documents if is_written(document, items[document.key])]
    return items | await read_documents(server, written, with_source=True)


async def delete_documents(server: Port, versions: Mapping[Key, Version], done: dict[Key, Deletion]) -> None:
    """
    Delete documents, each only in the version that is given; note each outcome in *done* as soon as it is known.
    IncompleteSearchError: it cannot be read whether a document was deleted.
    """
    failures: list[Exception | None] = []

    async def delete(waiting: Sequence[Key]) -> list[Key]:
        failure, outcomes = await _send(server, {key: versions[key] for key in waiting})
        failures.append(failure)
        unsure = {}
        for key, outcome in zip(waiting, outcomes, strict=True):
            if outcome is not None and outcome.is_done:
                done[key] = Deletion(is_deleted=True)
            else:
                unsure[key] = outcome
        return await _judge(server, unsure, versions, done)

    left = await rounds(server, list(versions), delete)
    if left and (failure := failures[-1]) is not None:
        raise failure


async def _send(server: Port, versions: Mapping[Key, Version]) -> tuple[Exception | None, Sequence[Outcome | None]]:
    """Return the outcome of each deletion; ``None``, and the failure, where perhaps only the answer was lost."""
    try:
        headers = [
            key.header() | {"if_seq_no": number, "if_primary_term": term} for key, (number, term) in versions.items()
        ]
        return None, await send_bulk(server, [Operation("delete", header) for header in headers])
    except Exception as error:
        if not may_be_lost(error):
            raise
        return error, [None] * len(versions)


async def _judge(
    server: Port, unsure: Mapping[Key, Outcome | None], versions: Mapping[Key, Version], done: dict[Key, Deletion]
) -> list[Key]:
    """Note what became of documents whose deletion was not confirmed, and return those to delete again."""
    again = []
    items = await read_documents(server, list(unsure))
    for key, outcome in unsure.items():
        item = items[key]
        if is_unreadable(item):
            raise IncompleteSearchError(
                f"whether document {shorten(key.id)} was deleted could not be read: run the same command again",
                reasons=(str(item["error"]),),
            )
        if not item.get("found"):
            done[key] = Deletion(is_deleted=True)
        elif version_of(item) != versions[key]:
            done[key] = Deletion(is_deleted=False)
        else:
            refusal = None if outcome is None else outcome.error
            done[key] = Deletion(is_deleted=False, refusal=refusal or Refusal(503, reason="no answer"))
            # A bulk request has waited for a busy server already.
            if outcome is None or outcome.status in (MISSING, CONFLICT):
                again.append(key)
    return again


# What both products say where a document is to be created in a backing index.
_BACKING = "targeting backing indices is disallowed"
_HALF = re.compile("[\ud800-\udfff]")


async def put_back(
    server: Port, documents: Sequence[Archived], *, indices: Mapping[str, str] | None = None
) -> list[Outcome]:
    """
    Create *documents*, and return the outcome of each; status 409 if a document has its id.
    *indices*: the index to write to, by the name of the index that the document was removed from; by default the same.
    Raises the client's exception if the server cannot be reached, or does not answer, in all attempts.
    """
    targets = dict(indices or {})
    outcomes = await _create(server, documents, targets)
    refused = [n for n, created in enumerate(outcomes) if created.error is not None and _BACKING in str(created.error)]
    if refused:
        targets |= await find_streams(server)
        again = await _create(server, [documents[n] for n in refused], targets)
        for n, outcome in zip(refused, again, strict=True):
            outcomes[n] = outcome
    return outcomes


async def _create(server: Port, documents: Sequence[Archived], targets: Mapping[str, str]) -> list[Outcome]:
    # A document whose answer was lost is a conflict now.
    return await send_surely(
        server, [_create_operation(document, targets.get(document.index, document.index)) for document in documents]
    )


def _create_operation(archived: Archived, index: str) -> Operation:
    # A default pipeline has changed the document when it was first written.
    header = {**Key(index, archived.id, archived.routing).header(), "pipeline": "_none"}
    # Half a character is no UTF-8; inside a string of JSON its escape means the same.
    source = _HALF.sub(lambda match: f"\\u{ord(match[0]):04x}", archived.source)
    # A line break is a blank between values, and would be the end of the operation, and the rest others.
    source = source.replace("\r", " ").replace("\n", " ")
    return Operation("create", header, source)


async def find_streams(server: Port) -> dict[str, str]:
    """Return the data stream of each backing index; one that is part of no stream any more is not in it."""
    answer = await server.patient.get_data_stream(name="*")
    return {backing["index_name"]: stream["name"] for stream in answer["data_streams"] for backing in stream["indices"]}
