# What the package offers: `__init__.py` reads this file, and so do type checkers.
from .client.clients import AsyncSimHashClient, SimHashClient
from .dashboards import build_dashboards
from .dashboards.pack import DashboardPack
from .errors import (
    EmbeddedServerError,
    GuardRailError,
    IncompleteSearchError,
    IncompleteWriteError,
    InvalidInputError,
    MappingError,
    MissingDependencyError,
    NoIndexError,
    SchemeError,
    SchemeMismatchError,
    SimHashError,
    WorkerError,
    WritesRefusedError,
    WrongTypeError,
)
from .folding.page import DistinctHit, DistinctPage
from .folding.texts import DistinctTexts, Dropped, TextGroup, distinct_texts
from .groups.pairs_and_groups import Group, Pair
from .groups.reconcile import Reconciled
from .hashing import (
    DEFAULT_SCHEME,
    Scheme,
    block_terms,
    estimated_cosine,
    fingerprint,
    fingerprints,
    from_hex,
    get_scheme,
    hamming_distance,
    schemes,
    simhash,
    to_hex,
)
from .ingest.actions import Problem
from .ingest.screen import Screened
from .ingest.with_fingerprints import with_fingerprints
from .ingest.written import Written
from .lookup.judge import LookupRule
from .lookup.lookup_options import Verification
from .lookup.near_dups import NearDup, NearDups, rescore
from .lookup.plan import LookupPlan
from .lookup.query import build_query
from .mapping.fields import DEFAULT_PREFIX, document_fields, fingerprint_fields
from .mapping.mapping import build_component_template, build_index_template, build_mapping
from .mapping.meta import DEFAULT_MAX_DISTANCE, IndexSettings
from .mapping.rule import PairRule
from .passages.found import Overlap, Overlaps, Passage
from .pipeline.build import build_pipeline, build_search_template
from .pipeline.install import InstalledPipeline
from .quality.report.report_page import IndexReport
from .quality.stats import Stats
from .removal.history import History, Removed, removal_history
from .removal.records import DuplicateResult, RemovalPlan, Restored
from .removal.review import removal_summary, review_html
from .setup import Setup
from .texts.measures import PRESETS, Preset, get_preset
from .transport.protocol import Progress
from .upkeep.check import IndexCheck
from .upkeep.follow_options import FollowReport
from .upkeep.needed import BackfillProgress
from .upkeep.remove_fields import RemovedFields
from .writes.operations import Failure

__all__ = [
    "DEFAULT_MAX_DISTANCE",
    "DEFAULT_PREFIX",
    "DEFAULT_SCHEME",
    "PRESETS",
    "AsyncSimHashClient",
    "BackfillProgress",
    "DashboardPack",
    "DistinctHit",
    "DistinctPage",
    "DistinctTexts",
    "Dropped",
    "DuplicateResult",
    "EmbeddedServerError",
    "Failure",
    "FollowReport",
    "Group",
    "GuardRailError",
    "History",
    "IncompleteSearchError",
    "IncompleteWriteError",
    "IndexCheck",
    "IndexReport",
    "IndexSettings",
    "InstalledPipeline",
    "InvalidInputError",
    "LookupPlan",
    "LookupRule",
    "MappingError",
    "MissingDependencyError",
    "NearDup",
    "NearDups",
    "NoIndexError",
    "Overlap",
    "Overlaps",
    "Pair",
    "PairRule",
    "Passage",
    "Preset",
    "Problem",
    "Progress",
    "Reconciled",
    "RemovalPlan",
    "Removed",
    "RemovedFields",
    "Restored",
    "Scheme",
    "SchemeError",
    "SchemeMismatchError",
    "Screened",
    "Setup",
    "SimHashClient",
    "SimHashError",
    "Stats",
    "TextGroup",
    "Verification",
    "WorkerError",
    "WritesRefusedError",
    "Written",
    "WrongTypeError",
    "block_terms",
    "build_component_template",
    "build_dashboards",
    "build_index_template",
    "build_mapping",
    "build_pipeline",
    "build_query",
    "build_search_template",
    "distinct_texts",
    "document_fields",
    "estimated_cosine",
    "fingerprint",
    "fingerprint_fields",
    "fingerprints",
    "from_hex",
    "get_preset",
    "get_scheme",
    "hamming_distance",
    "removal_history",
    "removal_summary",
    "rescore",
    "review_html",
    "schemes",
    "simhash",
    "to_hex",
    "with_fingerprints",
]

__version__: str
