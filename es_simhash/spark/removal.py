"""A plan of removal from groups made in Spark, for ``apply_removal``; nothing is deleted here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row, functions as sql

from es_simhash.arguments import FilePath, check_output
from es_simhash.client.dialects import find_dialect
from es_simhash.client.drivers import run
from es_simhash.errors import IncompleteSearchError
from es_simhash.groups.rule import Grouping, Rule
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.limits_flow import ServerLimits, within_limits
from es_simhash.removal.may_delete import DEFAULT_MAX_SHARE, Guards, check_max_share, refuse_excess
from es_simhash.removal.plan_file import PlanHeader, PlanWriter
from es_simhash.removal.plan_flow import count_shares, read_uuids
from es_simhash.removal.records import PlannedDocument, PlannedRemoval, RemovalPlan
from es_simhash.spark.columns import Keeper, check_column, check_text, check_verify, jaccard_of, shingles_of
from es_simhash.spark.groups import groups
from es_simhash.texts.measures import DEFAULT_SIMILARITY
from es_simhash.transport.protocol import Flow
from es_simhash.transport.retry_flow import now

# What names a version of a document; the columns are those of the format es_simhash.
_VERSION = ("id", "index", "routing", "seq_no", "primary_term")
# Characters of a text that the plan shows.
SHOWN = 10_000


def plan_removal(
    df: DataFrame,
    path: FilePath,
    *,
    client: Any,
    text: str,
    max_distance: int,
    rule: Rule = "star",
    verify: float = DEFAULT_SIMILARITY,
    canonical: Sequence[str] = (),
    max_share: float = DEFAULT_MAX_SHARE,
    prefix: str = DEFAULT_PREFIX,
    checkpoints: FilePath | None = None,
) -> RemovalPlan:
    """
    Write a plan of removal for the duplicates in *df* to the file *path*, and return what it contains.

    Each duplicate whose text is similar to that of its canonical gets a line, with the versions that both had when
    they were read: ``apply_removal`` deletes only those that nobody has changed since. The driver writes the file, some
    30 bytes of memory for each line.

    Args:
        df:
            Documents read by the format ``es_simhash``: with the columns ``id``, ``index``, ``routing``, ``seq_no``,
            ``primary_term`` and ``fingerprint``.
        path:
            The file of the plan, on the driver.
        client:
            A sync client of Elasticsearch or OpenSearch; the driver asks it which indices these are, and how many
            documents they hold.
        text:
            Name of the column of texts.
        max_distance:
            Largest distance of neighbours in bits, inclusive, 0 to 64.
        rule:
            ``"star"`` or ``"connected"``.
        verify:
            Smallest similarity of neighbours, and of a duplicate to its canonical, 0 to 1.
        canonical:
            Columns that decide which document stays, as for :func:`groups`.
        max_share:
            Largest share of the documents that the plan may remove, 0 to 1.
        prefix:
            Name of the object that holds the fields in the index.
        checkpoints:
            As for :func:`groups`.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        InvalidInputError: If an argument cannot be used, a column is missing, or an id is not the only one.
        GuardRailError: If a larger share would be removed than is allowed; then there is no file.
        IncompleteSearchError: If an index does not exist, or was replaced meanwhile.
    """
    check_output("path", path)
    Fields(prefix)
    bound, share = check_verify(verify), check_max_share(max_share)
    for name in (*_VERSION, "fingerprint"):
        check_column(df, "df", name)
    check_text(df, "text", text)
    grouping = Grouping(rule, max_distance, tuple(canonical) or ("id",), bound)
    dialect = find_dialect(client)
    keeper = Keeper(checkpoints)
    documents = keeper.keep(df.select(*_VERSION, "fingerprint", *canonical, check_text(df, "text", text).alias("text")))
    names = sorted(row["index"] for row in documents.select("index").distinct().collect())

    def ask(flow: Flow[Any]) -> Any:
        return run(within_limits(flow, ServerLimits()), client, dialect)

    uuids = ask(read_uuids(names))
    if missing := sorted(set(names) - set(uuids)):
        raise IncompleteSearchError(f"index {missing[0]!r} does not exist any more: read the documents again")
    grouped = groups(
        documents,
        max_distance=max_distance,
        rule=rule,
        verify=bound,
        text="text",
        canonical=canonical,
        checkpoints=checkpoints,
    )
    with PlanWriter(path) as writer:
        found = left_out = 0
        for removal in _removals(_compared(documents, grouped), text, bound):
            found += 1
            if removal is None:
                left_out += 1
            else:
                writer.add(removal)
        order = writer.order()
        guards = ask(count_shares(names, names, Guards(share), {}))
        refuse_excess(guards.find_excess(len(order)))
        if ask(read_uuids(names)) != uuids:
            raise IncompleteSearchError("an index was replaced while it was read: plan again")
        header = PlanHeader(uuids, prefix, grouping.to_dict(), guards=guards, at=now())
        sha256 = writer.finish(header, order)
    return RemovalPlan(
        str(path), sha256, len(order), guards.documents, found, {"not_similar": left_out} if left_out else {}
    )


def _compared(documents: DataFrame, grouped: DataFrame) -> DataFrame:
    duplicates = grouped.where("duplicate_of is not null").select("id", "duplicate_of", "distance")
    own = documents.select(sql.struct(*_VERSION, "text").alias("document"), sql.col("id"))
    other = documents.select(sql.struct(*_VERSION, "text").alias("canonical"), sql.col("id").alias("duplicate_of"))
    joined = duplicates.join(own, "id").join(other, "duplicate_of")
    similarity = jaccard_of(shingles_of(sql.col("document.text")), shingles_of(sql.col("canonical.text")))
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
    return PlannedDocument(row.id, row["index"], row.routing, row.seq_no, row.primary_term, values, cut)
