"""What is there when a document was to be created: our own, an equal one, or another one."""

from datetime import UTC, datetime

import pytest

from es_simhash.writes.bulk_flow import compare_created

OWN = {"fingerprint": "00", "group": "a", "at": "2026-01-01T00:00:00.000Z"}
LATER = OWN | {"group": "b", "at": "2026-01-02T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("sent", "found", "is_unsure", "kinship"),
    [
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": OWN}, False, "own"),
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": OWN}, True, "own"),
        # The same moment with another content: another document of the same batch, or a pipeline's change.
        ({"n": 1, "simhash": OWN}, {"n": 2, "simhash": OWN}, False, "other"),
        ({"n": 1, "simhash": OWN}, {"n": 1, "by": "pipeline", "simhash": OWN}, True, "own"),
        # Another moment: somebody wrote it before, whatever became of our attempt.
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": LATER}, True, "same"),
        ({"n": 1, "simhash": OWN}, {"n": 1, "simhash": LATER}, False, "same"),
        ({"n": 1, "simhash": OWN}, {"n": 2, "simhash": LATER}, True, "other"),
        ({"n": 1, "simhash": OWN}, {"n": 1}, True, "other"),
        # No moment: an equal document may be anybody's, unless an answer was lost.
        ({"n": 1}, {"n": 1}, True, "own"),
        ({"n": 1}, {"n": 1}, False, "same"),
        ({"n": 1}, {"n": 2}, True, "other"),
        ({"n": (1, 2)}, {"n": [1, 2]}, True, "own"),
        # What cannot be compared is another document.
        ({"n": datetime(2026, 1, 1, tzinfo=UTC)}, {"n": "2026-01-01T00:00:00Z"}, True, "other"),
        ('{"n": 1}', {"n": 1}, True, "other"),
    ],
)
def test_kinship(sent, found, is_unsure, kinship):
    assert compare_created(sent, found, prefix="simhash", is_unsure=is_unsure) == kinship
