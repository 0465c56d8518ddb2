"""What counts as a large group."""

from es_simhash.groups.large_group import FEWEST, SHARE, is_large


def test_both_numbers_count():
    """A small index may have one group; a large one may have a group of many thousands."""
    assert is_large(FEWEST, FEWEST)
    assert not is_large(FEWEST - 1, FEWEST)
    assert is_large(int(SHARE * 1_000_000) + 1, 1_000_000)
    assert not is_large(int(SHARE * 1_000_000), 1_000_000)
