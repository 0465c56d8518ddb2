"""``es-simhash export``: mapping, templates, pipeline and dashboards, to paste, import or install."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from es_simhash import (
    DEFAULT_SCHEME,
    Scheme,
    build_component_template,
    build_dashboards,
    build_index_template,
    build_mapping,
)
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import error, note, print_json, print_line, warn


@click.group(subcommand_metavar="WHAT [ARGS]...")
def command() -> None:
    """Print what a server, Kibana or Dashboards takes; --install --yes stores what this program can store itself."""


COMPONENT = "es-simhash"


@options.manual(
    "es-simhash export mapping --text-field body",
    "es-simhash export mapping --component-template",
    "es-simhash export mapping --index-template 'news-*'",
    group=command,
)
@click.option("--component-template", is_flag=True, help="Print a component template with the mapping.")
@click.option(
    "--index-template",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Print an index template for names that match PATTERN; it uses the component template. Repeatable.",
)
@click.option("--name", metavar="NAME", default=COMPONENT, help="Name of the component template.")
@options.text_field
@options.max_distance
@options.value_option(default=True)
@click.option("--passages", is_flag=True, help="Map hashes of passages too, which es-simhash passages needs.")
@click.option("--derived-source", is_flag=True, help="For indices of OpenSearch with derived source, without a marker.")
@options.scheme
@options.prefix
def mapping(
    patterns: tuple[str, ...],
    name: str,
    scheme: Scheme | str | None,
    *,
    component_template: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Print the mapping, or a template. Needs no server.

    The mapping has our fields, and in _meta the scheme that fills them. Put your own fields beside ours. es-simhash
    create sends the mapping for you.
    """
    if component_template and patterns:
        raise click.UsageError("pass only one of --component-template and --index-template")
    how["scheme"] = scheme or DEFAULT_SCHEME
    if component_template:
        shown = build_component_template(**how)
    elif patterns:
        shown = build_index_template(patterns, component=name)
    else:
        shown = build_mapping(**how)
    print_json(shown, indent=None if as_json else 2)


@options.manual(
    "es-simhash export pipeline --text-field body > pipeline.json",
    "es-simhash export pipeline news --install --use-as final",
    "es-simhash export pipeline news --install --use-as final --yes",
    group=command,
)
@click.argument("index", required=False)
@options.text_field
@click.option("--name", metavar="NAME", help="Name of the pipeline; by default simhash-fingerprints, with your prefix.")
@click.option(
    "--install",
    is_flag=True,
    help="Store the pipeline on the server, for INDEX and the text field it records; needs --yes.",
)
@options.yes_for("--install")
@click.option(
    "--use-as",
    type=click.Choice(["default", "final"]),
    help="With --install: let INDEX use it, for documents that name no other pipeline (default), or for every document "
    "after all other pipelines (final).",
)
@options.value_option(default=True)
@options.scheme
@options.target
def pipeline(
    index: str | None,
    text_field: tuple[str, ...],
    name: str | None,
    use_as: Any,
    target: Target,
    *,
    install: bool,
    yes: bool,
    value: bool,
    as_json: bool,
) -> None:
    """
    Print the pipeline that fingerprints, or install it.

    Any program can then write to INDEX: the fingerprints are those of Python, bit for bit. With --install the server
    proves that on probes, and with --yes it then stores the pipeline. Only the scheme shingles can be computed on a
    server.
    """
    from es_simhash import build_pipeline  # noqa: PLC0415 -- loads numpy

    if install:
        if index is None:
            raise click.UsageError("--install needs INDEX, which says what the pipeline computes")
        if text_field:
            raise click.UsageError("--install takes no --text-field: INDEX records its text field and scheme")
        with connect(target, index) as connection:
            installed = connection.simhash.put_pipeline(index, name=name, use_as=use_as, dry_run=not yes)
        users = f"; {', '.join(installed.indices)} use it as {use_as} pipeline" if installed.indices else ""
        said = f"{'stored' if yes else 'would store'} pipeline {installed.name}, scheme {installed.scheme}{users}"
        said += "" if yes else "; nothing changed, pass --yes to do it"
        print_json({**installed.to_dict(), "dry_run": not yes}) if as_json else print_line(said)
        return
    if use_as is not None or yes:
        raise click.UsageError("--use-as and --yes go with --install: pass it too, and INDEX")
    if not text_field:
        raise click.UsageError("pass --text-field FIELD, the field that the text comes from")
    pipeline = build_pipeline(
        scheme=target.scheme or DEFAULT_SCHEME, text_field=text_field, prefix=target.prefix, value=value
    )
    print_json(pipeline, indent=None if as_json else 2)


@options.manual(
    "es-simhash export search-template > search-template.json",
    group=command,
)
@options.prefix
def search_template(prefix: str, *, as_json: bool) -> None:
    """
    Print the stored search template of lookups.

    It finds near-duplicates up to 3 bits, and any index can use it.
    """
    from es_simhash import build_search_template  # noqa: PLC0415 -- loads numpy

    print_json(build_search_template(prefix=prefix), indent=None if as_json else 2)


@options.manual(
    "es-simhash export dashboards news --time-field published --source-field agency -t body --check > pack.ndjson",
    "es-simhash export dashboards 'news-*' --time-field @timestamp --check > pack.ndjson",
    group=command,
)
@click.argument("index")
@options.time_field
@options.source_field
@click.option("-t", "--text-field", metavar="FIELD", help="Field whose text is shown.")
@click.option(
    "--check",
    is_flag=True,
    help="Ask the server whether these fields are mapped as the panels need them. Without --text-field the pack then "
    "shows the text field that the index records.",
)
@options.target
def dashboards(index: str, target: Target, *, check: bool, as_json: bool, **fields: Any) -> int:
    """
    Print saved objects for Kibana and Dashboards, as NDJSON.

    They are for Kibana 8 and 9 and OpenSearch Dashboards 2 and 3. No server is asked without --check. The pack has
    a data view of INDEX, saved searches, charts, and two dashboards: all near-duplicates, and one group. Import the
    file under Saved objects, or with POST /api/saved_objects/_import, whose successCount must be the number of
    lines: the status 200 does not tell. INDEX may be a name, an alias, a data stream, a pattern, or several of them
    separated by commas.
    """
    del as_json  # the pack is JSON anyway, and messages look at the command line
    if not check:
        objects: Iterable[Any] = build_dashboards(index, **fields, prefix=target.prefix)
    else:
        with connect(target, index) as connection:
            pack = connection.simhash.make_dashboards(index, **fields)
        if pack.text_field != fields["text_field"]:
            note(f"the pack shows the text field {pack.text_field}, which the index records")
        for lacking in pack.lacking:
            note(lacking)
        for fault in pack.faults:
            (error if fault.is_fatal else warn)(f"{fault}: {pack.advice(fault)}", **asdict(fault))
        if any(fault.is_fatal for fault in pack.faults):
            return 1
        objects = pack.objects
    for saved in objects:
        print_json(saved)
    return 0
