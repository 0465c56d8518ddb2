"""
The forms in which ``es-simhash query`` prints a lookup besides Dev Tools text, and what each form needs.

Each function returns the text that is to be pasted, and nothing else. No command is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import click

from es_simhash.cli.output import note, to_json
from es_simhash.lookup.paste import Language, Selection, build_query_bar
from es_simhash.lookup.paste_esql import MOST_ROWS, FieldKind, build_esql, distance_source
from es_simhash.lookup.query import check_filter

FORMS = ("esql", "kql", "lucene", "runtime_field", "script_field")
"""The options that choose a form; each is a flag of this name."""

SELECTIONS = get_args(Selection)

_BARS = ("kql", "lucene")


def check_form(
    forms: Sequence[str],
    *,
    console: bool,
    as_json: bool,
    filter_query: Any,
    exclude_ids: Sequence[str],
    one_per_group: bool,
    plans: int,
    is_selection: bool,
) -> str | None:
    """
    Return the one of *forms* that was chosen, or ``None``.

    Raises:
        click.UsageError: If several are chosen, or another option does not go with it.
    """
    names = [f"--{each.replace('_', '-')}" for each in forms]
    if len(forms) > 1:
        raise click.UsageError(f"pass one of {', '.join(names)}, not several")
    form = forms[0] if forms else None
    if as_json and (form or console):
        raise click.UsageError(f"pass {'--console' if console else names[0]} or --json, not both")
    if one_per_group and form != "esql":
        raise click.UsageError("--one-per-group needs --esql")
    if is_selection and form not in _BARS:
        raise click.UsageError("--group, --group-of and --only need --kql or --lucene")
    if form in _BARS and (console or filter_query is not None or exclude_ids):
        raise click.UsageError(f"{names[0]} is text for a query bar: it takes no --console, --filter or --exclude-id")
    if form and plans > 1:
        raise click.UsageError(f"pass --plans or {names[0]}, not both")
    if form and not console and filter_query is not None:
        raise click.UsageError(f"--filter with {names[0]} needs --console: a filter is a part of the request")
    return form


def esql_text(
    index: str,
    fingerprint: int,
    *,
    console: bool,
    filter_query: Any,
    size: int | None,
    **options: Any,
) -> str:
    """
    Return a lookup in ES|QL, or the request of it for Dev Tools. The other options are those of ``build_esql``.
    """
    text = build_esql(index, fingerprint, size=size or MOST_ROWS, **options)
    note("the text needs Elasticsearch 9.3 or later, with --one-per-group 9.4; OpenSearch has no ES|QL")
    if not console:
        return text
    body: dict[str, Any] = {"query": text}
    if filters := check_filter(filter_query):
        body["filter"] = {"bool": {"filter": filters}}
    return f"POST /_query\n{to_json(body, indent=2)}"


def query_bar_text(language: Language, *, group: str | None, only: Selection | None, **options: Any) -> str:
    """
    Return text for the query bar of Kibana or Dashboards. The other options are those of ``build_query_bar``.
    """
    text = build_query_bar(language, group=group, only=only, **options)
    if options.get("fingerprint") is not None:
        note("the text shows candidates: all near-duplicates, and documents that are farther away")
    return text


def script_text(form: str, fingerprint: int, *, prefix: str) -> str:
    """
    Return the script of a runtime field or script field, for the editor of a data view or index pattern.
    """
    note("the type of the field is Long in Kibana, and number in Dashboards")
    return distance_source(field_kind(form), fingerprint, prefix=prefix)


def field_kind(form: str) -> FieldKind:
    """
    Return the kind of field that *form* names.
    """
    return "runtime" if form == "runtime_field" else "script"
