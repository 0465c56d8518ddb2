"""
Text to 64 bits: schemes, fingerprints, blocks and distances. Nothing here knows about search.

numpy and jieba are loaded when they are first needed, so that importing this package is quick.
"""

from es_simhash.hashing.charikar import (
    BLOCK_BITS,
    BLOCKS,
    block_terms,
    estimated_cosine,
    from_hex,
    hamming_distance,
    simhash,
    to_hex,
)
from es_simhash.hashing.compute import fingerprint, fingerprint_array, fingerprints
from es_simhash.hashing.registry import DEFAULT_SCHEME, get_scheme, schemes
from es_simhash.hashing.scheme import Scheme

__all__ = [
    "BLOCKS",
    "BLOCK_BITS",
    "DEFAULT_SCHEME",
    "Scheme",
    "block_terms",
    "estimated_cosine",
    "fingerprint",
    "fingerprint_array",
    "fingerprints",
    "from_hex",
    "get_scheme",
    "hamming_distance",
    "schemes",
    "simhash",
    "to_hex",
]
