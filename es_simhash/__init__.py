"""
Exact near-duplicate search for Elasticsearch and OpenSearch, without a server plugin.

Give each document a 64-bit SimHash fingerprint and four keyword block fields (``with_fingerprints``), then ask for
its near-duplicates (``SimHashClient.find_near_dups``). The public names are here; no search client is imported.
"""

from es_simhash.client import AsyncSimHashClient, SimHashClient
from es_simhash.errors import (
    EmbeddedServerError,
    IncompleteSearchError,
    InvalidInputError,
    MappingError,
    MissingDependencyError,
    SchemeError,
    SchemeMismatchError,
    SearchFailedError,
    SimHashError,
    WorkerError,
)
from es_simhash.flows.backfill import BackfillProgress
from es_simhash.flows.dedupe import Deduped
from es_simhash.flows.groups import Group, Pair
from es_simhash.flows.ingest import Written
from es_simhash.flows.manage import IndexCheck, Removal
from es_simhash.flows.reconcile import Reconciled
from es_simhash.flows.verify import Verification
from es_simhash.hashing import (
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
from es_simhash.index.actions import Problem, with_fingerprints
from es_simhash.index.documents import document_fields
from es_simhash.index.fields import fingerprint_fields
from es_simhash.index.mapping import (
    IndexSettings,
    build_component_template,
    build_index_template,
    build_mapping,
)
from es_simhash.index.nearby import distinct
from es_simhash.index.plan import Landscape, Limits, LookupPlan, PlanEstimate, explain_plan, make_plan, plan_lookup
from es_simhash.index.policies import IfSimilar
from es_simhash.index.presets import PRESETS, Preset, get_preset
from es_simhash.index.query import build_query
from es_simhash.index.rescore import NearDup, NearDups, rescore

__all__ = [
    "DEFAULT_SCHEME",
    "PRESETS",
    "AsyncSimHashClient",
    "BackfillProgress",
    "Deduped",
    "EmbeddedServerError",
    "Group",
    "IfSimilar",
    "IncompleteSearchError",
    "IndexCheck",
    "IndexSettings",
    "InvalidInputError",
    "Landscape",
    "Limits",
    "LookupPlan",
    "MappingError",
    "MissingDependencyError",
    "NearDup",
    "NearDups",
    "Pair",
    "PlanEstimate",
    "Preset",
    "Problem",
    "Reconciled",
    "Removal",
    "Scheme",
    "SchemeError",
    "SchemeMismatchError",
    "SearchFailedError",
    "SimHashClient",
    "SimHashError",
    "Verification",
    "WorkerError",
    "Written",
    "block_terms",
    "build_component_template",
    "build_index_template",
    "build_mapping",
    "build_query",
    "distinct",
    "document_fields",
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
    "make_plan",
    "plan_lookup",
    "rescore",
    "schemes",
    "simhash",
    "to_hex",
    "with_fingerprints",
]

__version__ = "0.1.0"
