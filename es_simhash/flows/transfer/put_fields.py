"""
Sends a mapping with our fields, and changes it where an index has derived source. Mappings are made in ``index``.

Such an index of OpenSearch takes no field alias, and the marker is one: lookups confirm its settings by reading its
mapping. Nor does it take passages without doc values.
"""

from __future__ import annotations

from dataclasses import replace

from es_simhash.flows.protocol import Call, Flow, error_text
from es_simhash.index.marker import for_derived_source, is_derived_refusal

__all__ = ["put_fields"]


def put_fields(call: Call, *, prefix: str) -> Flow[None]:
    """
    Carry out *call*, which creates an index with our fields below *prefix*, or adds them to one.

    Raises:
        Exception: The client's own, if the server refuses the mapping for another reason than derived source.
    """
    try:
        yield call
    except Exception as error:
        if not is_derived_refusal(error_text(error), prefix=prefix):
            raise
    else:
        return
    body = call.arguments["body"]
    own = for_derived_source(body.get("mappings", body), prefix=prefix)
    yield replace(call, arguments={**call.arguments, "body": {**body, "mappings": own} if "mappings" in body else own})
