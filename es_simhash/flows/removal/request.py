"""
The grouping that a removal asks for, from the arguments of a caller. No request to a server is made here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from es_simhash.flows.removal.plan import PlanOptions
from es_simhash.index.grouping.rule import GroupingRequest
from es_simhash.index.presets import get_preset

__all__ = ["removal_request"]


def removal_request(
    options: PlanOptions, preset: str | None, *, max_distance: int | None, **given: Any
) -> tuple[GroupingRequest, PlanOptions]:
    """
    Return the request, and *options* with the similarity of the *preset* where no other is asked for.
    """
    if preset is not None:
        chosen = get_preset(preset)
        max_distance = chosen.max_distance if max_distance is None else max_distance
        if options.verify is None or options.verify is True:
            options = replace(options, verify=chosen.similarity)
    return GroupingRequest(max_distance=max_distance, **given), options
