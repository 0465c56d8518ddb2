"""The two clients: all methods of each in one class."""

from __future__ import annotations

from es_simhash.client.async_methods.distinct import AsyncDistinctMethods
from es_simhash.client.async_methods.grouping import AsyncGroupingMethods
from es_simhash.client.async_methods.lookup import AsyncLookupMethods
from es_simhash.client.async_methods.quality import AsyncQualityMethods
from es_simhash.client.async_methods.removal import AsyncRemovalMethods
from es_simhash.client.async_methods.upkeep import AsyncUpkeepMethods
from es_simhash.client.sync_methods.distinct import DistinctMethods
from es_simhash.client.sync_methods.grouping import GroupingMethods
from es_simhash.client.sync_methods.lookup import LookupMethods
from es_simhash.client.sync_methods.quality import QualityMethods
from es_simhash.client.sync_methods.removal import RemovalMethods
from es_simhash.client.sync_methods.upkeep import UpkeepMethods


class SimHashClient(LookupMethods, DistinctMethods, GroupingMethods, RemovalMethods, UpkeepMethods, QualityMethods):
    """
    Near-duplicate search through your own ``Elasticsearch`` or ``OpenSearch`` client.

    The client's connection, authentication and retries are used as they are; its errors pass through unchanged.
    Threads may share an object of this class if they may share the client. Processes may not: one that was forked after
    the object was used is refused, because the client's connections would be in both.

    Args:
        client:
            An ``elasticsearch.Elasticsearch`` or ``opensearchpy.OpenSearch``, or a subclass.
        scheme:
            Scheme to insist on, by name or as an object; ``None`` adopts the one recorded in an index's mapping.
            It must be given where the mapping may not be read.
        files:
            Paths of the user's files that the schemes of indices were made with, by parameter: ``dictionary``,
            ``idf``, ``stop_words``. Those of *scheme* need not be given again.
        prefix:
            Name of the object that holds the fields.
        dialect:
            ``"elasticsearch"`` or ``"opensearch"``, if the client's class is not a known one.
        progress:
            Is called with a :class:`Progress` by every method that is long and gets no other one.
        read_only:
            Refuse every request that could write, before it is sent.

    Raises:
        TypeError: If the client is async, or its class is not known and no dialect is given.
        InvalidInputError: If the scheme, a file, the prefix or the dialect cannot be used.
    """


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
        files:
            As for :class:`SimHashClient`.
        prefix:
            As for :class:`SimHashClient`.
        dialect:
            As for :class:`SimHashClient`.
        progress:
            As for :class:`SimHashClient`.
        read_only:
            As for :class:`SimHashClient`.

    Raises:
        TypeError: If the client is sync, or its class is not known and no dialect is given.
        InvalidInputError: If the scheme, a file, the prefix or the dialect cannot be used.
    """
