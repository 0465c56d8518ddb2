"""
The grouping that a removal asks for, from the arguments of a caller. No request to a server is made here.
"""

from __future__ import annotations

from dataclasses import replace

from es_simhash.flows.removal.plan import PlanOptions
from es_simhash.index.grouping.rule import GroupingRequest
from es_simhash.index.presets import get_preset

__all__ = ["removal_request"]


def removal_request(request: GroupingRequest, options: PlanOptions) -> tuple[GroupingRequest, PlanOptions]:
    """
    Return *request* and *options* with the similarity that is asked for in the options.

    Groups are made by distance, per and within; then each duplicate is compared with its canonical.
    """
    distance, verify = request.max_distance, request.verify
    if request.preset is not None:
        chosen = get_preset(request.preset)
        distance = chosen.max_distance if distance is None else distance
        verify = chosen.similarity if verify is None or verify is True else verify
    return replace(request, preset=None, verify=None, max_distance=distance), replace(options, verify=verify)
