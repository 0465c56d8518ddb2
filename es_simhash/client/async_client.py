"""The async client: all its methods in one class."""

from __future__ import annotations

from es_simhash.client.async_methods.distinct import AsyncDistinctMethods
from es_simhash.client.async_methods.grouping import AsyncGroupingMethods
from es_simhash.client.async_methods.lookup import AsyncLookupMethods
from es_simhash.client.async_methods.quality import AsyncQualityMethods
from es_simhash.client.async_methods.removal import AsyncRemovalMethods
from es_simhash.client.async_methods.upkeep import AsyncUpkeepMethods


class AsyncSimHashClient(
    AsyncLookupMethods,
    AsyncDistinctMethods,
    AsyncGroupingMethods,
    AsyncRemovalMethods,
    AsyncUpkeepMethods,
    AsyncQualityMethods,
):
    """
    Near-duplicate search through your own ``AsyncElasticsearch`` or ``AsyncOpenSearch`` client.

    Methods, arguments, results and errors are those of :class:`SimHashClient`. What returns a value there is awaited
    here, what yields there is an async iterator here, and documents may come from an async iterable.

    Args:
        client:
            An ``elasticsearch.AsyncElasticsearch`` or ``opensearchpy.AsyncOpenSearch``, or a subclass.
        scheme:
            As for :class:`SimHashClient`.
        prefix:
            As for :class:`SimHashClient`.
        dialect:
            As for :class:`SimHashClient`.
        progress:
            As for :class:`SimHashClient`.

    Raises:
        TypeError: If the client is sync, or its class is not known and no dialect is given.
        InvalidInputError: If the scheme, prefix or dialect cannot be used.
    """
