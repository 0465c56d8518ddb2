"""The port of a client's operations: requests to a server, and what the client knows of its indices."""

from __future__ import annotations

from es_simhash.mapping.context import Context
from es_simhash.transport.server import Server, ServerAround


class Port(ServerAround):
    """A port around *inner*, with the *context* that all operations of one client object share."""

    def __init__(self, inner: Server, context: Context) -> None:
        super().__init__(inner)
        self.context = context
        self.prefix = context.prefix
