"""
Filters of what is retrieved, and guards before what is stored, for LangChain, LlamaIndex and Haystack, which are
neither imported here nor required.

Each module needs the extra of its name; nothing else of this library imports this package.
"""

from es_simhash.errors import MissingDependencyError


def missing(module: str, error: ImportError) -> MissingDependencyError:
    """Return the error for *module* of this package, whose framework is missing or too old."""
    extra = module.rpartition(".")[2].replace("_", "-")
    return MissingDependencyError(f'{module} cannot be used ({error}): pip install "es-simhash[{extra}]"')
