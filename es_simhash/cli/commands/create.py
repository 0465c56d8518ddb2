"""``es-simhash create``, ``remove-fields``, ``index-template``, ``pipeline`` and ``mapping``: what an index needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.input_files import read_text
from es_simhash.cli.options import PRODUCTS, Target
from es_simhash.cli.output import (
    count,
    dry_run_ending,
    failures_as_json,
    note,
    print_failures,
    print_json,
    print_line,
    print_text,
    to_json,
)
from es_simhash.cli.parameter_types import INPUT_FILE, JSON
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.mapping.mapping import build_component_template, build_index_template, build_mapping
from es_simhash.mapping.rule import PairRule, what_it_misses


@options.manual(
    "es-simhash create news --text-field title --text-field body --max-distance 8",
    "es-simhash create news --text-field body --mappings own.json --settings '{\"number_of_shards\": 3}'",
    "es-simhash create news --existing --text-field body --yes",
    "es-simhash create news --existing --passages --yes && es-simhash backfill news",
)
@click.argument("index")
@options.text_field
@options.max_distance
@click.option("--existing", is_flag=True, help="Add the fields to an index that exists; needs --yes.")
@click.option("--mappings", metavar="FILE", type=INPUT_FILE, help="JSON file with the mapping of your own fields.")
@click.option("--settings", type=JSON, metavar="JSON", help="Settings of the index, as in '{\"number_of_shards\": 1}'.")
@options.value_option(default=None)
@options.passages
@click.option("--dry-run", is_flag=True, help="Without --existing: say what would be created, and create nothing.")
@options.yes_for("--existing")
@options.scheme
@options.target
def command(
    index: str,
    mappings: str | None,
    settings: Any,
    target: Target,
    *,
    existing: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Create INDEX with the fields, or add the fields to it.

    The mapping records the scheme, the text fields and the distance, so that other commands know them. Documents
    that are already in the index have no fingerprint until you run es-simhash backfill. With --existing what is not
    given stays as the mapping records it, and what is given takes its place.
    """
    if existing and (mappings or settings is not None):
        raise click.UsageError("--mappings and --settings are for a new index: leave them out with --existing")
    if dry_run if existing else yes:
        raise click.UsageError("--dry-run is for a new index, and --yes goes with --existing")
    own = None if mappings is None else _read_mappings(mappings)
    with connect(target, index) as connection:
        if existing:
            changed = connection.simhash.put_mapping(index, dry_run=not yes, **how)
            report: dict[str, Any] = {"changed": changed} if yes else {"would_change": changed}
            line = f"{'added the fields' if yes else 'would add the fields'} to {', '.join(changed)}"
            line += "" if yes else f"{_recorded(**how)}; nothing changed, pass --yes to do it"
        else:
            how |= {"value": how["value"] is not False, "passages": bool(how["passages"])}
            made = connection.simhash.create_index(index, mappings=own, settings=settings, dry_run=dry_run, **how)
            if dry_run and connection.client.indices.exists(index=index):
                raise InvalidInputError(f"index {shorten(index)} exists: add the fields to it with --existing")
            report = {"would_create" if dry_run else "created": index, "dry_run": dry_run, **made.to_dict()}
            line = f"{'would create' if dry_run else 'created'} {index}, scheme {made.scheme}"
            line += dry_run_ending(is_dry=dry_run)
    if as_json:
        print_json(report)
    else:
        print_line(line)
    if how["max_distance"] is not None and (missed := what_it_misses(PairRule(how["max_distance"]))):
        note(f"the index records {count(how['max_distance'], 'bit')}: {missed}")


def _recorded(*, text_field: tuple[str, ...], max_distance: int | None, **_: Any) -> str:
    parts = [f"the text fields {', '.join(text_field)}"] if text_field else []
    parts += [] if max_distance is None else [f"the distance {max_distance}"]
    return f", and record {' and '.join(parts)}" if parts else ""


def _read_mappings(path: str) -> dict[str, Any]:
    try:
        mapping = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{shorten(path)} is not JSON ({error}): give a mapping, as GET INDEX/_mapping shows it"
        ) from error
    # People have two forms: what goes below "mappings", and a body with that key.
    if isinstance(mapping, dict) and isinstance(mapping.get("mappings"), dict):
        mapping = mapping["mappings"]
    if not isinstance(mapping, dict):
        raise InvalidInputError(f'{shorten(path)} is not a mapping: give {{"properties": ...}}')
    return mapping


@options.manual(
    "es-simhash remove-fields news",
    "es-simhash remove-fields news --groups-only --yes",
    "es-simhash remove-fields news --prefix body_hash --yes",
)
@click.argument("index")
@click.option("--groups-only", is_flag=True, help="Remove only the group fields and the recorded grouping.")
@options.yes
@options.target
def remove_fields(index: str, target: Target, *, groups_only: bool, yes: bool, as_json: bool) -> int:
    """
    Remove the fields from each document of INDEX, and from the _meta of its mapping.

    Your own fields stay. The mapping keeps our fields, without values, because no server can remove a field from a
    mapping. With --groups-only the fingerprints stay: that undoes what reconcile and tag have written.
    """
    with connect(target, index) as connection, say_if_stopped():
        removed = connection.simhash.remove_fields(index, groups_only=groups_only, dry_run=not yes)
    if as_json:
        print_json(asdict(removed) | {"failures": failures_as_json(removed.failures)})
    else:
        what = "the groups" if groups_only else repr(target.prefix)
        where = f", and from _meta in the mapping of {', '.join(removed.indices)}" if removed.indices else ""
        done, hint = ("removed", "") if yes else ("would remove", "; nothing changed, pass --yes to do it")
        print_line(f"{done} {what} from {count(removed.documents, 'document')}{where}{hint}")
    print_failures(removed.failures)
    return 1 if removed.failures else 0


@options.manual(
    "es-simhash index-template news",
    "es-simhash index-template news --install",
    "es-simhash index-template news --install --yes",
    "es-simhash index-template news --json",
)
@click.argument("name")
@options.text_field
@click.option("--install", is_flag=True, help="Store the template on the server; needs --yes.")
@options.yes_for("--install")
@options.scheme
@options.target
def index_template(
    name: str, text_field: tuple[str, ...], target: Target, *, install: bool, yes: bool, as_json: bool
) -> None:
    """
    Put the fields into the index template of NAME, so that what a rollover creates has them.

    NAME is an alias or a data stream, whose template is looked up, or an index template. The difference is shown. New
    indices record what the indices there do; --text-field and --scheme are for a template without indices. No server
    writes a template on condition: with --yes, let nobody else change it at the same time.
    """
    if yes and not install:
        raise click.UsageError("--yes goes with --install: pass both to store the template")
    with connect(target, name) as connection:
        change = connection.simhash.put_index_template(name, text_field=text_field, dry_run=not yes)
    if as_json:
        print_json({**change.to_dict(), "changed": change.before != change.after})
    elif change.before == change.after:
        print_line(f"index template {change.name} gives new indices the fields already; nothing to store")
    else:
        for line in change.difference.splitlines():
            print_line(line)
        hint = "--yes" if install else "--install --yes"
        undone = f"would change index template {change.name}; nothing changed, pass {hint} to do it"
        print_line(f"stored index template {change.name}" if yes else undone)
        note("no server writes a template on condition: a change that somebody else makes meanwhile is lost")
        note(
            "the template has no rule of groups: ingest, follow and setup copy the rule of the older indices into each "
            "new one"
        )


_NAME = "simhash-fingerprints"
_SETTING = """\
# Every document of an index passes its final pipeline, after all others. In a template this goes below "template"."""


@options.manual(
    "es-simhash pipeline --text-field body > pipeline.json",
    "es-simhash pipeline news --text-field body --console",
    "es-simhash pipeline news --install --use-as final --dry-run",
    "es-simhash pipeline news --install --use-as final",
    "es-simhash pipeline --search-template > search-template.json",
)
@click.argument("index", required=False)
@options.text_field
@click.option("--name", metavar="NAME", help=f"Name of the pipeline; by default {_NAME}, with your prefix.")
@click.option(
    "--search-template", is_flag=True, help="Print the stored search template for lookups up to 3 bits instead."
)
@click.option("--console", is_flag=True, help="Print text to paste into Dev Tools.")
@click.option(
    "--install", is_flag=True, help="Store the pipeline on the server, for INDEX and the text field it records."
)
@click.option(
    "--use-as",
    type=click.Choice(["default", "final"]),
    help="With --install: let INDEX use it, for documents that name no other pipeline (default), or for every document "
    "after all other pipelines (final).",
)
@click.option("--dry-run", is_flag=True, help="With --install: prove it on probes, and store nothing.")
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
    console: bool,
    install: bool,
    dry_run: bool,
    search_template: bool,
    value: bool,
    as_json: bool,
) -> None:
    """
    Print the ingest pipeline that gives documents their fingerprints, or install it.

    Any program can then write to INDEX: the fingerprints are those of Python, bit for bit. With --install the server
    first proves that on probes. Only the schemes shingles and weighted can be computed on a server; for weighted,
    FIELD has the features.
    """
    from es_simhash.pipeline.build import build_pipeline, build_search_template  # noqa: PLC0415 -- loads numpy

    if search_template:
        if install or dry_run or text_field or index is not None:
            raise click.UsageError(
                "--search-template takes no INDEX, --install, --dry-run and --text-field: any index can use it"
            )
        template = build_search_template(prefix=target.prefix)
        stored = f"PUT _scripts/{name or f'{target.prefix}-candidates'}"
        _print_body(template, f"{stored}\n{to_json(template, indent=2)}", console=console, as_json=as_json)
        return
    if install:
        if index is None:
            raise click.UsageError("--install needs INDEX, which says what the pipeline computes")
        if console or text_field:
            given = "--console" if console else "--text-field"
            raise click.UsageError(f"--install takes no {given}: INDEX records its text field and scheme")
        with connect(target, index) as connection:
            installed = connection.simhash.put_pipeline(index, name=name, use_as=use_as, dry_run=dry_run)
        users = f"; {', '.join(installed.indices)} use it as {use_as} pipeline" if installed.indices else ""
        said = f"{'would store' if dry_run else 'stored'} pipeline {installed.name}, scheme {installed.scheme}{users}"
        said += dry_run_ending(is_dry=dry_run)
        print_json({**installed.to_dict(), "dry_run": dry_run}) if as_json else print_line(said)
        return
    if use_as is not None or dry_run:
        raise click.UsageError("--use-as and --dry-run go with --install: pass it too, and INDEX")
    if not text_field:
        raise click.UsageError("pass --text-field FIELD, the field that the text comes from")
    pipeline = build_pipeline(
        scheme=target.scheme or DEFAULT_SCHEME, text_field=text_field, prefix=target.prefix, value=value
    )
    name = name or f"{target.prefix}-fingerprints"
    settings = f"PUT {index or 'my-index'}/_settings\n{to_json({'index.final_pipeline': name}, indent=2)}"
    text = f"PUT _ingest/pipeline/{name}\n{to_json(pipeline)}\n\n{_SETTING}\n{settings}"
    _print_body(pipeline, text, console=console, as_json=as_json)


def _print_body(body: dict[str, Any], text: str, *, console: bool, as_json: bool) -> None:
    """Print the *text* for Dev Tools, or the *body* alone."""
    if console:
        print_text(text)
    else:
        print_json(body, indent=None if as_json else 2)


COMPONENT = "es-simhash"

_TOOLS = {"elasticsearch": "Kibana: Management, Dev Tools", "opensearch": "OpenSearch Dashboards: Dev Tools"}

_NEW = "# A new index with the fields; put your own fields beside them."
_TEMPLATES = "# Or the fields in every new index whose name fits a pattern, through templates."
_EXISTING = """\
# Or add the fields to an index that exists. This replaces its _meta: if it has one, merge the two first,
# as 'es-simhash create --existing' does."""


@options.manual(
    "es-simhash mapping --text-field body",
    "es-simhash mapping --component-template",
    "es-simhash mapping --index-template 'news-*'",
    "es-simhash mapping --console --product opensearch",
)
@click.option("--component-template", is_flag=True, help="Print a component template with the mapping.")
@click.option(
    "--index-template",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Print an index template for names that match PATTERN; it uses the component template. Repeatable.",
)
@click.option("--console", is_flag=True, help="Print everything as text to paste into Dev Tools.")
@click.option(
    "--product",
    type=click.Choice(PRODUCTS),
    envvar="ES_SIMHASH_PRODUCT",
    default="elasticsearch",
    help="Product whose Dev Tools the text is for. The JSON is the same for both.",
)
@click.option("--index", metavar="NAME", default="my-index", help="Name of the index in the Dev Tools text.")
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
    product: str,
    index: str,
    name: str,
    scheme: Scheme | str | None,
    *,
    component_template: bool,
    console: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Print the mapping, templates or Dev Tools text. Needs no server.

    The mapping has our fields, and in _meta the scheme that fills them. Put your own fields beside ours. es-simhash
    create sends the mapping for you.
    """
    if component_template + bool(patterns) + console > 1 and not (console and patterns):
        raise click.UsageError("pass only one of --component-template, --index-template and --console")
    how["scheme"] = scheme or DEFAULT_SCHEME
    if console:
        print_text(build_console_text(product, index=index, patterns=patterns, name=name, **how))
        return
    if component_template:
        shown = build_component_template(**how)
    elif patterns:
        shown = build_index_template(patterns, component=name)
    else:
        shown = build_mapping(**how)
    print_json(shown, indent=None if as_json else 2)


def build_console_text(
    product: str, *, index: str = "my-index", patterns: tuple[str, ...] = (), name: str = COMPONENT, **options: Any
) -> str:
    """Return Dev Tools text with all requests; the other options are those of ``build_mapping``."""
    mapping = build_mapping(**options)
    template = build_index_template(list(patterns) or [f"{index}-*"], component=name)
    parts: list[tuple[str, str, Any]] = [
        (_NEW, f"PUT {index}", {"mappings": mapping}),
        (_TEMPLATES, f"PUT _component_template/{name}", build_component_template(**options)),
        ("", f"PUT _index_template/{name}", template),
        (_EXISTING, f"PUT {index}/_mapping", mapping),
        ("# What an index records about its fingerprints.", f"GET {index}/_mapping", None),
    ]
    texts = [f"# {_TOOLS[product]}"]
    for comment, request, body in parts:
        lines = [comment, request, "" if body is None else to_json(body, indent=2)]
        texts.append("\n".join(filter(None, lines)))
    return "\n\n".join(texts)
