# What the package offers: `__init__.py` reads this file, and so do type checkers.
from .client.async_client import AsyncSimHashClient
from .client.sync_client import SimHashClient
from .dashboards import build_dashboards
from .errors import (
    EmbeddedServerError,
    GuardRailError,
    IncompleteSearchError,
    IncompleteWriteError,
    InvalidInputError,
    LeaseError,
    MappingError,
    MissingDependencyError,
    NoIndexError,
    PipelineError,
    RoundsError,
    SchemeError,
    SchemeMismatchError,
    SearchFailedError,
    SimHashError,
    WorkerError,
    WrongTypeError,
)
from .flows.follow.report import FollowReport
from .flows.grouping.groups import Group
from .flows.grouping.pairs import Pair
from .flows.grouping.reconcile import Reconciled
from .flows.grouping.written import Written
from .flows.protocol import Progress
from .flows.removal.deduped import Deduped, RemovalPlan
from .flows.removal.restored import Restored
from .flows.upkeep.check import IndexCheck
from .flows.upkeep.install_pipeline import InstalledPipeline
from .flows.upkeep.progress import BackfillProgress
from .flows.upkeep.remove import Removal
from .hashing import (
    DEFAULT_SCHEME,
    Scheme,
    block_terms,
    estimated_cosine,
    fingerprint,
    fingerprint_features,
    fingerprints,
    from_hex,
    get_scheme,
    hamming_distance,
    schemes,
    simhash,
    to_hex,
)
from .index.actions import Problem
from .index.documents import document_fields
from .index.explain_plan import explain_plan, plan_lookup
from .index.fields import fingerprint_fields
from .index.grouping.if_similar import IfSimilar
from .index.grouping.in_memory import distinct
from .index.mapping import build_component_template, build_index_template, build_mapping
from .index.measures.verification import Verification
from .index.meta import IndexSettings
from .index.passages.found import Overlap, Overlaps, Passage
from .index.paste.distance_field import build_distance_field
from .index.paste.esql import build_esql
from .index.paste.query_bar import build_query_bar
from .index.plan import Limits, LookupPlan, make_plan
from .index.plan_cost import IndexStats, PlanEstimate
from .index.presets import PRESETS, Preset, get_preset
from .index.query import build_query
from .index.rescore import NearDup, NearDups, rescore
from .ingest_helper import with_fingerprints
from .pipeline.build import build_pipeline
from .pipeline.search_template import build_search_template
from .quality.boilerplate.learn import learn_boilerplate
from .quality.boilerplate.learned import Boilerplate
from .quality.size import Size
from .quality.sizing import estimate_size
from .quality.stats import Stats
from .report.data import IndexReport
from .review.review import review_html
from .tables.tabular import Table, table

__all__ = [
    "DEFAULT_SCHEME",
    "PRESETS",
    "AsyncSimHashClient",
    "BackfillProgress",
    "Boilerplate",
    "Deduped",
    "EmbeddedServerError",
    "FollowReport",
    "Group",
    "GuardRailError",
    "IfSimilar",
    "IncompleteSearchError",
    "IncompleteWriteError",
    "IndexCheck",
    "IndexReport",
    "IndexSettings",
    "IndexStats",
    "InstalledPipeline",
    "InvalidInputError",
    "LeaseError",
    "Limits",
    "LookupPlan",
    "MappingError",
    "MissingDependencyError",
    "NearDup",
    "NearDups",
    "NoIndexError",
    "Overlap",
    "Overlaps",
    "Pair",
    "Passage",
    "PipelineError",
    "PlanEstimate",
    "Preset",
    "Problem",
    "Progress",
    "Reconciled",
    "Removal",
    "RemovalPlan",
    "Restored",
    "RoundsError",
    "Scheme",
    "SchemeError",
    "SchemeMismatchError",
    "SearchFailedError",
    "SimHashClient",
    "SimHashError",
    "Size",
    "Stats",
    "Table",
    "Verification",
    "WorkerError",
    "Written",
    "WrongTypeError",
    "block_terms",
    "build_component_template",
    "build_dashboards",
    "build_distance_field",
    "build_esql",
    "build_index_template",
    "build_mapping",
    "build_pipeline",
    "build_query",
    "build_query_bar",
    "build_search_template",
    "distinct",
    "document_fields",
    "estimate_size",
    "estimated_cosine",
    "explain_plan",
    "fingerprint",
    "fingerprint_features",
    "fingerprint_fields",
    "fingerprints",
    "from_hex",
    "get_preset",
    "get_scheme",
    "hamming_distance",
    "learn_boilerplate",
    "make_plan",
    "plan_lookup",
    "rescore",
    "review_html",
    "schemes",
    "simhash",
    "table",
    "to_hex",
    "with_fingerprints",
]

__version__: str
