"""``es-simhash query``: the search for a text, to paste; and ``dashboards``: saved objects, to import."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, error, note, print_json, print_text, to_json, visible, warn
from es_simhash.cli.parameter_types import FINGERPRINT
from es_simhash.cli.records import piped_text, read_lines, read_text_argument
from es_simhash.dashboards import build_dashboards
from es_simhash.dashboards.subject import PackFault, Subject, find_pack_faults
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint as compute_fingerprint, to_hex
from es_simhash.lookup.esql import MOST_ROWS, build_esql, build_esql_tool
from es_simhash.lookup.paste import Selection, build_query_bar
from es_simhash.lookup.plan import LOOKUP_BY_ID_DISTANCE, PlanEstimate, explain_plan
from es_simhash.lookup.query import (
    FieldKind,
    build_query,
    build_query_of,
    check_filter,
    distance_source,
    with_distances,
)
from es_simhash.mapping.context import IndexStats, Limits
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, read_settings

# The options that choose a form; each is a flag of this name.
_FORMS = ("esql", "kql", "lucene", "runtime_field", "script_field", "tool")
_BARS = ("kql", "lucene")
_PAGE = 1_000


def _check_form(
    forms: Sequence[str],
    *,
    console: bool,
    as_json: bool,
    filter: Any,
    exclude_ids: Sequence[str],
    one_per_group: bool,
    plans: int,
    is_selection: bool,
    **_: Any,
) -> str | None:
    """Return the one of *forms* that was chosen, or ``None``; raise UsageError if options do not go together."""
    names = [f"--{each.replace('_', '-')}" for each in forms]
    if len(forms) > 1:
        raise click.UsageError(f"pass one of {', '.join(names)}, not several")
    form = forms[0] if forms else None
    if as_json and (form or console):
        raise click.UsageError(f"pass {'--console' if console else names[0]} or --json, not both")
    if one_per_group and form not in ("esql", "tool"):
        raise click.UsageError("--one-per-group needs --esql or --tool")
    if is_selection and form not in _BARS:
        raise click.UsageError("--group, --group-of and --only need --kql or --lucene")
    if form in _BARS and (console or filter is not None or exclude_ids):
        raise click.UsageError(f"{names[0]} is text for a query bar: it takes no --console, --filter or --exclude-id")
    if form == "tool" and (filter is not None or exclude_ids):
        raise click.UsageError("--tool takes no --filter and no --exclude-id: the agent chooses the document")
    if form and plans > 1:
        raise click.UsageError(f"pass --plans or {names[0]}, not both")
    if form and not console and filter is not None:
        raise click.UsageError(f"--filter with {names[0]} needs --console: a filter is a part of the request")
    return form


@options.manual(
    'es-simhash query "the quick brown fox" --max-distance 8',
    "es-simhash query --fingerprint 0123456789abcdef --console --index news",
    "es-simhash query --id 4711 --console --index news",
    "es-simhash query --fingerprint 0123456789abcdef --max-distance 10 --plans 3 --no-scripts --console",
    'es-simhash query "the quick brown fox" --esql --index news',
    "es-simhash query --tool --index news",
    "es-simhash query --lines --max-distance 8 <titles.txt",
    "es-simhash query --kql --group 4711",
    "es-simhash query --lucene --only duplicates",
    'es-simhash query "the quick brown fox" --runtime-field',
    "es-simhash query <a.txt | curl -sXPOST localhost:9200/news/_search -Hcontent-type:application/json -d@-",
)
@click.argument("text", required=False)
@click.option("--fingerprint", type=FINGERPRINT, metavar="HEX", help="Search for this fingerprint.")
@options.text_file
@click.option("--lines", is_flag=True, help="Search for each line of stdin; print one line for each, at once.")
@click.option("--id", "document_id", metavar="ID", help="Search for this document of --index.")
@click.option("--group", metavar="NAME", help="Show this group; its name is the id of its canonical. For a query bar.")
@click.option("--group-of", metavar="ID", help="Show the group of this document of --index. For a query bar.")
@click.option(
    "--only", type=click.Choice(get_args(Selection)), help="Show these documents. For a query bar: --kql or --lucene."
)
@options.max_distance
@options.number(
    "--size",
    most=10_000,
    help="Largest number of candidates in the answer; by default 1,000, with --esql 10,000, with --tool 100.",
)
@options.filter_query
@click.option("--exclude-id", "exclude_ids", metavar="ID", multiple=True, help="Leave this document out. Repeatable.")
@options.number(
    "--documents", default=1_000_000, help="Number of documents in the index. The cheapest plan depends on it."
)
@click.option("--scripts/--no-scripts", default=True, help="Whether the query may use a script.")
@options.number("--plans", default=1, help="Print the N cheapest lookup plans, the cheapest first.")
@click.option("--console", is_flag=True, help="Print text to paste into Dev Tools of Kibana or Dashboards.")
@click.option("--esql", is_flag=True, help="Print ES|QL, for Discover in Kibana. Elasticsearch 9.3 and later.")
@click.option(
    "--tool", is_flag=True, help="Print a tool for agents in Kibana, which give the fingerprint. 9.4 and later."
)
@click.option("--one-per-group", is_flag=True, help="ES|QL: the nearest document of each group. 9.4 and later.")
@click.option("--kql", is_flag=True, help="Print text for the query bar: KQL in Kibana, DQL in Dashboards.")
@click.option("--lucene", is_flag=True, help="Print text for the query bar, where Lucene is its language.")
@click.option("--runtime-field", is_flag=True, help="Print the script of a runtime field with the distance. Kibana.")
@click.option(
    "--script-field", is_flag=True, help="Print the script of a scripted field with the distance. Dashboards."
)
@click.option(
    "--index",
    metavar="NAME",
    default="my-index",
    help="Name of the index in Dev Tools text and ES|QL, and of the index that --id is about.",
)
@options.scheme
@options.target
def command(
    text: str | None,
    fingerprint: int | None,
    file: str | None,
    document_id: str | None,
    group: str | None,
    group_of: str | None,
    only: Any,
    max_distance: int | None,
    target: Target,
    *,
    lines: bool,
    **how: Any,
) -> None:
    """
    Print the search for a text, a fingerprint or a document, for either product.

    If the lookup plan ends in "+ script", the hits are the near-duplicates. Otherwise the hits are candidates: a
    candidate is a near-duplicate if its fingerprint (in fields) is within --max-distance bits, which es-simhash
    distance computes. The scheme must be the one of the index; es-simhash check prints it. The command needs a server
    only for --group-of, and for --id with a --max-distance above 3 or with an option below.

    Without TEXT, or if it is -, the text comes from stdin. Stdout has nothing but the text to paste; remarks go to
    stderr. --esql prints the lookup in ES|QL; --tool, for any document, a tool for agents in Kibana. --kql and
    --lucene print text for a query bar: the candidates of the text, a --group, the --group-of a document, or --only
    one kind of documents. --runtime-field and --script-field print the script of a field that shows the distance to the
    text; with --console they add that field to the search, and --script-field then works on both products.

    With --lines each line of stdin is a text, and a line of stdout is its search; null if the text has no features. A
    line is answered as soon as no further line waits, so another program may keep the command open.
    """
    subjects = (text, fingerprint, file, document_id, group, group_of, only, lines or None, how["tool"] or None)
    text = piped_text(*subjects) or text
    subjects = (text, *subjects[1:])
    if sum(given is not None for given in subjects) != 1:
        raise click.UsageError(
            "pass exactly one of TEXT, --lines, --file, --fingerprint, --id, --group, --group-of, --only and --tool"
        )
    is_selection = any(each is not None for each in (group, group_of, only))
    form: Any = _check_form([name for name in _FORMS if how.pop(name)], is_selection=is_selection, **how)
    if how["plans"] > 1 and not how["console"]:
        raise click.UsageError("--plans needs --console: without it the output is one search")
    if lines and (how["console"] or form is not None):
        raise click.UsageError("--lines prints searches as JSON: leave out --console and the other forms")
    distance = DEFAULT_MAX_DISTANCE if max_distance is None else max_distance
    wanted = _Wanted(target=target, form=form, max_distance=distance, **how)
    if group_of is not None:
        group = _group_of(target, wanted.index, group_of)
    if group is not None or only is not None:
        print_text(build_query_bar(form, group=group, only=only, prefix=target.prefix))
    elif form == "tool":
        _print_tool(wanted)
    elif lines:
        _answer_lines(wanted)
    elif document_id is not None and wanted.allows_terms_lookup:
        body = build_query_of(document_id, index=wanted.index, **wanted.search_arguments)
        _print_search(wanted, f"document {to_json(document_id)}, max_distance {distance}, terms lookup", body)
    else:
        if document_id is not None:
            with connect(target, wanted.index) as connection:
                fingerprint = connection.simhash.get_fingerprint(wanted.index, document_id)
        elif fingerprint is None:
            fingerprint = _fingerprint(read_text_argument(text, file), target.scheme)
        _print_lookup(wanted, fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is to be printed, whatever the search is about, by the options of the command."""

    index: str
    target: Target
    form: Any
    max_distance: int
    size: int | None
    filter: Any
    exclude_ids: tuple[str, ...]
    documents: int
    plans: int
    scripts: bool
    console: bool
    one_per_group: bool
    as_json: bool

    @property
    def search_arguments(self) -> dict[str, Any]:
        """The arguments of ``build_query`` and ``build_query_of`` that are always the same."""
        names = {"max_distance": self.max_distance, "prefix": self.target.prefix, "size": self.size or _PAGE}
        return names | {"filter": self.filter, "exclude_ids": self.exclude_ids}

    @property
    def allows_terms_lookup(self) -> bool:
        return self.form is None and self.max_distance <= LOOKUP_BY_ID_DISTANCE and self.plans == 1

    def estimates(self) -> Sequence[PlanEstimate]:
        stats, limits = IndexStats(documents=self.documents), Limits(scripts=self.scripts)
        return explain_plan(self.max_distance, stats=stats, limits=limits)[: self.plans]


def _answer_lines(wanted: _Wanted) -> None:
    """Print the search for each line of stdin, and let go of what is printed before the next line is waited for."""
    arguments, plan = wanted.search_arguments, wanted.estimates()[0].plan
    for each in read_lines():
        if each is None:
            sys.stdout.flush()
            continue
        found = compute_fingerprint(each[1], scheme=wanted.target.scheme or DEFAULT_SCHEME)
        print_json(None if found is None else build_query(found, plan=plan, **arguments))


def _print_lookup(wanted: _Wanted, fingerprint: int) -> None:
    form, prefix = wanted.form, wanted.target.prefix
    shared: dict[str, Any] = {"max_distance": wanted.max_distance, "documents": wanted.documents, "prefix": prefix}
    kind: FieldKind = "runtime" if form == "runtime_field" else "script"
    if form == "esql":
        text = _esql_text(wanted, fingerprint, **shared)
        note("the text needs Elasticsearch 9.3 or later, with --one-per-group 9.4; OpenSearch has no ES|QL")
        print_text(text)
    elif form in _BARS:
        text = build_query_bar(form, fingerprint=fingerprint, **shared)
        note("the text shows candidates: all near-duplicates, and documents that are farther away")
        print_text(text)
    elif form is not None and not wanted.console:
        note("the type of the field is Long in Kibana, and number in Dashboards")
        print_text(distance_source(kind, fingerprint, prefix=prefix))
    else:
        for each in wanted.estimates():
            body = build_query(fingerprint, plan=each.plan, **wanted.search_arguments)
            if form is not None:
                body = with_distances(body, kind, fingerprint, prefix=prefix)
            what = (
                f"fingerprint {to_hex(fingerprint)}, max_distance {wanted.max_distance}, lookup plan {each.plan.name}"
            )
            costs = f"({count(each.plan.terms, 'term')}, about {each.hits:,.0f} candidates)"
            _print_search(wanted, f"{what} {costs}", body)


def _esql_text(wanted: _Wanted, fingerprint: int, **shared: Any) -> str:
    choice: dict[str, Any] = {"exclude_ids": wanted.exclude_ids, "one_per_group": wanted.one_per_group}
    text = build_esql(wanted.index, fingerprint, size=wanted.size or MOST_ROWS, **choice, **shared)
    if not wanted.console:
        return text
    filters = check_filter(wanted.filter)
    body = {"query": text, **({"filter": {"bool": {"filter": filters}}} if filters else {})}
    return f"POST /_query\n{to_json(body, indent=2)}"


def _print_tool(wanted: _Wanted) -> None:
    choice: dict[str, Any] = {"max_distance": wanted.max_distance, "one_per_group": wanted.one_per_group}
    choice |= {"prefix": wanted.target.prefix} | ({"size": wanted.size} if wanted.size else {})
    note("the tool needs Kibana and Elasticsearch 9.4 or later; Kibana 9.3 calls the type of its parameter keyword")
    request = "POST kbn:/api/agent_builder/tools\n" if wanted.console else ""
    print_text(f"{request}{to_json(build_esql_tool(wanted.index, **choice), indent=2)}")


def _print_search(wanted: _Wanted, what: str, body: Any) -> None:
    if wanted.console:
        print_text(f"# {what}\nGET {visible(wanted.index)}/_search\n{to_json(body, indent=2)}")
    else:
        note(what)
        print_json(body, indent=None if wanted.as_json else 2)


def _group_of(target: Target, index: str, id_: str) -> str:
    with connect(target, index) as connection:
        groups = connection.simhash.groups(index, filter={"ids": {"values": [id_]}})
        with closing(groups):
            found = next(groups, None)
    if found is None:
        raise InvalidInputError(
            f"document {shorten(id_)} of {shorten(index)} is in no group of two or more: give another id, or a group"
        )
    return found.id


def _fingerprint(text: str, scheme: Scheme | str | None) -> int:
    found = compute_fingerprint(text, scheme=scheme or DEFAULT_SCHEME)
    if found is None:
        raise InvalidInputError(
            f"text {shorten(text)} has no features, so it has no near-duplicates: give a text with letters or digits"
        )
    return found


_ADVICE = {
    "no_index": "check the name",
    "not_mapped": "give another field",
    "no_date": "give a field of type date",
    "no_keyword": "give a field of type keyword",
    "no_doc_values": "give a field with doc values",
}


@options.manual(
    "es-simhash dashboards news --time-field published_at --source-field agency --text-field body > pack.ndjson",
    "es-simhash dashboards 'news-*' --time-field @timestamp --check > pack.ndjson",
    "es-simhash dashboards news --time-field published_at --product kibana > pack.ndjson",
)
@click.argument("index")
@options.time_field
@options.source_field
@click.option("-t", "--text-field", metavar="FIELD", help="Field whose text is shown.")
@click.option(
    "--product",
    type=click.Choice(["any", "kibana"]),
    default="any",
    help="Product that the pack is for: any makes one for all; kibana adds Lens panels, which Dashboards refuses.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Ask the server whether these fields are mapped as the panels need them. Without --text-field the pack then "
    "shows the text field that the index records.",
)
@options.target_of_any_product
def dashboards(index: str, product: str, target: Target, *, check: bool, as_json: bool, **fields: Any) -> int:
    """
    Print saved objects for Kibana 8 and 9 and OpenSearch Dashboards 2 and 3, as NDJSON. Asks no server without --check.

    The pack has a data view of INDEX, saved searches, charts, and two dashboards: all near-duplicates, and one group.
    Import the file under Saved objects, or with POST /api/saved_objects/_import. INDEX may be a name, an alias, a data
    stream, a pattern, or several of them separated by commas.
    """
    del as_json  # the pack is JSON anyway, and messages look at the command line
    subject = Subject(index, **fields, prefix=target.prefix)
    if check:
        subject, faults = _ask(subject, target)
        for fault in faults:
            (error if fault.is_fatal else warn)(f"{fault}: {_advice(fault, subject)}", **asdict(fault))
        if any(fault.is_fatal for fault in faults):
            return 1
    for each in build_dashboards(**asdict(subject), product=None if product == "any" else product):
        print_json(each)
    return 0


def _ask(subject: Subject, target: Target) -> tuple[Subject, list[PackFault]]:
    """Return the subject, with the recorded text field where none is given, and what is wrong with its fields."""
    with connect(target, subject.index) as connection:
        answer: Any = connection.client.indices.get_mapping(index=subject.index)
    mappings = {name: dict(each.get("mappings") or {}) for name, each in dict(answer).items()}
    if subject.text_field is None:
        recorded = (read_settings(mapping, prefix=subject.prefix) for mapping in mappings.values())
        names = [each.text_fields[0] for each in recorded if each and each.text_fields]
        if names:
            note(f"the pack shows the text field {names[0]}, which the index records")
            subject = replace(subject, text_field=names[0])
    return subject, find_pack_faults(subject, mappings)


def _advice(fault: PackFault, subject: Subject) -> str:
    if fault.kind == "not_mapped" and fault.field.startswith(f"{subject.prefix}."):
        return "add the fields of es_simhash with es-simhash create INDEX --existing --yes"
    return _ADVICE[fault.kind]
