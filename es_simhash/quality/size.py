"""What an index takes: disk, memory, cost of a lookup, settings. By measured constants (docs/benchmarks.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Literal

from es_simhash.arguments import check_choice, check_count, check_number
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.lookup.find import index_stats
from es_simhash.lookup.plan import SKIMMED_FROM, PlanEstimate, explain_plan
from es_simhash.mapping.context import IndexStats
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, check_max_distance
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import resolve_index
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.limits import Limits
from es_simhash.transport.protocol import Index, check_index, index_key
from es_simhash.transport.retry import retry

Basis = Literal["measured", "modelled", "exact"]


@dataclass(frozen=True, slots=True)
class Figure:
    """
    One number about an index, from *low* to *high*; both are the same where it is one number.
    *unit*: ``"bytes"``, ``"times an empty search"``, ``"terms"``, ``"documents"`` or ``"postings"``. *basis*:
    ``"measured"``: so much for each document was measured; ``"modelled"``: from the cost model; ``"exact"``: it follows
    from what is given, such as the lookup plan. *up_to*: documents of the largest index in which this was measured;
    ``None`` for an exact figure.
    """

    name: str
    low: float
    high: float
    unit: str
    basis: Basis
    up_to: int | None = None

    def is_beyond(self, documents: int) -> bool:
        return self.up_to is not None and documents > self.up_to


@dataclass(frozen=True, slots=True)
class Advice:
    """
    What to set.
    *setting*: a setting of the index, or ``"segments"`` or ``"scripts"``. *reason*: ``"shard size"``, ``"idle index"``,
    ``"loading"``, ``"idle cores"`` or ``"fewer terms"``.
    """

    setting: str
    value: str | int
    reason: str


@dataclass(frozen=True, slots=True)
class IndexSize:
    """
    The real size of an index.
    *bytes*: on disk, of all fields, without replicas. *replicas*: copies of each primary shard that exist, not those
    that the settings ask for. *segments*: of all primary shards together. *density*: how uneven the fingerprints are:
    see :class:`IndexStats`.
    """

    index: str
    documents: int
    fingerprinted: int
    bytes: int
    shards: int
    replicas: int
    segments: int
    density: float = 1.0


@dataclass(frozen=True, slots=True)
class Size(Tabular):
    """
    What an index takes, as far as is known.

    Attributes:
        documents:
            Documents that were asked for.
        max_distance:
            Largest distance of the lookups, in bits.
        shards:
            Primary shards, given or advised.
        replicas:
            Copies of each.
        segments:
            Segments of one shard as written.
        plans:
            Names of the cheapest lookup plans: with scripts, where they are allowed, and without.
        figures:
            The numbers.
        advice:
            What to set.
        measured:
            The real size of the index, where one was read.
    """

    documents: int
    max_distance: int
    shards: int
    replicas: int
    segments: int
    plans: tuple[str, ...]
    figures: tuple[Figure, ...]
    advice: tuple[Advice, ...]
    measured: IndexSize | None = None

    def figure(self, name: str) -> Figure | None:
        """Return the figure of that name, or ``None``."""
        return next((each for each in self.figures if each.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; each figure says whether it is beyond what was measured."""
        advice = list(map(asdict, self.advice))
        return asdict(self) | {"plans": list(self.plans), "figures": self.to_dicts(), "advice": advice}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each figure; each says whether it is beyond what was measured."""
        return [asdict(each) | {"is_beyond": each.is_beyond(self.documents)} for each in self.figures]

    def _title(self) -> str:
        return f"{self.documents:,} documents in {self.shards} shards, lookups up to {self.max_distance} bits"

    def _sheets(self) -> Sequence[Sheet]:
        measured = [] if self.measured is None else [Sheet("Measured", [asdict(self.measured)])]
        return [Sheet("Figures", self.to_dicts()), Sheet("Advice", [asdict(each) for each in self.advice]), *measured]


Product = Literal["opensearch", "elasticsearch"]
PRODUCTS: tuple[Product, ...] = ("opensearch", "elasticsearch")

_MOST_DOCUMENTS = 10**15
# Primary shards of one index, by default of both products, and of many indices behind one name.
_MOST_SHARDS, _MOST_SHARDS_TOGETHER = 1_024, 1_000_000
# What both products' documentation advises for a shard.
_SHARD_DOCUMENTS, _SHARD_BYTES = 200_000_000, 50 * 2**30
# Segments of one shard as written: 8 to 12 were found at 4 million documents.
_WRITTEN_SEGMENTS = 10
# Documents up to which lookups were measured.
_LOOKUPS_UP_TO = 4_000_000
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class _LookupCosts:
    """
    What a lookup costs on one product, in thousandths of an empty search, beyond that search.
    *always*: for any lookup. *term*: for a block term in one segment. *posting*: for a posting read. *check*: for a
    document whose distance a script computes. *hit*: for a candidate sent to the client; *skimmed*: for one sent
    without its id.
    """

    always: float
    term: float
    posting: float
    check: float
    hit: float
    skimmed: float


# Fitted by bench/fit_sizing.py to lookups among 4 million documents, which they meet within a quarter. Elasticsearch
# reads several segments at once. Its scripts were not measured: their cost is OpenSearch's.
_COSTS: dict[Product, _LookupCosts] = {
    "opensearch": _LookupCosts(628, 0.534, 0.0388, 0.0724, 12.0, 4.0),
    "elasticsearch": _LookupCosts(754, 0.0947, 0.0252, 0.0724, 8.5, 4.2),
}


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Bytes for each document, from and to, and besides them; and the most documents with which they were measured."""

    low: float
    high: float
    up_to: int
    fixed: int = 0

    def figure(self, name: str, documents: int, copies: int = 1) -> Figure:
        low, high = (copies * (each * documents + self.fixed) for each in (self.low, self.high))
        return Figure(name, low, high, "bytes", "measured", self.up_to)


# Of either product, merged and as written, with the copy in _source and ids of 10 characters; by bench/sizing.py and
# bench/lookup.py.
_DISK = {"disk_fingerprints": _Bytes(140, 160, 4_000_000), "disk_groups": _Bytes(15, 25, 100_000)}

# Peak memory of the client by bench/pairs.py, with ids of 10 characters.
_MEMORY = {
    "memory_pairs": _Bytes(90, 100, 3_000_000),
    "memory_reconcile": _Bytes(105, 115, 3_000_000),
    "memory_reconcile_texts": _Bytes(250, 265, 3_000_000, 256 * _MIB),
    "memory_fingerprints": _Bytes(40, 55, 100_000_000, 60 * _MIB),
}


def estimate_size(
    documents: int,
    *,
    max_distance: int = DEFAULT_MAX_DISTANCE,
    product: Product | None = None,
    shards: int | None = None,
    replicas: int = 1,
    segments: int = _WRITTEN_SEGMENTS,
    document_bytes: int = 0,
    scripts: bool = True,
    density: float = 1.0,
) -> Size:
    """
    Return what an index of *documents* takes: disk, memory, the cost of a lookup, and what to set.

    Costs of lookups are multiples of an empty search of the same index, so they do not depend on the machine much. They
    go from all shards being searched at once to one after the other.

    Args:
        documents:
            Documents with a fingerprint.
        max_distance:
            Largest distance of a lookup in bits, inclusive, 0 to 64.
        product:
            ``"opensearch"`` or ``"elasticsearch"``; ``None`` for whichever is less and more.
        shards:
            Primary shards; by default as many as their size demands.
        replicas:
            Copies of each shard.
        segments:
            Segments of one shard as written.
        document_bytes:
            Bytes on disk of a document without our fields; it decides about shards.
        scripts:
            Whether the server may run a script to compare fingerprints.
        density:
            How uneven fingerprints are: see :class:`IndexStats`; less than 1 counts as 1.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If it is out of range.

    Examples:
        >>> size = estimate_size(500_000_000, max_distance=8)
        >>> size.shards, size.figure("block_terms").high
        (3, 431)
    """
    check_count("documents", documents, 1, _MOST_DOCUMENTS)
    check_max_distance(max_distance)
    check_choice("product", product, (None, *PRODUCTS))
    check_count("replicas", replicas, 0, _MOST_SHARDS)
    check_count("segments", segments)
    check_count("document_bytes", document_bytes, 0)
    check_number("density", density, above=0, advice="a number above 0")
    if not isinstance(scripts, bool):
        raise WrongTypeError(f"scripts must be True or False, not {shorten(scripts)}")
    disk = _disk(documents, document_bytes, 1 + replicas)
    memory = [each.figure(name, documents) for name, each in _MEMORY.items()]
    primary_bytes = sum(each.high for each in disk) / (1 + replicas)
    advised = min(_MOST_SHARDS, max(ceil(documents / _SHARD_DOCUMENTS), ceil(primary_bytes / _SHARD_BYTES)))
    shards = advised if shards is None else check_count("shards", shards, 1, _MOST_SHARDS_TOGETHER)
    stats = IndexStats(documents, max(1.0, density))
    plans = [
        explain_plan(max_distance, stats=stats, limits=Limits(scripts=allowed))[0]
        for allowed in ((True, False) if scripts else (False,))
    ]
    costs = [_COSTS[each] for each in PRODUCTS if product in (None, each)]
    return Size(
        documents,
        max_distance,
        shards,
        replicas,
        segments,
        tuple(each.plan.name for each in plans),
        (*disk, *_lookup(plans, costs, shards, segments), *memory),
        _advice(plans, advised, product),
    )


def _disk(documents: int, document_bytes: int, copies: int) -> list[Figure]:
    figures = [each.figure(name, documents, copies) for name, each in _DISK.items()]
    if document_bytes:
        own = float(document_bytes * documents * copies)
        figures.append(Figure("disk_other_fields", own, own, "bytes", "exact"))
    return figures


def _lookup(plans: Sequence[PlanEstimate], costs: Sequence[_LookupCosts], shards: int, segments: int) -> list[Figure]:
    """Return what a lookup by the first of *plans* reads and costs, and what it costs by the last, without scripts."""
    best, plain = plans[0], plans[-1]

    def cost(name: str, plan: PlanEstimate, segments: int) -> Figure:
        found = [_times_empty(plan, each, shards, segments, parallel=way) for each in costs for way in (True, False)]
        return Figure(name, min(found), max(found), "times an empty search", "modelled", _LOOKUPS_UP_TO)

    figures = [
        Figure("block_terms", best.plan.terms, best.plan.terms, "terms", "exact"),
        Figure("postings", best.postings, best.postings, "postings", "modelled", _LOOKUPS_UP_TO),
        Figure("candidates", best.passing, best.passing, "documents", "modelled", _LOOKUPS_UP_TO),
        cost("lookup_as_written", best, segments),
        cost("lookup_one_segment", best, 1),
    ]
    return [*figures, cost("lookup_without_scripts", plain, segments)] if best.plan.script else figures


def _times_empty(found: PlanEstimate, costs: _LookupCosts, shards: int, segments: int, *, parallel: bool) -> float:
    """Return the cost of a lookup over that of an empty search; *parallel*: all shards are searched at once."""
    sent = 0.0 if found.plan.script else found.hits
    first = min(sent, SKIMMED_FROM)
    searched = (
        costs.term * found.plan.terms * segments * shards
        + costs.posting * found.postings
        + costs.check * (found.passing if found.plan.script else 0.0)
    )
    client = costs.always + costs.hit * first + costs.skimmed * (sent - first)
    return 1 + (client + searched / (shards if parallel else 1)) / 1000


def _advice(plans: Sequence[PlanEstimate], shards: int, product: Product | None) -> tuple[Advice, ...]:
    found = [Advice("index.number_of_shards", shards, "shard size"), Advice("segments", 1, "idle index")]
    found.append(Advice("index.refresh_interval", "30s", "loading"))
    if product != "elasticsearch":
        found.append(Advice("index.search.concurrent_segment_search.mode", "all", "idle cores"))
    if len(plans) == 1:
        found.append(Advice("scripts", "allow", "fewer terms"))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOptions:
    """
    What the index will be, checked.

    Args:
        documents:
            How many documents it will have; by default as many as it has.
        max_distance:
            Largest distance of a lookup in bits, inclusive, 0 to 64; by default the index's own, else 3.
        product:
            ``"opensearch"`` or ``"elasticsearch"``; ``None`` for whichever is less and more.
        shards:
            How many primary shards it will have; by default as many as it has.
        replicas:
            How many copies of each it will have; by default as many as it has.
        scripts:
            Whether the server may run a script to compare fingerprints.
    """

    documents: int | None = None
    max_distance: int | None = None
    product: Product | None = None
    shards: int | None = None
    replicas: int | None = None
    scripts: bool = True

    def __post_init__(self) -> None:
        self.apply(IndexSize("", 1, 1, 1, 1, 0, 1))

    def apply(self, measured: IndexSize) -> Size:
        """Return what the index that was *measured* takes, or would take with these options."""
        each = measured.bytes / max(1, measured.documents)
        ours = sum(each.low for each in _DISK.values()) if measured.fingerprinted else 0.0
        size = estimate_size(
            max(1, measured.documents) if self.documents is None else self.documents,
            max_distance=DEFAULT_MAX_DISTANCE if self.max_distance is None else self.max_distance,
            product=self.product,
            shards=measured.shards if self.shards is None else self.shards,
            replicas=measured.replicas if self.replicas is None else self.replicas,
            segments=max(1, ceil(measured.segments / measured.shards)),
            document_bytes=max(0, round(each - ours)),
            scripts=self.scripts,
            density=measured.density,
        )
        figures = [
            replace(each, basis="measured", up_to=measured.documents) if each.name == "disk_other_fields" else each
            for each in size.figures
        ]
        return replace(size, figures=tuple(figures), measured=measured)


async def read_size(server: Port, index: Index, options: SizeOptions) -> Size:
    """
    Return the real size of *index*, and what it takes; it need not have the fields of this library.
    Cost: four requests, and one for the mapping where no distance is given. Raises InvalidInputError if no shard
    answers, IncompleteSearchError if some documents were not counted.
    """
    check_index(index)
    answer = await retry(server, lambda: server.index_stats(index=index, metric="docs,store,segments", level="shards"))
    shards = [copies for each in (answer.get("indices") or {}).values() for copies in each["shards"].values()]
    primaries = [copy for copies in shards for copy in copies if copy["routing"]["primary"]]
    if not primaries:
        raise InvalidInputError(f"index {index_key(index)} has no shard that answers: check the name")
    has_fingerprint = {"exists": {"field": Fields(server.prefix).fingerprint}}
    fingerprinted = await count_whole(server, index, has_fingerprint)
    stats = await index_stats(server, index, again=True) if fingerprinted else None
    measured = IndexSize(
        index_key(index),
        _sum(primaries, "docs", "count"),
        fingerprinted,
        _sum(primaries, "store", "size_in_bytes"),
        len(shards),
        max(map(len, shards)) - 1,
        _sum(primaries, "segments", "count"),
        1.0 if stats is None else stats.density,
    )
    if options.max_distance is None:
        each = (await resolve_index(server, index)).each.values()
        recorded = max((own.max_distance for own in each if own.max_distance is not None), default=None)
        options = replace(options, max_distance=recorded)
    size: Size = await server.compute(options.apply, measured)
    return size


def _sum(shards: list[dict[str, Any]], part: str, name: str) -> int:
    return sum(shard[part][name] for shard in shards)
