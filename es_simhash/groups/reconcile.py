"""
Rewrites group fields that disagree with the rule, whoever wrote the documents, and removes stale tags.

The rule is applied in ``table``. A document is rewritten only if it is still as it was when it was judged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.neighbourhood import group_touched
from es_simhash.groups.read import grouped_without_fingerprint, lost_canonicals, read_all, read_texts
from es_simhash.groups.recorded import check_recorded, field_kinds, finish_regrouping, settle_grouping
from es_simhash.hashing import to_hex
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import GROUPED, Fields, clearing, group_fields, now, read_values
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, begin_anew, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.shards import reading_primaries
from es_simhash.mapping.user_fields import milliseconds_of, to_moment
from es_simhash.transport.conversation import refresh
from es_simhash.transport.protocol import Index, Key, Progress, ids_query, noting, were
from es_simhash.writes.bulk import CONFLICT, MISSING, Change, rewrite
from es_simhash.writes.operations import Failure, refuse_hindered
from es_simhash.writes.targets import refuse_masked, refuse_masked_values, refuse_updates

if TYPE_CHECKING:
    from es_simhash.groups.table import Groups, Row, Table, Texts


Written: TypeAlias = dict[Key, tuple[int, int] | None]
"""The versions that were written."""

BATCH = 500
# A round is needed again only where documents changed while they were judged.
ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Reconciled:
    """
    What :func:`reconcile` found and did.

    Attributes:
        documents:
            Number of documents looked at: those with a fingerprint.
        groups:
            Number of groups among them, those of one document included.
        duplicates:
            Number of documents that are not canonical.
        changed:
            Number of documents that said something else and were rewritten, or, in a dry run, would be.
        failures:
            A :class:`Failure` for each document that could not be rewritten.
        is_settled:
            Whether everything was as the rule says when it was last looked at. ``False`` where others kept changing
            documents, after failures, and in a dry run that would change something.
        unread:
            Number of documents that have no near-duplicates because their text could not be read. Only texts of
            documents that are near another one are read.
        rule:
            The rule of the groups, in words.
        unreadable:
            Number of documents that were left out because what they have as fingerprint is none: ``setup`` mends them.
        first_unreadable:
            The first of them, as ``index/_id``.
    """

    documents: int
    groups: int
    duplicates: int
    changed: int
    failures: tuple[Failure, ...] = ()
    is_settled: bool = True
    unread: int = 0
    rule: str = ""
    unreadable: int = 0
    first_unreadable: str | None = None


def check_moment(since: str | datetime | None) -> str | None:
    """Return *since* in the form of ``simhash.at``; a string without a time zone is taken as UTC."""
    if since is None:
        return None
    if isinstance(since, str):
        try:
            since = datetime.fromisoformat(since)
        except ValueError as error:
            raise InvalidInputError(
                f"since {shorten(since)} is no moment: give ISO 8601, such as 2026-01-31"
            ) from error
        since = since if since.tzinfo else since.replace(tzinfo=UTC)
    if not isinstance(since, datetime):
        raise WrongTypeError(f"since must be a datetime or a string, not {type(since).__name__}")
    if since.tzinfo is None:
        raise InvalidInputError(
            f"since {since} has no time zone: add one, as in datetime.now(UTC) or 2026-01-31T00:00:00Z"
        )
    return since.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def read_groups(
    server: Port,
    index: Index,
    resolved: Resolved,
    grouping: Grouping,
    *,
    since: str | None = None,
    ids: Collection[str] | None = None,
    may_lack: bool = True,
) -> tuple[Table, Groups]:
    """Return the documents of *index*, or those that may be touched since then, or with *ids*, and their groups."""
    from es_simhash.groups.table import Table  # noqa: PLC0415 -- loads numpy

    fields = Fields(server.prefix)
    dates = [field for field, kind in field_kinds(resolved, grouping).items() if kind == "date"]
    table = Table(server.prefix, grouping, dates=dates, text_fields=resolved.text_fields)
    scheme = agree(resolved, server.context).scheme
    texts: Texts | None = None

    async def group() -> Groups:
        nonlocal texts
        if grouping.similarity is not None:
            places = (await server.compute(table.with_candidates)).tolist()
            texts = await read_texts(
                server, index, table, places, resolved.text_fields, grouping.measure, scheme, known=texts
            )
        return await server.compute(table.group, texts)

    await refresh(server, index)
    if since is None and ids is None:
        await read_all(server, index, table)
        return table, await group()
    lost = await lost_canonicals(server, index, list(resolved.mappings)) if may_lack else ()
    query = {"range": {fields.at: {"gte": since}}} if ids is None else ids_query(sorted(ids))
    named = {*lost, *(ids or ())}
    return table, await group_touched(server, index, table, grouping.max_distance, group, query, named=named)


async def reconcile(
    server: Port,
    index: Index,
    request: GroupingRequest,
    *,
    since: str | None = None,
    ids: Collection[str] | None = None,
    may_lack: bool = True,
    if_grouped: bool = False,
    dry_run: bool = False,
    regroup: bool = False,
    batch: int = BATCH,
    written: Written | None = None,
    short: set[Key] | None = None,
) -> Reconciled:
    """
    Make the groups of *index* what its rule says; rewrite only documents that say something else.
    With *regroup*, the request replaces the recorded grouping first. Until a run has settled all documents, the mapping
    says that this is not done, and *since* is ignored.
    With *since*, or *ids* (at most some thousand), only groups are judged that documents grouped since then, or with
    these ids, may have changed; without *may_lack*, no canonical was deleted since. With *if_grouped*, nothing is done
    where no index records a grouping. What is written is noted in *written*, and what is too short in *short*.
    Cost: all fingerprints and ids are read, or those that such documents may have touched (a multi-search for 200 of
    them); without *ids*, one search for tagged documents without a fingerprint; a multi-get and a bulk for every 500
    documents to change.
    """
    if regroup and (since is not None or ids is not None):
        raise InvalidInputError("regroup changes the groups of all documents: leave since out")
    server = await reading_primaries(server, index)
    resolved = await resolve_index(server, index)
    if if_grouped and not any(own.is_grouped for own in resolved.settings_of.values()):
        return Reconciled(0, 0, 0, 0)
    is_regrouping = regroup or any(own.is_regrouping for own in resolved.settings_of.values())
    since = None if is_regrouping else since
    if dry_run:
        for field in (Fields(server.prefix).group, Fields(server.prefix).duplicate_of):
            await refuse_masked_values(server, index, field, is_read=True)
    else:
        await refuse_updates(server, index, resolved.mappings)
    if regroup and not dry_run:
        await refuse_masked(server, resolved.mappings)  # by the new rule nothing would be right yet
    grouping = await settle_grouping(server, resolved, request, record=not dry_run, may_differ=dry_run, regroup=regroup)
    check = partial(check_recorded, server, index, grouping, before=resolved)
    writer = _Writer(server.prefix, batch, grouping, check, {} if written is None else written)
    read = partial(read_groups, server, index, resolved, grouping, since=since, ids=ids, may_lack=may_lack)
    with noting(lambda: were(writer.changed, "rewritten")):
        for _ in range(ROUNDS):
            table, groups = await begin_anew(read)
            wrong = await server.compute(groups.wrong)
            # Those with the ids were changed by a flow that takes these fields out by itself.
            bare = await grouped_without_fingerprint(server, index) if ids is None else []
            if not dry_run:
                await writer.write(server, groups, wrong, bare)
            if dry_run or writer.failures or not writer.moved:
                break
    changed = len(wrong) + len(bare) if dry_run else writer.changed
    if short is not None:
        short |= await server.compute(groups.short)
    duplicates = len(groups.duplicates)
    report = Reconciled(
        len(table),
        len(table) - duplicates,
        duplicates,
        changed,
        tuple(writer.failures),
        not (writer.failures or writer.moved or (dry_run and changed)),
        groups.unread,
        str(grouping),
        table.unreadable,
        table.first_unreadable,
    )
    if not dry_run:
        await refresh(server, index)
        if is_regrouping and ids is None and report.is_settled:
            await finish_regrouping(server, index, grouping)
    return report


class _Writer:
    """
    Puts documents into the groups they belong to; *check* raises if they are not grouped in this way any more.
    *moved*: whether others changed some, so that they are to be judged again.
    """

    def __init__(
        self,
        prefix: str,
        batch: int,
        grouping: Grouping,
        check: Callable[[], Awaitable[None]],
        written: Written,
    ) -> None:
        self._prefix = prefix
        self._written = written
        self._batch = batch
        self._check = check
        # Where the latest stays, a document that never had a moment must not get the latest.
        self._has_moments = not any(key.is_descending and key.field == Fields(prefix).at for key in grouping.order_keys)
        self.changed = 0
        self.moved = False
        self.failures: list[Failure] = []

    async def write(self, server: Port, groups: Groups, places: Sequence[int], bare: Sequence[Key]) -> None:
        """Rewrite the documents at *places* of *groups*, and *bare* ones; each request is checked before."""
        before, self.moved = self.changed, False
        moment = groups.table.next_moment(milliseconds_of(await server.compute(now)) or 0)
        # Canonicals first: a run that is cut short leaves no duplicate with a moment before that of its canonical.
        places = sorted(places, key=lambda place: int(groups.canonical[place]) != place)
        for begin in range(0, len(places), self._batch):
            rows = {groups.table.row(place): place for place in places[begin : begin + self._batch]}
            fields_of = partial(_fields, groups, moment=moment if self._has_moments else None)
            wanted = {row.key: (row, fields_of(place), groups.version(place)) for row, place in rows.items()}
            await self._rewrite(server, list(wanted), partial(self._regroup, wanted))
            server.tell(Progress(begin + len(rows), len(places), "rewriting groups"))
        for begin in range(0, len(bare), self._batch):
            await self._rewrite(server, bare[begin : begin + self._batch], self._clear)
        if self.changed > before:
            await self._check()  # a batch that was on its way when the grouping was changed is an error, and no success

    def _regroup(
        self,
        wanted: Mapping[Key, tuple[Row, Mapping[str, Any], tuple[int, int] | None]],
        place: Key,
        found: Mapping[str, Any],
    ) -> tuple[str, Any] | None:
        """Return the update of a document that is still as it was judged."""
        row, fields, version = wanted[place]
        own = found.get("_source", {}).get(self._prefix) or {}
        given = {key: value for key, value in fields.items() if own.get(key) != value}
        if own.get("at"):
            given.pop("at", None)  # the moment it was first grouped
        # Its text may be another one now: it is read again in the next round.
        is_read = version in (None, (found["_seq_no"], found["_primary_term"]))
        if own.get("fingerprint") != to_hex(row.fingerprint) or (given and not is_read):
            self.moved = True
            return None
        return ("update", {"doc": {self._prefix: given}}) if given else None

    def _clear(self, _: Key, found: Mapping[str, Any]) -> tuple[str, Any] | None:
        """Return the update that takes the group fields out of a document that has no fingerprint."""
        source = found.get("_source", {})
        if read_values(source, Fields(self._prefix).fingerprint) not in ([], [None]):
            return None
        given = clearing(source, GROUPED, prefix=self._prefix)
        return ("update", {"doc": given}) if given else None

    async def _rewrite(self, server: Port, keys: Sequence[Key], change: Change) -> None:
        source = [self._prefix, f"{self._prefix}.*"]
        outcomes = await rewrite(server, keys, change, source=source, check=self._check)
        for key, outcome in zip(keys, outcomes, strict=True):
            if outcome is None:
                continue
            if outcome.is_done:
                self.changed += 1
                self._written[key] = outcome.version
            elif outcome.status in (CONFLICT, MISSING):
                self.moved = True
            else:
                self.failures.append(outcome.to_failure())
        refuse_hindered(outcomes)


def _fields(groups: Groups, place: int, *, moment: int | None) -> dict[str, Any]:
    """Return the group fields of the document at *place*; a duplicate is grouped after its canonical."""
    canonicals = groups.canonical[[place]]
    [name] = groups.names(canonicals)
    is_canonical = canonicals[0] == place
    at = None if moment is None else to_moment(moment + (not is_canonical))
    if is_canonical:
        return group_fields(name, at=at)
    return group_fields(name, canonical=name, distance=int(groups.distance[place]), at=at)
