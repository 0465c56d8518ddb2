"""The fuzz targets on some bytes, so that they cannot rot; ``make fuzz`` runs each for as long as one likes."""

import pytest
from hypothesis import example, given, settings, strategies as st

from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_target(name):
    """Nothing is found among some inputs."""

    @settings(max_examples=40, derandomize=True, database=None)
    @given(st.binary(max_size=300))
    @example(b"")
    @example(bytes(range(256)))
    def check(data):
        TARGETS[name](data)

    check()
