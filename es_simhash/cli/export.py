"""``export``: mapping, templates, pipeline and dashboards, to paste, import or install."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from es_simhash import (
    DEFAULT_PREFIX,
    DEFAULT_SCHEME,
    SimHashClient,
    build_component_template,
    build_dashboards,
    build_index_template,
    build_mapping,
)
from es_simhash.cli.app import PLAIN
from es_simhash.cli.connect import connect
from es_simhash.cli.failures import WrongUseError
from es_simhash.cli.options import Described, MaxDistance, TextFields, To, YesFor, takes
from es_simhash.cli.show import Output, error, note, print_json, show, warn

app = App(
    name="export",
    help="Print or install mapping, templates, pipeline, charts.",
    default_parameter=PLAIN,
)

COMPONENT = "es-simhash"


def _print_whole(shown: Any) -> None:
    print_json(shown, indent=None if Output.says_json else 2)


@app.command
def mapping(
    *,
    component_template: bool = False,
    index_template: tuple[str, ...] = (),
    text_field: TextFields = (),
    max_distance: MaxDistance = None,
    passages: bool = False,
    prefix: str = DEFAULT_PREFIX,
    described: Described = Described(),
) -> None:
    """
    Print the mapping, or a template. Needs no server.

    The mapping has our fields, and in _meta the scheme that fills them. Put your own fields beside ours. es-simhash
    create sends the mapping for you.

    For example:

        es-simhash export mapping --text-field body
        es-simhash export mapping --component-template
        es-simhash export mapping --index-template 'news-*'

    Args:
        component_template:
            Print a component template with the mapping.
        index_template:
            Print an index template for names that match this pattern; it uses the component template, by the name
            es-simhash. Repeatable.
        passages:
            Map hashes of passages too, which es-simhash passages needs.
        prefix:
            Name of the object field that holds the fingerprint fields. Default: simhash.
    """
    if component_template and index_template:
        raise WrongUseError("pass only one of --component-template and --index-template")
    if index_template:
        _print_whole(build_index_template(index_template, component=COMPONENT))
        return
    build = build_component_template if component_template else build_mapping
    how: dict[str, Any] = {"text_field": text_field, "max_distance": max_distance, "prefix": prefix}
    how |= {"passages": passages, "scheme": described.build() or DEFAULT_SCHEME}
    _print_whole(build(**how))


@app.command
def pipeline(
    index: str | None = None,
    /,
    *,
    text_field: TextFields = (),
    name: str | None = None,
    install: bool = False,
    yes: YesFor = False,
    use_as: Literal["default", "final"] | None = None,
    described: Described = Described(),
    to: To = To(),
) -> None:
    """
    Print the pipeline that fingerprints, or install it.

    Any program can then write to INDEX: the fingerprints are those of Python, bit for bit. With --install the server
    proves that on probes, and with --yes it then stores the pipeline. Only the scheme shingles can be computed on a
    server.

    For example:

        es-simhash export pipeline --text-field body > pipeline.json
        es-simhash export pipeline news --install --use-as final --yes

    Args:
        index:
            With --install: the index that uses it.
        name:
            Name of the pipeline. Default: simhash-fingerprints, with your prefix.
        install:
            Store the pipeline on the server, for INDEX and the text field it records; needs --yes.
        yes:
            With --install: do it. Without --yes the command says what it would do.
        use_as:
            With --install: let INDEX use it, for documents that name no other pipeline (default), or for every
            document after all other pipelines (final).
    """
    from es_simhash import build_pipeline  # noqa: PLC0415 -- loads numpy

    if install:
        if index is None:
            raise WrongUseError("--install needs INDEX, which says what the pipeline computes")
        if text_field:
            raise WrongUseError("--install takes no --text-field: INDEX records its text field and scheme")
        with connect(to, index) as connection:
            installed = connection.simhash.put_pipeline(index, name=name, use_as=use_as, dry_run=not yes)
        users = f"; {', '.join(installed.indices)} use it as {use_as} pipeline" if installed.indices else ""
        said = f"{'stored' if yes else 'would store'} pipeline {installed.name}, scheme {installed.scheme}{users}"
        said += "" if yes else "; nothing changed, pass --yes to do it"
        show({**installed.to_dict(), "dry_run": not yes}, said)
        return
    if index is not None or name is not None or use_as is not None or yes:
        raise WrongUseError("INDEX, --name, --use-as and --yes go with --install: pass it too")
    if not text_field:
        raise WrongUseError("pass --text-field FIELD, the field that the text comes from")
    scheme = described.build() or DEFAULT_SCHEME
    _print_whole(build_pipeline(scheme=scheme, text_field=text_field, prefix=to.prefix))


@app.command
def search_template(*, prefix: str = DEFAULT_PREFIX) -> None:
    """
    Print the stored search template of lookups.

    It finds near-duplicates up to 3 bits, and any index can use it.

    For example:

        es-simhash export search-template > search-template.json

    Args:
        prefix:
            Name of the object field that holds the fingerprint fields. Default: simhash.
    """
    from es_simhash import build_search_template  # noqa: PLC0415 -- loads numpy

    _print_whole(build_search_template(prefix=prefix))


@app.command
@takes(SimHashClient.make_dashboards, "time_field source_field")
def dashboards(
    index: str,
    /,
    *,
    text_field: Annotated[str | None, Parameter(alias="-t")] = None,
    check: bool = False,
    to: To = To(),
    **fields: Any,
) -> int:
    """
    Print saved objects for Kibana and Dashboards, as NDJSON.

    They are for Kibana 8 and 9 and OpenSearch Dashboards 2 and 3. No server is asked without --check. The pack has
    a data view of INDEX, saved searches, charts, and two dashboards: all near-duplicates, and one group. Import the
    file under Saved objects, or with POST /api/saved_objects/_import, whose successCount must be the number of
    lines: the status 200 does not tell.

    For example:

        es-simhash export dashboards news --time-field published --source-field agency -t body --check > pack.ndjson
        es-simhash export dashboards 'news-*' --time-field @timestamp --check > pack.ndjson

    Args:
        index:
            A name, an alias, a data stream, a pattern, or several of them separated by commas.
        text_field:
            Field whose text is shown.
        check:
            Ask the server whether these fields are mapped as the panels need them. Without --text-field the pack then
            shows the text field that the index records.
    """
    fields |= {"text_field": text_field}
    if not check:
        objects: Iterable[Any] = build_dashboards(index, **fields, prefix=to.prefix)
    else:
        with connect(to, index) as connection:
            pack = connection.simhash.make_dashboards(index, **fields)
        if pack.text_field != text_field:
            note(f"the pack shows the text field {pack.text_field}, which the index records")
        for fault in pack.faults:
            (error if fault.is_fatal else warn)(f"{fault}: {pack.advice(fault)}", **asdict(fault))
        if any(fault.is_fatal for fault in pack.faults):
            return 1
        objects = pack.objects
    for saved in objects:
        print_json(saved)
    return 0
