"""``es-simhash pipeline``: the ingest pipeline for fingerprints, printed as JSON or text, or installed."""

from __future__ import annotations

from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import dry_run_ending, print_json, print_line, print_text, to_json
from es_simhash.hashing import DEFAULT_SCHEME
from es_simhash.pipeline.build import build_pipeline, build_search_template

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
def command(
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
    if search_template:
        if install or dry_run or text_field or index is not None:
            raise click.UsageError(
                "--search-template takes no INDEX, --install, --dry-run and --text-field: any index can use it"
            )
        template = build_search_template(prefix=target.prefix)
        stored = f"PUT _scripts/{name or f'{target.prefix}-candidates'}"
        _print(template, f"{stored}\n{to_json(template, indent=2)}", console=console, as_json=as_json)
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
    text = _console_text(pipeline, name or f"{target.prefix}-fingerprints", index or "my-index")
    _print(pipeline, text, console=console, as_json=as_json)


def _print(body: dict[str, Any], text: str, *, console: bool, as_json: bool) -> None:
    """Print the *text* for Dev Tools, or the *body* alone."""
    if console:
        print_text(text)
    else:
        print_json(body, indent=None if as_json else 2)


def _console_text(pipeline: dict[str, Any], name: str, index: str) -> str:
    """Return Dev Tools text that stores *pipeline* and lets *index* use it."""
    settings = to_json({"index.final_pipeline": name}, indent=2)
    return f"PUT _ingest/pipeline/{name}\n{to_json(pipeline)}\n\n{_SETTING}\nPUT {index}/_settings\n{settings}"
