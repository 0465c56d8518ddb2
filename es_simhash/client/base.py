"""
What both client classes are made of: the caller's client, its dialect, and what was learnt through it.

No operation is here.
"""

from __future__ import annotations

import time
from collections.abc import (
    Mapping,
    Sequence,
)
from typing import Any

from es_simhash.client.dialects import find_dialect, is_async_client
from es_simhash.flows.context import Context
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, get_scheme
from es_simhash.index.fields import DEFAULT_PREFIX, Fields
from es_simhash.index.meta import IndexSettings, build_settings

__all__ = ["BaseClient", "Filter"]

Filter = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class BaseClient:
    """What both clients are made of."""

    _is_async: bool

    def __init__(
        self,
        client: Any,
        *,
        scheme: str | Scheme | None = None,
        prefix: str = DEFAULT_PREFIX,
        dialect: str | None = None,
    ) -> None:
        self._client = client
        self._dialect = find_dialect(client, dialect)
        if dialect is None and is_async_client(client) != self._is_async:
            other = "SimHashClient" if self._is_async else "AsyncSimHashClient"
            raise TypeError(f"{type(client).__name__} does not fit {type(self).__name__}: use {other}")
        if scheme is not None:
            get_scheme(scheme)  # refuses an unknown one now
        self._context = Context(Fields(prefix).prefix, scheme, time.monotonic)

    def __repr__(self) -> str:
        context = self._context
        return f"{type(self).__name__}({self._client!r}, scheme={context.wanted!r}, prefix={context.prefix!r})"

    @property
    def dialect(self) -> str:
        """The product spoken to: ``"elasticsearch"`` or ``"opensearch"``."""
        return self._dialect.name

    def _settings(
        self,
        scheme: str | Scheme | None,
        text_field: str | Sequence[str],
        max_distance: int | None,
        *,
        value: bool,
    ) -> IndexSettings:
        chosen = scheme or self._context.wanted or DEFAULT_SCHEME
        return build_settings(scheme=chosen, text_field=text_field, max_distance=max_distance, value=value)
