"""
The stored search template that returns the candidates of a fingerprint, for programs that run no Painless.
"""

from __future__ import annotations

import json
from typing import Any

from es_simhash.index.fields import DEFAULT_PREFIX, Fields

__all__ = ["build_search_template"]

_SIZE = 1_000
# Without its block the search would silently miss documents, so a missing one makes the search unreadable.
_TERM = '{{"term":{{"{field}":"{{{{{name}}}}}"{{{{^{name}}}}} {name} is missing{{{{/{name}}}}}}}}}'


def build_search_template(*, prefix: str = DEFAULT_PREFIX) -> dict[str, Any]:
    """
    Return a stored script: the search for the candidates of a fingerprint, among them all within 3 bits.

    Two fingerprints that differ in at most 3 bits share one of four blocks. The caller compares the fingerprints of the
    hits, all 64 bits, and drops those that are too far. It needs no Painless. Its parameters are the four blocks, as
    the object below *prefix* of a document has them, and ``size``, 1,000 by default.

    Args:
        prefix:
            Name of the object that holds the fields.

    Raises:
        TypeError: If *prefix* is not a string.
        InvalidInputError: If it cannot be used.

    Examples:
        >>> build_search_template()["script"]["lang"]
        'mustache'
    """
    fields = Fields(prefix)
    terms = ",".join(_TERM.format(field=field, name=f"block{number}") for number, field in enumerate(fields.blocks))
    rest = {"_source": False, "track_total_hits": True, "docvalue_fields": [fields.fingerprint]}
    source = (
        f'{{"size":{{{{size}}}}{{{{^size}}}}{_SIZE}{{{{/size}}}},'
        f'"query":{{"bool":{{"filter":{{"bool":{{"should":[{terms}],"minimum_should_match":1}}}}}}}},'
        f"{json.dumps(rest, separators=(',', ':'))[1:]}"
    )
    return {"script": {"lang": "mustache", "source": source}}
