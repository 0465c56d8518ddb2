"""
Fuzz targets: each takes bytes, makes an input of them, and checks what must hold for any input.

``run.py`` gives them bytes that atheris chooses by coverage (``make fuzz``), ``test_targets.py`` some that Hypothesis
makes. An error that is not documented escapes from the target, and is a finding.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from es_simhash import SimHashError
from es_simhash.cli.lines import Reader
from es_simhash.errors import InvalidInputError
from es_simhash.hashing.registry import get_scheme
from es_simhash.mapping.faults import find_faults
from es_simhash.mapping.meta import IndexSettings, build_settings, read_settings
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile, open_archived
from es_simhash.removal.review import removal_summary
from es_simhash.removal.take_decisions import take_in
from es_simhash.transport.protocol import Key

_KEYS = (
    "_meta", "es_simhash", "simhash", "scheme", "text_fields", "max_distance", "value", "name", "version", "parameters",
    "preprocess", "libraries", "digests", "properties", "type", "fields", "_source", "_id", "_index", "_op_type", "doc",
    "upsert", "script", "source", "lang", "body", "body.text", "fingerprint", "block0", "grouping", "size", "dynamic",
)  # fmt: skip
_VALUES = (
    "shingles", "keywords", "xxh3_64", "html", "keyword", "long", "index", "create", "update",
    "delete", "painless", "string", "0000000000000003", "simhash", "body", "a text with words", "\ud800", "",
    "ctx.n = 1", 0, 1, 2, 3, 64, 65, -1, 2**64, 1.5, float("nan"), True, False, None,
)  # fmt: skip

SCHEMES = tuple(map(get_scheme, ("shingles", "keywords")))


class Bytes:
    """Takes one choice after another from bytes; 0 when there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        """Return a number from 0 to *limit* - 1."""
        value = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return value % limit

    def rest(self) -> bytes:
        """Return all that is left."""
        return self._data[self._at :]

    def value(self, depth: int = 5) -> Any:
        """Return a value as JSON has them, with the words of this library in it."""
        kind = self.below(8) if depth else 7
        if kind < 4:
            return self.object(depth)
        if kind < 6:
            return [self.value(depth - 1) for _ in range(self.below(4))]
        return _VALUES[self.below(len(_VALUES))]

    def damaged(self, value: Any) -> Any:
        """Return a copy of *value* with one thing in it replaced, added or left out."""
        kind = self.below(8)
        if kind < 5 and isinstance(value, dict) and value:
            key = list(value)[self.below(len(value))]
            return {**value, key: self.damaged(value[key])}
        if kind == 5 and isinstance(value, dict) and value:
            return {key: value[key] for key in list(value)[1:]}
        if kind == 6 and isinstance(value, dict):
            return {**value, **self.object(2)}
        return self.value(2)

    def object(self, depth: int = 5) -> dict[str, Any]:
        """Return an object of such values."""
        return {_KEYS[self.below(len(_KEYS))]: self.value(depth - 1) for _ in range(self.below(7))}


def fuzz_meta(data: bytes) -> None:
    """A mapping is read, or refused by an error of ours; what was read survives being written and read again."""
    source = Bytes(data)
    entry = build_settings(scheme=SCHEMES[source.below(len(SCHEMES))], text_field="body", max_distance=8).to_dict()
    for _ in range(source.below(4)):
        entry = source.damaged(entry)
    fields = {name: source.object(1) for name in ("fingerprint", "block0", "value")[: source.below(4)]}
    # The servers see to it that _meta, properties and each field are objects; what stands in them is anybody's.
    mapping = {
        "_meta": {"es_simhash": {"simhash": entry}} if source.below(4) else source.object(),
        "properties": {"simhash": {"properties": fields} if source.below(2) else source.object(1)},
    }
    before = repr(mapping)
    try:
        find_faults(mapping)
        settings = read_settings(mapping)
    except SimHashError:
        return
    finally:
        assert repr(mapping) == before
    if settings is not None and not any(isinstance(each, float) for each in settings.extra.values()):
        assert IndexSettings.from_dict(json.loads(json.dumps(settings.to_dict()))).scheme == settings.scheme


def fuzz_records(data: bytes) -> None:
    """A file of any content is read to its end; its lines come in order, as a value or a reason on one line."""
    source = Bytes(data)
    name = ("a.jsonl", "a.csv", "a.csv.xz", "a.jsonl.gz")[source.below(4)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(source.rest())
        reader = Reader([str(path)])
        records = list(reader)
        assert reader.position == path.stat().st_size or records
    assert [each.line for each in records] == sorted(each.line for each in records)
    for each in records:
        assert each.reason is None or "\n" not in each.reason
        if each.reason is None:
            json.dumps(each.value, ensure_ascii=False, allow_nan=False).encode()


def fuzz_removal(data: bytes) -> None:
    """A removal that was changed is refused in one line, or read as it was written; only what is whole is restored."""
    source = Bytes(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "removal.db")
        whole = _plan(path)
        if source.below(4):
            place = (source.below(256) * 256 + source.below(256)) % len(whole)
            text = source.rest()
            path.write_bytes(whole[:place] + text + whole[place + (source.below(64) or len(text)) :])
        else:
            path.write_bytes(source.rest())
        lines = _usable(path, lambda path: _read(RemovalFile(path), list))
        assert lines is None or [each.document.id for each in lines] == ["b", "c"]
        found = _usable(path, lambda path: _read(open_archived(path, writes=False), None)) or []
        assert all(each in (None, *ARCHIVED) for each in found)


ARCHIVED = [Archived("i", id_, None, '{"n": 1.0}', Key("i", "z"), number) for number, id_ in enumerate("bc")]


def _read(removal: RemovalFile, lines: type[list[Any]] | None) -> list[Any]:
    with removal:
        return list(removal.removals() if lines else removal.archived())


def fuzz_decisions(data: bytes) -> None:
    """Decisions that were damaged never keep fewer documents of the plan; else they are refused in one line."""
    source = Bytes(data)
    with tempfile.TemporaryDirectory() as folder:
        path, file = Path(folder, "removal.db"), Path(folder, "decisions")
        _plan(path)
        head = {"format": "es-simhash-decisions", "version": 1, "by": "Ann", "at": "2026-11-27T10:00:00Z"}
        head |= {"plan_sha256": removal_summary(path)["plan"]}
        keep = [{"index": "i", "id": "b", "routing": None}]
        whole = json.dumps(head | {"keep": keep, "remove": []}).encode()
        place = (source.below(256) * 256 + source.below(256)) % len(whole)
        end = place + source.below(4)
        file.write_bytes(whole[:place] + source.rest() + whole[end:])
        with RemovalFile(path) as removal:
            _usable(file, lambda file: take_in(removal, [file]))
            assert removal.kept in (set(), {Key("i", "b")}, {Key("i", "c")})


def _usable(path: Path, read: Callable[[Path], Any]) -> Any:
    """Return what *read* returns; ``None`` where it refuses the file, in one line that names it."""
    try:
        return read(path)
    except InvalidInputError as error:
        message = str(error)
    assert str(path) in message
    assert "\n" not in message
    return None


def _plan(path: Path) -> bytes:
    """Make a removal, and return its bytes."""
    documents = [PlannedDocument(id_, "i", None, 1, 1, "", {"body": "text"}) for id_ in "abc"]
    with PlanWriter(path) as writer:
        for each in documents[1:]:
            writer.add(PlannedRemoval(each, documents[0], 2, 0.9, "same"))
        writer.finish(PlanHeader({"i": "u"}, "simhash", {}, 2, decided_by={"i": ("body",)}))
    with RemovalFile(path, writes=True) as removal:
        for each in ARCHIVED:
            removal.append([each], [each.line], "2026-11-27T10:00:00Z")
    return path.read_bytes()


TARGETS: dict[str, Callable[[bytes], None]] = {
    each.__name__.removeprefix("fuzz_"): each for each in (fuzz_meta, fuzz_records, fuzz_removal, fuzz_decisions)
}
