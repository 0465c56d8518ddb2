"""
Near-duplicates in Spark, for what no single machine holds: fingerprints, pairs and groups.

Everything here takes a DataFrame and returns one. Nothing else of this library imports this package: it
needs the extra ``spark``.
"""

from importlib import import_module

from es_simhash.errors import MissingDependencyError

try:
    for name in ("pyspark", "pyarrow"):
        import_module(name)
except ImportError as error:
    raise MissingDependencyError(
        f'es_simhash.spark needs {error.name}, which is not installed: pip install "es-simhash[spark]"'
    ) from error

from es_simhash.spark.columns import with_fingerprints
from es_simhash.spark.data_source import register
from es_simhash.spark.groups import groups
from es_simhash.spark.pairs import near_pairs

__all__ = ["groups", "near_pairs", "register", "with_fingerprints"]
