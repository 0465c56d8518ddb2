"""
When a group takes in so many documents that most are hardly copies. No requests.

By bits alone, within 12, the largest group of four real sets has .1 to .7 % of the documents; of 3,278 licences, 3.6 %.
"""

SHARE, FEWEST = 0.01, 1_000


def is_large(members: int, documents: int) -> bool:
    """Return whether a group with so many duplicates is large, in an index of so many documents."""
    return members >= FEWEST and members > SHARE * documents
