"""
The fixtures of tests/server, for the tests of estates.
"""

from tests.server.conftest import call, index, make_client, mode, runner, server  # noqa: F401
