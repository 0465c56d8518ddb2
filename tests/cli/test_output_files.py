"""Which files a page or a report may replace, and how they are written."""

import pytest

from es_simhash.cli.failures import describe
from es_simhash.cli.output_files import open_report, refuse_output, write_whole
from es_simhash.errors import InvalidInputError, shorten
from tests.servers.archives import write_archive


def test_what_is_not_written_over(tmp_path):
    """A database, which may have all that was deleted, and an input."""
    other = tmp_path / "other"
    for path in (tmp_path / "new", other, "/dev/null"):
        refuse_output(path)
        other.write_text("x", encoding="utf-8")
    write_archive(tmp_path / "removal.db", [])
    with pytest.raises(InvalidInputError, match="a database, such as a removal"):
        refuse_output(tmp_path / "removal.db")
    (tmp_path / "link").symlink_to(other)
    with pytest.raises(InvalidInputError, match="same command"):
        refuse_output(tmp_path / "link", inputs=[other])


@pytest.mark.parametrize("words", ["review REMOVAL --html REMOVAL", "report news --out REMOVAL"])
def test_no_page_is_written_over_a_removal(local, tmp_path, words):
    """Before a server is asked; test_decisions_server has a report."""
    path = tmp_path / "removal.db"
    write_archive(path, [])
    before = path.read_bytes()
    assert "give " in local(*words.replace("REMOVAL", str(path)).split()).stderr
    assert path.read_bytes() == before


def test_a_missing_folder_is_found_before_the_work(tmp_path):
    """And whoever writes all the same is told the name that they gave."""
    path = tmp_path / "nowhere" / "page.html"
    with pytest.raises(FileNotFoundError) as refused:
        refuse_output(path)
    assert refused.value.filename == str(path.parent)
    with pytest.raises(FileNotFoundError) as failed:
        write_whole(path, ["x"])
    assert failed.value.filename == str(path)


def test_only_its_owner_reads_a_page(tmp_path):
    """Also if others could read the file that it replaces, or prepared a link; what is no file is written to."""
    path, other = tmp_path / "page.html", tmp_path / "other"
    (tmp_path / ".page.html.part").symlink_to(other)
    path.write_text("old")
    path.chmod(0o644)
    write_whole(path, ["x"])
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o600, "x")
    assert not other.exists()
    (tmp_path / "link").symlink_to(path)
    write_whole(tmp_path / "link", ["y"])
    assert ((tmp_path / "link").is_symlink(), path.read_text()) == (False, "x")
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # itself it would be lost to code that is wrong
    with pytest.raises(OSError, match="No space left") as failure:
        write_whole(full, ["x"])
    assert failure.value.filename == str(full)


def _report(path, *lines):
    with open_report(path, ()) as write:
        for line in lines:
            write(line)


def test_a_report_that_is_cut_is_an_error_that_names_it(small_disk):
    """Also where the last lines are written at the end, when the file is closed."""
    folder, fill = small_disk
    fill()
    path = str(folder / "report")
    for characters in (10, 100_000):
        with pytest.raises(OSError, match="No space left") as failure:
            _report(path, "x" * characters)
        assert describe(failure.value) == f"cannot use {shorten(path)}: No space left on device"


def test_a_report_is_kept_until_there_is_another(tmp_path):
    """A server may not answer what is asked first; a run without an outcome has an empty report."""
    path = tmp_path / "report"
    path.write_text("earlier\n")
    with pytest.raises(TimeoutError), open_report(str(path), ()):
        raise TimeoutError
    assert path.read_text() == "earlier\n"
    with pytest.raises(InvalidInputError, match="a dry run replaces no file"), open_report(str(path), (), dry_run=True):
        raise TimeoutError
    with pytest.raises(InvalidInputError, match="same command"), open_report(str(path), [str(path)]):
        raise TimeoutError
    with pytest.raises(OSError, match="the input") as failure, open_report(str(path), ()):
        raise OSError("the input")
    assert failure.value.filename is None  # it is no error of the report
    for lines in (["a\n", "b\n"], []):
        _report(str(path), *lines)
        assert path.read_text() == "".join(lines)


def test_a_page_leaves_nothing_beside_it(small_disk):
    folder, fill = small_disk
    fill(4096)
    before = sorted(folder.iterdir())
    with pytest.raises(OSError, match="No space left") as failure:
        write_whole(folder / "page.html", ["x" * 10_000])
    assert (failure.value.filename, sorted(folder.iterdir())) == (str(folder / "page.html"), before)
