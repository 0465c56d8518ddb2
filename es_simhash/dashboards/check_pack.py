"""Reads what a pack needs of an index: its text field, and whether the fields of the panels are mapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from es_simhash.dashboards.pack import build_dashboards
from es_simhash.dashboards.subject import Subject, find_pack_faults
from es_simhash.errors import WRITE_RECORD, Said
from es_simhash.mapping.meta import read_settings
from es_simhash.mapping.port import Port
from es_simhash.mapping.user_fields import FieldFault
from es_simhash.transport.retry import retry

_ADVICE: Mapping[str, str] = {
    "no_index": "check the name",
    "not_mapped": "give another field",
    "no_date": "give a field of type date",
    "no_keyword": "give a field of type keyword",
    "no_doc_values": "give a field with doc values",
}


@dataclass(frozen=True, slots=True)
class DashboardPack:
    """
    Saved objects about an index, and what is wrong with the fields that they show.

    Attributes:
        objects:
            As :func:`build_dashboards` returns them.
        text_field:
            Field whose text is shown: the one given, else the first that the index records; ``None`` without any.
        faults:
            Fields that the panels cannot use; where one ``is_fatal``, a panel shows an error, or nothing at all.
        prefix:
            Name of the object that holds our fields.
    """

    objects: tuple[Mapping[str, Any], ...]
    text_field: str | None
    faults: tuple[FieldFault, ...]
    prefix: str

    def advice(self, fault: FieldFault) -> str:
        """Return what to do about one of the faults."""
        if fault.kind == "not_mapped" and fault.field.startswith(f"{self.prefix}."):
            return Said("add the fields of es_simhash with ", WRITE_RECORD)
        return _ADVICE[fault.kind]


async def read_pack(server: Port, subject: Subject) -> DashboardPack:
    """Return the pack of *subject*, with the recorded text field where it has none. Cost: one request."""
    answer = await retry(server, lambda: server.get_mapping(index=subject.index))
    mappings = {name: dict(each.get("mappings") or {}) for name, each in dict(answer).items()}
    if subject.text_field is None:
        recorded = (read_settings(mapping, prefix=subject.prefix) for mapping in mappings.values())
        names = [each.text_fields[0] for each in recorded if each and each.text_fields]
        subject = replace(subject, text_field=names[0] if names else None)
    objects = build_dashboards(**asdict(subject))
    return DashboardPack(tuple(objects), subject.text_field, tuple(find_pack_faults(subject, mappings)), subject.prefix)
