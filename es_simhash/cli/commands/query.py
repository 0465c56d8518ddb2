"""``es-simhash query``: the search for a text, to paste."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, get_args

import click

from es_simhash import (
    DEFAULT_MAX_DISTANCE,
    DEFAULT_SCHEME,
    IndexSettings,
    IndexStats,
    InvalidInputError,
    Limits,
    LookupRule,
    PairRule,
    PlanEstimate,
    Scheme,
    SimHashError,
    build_esql,
    build_esql_tool,
    build_query,
    build_query_bar,
    explain_plan,
    fingerprint as compute_fingerprint,
    to_hex,
)
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.input_files import piped_text, read_lines, read_text_argument
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_text, say_command, to_json, visible
from es_simhash.cli.parameter_types import FINGERPRINT
from es_simhash.errors import shorten
from es_simhash.lookup.esql import MOST_ROWS
from es_simhash.lookup.paste import Selection
from es_simhash.lookup.plan import LOOKUP_BY_ID_DISTANCE
from es_simhash.lookup.query import FieldKind, build_query_of, check_filter, distance_source, with_distances
from es_simhash.transport.protocol import status_of

# The options that choose a form; each is a flag of this name.
_FORMS = ("esql", "kql", "lucene", "runtime_field", "script_field", "tool")
_BARS = ("kql", "lucene")
_FIELDS = ("runtime_field", "script_field")
_PAGE = 1_000


def _check_form(
    forms: Sequence[str],
    *,
    console: bool,
    as_json: bool,
    filter: Any,
    exclude_ids: Sequence[str],
    source: bool | list[str],
    one_per_group: bool,
    plans: int,
    is_selection: bool,
    lines: bool,
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
    if source is not False and form and (form not in _FIELDS or not console):
        raise click.UsageError(f"--source needs a search: leave {names[0]} out, or pass --console with a field")
    if plans > 1 and not console:
        raise click.UsageError("--plans needs --console: without it the output is one search")
    if lines and (console or form is not None):
        raise click.UsageError("--lines prints searches as JSON: leave out --console and the other forms")
    return form


@options.manual(
    'es-simhash query "the quick brown fox" --max-distance 8',
    "es-simhash query --id 4711 --console --index news --source title,url",
    "es-simhash query --fingerprint 0123456789abcdef --console --index news",
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
@click.option("--group", metavar="NAME", help="Show this group: the simhash.group of its documents. For a query bar.")
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
@options.source
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
    help="Name of the index. Default: no server is asked, and the text to paste names my-index.",
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
    index: str | None,
    lines: bool,
    **how: Any,
) -> None:
    """
    Print the search for a text, a fingerprint or a document, for either product.

    The first remark, with --console the first line of the text, says whether the hits are near-duplicates, or
    candidates: all near-duplicates, and others. With --index and without --max-distance the server says which distance
    and scheme the index records. No server is asked without --index, nor with --max-distance; the scheme then is that
    of --scheme, and must be the one of the index. But --group-of asks, and --id above 3 bits or with an option below.

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
    form: Any = _check_form([name for name in _FORMS if how.pop(name)], is_selection=is_selection, lines=lines, **how)
    if index is None and (document_id is not None or group_of is not None):
        raise click.UsageError("pass --index: --id and --group-of name a document of it")
    if is_selection:
        group = _group_of(target, index or "", group_of) if group_of is not None else group
        print_text(build_query_bar(form, group=group, only=only, prefix=target.prefix))
        return
    is_near = max_distance is not None and max_distance <= LOOKUP_BY_ID_DISTANCE
    is_plain = form is None and how["plans"] == 1
    by_terms = document_id is not None and is_plain and is_near
    needs = max_distance is None
    known = _Known() if by_terms else _ask(target, index, document_id, needs_distance=needs, is_plain=is_plain)
    scheme = target.scheme if known.settings is None else known.settings.scheme
    wanted = _Wanted(target=target, index=index, given=max_distance, id=document_id, known=known, form=form, **how)
    if form == "tool":
        _print_tool(wanted)
    elif lines:
        _answer_lines(wanted, scheme)
    elif by_terms:
        body = build_query_of(document_id or "", index=wanted.name, **wanted.search_arguments)
        _print_search(wanted, "", "terms lookup", body)
    else:
        fingerprint = known.fingerprint if fingerprint is None else fingerprint
        if fingerprint is None:
            fingerprint = _fingerprint(read_text_argument(text, file), scheme)
        _print_lookup(wanted, fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What a server said: the settings of the index, its rule, a document's fingerprint."""

    settings: IndexSettings | None = None
    rule: LookupRule | None = None
    fingerprint: int | None = None


def _ask(target: Target, index: str | None, id_: str | None, *, needs_distance: bool, is_plain: bool) -> _Known:
    """Ask the server for what is not given. *is_plain*: one search, which needs no server within a small distance."""
    if index is None or not (needs_distance or id_ is not None):
        return _Known()
    known = _Known()
    try:
        with connect(target, index) as connection:
            if needs_distance:
                rule = connection.simhash.get_rule(index)
                known = _Known(settings=next(iter(connection.settings(index).values()), None), rule=rule)
            if id_ is not None:
                known = replace(known, fingerprint=connection.simhash.get_fingerprint(index, id_))
    except Exception as failure:
        has_answer = isinstance(failure, SimHashError) or status_of(failure) is not None
        if needs_distance and not has_answer and (id_ is None or is_plain):
            most = "" if id_ is None else f", at most {LOOKUP_BY_ID_DISTANCE}"
            failure.add_note(f"without a server: pass --max-distance BITS{most}; else the index says which distance")
        raise
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is to be printed, whatever the search is about, by the options of the command."""

    index: str | None
    target: Target
    form: Any
    given: int | None
    id: str | None
    known: _Known
    size: int | None
    filter: Any
    source: bool | list[str]
    exclude_ids: tuple[str, ...]
    documents: int
    plans: int
    scripts: bool
    console: bool
    one_per_group: bool
    as_json: bool

    @property
    def name(self) -> str:
        return self.index or "my-index"

    @property
    def max_distance(self) -> int:
        """The distance that ``find`` would take."""
        recorded = DEFAULT_MAX_DISTANCE if self.known.rule is None else self.known.rule.max_distance
        return recorded if self.given is None else self.given

    @property
    def reach(self) -> str:
        """By which rule the search goes, bits alone, and who says how far."""
        said = PairRule(self.max_distance).words
        if self.given is not None:
            return said
        if self.known.rule is None:
            return f"{said}, the default without --index"
        is_recorded = self.known.rule.origin == "recorded"
        return f"{said}, {'as the index records' if is_recorded else 'the default: the index records no rule'}"

    @property
    def itself(self) -> list[str]:
        """The id of the document, if its fingerprint is searched for."""
        return [] if self.id is None or self.known.fingerprint is None else [self.id]

    @property
    def excluded(self) -> tuple[str, ...]:
        """The ids that are left out: those of the caller, and the document itself, as ``find`` leaves it out."""
        return (*self.exclude_ids, *self.itself)

    @property
    def remarks(self) -> list[str]:
        """What else to know of the hits, where ES|QL and a search say the same."""
        found = []
        if self.goes_farther and self.known.rule is not None:
            found.append(f"the rule of the index is {self.known.rule}: {say_command('find', self.name)} goes by it")
        return found + [f"the document {to_json(each)} itself is left out" for each in self.itself]

    @property
    def goes_farther(self) -> bool:
        """Whether the rule of the index asks more than bits."""
        rule = self.known.rule
        return rule is not None and (bool(rule.each) or not rule.is_by_distance_alone)

    @property
    def search_arguments(self) -> dict[str, Any]:
        """The arguments of ``build_query`` and ``build_query_of`` that are always the same."""
        names = {"max_distance": self.max_distance, "prefix": self.target.prefix, "size": self.size or _PAGE}
        return names | {"filter": self.filter, "exclude_ids": self.excluded, "source": self.source}

    def estimates(self) -> Sequence[PlanEstimate]:
        settings = self.known.settings
        is_open = self.known.rule is None if settings is None else settings.allows_scripts
        allowed = self.scripts and is_open
        stats, limits = IndexStats(documents=self.documents), Limits(scripts=allowed)
        return explain_plan(self.max_distance, stats=stats, limits=limits)[: self.plans]


def _answer_lines(wanted: _Wanted, scheme: Scheme | str | None) -> None:
    """Print the search for each line of stdin, and let go of what is printed before the next line is waited for."""
    arguments, plan = wanted.search_arguments, wanted.estimates()[0].plan
    for said in (wanted.reach, *wanted.remarks):
        note(said)
    for each in read_lines():
        if each is None:
            sys.stdout.flush()
            continue
        found = compute_fingerprint(each[1], scheme=scheme or DEFAULT_SCHEME)
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
        itself = "" if wanted.id is None else ", and the document itself"
        note(f"the text shows candidates: all near-duplicates {wanted.reach}; and documents farther away{itself}")
        for said in replace(wanted, id=None).remarks:
            note(said)
        print_text(text)
    elif form is not None and not wanted.console:
        note("the type of the field is Long in Kibana, and number in Dashboards")
        print_text(distance_source(kind, fingerprint, prefix=prefix))
    else:
        for each in wanted.estimates():
            body = build_query(fingerprint, plan=each.plan, **wanted.search_arguments)
            if form is not None or (wanted.console and each.plan.script):
                body = with_distances(body, kind, fingerprint, prefix=prefix)
            costs = f"({count(each.plan.terms, 'term')}, about {each.hits:,.0f} candidates)"
            how = f"lookup plan {each.plan.name} {costs}"
            _print_search(wanted, to_hex(fingerprint), how, body, is_exact=each.plan.script)


def _esql_text(wanted: _Wanted, fingerprint: int, **shared: Any) -> str:
    choice: dict[str, Any] = {"exclude_ids": wanted.excluded, "one_per_group": wanted.one_per_group}
    text = build_esql(wanted.name, fingerprint, size=wanted.size or MOST_ROWS, **choice, **shared)
    said = [*([wanted.reach] if wanted.given is None else []), *wanted.remarks]
    if not wanted.console:
        return "\n".join([*(f"// {each}" for each in said), text])
    filters = check_filter(wanted.filter)
    body = {"query": text, **({"filter": {"bool": {"filter": filters}}} if filters else {})}
    return "\n".join([*(f"# {each}" for each in said), "POST /_query", to_json(body, indent=2)])


def _print_tool(wanted: _Wanted) -> None:
    choice: dict[str, Any] = {"max_distance": wanted.max_distance, "one_per_group": wanted.one_per_group}
    choice |= {"prefix": wanted.target.prefix} | ({"size": wanted.size} if wanted.size else {})
    note("the tool needs Kibana and Elasticsearch 9.4 or later; Kibana 9.3 calls the type of its parameter keyword")
    for said in (wanted.reach, *wanted.remarks):
        note(said)
    request = "POST kbn:/api/agent_builder/tools\n" if wanted.console else ""
    print_text(f"{request}{to_json(build_esql_tool(wanted.name, **choice), indent=2)}")


def _print_search(wanted: _Wanted, digits: str, how: str, body: Any, *, is_exact: bool = False) -> None:
    """Print the search *body*; *digits*: of the fingerprint, if it is known; *is_exact*: no hit is too far."""
    kind = "near-duplicates" if is_exact and not wanted.goes_farther else "candidates"
    names = [] if wanted.id is None else [f"document {to_json(wanted.id)}"]
    names += [f"fingerprint {digits}"] if digits else []
    said = [f"{kind} of {', '.join(names)}; {wanted.reach}; {how}", *wanted.remarks]
    if not digits:
        said.append("the document itself is among the hits: compare its fingerprint, in fields, with theirs")
    if not is_exact:
        near = f"a near-duplicate has a fingerprint within {count(wanted.max_distance, 'bit')}"
        said.append(f"{near}: es-simhash explain --fingerprints")
    said.append(f"{count(wanted.size or _PAGE, 'hit')} mean that there may be more")
    if wanted.form == "runtime_field":
        said.append("runtime_mappings are for Elasticsearch alone; --script-field prints a search for both products")
    if wanted.console:
        comments = "\n".join(f"# {each}" for each in said)
        print_text(f"{comments}\nGET {visible(wanted.name)}/_search\n{to_json(body, indent=2)}")
        return
    for each in said:
        note(each)
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
