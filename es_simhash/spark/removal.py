"""A plan of removal from groups made in Spark, for ``apply_removal``; nothing is deleted here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pyspark.sql import Column, DataFrame, Row, functions as sql

from es_simhash.arguments import FilePath, check_fields, check_output
from es_simhash.client.port import finish, port_of
from es_simhash.errors import REGROUP, IncompleteSearchError, InvalidInputError, Said, shorten
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields, read_values
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.rule import Grouping, Rule, parse_within, target_of
from es_simhash.removal.guard_rails import DEFAULT_MAX_SHARE, Guards, check_max_share
from es_simhash.removal.make_plan import count_shares, decisive_fields, read_uuids, used_fields
from es_simhash.removal.may_delete import Decisive, digest_of, is_written
from es_simhash.removal.plan_header import PlanHeader
from es_simhash.removal.records import LeftOut, PlannedDocument, PlannedRemoval, RemovalPlan
from es_simhash.removal.removal_file import PlanWriter
from es_simhash.spark.columns import (
    Keeper,
    check_column,
    check_text,
    check_verify,
    prepared_of,
    refuse_key,
    similarity_of,
)
from es_simhash.spark.groups import groups
from es_simhash.texts.measures import DEFAULT_SIMILARITY, TextMeasure
from es_simhash.transport.protocol import Key
from es_simhash.transport.retry import now, retry

# What names a version of a document; the columns are those of the format es_simhash.
_VERSION = ("id", "index", "routing", "seq_no", "primary_term")
# Characters of a text that the plan shows.
SHOWN = 10_000
BATCH = 500


def plan_removal(
    df: DataFrame,
    path: FilePath,
    *,
    client: Any,
    text: str,
    max_distance: int,
    rule: Rule = "star",
    verify: float | Verification = DEFAULT_SIMILARITY,
    per: str | None = None,
    within: tuple[str, str] | None = None,
    canonical: Sequence[str] = (),
    fields: Sequence[str] | None = None,
    max_share: float = DEFAULT_MAX_SHARE,
    prefix: str = DEFAULT_PREFIX,
    checkpoints: FilePath | None = None,
) -> RemovalPlan:
    """
    Write a plan of removal for the duplicates in *df* to the file *path*, and return what it contains.

    Each duplicate whose text is similar to that of its canonical gets a line, if both still have the versions that
    *df* has. ``apply_removal`` deletes only those whose deciding fields nobody has changed since. The driver reads
    these fields, and writes the file: some 30 bytes of memory, and two documents read, for each line.

    Args:
        df:
            Documents read by the format ``es_simhash``: with the columns ``id``, ``index``, ``routing``, ``seq_no``,
            ``primary_term`` and ``fingerprint``.
        path:
            The file of the removal, on the driver; it may not exist.
        client:
            A sync client of Elasticsearch or OpenSearch; the driver asks it which indices these are, and how many
            documents they hold.
        text:
            Name of the column of texts.
        fields:
            Fields of the documents that decided: a change of their values voids a line of the plan. By default those
            with the names of *text* and *canonical*; name them where a column is made of other fields.
        max_distance:
            Largest distance of neighbours in bits, inclusive, 0 to 64.
        rule:
            ``"star"`` or ``"connected"``.
        verify:
            Smallest similarity of neighbours, and of a duplicate to its canonical, 0 to 1; a :class:`Verification` for
            another measure.
        per:
            As for :func:`groups`; the column has the name of the field.
        within:
            As for :func:`groups`; the column has the name of the field.
        canonical:
            Columns that decide which document stays, as for :func:`groups`.
        max_share:
            Largest share of the documents that ``apply_removal`` may remove, 0 to 1.
        prefix:
            Name of the object that holds the fields in the index.
        checkpoints:
            As for :func:`groups`.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        InvalidInputError: If an argument cannot be used, a column is missing, an id is not the only one, a document
            has none of the fields that decided, or an index records another measure, numbers, *per* or *within*.
        MappingError: If an index has no such fields.
        IncompleteSearchError: If an index does not exist, or was replaced meanwhile.
    """
    check_output("path", path)
    Fields(prefix)
    (bound, measure), share = check_verify(verify), check_max_share(max_share)
    span = None if within is None else parse_within(within)
    limiting = [*([] if per is None else [per]), *([] if span is None else [span.field])]
    named = None if fields is None else check_fields("fields", fields)
    decisive, needed = named or tuple(dict.fromkeys([text, *canonical, *limiting])), named or (text,)
    for name in (*_VERSION, "fingerprint"):
        check_column(df, "df", name)
    check_text(df, "text", text)
    grouping = Grouping(rule, max_distance, tuple(canonical) or ("id",), bound, per, span, measure)
    server, ask = port_of(client, Context(prefix)), finish
    keeper = Keeper(checkpoints)
    columns = dict.fromkeys([*canonical, *limiting])
    documents = keeper.keep(df.select(*_VERSION, "fingerprint", *columns, check_text(df, "text", text).alias("text")))
    names = sorted(row["index"] for row in documents.select("index").distinct().collect())

    uuids = ask(read_uuids(server, names))
    if missing := sorted(set(names) - set(uuids)):
        raise IncompleteSearchError(f"index {missing[0]!r} does not exist any more: read the documents again")
    resolved = ask(resolve_index(server, names))
    agree(resolved, server.context)
    used = used_fields(grouping.to_dict(), None)
    for name, settings in resolved.each.items():
        _refuse_other(grouping, name, settings)
    decided_by = {name: decisive_fields(resolved.mappings[name], decisive, used) for name in names}
    grouped = groups(
        documents,
        max_distance=max_distance,
        rule=rule,
        verify=verify,
        text="text",
        per=per,
        within=within,
        canonical=canonical,
        checkpoints=checkpoints,
    )
    with PlanWriter(path) as writer:
        left_out = Counter[str]()
        for removals in _in_batches(_removals(_compared(documents, grouped, measure), text, bound)):
            for removal in ask(_with_digests(server, removals, decided_by, needed)):
                if isinstance(removal, PlannedRemoval):
                    writer.add(removal)
                else:
                    left_out[removal] += 1
        guards = ask(count_shares(server, names, names, Guards(share), {}))
        if ask(read_uuids(server, names)) != uuids:
            raise IncompleteSearchError("an index was replaced while it was read: plan again")
        digested = {name: tuple(fields) for name, fields in decided_by.items()}
        header = PlanHeader(uuids, prefix, grouping.to_dict(), len(writer), guards, now(), decided_by=digested)
        sha256 = writer.finish(header)
    count, excess = header.count, tuple(header.excess)
    found = count + left_out.total()
    return RemovalPlan(str(path), sha256, count, guards.documents, found, dict(left_out), excess, rule=header.rule)


def _refuse_other(asked: Grouping, name: str, settings: IndexSettings) -> None:
    """Raise if the rule that index *name* records may keep apart what *asked* does not; the bounds may differ."""
    recorded = target_of(settings)
    if recorded is None:
        return
    refuse_key({name: settings})
    measure = asked.measure if recorded.similarity is None else recorded.measure
    own = replace(recorded.pair_rule, max_distance=asked.max_distance, similarity=asked.similarity, measure=measure)
    if own != asked.pair_rule:
        raise InvalidInputError(
            Said(
                f"index {name!r} is grouped by {recorded}, and the plan would go by {asked}: give its measure, "
                "numbers, per and within, or change them with ",
                REGROUP,
            )
        )


def _compared(documents: DataFrame, grouped: DataFrame, measure: TextMeasure) -> DataFrame:
    duplicates = grouped.where("duplicate_of is not null").select("id", "duplicate_of", "distance")
    own = documents.select(sql.struct(*_VERSION, "text").alias("document"), sql.col("id"))
    other = documents.select(sql.struct(*_VERSION, "text").alias("canonical"), sql.col("id").alias("duplicate_of"))
    joined = duplicates.join(own, "id").join(other, "duplicate_of")
    document, canonical = (prepared_of(sql.col(f"{side}.text"), measure) for side in ("document", "canonical"))
    similarity = similarity_of(document, canonical, measure)
    return joined.select(_cut("document"), _cut("canonical"), "distance", similarity.alias("similarity"))


def _cut(name: str) -> Column:
    return sql.col(name).withField("text", sql.substring(f"{name}.text", 1, SHOWN + 1)).alias(name)


def _removals(compared: DataFrame, text: str, bound: float) -> Iterator[PlannedRemoval | None]:
    """Yield the line of each duplicate; ``None`` where its text is not similar enough."""
    for row in compared.toLocalIterator():
        if row.similarity is None or row.similarity < bound:
            yield None
        else:
            yield PlannedRemoval(
                _planned(row.document, text), _planned(row.canonical, text), row.distance, row.similarity
            )


def _planned(row: Row, text: str) -> PlannedDocument:
    values, cut = {text: row.text[:SHOWN]}, (text,) if len(row.text) > SHOWN else ()
    return PlannedDocument(row.id, row["index"], row.routing, row.seq_no, row.primary_term, "", values, cut)


def _in_batches(lines: Iterator[PlannedRemoval | None]) -> Iterator[list[PlannedRemoval | None]]:
    while batch := list(islice(lines, BATCH)):
        yield batch


async def _with_digests(
    server: Port, lines: Sequence[PlannedRemoval | None], decided_by: Mapping[str, Decisive], needed: Sequence[str]
) -> list[PlannedRemoval | LeftOut]:
    """Return each line with the digests of its documents, or why it is left out; ``None`` is a text not similar."""
    documents = {each.key: each for line in lines if line is not None for each in (line.document, line.canonical)}
    items: Mapping[Key, Mapping[str, Any]] = {}
    if documents:
        docs = [{**key.header(), "_source": list(decided_by[key.index])} for key in documents]
        items = dict(
            zip(documents, (await retry(server, lambda: server.mget(body={"docs": docs})))["docs"], strict=True)
        )
    found: list[PlannedRemoval | LeftOut] = []
    for line in lines:
        pair = [] if line is None else [line.document, line.canonical]
        if line is None:
            found.append("not_similar")
        elif any("error" in items[each.key] for each in pair):
            found.append("unreadable")
        elif any(not items[each.key].get("found") or is_written(each, items[each.key]) for each in pair):
            found.append("changed")
        else:
            document, canonical = (_digested(each, items[each.key], decided_by[each.index], needed) for each in pair)
            found.append(replace(line, document=document, canonical=canonical))
    return found


def _digested(
    document: PlannedDocument, item: Mapping[str, Any], fields: Decisive, needed: Sequence[str]
) -> PlannedDocument:
    """Return *document* with its digest, which must have a value of *needed*: else its text is made of other fields."""
    source = item.get("_source") or {}
    if not any(read_values(source, name) for name in needed):
        raise InvalidInputError(
            f"document {shorten(document.id)} has no field {' or '.join(needed)}: name in fields what the columns of "
            "text and canonical are made of"
        )
    return replace(document, digest=digest_of(source, fields))
