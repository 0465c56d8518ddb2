"""A check by hand: what a login may not ask is left out, and no other failure is hidden."""

from dataclasses import replace

import pytest

from es_simhash import build_mapping
from es_simhash.mapping.meta import read_settings
from es_simhash.upkeep.check import _count_candidates
from tests.transport.by_hand import ServerError, drive, scripted


@pytest.mark.parametrize("status", [401, 403, 400, 404, 429, 500])
def test_only_a_login_without_the_right_counts_no_candidates(status):
    settings = replace(read_settings(build_mapping(text_field="body")), max_distance=3)

    def answer(_):
        raise ServerError(status)

    work = _count_candidates(scripted(), "news", 5, settings)
    if status in (401, 403):
        assert drive(work, answer)[0] is None
        return
    with pytest.raises(ServerError):
        drive(work, answer)
