"""Installs the ingest pipeline, once the server makes the bits of the probes, and lets an index use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from es_simhash.arguments import check_choice, check_server_name
from es_simhash.errors import InvalidInputError, SimHashError, shorten
from es_simhash.hashing import Scheme
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.meta import require_text_fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.pipeline.build import build_pipeline, purpose_of
from es_simhash.pipeline.script_source import find_differences, probe_documents
from es_simhash.record import Record
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.protocol import Index, check_index, error_text, status_of

UseAs: TypeAlias = Literal["default", "final"]

BAD_REQUEST, NOT_FOUND = 400, 404


@dataclass(frozen=True, slots=True)
class InstalledPipeline(Record):
    """
    What was installed.

    Attributes:
        name:
            Name of the pipeline.
        indices:
            The concrete indices that use it now; empty where it is only stored.
        use_as:
            How they use it: ``"default"`` or ``"final"``; ``None`` where it is only stored.
        scheme:
            The scheme of its fingerprints.
        text_fields:
            The fields that it reads.
    """

    name: str
    indices: tuple[str, ...]
    use_as: UseAs | None
    scheme: str
    text_fields: tuple[str, ...]


async def put_pipeline(
    server: Port, index: Index, name: str | None, use_as: UseAs | None, *, dry_run: bool = False
) -> InstalledPipeline:
    """
    Store the pipeline for *index*, and make it the default or the final pipeline of the indices behind it.
    Nothing is stored unless the server makes the right bits. SimHashError is raised if it does not, if it cannot run
    the script, or if another pipeline has the name or the place. InvalidInputError is raised if the index records no
    text field. Cost: seven requests.
    """
    check_index(index)
    check_choice("use_as", use_as, (None, "default", "final"))
    name = f"{server.prefix}-fingerprints" if name is None else check_server_name("name", name, of="a pipeline")
    resolved = await resolve_index(server, index)
    settings = agree(resolved, server.context)
    recorded = {name: of_index.text_fields for name, of_index in resolved.settings_of.items()}
    require_text_fields(recorded, "a pipeline does not know what to read")
    if not (text_fields := settings.text_fields):
        raise InvalidInputError(
            "the indices record different text fields, and a pipeline reads the same ones of every document: install "
            "one for each index"
        )
    pipeline = build_pipeline(
        scheme=settings.scheme, text_field=text_fields, prefix=server.prefix, value=settings.value
    )
    await _probe(server, pipeline, settings.scheme, text_fields[0], prefix=server.prefix)
    await _refuse_another(server, name, pipeline)
    if use_as is not None:
        await _refuse_others(server, resolved, use_as, name)
    users = tuple(resolved.settings_of) if use_as else ()
    if not dry_run:
        await server.put_pipeline(id=name, body=pipeline)
        if users:
            await server.put_settings(index=",".join(users), body={f"index.{use_as}_pipeline": name})
    return InstalledPipeline(name, users, use_as, str(settings.scheme), text_fields)


async def _probe(server: Port, pipeline: Mapping[str, Any], scheme: Scheme, text_field: str, *, prefix: str) -> None:
    """Let the server compute the fingerprints of the probes, without storing anything."""
    body = {"pipeline": pipeline, "docs": probe_documents(text_field, prefix=prefix)}
    try:
        answer = await server.simulate_pipeline(body=body)
    except Exception as error:
        if status_of(error) != BAD_REQUEST:
            raise
        raise SimHashError(
            f"the server does not run the script of the pipeline ({shorten(error_text(error), limit=200)}): "
            "compute the fingerprints with ingest or with_fingerprints",
        ) from error
    if differences := find_differences(answer["docs"], scheme, prefix=prefix):
        raise SimHashError(
            f"the server makes other bits for {len(differences)} of {len(answer['docs'])} probes, such as "
            f"{shorten(differences[0], limit=40)}: compute the fingerprints in Python, and report this with the "
            "versions of the server and its Java",
        )


async def _refuse_another(server: Port, name: str, pipeline: Mapping[str, Any]) -> None:
    """Refuse to overwrite a pipeline of somebody else, or one that computes something else for other indices."""
    answer = await unless_refused(server.get_pipeline(id=name), NOT_FOUND) or {}
    if name in answer and purpose_of(answer[name]) != purpose_of(pipeline):
        raise SimHashError(
            f"there is a pipeline {name!r} already, and it is not the one for these indices: pass another name, or "
            "delete it first",
        )


async def _refuse_others(server: Port, resolved: Resolved, use_as: UseAs, name: str) -> None:
    """Refuse to take the place of a pipeline that an index uses already."""
    setting = f"{use_as}_pipeline"
    answer = await server.get_settings(index=",".join(resolved.settings_of), name=f"index.{setting}")
    for index, held in sorted(answer.items()):
        found = (held["settings"].get("index") or {}).get(setting, "_none")
        if found not in ("_none", name):
            other = "final" if use_as == "default" else "default"
            raise SimHashError(
                f"index {index!r} has the {use_as} pipeline {found!r} already: call {name!r} from it by a pipeline "
                f"processor, or use the new one as the {other} pipeline",
            )
