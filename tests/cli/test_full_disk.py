"""A full disk: each command that writes a file names it and the reason, and leaves no file of another name."""

from contextlib import ExitStack

import pytest

from es_simhash.cli.failures import describe
from es_simhash.cli.output_files import open_report, write_whole
from es_simhash.errors import shorten


@pytest.mark.parametrize("characters", [10, 100_000])
def test_a_report_that_is_cut_is_an_error_that_names_it(small_disk, characters):
    """Also where the last lines are written at the end, when the file is closed."""
    folder, fill = small_disk
    fill()
    path = str(folder / "report")
    with pytest.raises(OSError, match="No space left") as failure, ExitStack() as stack:
        open_report(stack, path, (), dry_run=False).write("x" * characters)
    assert describe(failure.value) == f"cannot use {shorten(path)}: No space left on device"


def test_a_page_leaves_nothing_beside_it(small_disk):
    folder, fill = small_disk
    fill(4096)
    before = sorted(folder.iterdir())
    with pytest.raises(OSError, match="No space left") as failure:
        write_whole(folder / "page.html", ["x" * 10_000])
    assert (failure.value.filename, sorted(folder.iterdir())) == (str(folder / "page.html"), before)


def test_a_page_replaces_a_link_and_does_not_follow_it(small_disk):
    """One that others prepared."""
    folder, _ = small_disk
    other, link = folder / "other", folder / "page.html"
    other.write_text("kept")
    link.symlink_to(other)
    write_whole(link, ["x"])
    assert (other.read_text(), link.is_symlink(), link.stat().st_mode & 0o777) == ("kept", False, 0o600)
