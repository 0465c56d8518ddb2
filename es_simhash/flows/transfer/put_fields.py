"""
Sends a mapping with our fields, and leaves the marker out where an index takes none. Mappings are made in ``index``.

An index of OpenSearch with derived source takes no field alias, and the marker is one. Lookups confirm the settings of
such an index by reading its mapping.
"""

from __future__ import annotations

from dataclasses import replace

from es_simhash.flows.protocol import Call, Flow, error_text
from es_simhash.index.marker import is_marker_unsupported, without_markers

__all__ = ["put_fields"]


def put_fields(call: Call, *, prefix: str) -> Flow[None]:
    """
    Carry out *call*, which creates an index with our fields below *prefix*, or adds them to one.

    Raises:
        Exception: The client's own, if the server refuses the mapping for another reason than the marker.
    """
    try:
        yield call
    except Exception as error:
        if not is_marker_unsupported(error_text(error), prefix=prefix):
            raise
    else:
        return
    body = call.arguments["body"]
    own = without_markers(body.get("mappings", body), prefix=prefix)
    yield replace(call, arguments={**call.arguments, "body": {**body, "mappings": own} if "mappings" in body else own})
