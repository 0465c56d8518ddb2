"""What tests of removals share: an index with duplicates, and what must be true of it and of its file afterwards."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import zlib
from collections import Counter
from contextlib import closing, contextmanager
from types import SimpleNamespace

from es_simhash.removal import apply as apply_module
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import PlannedDocument
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from es_simhash.removal.take_decisions import take_in
from tests.servers.support import ONE_SHARD, read_all, send_lines

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost and its use."
OTHER = "Rain is expected in the north until Friday evening, and snow above a thousand metres in the mountains."
ALL = {"max_share": 1.0}
DELETED = ("deleted", None)
sources = read_all


def fill(server, index, simhash, documents, *, settings=ONE_SHARD, mappings=None):
    """Make *index* with *documents* (id to text, or to a source), fingerprinted as another program leaves them."""
    simhash.create_index(index, text_field="body", settings=settings, mappings=mappings)
    lines = []
    for id_, source in documents.items():
        lines.append({"index": {"_index": index, "_id": id_}})
        lines.append({"body": source} if isinstance(source, str) else source)
    send_lines(server, lines)
    list(simhash.backfill(index))


def copies(count):
    """Return a canonical and *count* copies of each of two texts; ids that sort first are canonical."""
    found = {"a": TEXT, "r": OTHER}
    for number in range(count):
        found[f"b{number:04d}"] = TEXT.upper()
        found[f"s{number:04d}"] = OTHER + "!"
    return found


def archived(path):
    """Return id to source of what a removal archived, read by nothing of ours; each must be whole, and none twice."""
    plain = lines_of(path)
    assert len({(each["_index"], each["_id"], each["_routing"]) for each in plain}) == len(plain)
    return {each["_id"]: each["_source"] for each in plain}


def outcomes(records):
    """Return id to action and kind."""
    return {each.id: (each.action, each.kind) for each in records}


def delete_duplicates(simhash, index, path, **options):
    """Plan and apply at once."""
    simhash.plan_removal(index, path, **options)
    return simhash.apply_removal(path)


def change(server, index, id_, **fields):
    """Change fields of a document, as another program does, without a refresh."""
    server.request("POST", f"/{index}/_update/{id_}", {"doc": fields})


def plan_again(simhash, index, path, **options):
    """Plan in a file whose name is taken by another plan."""
    path.unlink(missing_ok=True)
    return simhash.plan_removal(index, path, **options)


def read_plan(path):
    """Return the plan in the file of a removal, which is whole: its header, SHA-256 and lines."""
    with RemovalFile(path) as removal:
        return SimpleNamespace(header=removal.header, sha256=removal.sha256, lines=list(removal.removals()))


def document(id_, index="news", routing=None, **fields):
    """Return a document of a plan, with values to show."""
    return PlannedDocument(id_, index, routing, 1, 1, "", fields)


def write_plan(path, lines, **header):
    """Write a plan, as no server would make it, in the place of what is there; return its SHA-256."""
    path.unlink(missing_ok=True)
    indices = {row.index for line in lines for row in (line.document, line.canonical)} | {"news"}
    fields = dict.fromkeys(indices, ("body",))
    names = {"index_uuids": dict.fromkeys(indices, "uuid"), "decided_by": fields, "text_fields": fields}
    with PlanWriter(path) as writer:
        for line in lines:
            writer.add(line)
        return writer.finish(PlanHeader(**names | {"prefix": "simhash", "grouping": {}, "count": len(lines)} | header))


def lines_of(path):
    """Return what a removal archived, in order, read by nothing of ours."""
    found = []
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "SELECT line, name, id, routing, canonical_name, canonical_id, data, begin, length FROM archived"
            " JOIN texts ON texts.number = archived.text ORDER BY archived.number"
        )
        for line, name, id_, routing, canonical_name, canonical_id, data, begin, length in rows:
            text = zlib.decompress(data)[begin : begin + length].decode("utf-8", "surrogatepass")
            where = {"_index": name, "_id": id_, "_routing": routing}
            canonical = {"index": canonical_name, "id": canonical_id}
            found.append({**where, "_source": json.loads(text), "text": text, "canonical": canonical, "line": line})
    return found


def events_of(path):
    """Return what a removal did with each line, in order: id and kind."""
    with closing(sqlite3.connect(path)) as database:
        query = "SELECT json_extract(lines.line, '$.id'), kind FROM events JOIN lines ON lines.number = events.line"
        return database.execute(f"{query} ORDER BY events.line, events.number").fetchall()


def damage(path, *statements, **values):
    """Change the file of a removal as another program could."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement, values)


def decide_file(path, plan, keep, remove=(), *, by="Ann", reason="", at="2026-11-27T10:00:00Z"):
    """Write a file of decisions about the plan with the SHA-256 *plan*, and return its name."""
    names = ("index", "id", "routing")
    kept, removed = ([dict(zip(names, key, strict=True)) for key in keys] for keys in (keep, remove))
    plain = {"format": "es-simhash-decisions", "version": 1, "plan_sha256": plan, "by": by, "at": at, "reason": reason}
    path.write_text(json.dumps(plain | {"keep": kept, "remove": removed}))
    return path


def take(path, *files):
    """Take files of decisions into a removal, and return all that was decided there."""
    with RemovalFile(path, writes=True) as removal:
        take_in(removal, files)
        return list(removal.log)


@contextmanager
def file_size_limit(size):
    """Let no file of this process grow beyond *size* bytes, as on a disk that is full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Killed(BaseException):
    """What ends a run as a kill would, as far as the files and the server can tell."""


def meddle(monkeypatch, what, *, times=1):
    """Do *what* after the documents were read and archived, and before they are deleted."""
    delete = apply_module.delete_documents
    left = Counter(times=times)

    async def first(port, versions, done):
        left["times"] -= 1
        if left["times"] >= 0:
            what()
        await delete(port, versions, done)

    monkeypatch.setattr(apply_module, "delete_documents", first)


def leave_unfinished(path):
    """Leave the file of a removal as a program does that is killed while it writes, with its journal."""
    script = (
        "import os, signal, sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "database.execute('PRAGMA cache_size(1)')\n"
        "database.execute('BEGIN')\n"
        "database.execute('UPDATE lines SET line = line || printf(?, 9000)', ('%*d',))\n"
        "database.execute('DELETE FROM archived')\n"
        "database.execute('INSERT INTO texts (data) VALUES (zeroblob(99999))')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
