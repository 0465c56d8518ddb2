"""The plan of removal: written whole, checked whole, cut, changed, and not written over other files."""

import gzip
import json
import os
from dataclasses import replace

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.hashing.mask import mask_json
from es_simhash.journal import Journal
from es_simhash.removal.archive_writer import ArchiveWriter
from es_simhash.removal.files import refuse_archive_name, refuse_output, write_whole
from es_simhash.removal.may_delete import Guards, Share
from es_simhash.removal.plan_file import PlanHeader, PlanWriter, read_plan
from es_simhash.removal.records import PlannedDocument, PlannedRemoval
from es_simhash.removal.review import Review

HEADER = PlanHeader(
    {"news": "u1"},
    "simhash",
    {"rule": "star"},
    guards=Guards(0.2, "source", 9, {"x": Share(1, 7)}),
    view=("latest",),
    decided_by={"news": ("body", "source")},
    filter=({"term": {"lang": "en"}},),
)


def removal(number, similarity=0.9, distance=3, text="text"):
    """Return a line of a plan."""
    document = PlannedDocument(f"d{number}", "news", None, number, 1, f"digest {number}", {"body": text}, ("body",))
    canonical = PlannedDocument("c", "news", "r", 1, 2, "digest", {"body": text})
    return PlannedRemoval(document, canonical, distance, similarity)


def write(path, removals, *, limit=None):
    """Write a plan, and return its digest."""
    with PlanWriter(path) as writer:
        for each in removals:
            writer.add(each)
        return writer.finish(HEADER, writer.order(limit))


@pytest.fixture
def plan(tmp_path):
    """A plan of three lines."""
    path = tmp_path / "plan.jsonl"
    write(path, [removal(n, similarity) for n, similarity in enumerate([0.9, 0.85, 1.0])])
    return path


def test_a_plan_is_read_as_it_was_written(tmp_path):
    """In order of similarity, with header and digest; nothing else is left in the folder."""
    removals = [removal(1, 0.9), removal(2, 0.8, text="\ud800 “x”\n"), removal(3, 0.9, 5), removal(4, None)]
    path = tmp_path / "plan.jsonl"
    digest = write(path, removals)
    plan = read_plan(path)
    assert (plan.sha256, plan.header, len(plan)) == (digest, replace(HEADER, count=4), 4)
    found = list(plan.removals())
    assert found == [removals[3], removals[1], removals[2], removals[0]]
    assert [each.document.fields for each in found[:2]] == [{"body": "text"}, {"body": "\ud800 “x”\n"}]
    assert found[0].document.cut == ("body",)
    assert [each.name for each in tmp_path.iterdir()] == ["plan.jsonl"]
    first = json.loads(path.read_bytes().splitlines()[0])
    assert (first["format"], first["version"], first["count"]) == ("es-simhash-plan", 2, 4)


@pytest.mark.parametrize("limit", [0, 1, 2, 9])
def test_a_limit_keeps_the_most_similar(tmp_path, limit):
    """The lines that are left out are those one would look at first."""
    similarities = [0.9, 0.8, 1.0]
    write(tmp_path / "p", [removal(n, each) for n, each in enumerate(similarities)], limit=limit)
    kept = [each.similarity for each in read_plan(tmp_path / "p").removals()]
    assert kept == sorted(similarities)[max(0, 3 - limit) :]


def test_an_empty_plan(tmp_path):
    """A plan without lines is a plan."""
    write(tmp_path / "p", [])
    assert list(read_plan(tmp_path / "p").removals()) == []


def test_a_plan_that_is_not_finished_leaves_no_file(tmp_path):
    """And an older plan of that name stays."""
    path = tmp_path / "plan.jsonl"
    write(path, [])
    older = path.read_bytes()
    with PlanWriter(path) as writer:
        writer.add(removal(1))
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("plan.jsonl", older)]


def test_a_plan_that_was_cut_is_refused_at_every_byte(plan):
    """Nothing is read from it, wherever it ends."""
    whole = plan.read_bytes()
    for length in range(len(whole)):
        plan.write_bytes(whole[:length])
        with pytest.raises(InvalidInputError) as caught:
            read_plan(plan)
        assert str(plan) in str(caught.value)
        assert "\n" not in str(caught.value)
    plan.write_bytes(whole)
    assert len(read_plan(plan)) == 3


def test_a_plan_that_was_changed_is_refused_at_every_byte(plan):
    """Whatever was changed, also to something that still is JSON; so are lines left out, moved or added."""
    whole = plan.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        plan.write_bytes(bytes(changed))
        with pytest.raises(InvalidInputError):
            read_plan(plan)
    lines = whole.splitlines(keepends=True)
    for others in (lines[:2] + lines[3:], [lines[0], lines[2], lines[1], *lines[3:]], [*lines, lines[-1]], lines[:1]):
        plan.write_bytes(b"".join(others))
        with pytest.raises(InvalidInputError):
            read_plan(plan)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "is empty"),
        (b"hello\n", "not a plan"),
        (b"[1]\n" * 3, "not a plan"),
        (b'{"format": "es-simhash-plan", "version": 3}\n{"sha256": ""}\n', "version 3"),
        (b'{"format": "es-simhash-plan", "version": 2}\n{"sha256": ""}\n', "line 1"),
        (gzip.compress(b"x", mtime=0), "not a plan"),
        (b"[" * 100_000, "not a plan"),
    ],
)
def test_what_is_no_plan(tmp_path, data, word):
    """One line that says which file, and what it is."""
    path = tmp_path / "p"
    path.write_bytes(data)
    with pytest.raises(InvalidInputError, match=word):
        read_plan(path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda whole: whole + b"\n", "line 6: the plan goes on"),
        (lambda whole: whole + whole, "line 6: the plan goes on"),
        (lambda whole: whole.replace(b"\n", b"\r\n"), "line ends"),
    ],
)
def test_a_plan_with_something_added(plan, change, word):
    """The message says what was added, not that something is missing."""
    plan.write_bytes(change(plan.read_bytes()))
    with pytest.raises(InvalidInputError, match=word):
        read_plan(plan)


def test_a_plan_that_is_replaced_while_it_is_read(tmp_path, plan):
    """Only lines that were checked are used, whatever has the name of the plan by then."""
    checked = read_plan(plan)
    write(plan, [removal(n, similarity) for n, similarity in enumerate([0.9, 0.87, 1.0])])
    with pytest.raises(InvalidInputError, match="line 2"):
        list(checked.removals())
    write(plan, [removal(n, similarity) for n, similarity in enumerate([0.9, 0.85, 1.0])])
    found = checked.removals()
    assert next(found).similarity == 0.85
    plan.write_bytes(b"".join(plan.read_bytes().splitlines(keepends=True)[:2]))
    again = checked.removals()
    assert next(again).similarity == 0.85
    with pytest.raises(InvalidInputError, match="line 3"):
        next(again)


def test_a_plan_in_a_pipe_is_refused(tmp_path):
    """It could be read once only, and then has no lines."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match="no regular file"):
        read_plan(tmp_path / "pipe")


def test_a_document_is_not_its_own_canonical(tmp_path):
    """A plan that says so is refused, though its digest fits: nothing would stay."""
    one = removal(1)
    write(tmp_path / "p", [one, replace(one, canonical=one.document)])
    with pytest.raises(InvalidInputError, match="line 3: .* its own canonical"):
        read_plan(tmp_path / "p")


@pytest.mark.parametrize("protected", [None, (), ("a", "b")])
def test_protected_values_are_in_the_plan(tmp_path, protected):
    """As the guard rails count them, which may not be what the document has."""
    write(tmp_path / "p", [replace(removal(1), protected=protected)])
    assert [each.protected for each in read_plan(tmp_path / "p").removals()] == [protected]


@pytest.mark.parametrize("kind", ["plan", "page", "mask", "report"])
def test_archives_and_inputs_are_not_written_over(tmp_path, plan, kind):
    """Nor is any other gzip file, or a checkpoint; a plan may replace a plan, a page a page, and a report any text."""
    archive, other = tmp_path / "a.gz", tmp_path / "other"
    with ArchiveWriter(archive, PLAN):
        pass
    other.write_text("x", encoding="utf-8")
    (tmp_path / "report.gz").write_bytes(gzip.compress(b'{"id": "1"}'))
    refuse_output(tmp_path / "new", kind=kind)
    (tmp_path / "empty").touch()
    refuse_output(tmp_path / "empty", kind=kind)
    (tmp_path / "old.html").write_text("".join(Review(plan).html()), encoding="utf-8")
    (tmp_path / "mask").write_text(mask_json([]), encoding="utf-8")
    for name, replaced_by in (("other", "report"), ("old.html", "report page"), ("mask", "report mask")):
        if kind in replaced_by.split():
            refuse_output(tmp_path / name, kind=kind)
        else:
            with pytest.raises(InvalidInputError, match=f"is no {kind}"):
                refuse_output(tmp_path / name, kind=kind)
    for each in (archive, tmp_path / "report.gz"):
        with pytest.raises(InvalidInputError, match="gzip"):
            refuse_output(each, kind=kind)
    Journal(tmp_path / "checkpoint", "ingest", {}, refusal="").close()
    with pytest.raises(InvalidInputError, match="checkpoint"):
        refuse_output(tmp_path / "checkpoint", kind=kind)
    (tmp_path / "link").symlink_to(other)
    with pytest.raises(InvalidInputError, match="same command"):
        refuse_output(tmp_path / "link", inputs=[other], kind=kind)
    if kind == "plan":
        refuse_output(plan, kind=kind)
    else:
        with pytest.raises(InvalidInputError, match="plan"):
            refuse_output(plan, kind=kind)
    if kind == "report":
        refuse_output("/dev/null", kind=kind)
    else:
        with pytest.raises(InvalidInputError, match="regular"):
            refuse_output("/dev/null", kind=kind)


def test_a_missing_folder_is_found_before_the_work(tmp_path):
    """And whoever writes all the same is told the name that they gave."""
    path = tmp_path / "nowhere" / "page.html"
    with pytest.raises(FileNotFoundError) as refused:
        refuse_output(path, kind="page")
    assert refused.value.filename == str(path.parent)
    with pytest.raises(FileNotFoundError) as failed:
        write_whole(path, ["x"])
    assert failed.value.filename == str(path)


def test_only_its_owner_reads_a_page(tmp_path):
    """It has texts, as a plan and an archive have; also if others could read the file that it replaces."""
    path = tmp_path / "page.html"
    path.write_text("old")
    path.chmod(0o644)
    write_whole(path, ["x"])
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o600, "x")


def test_a_plan_does_not_replace_an_archive(tmp_path):
    """The archive stays as it was."""
    with ArchiveWriter(tmp_path / "a.gz", PLAN):
        pass
    before = (tmp_path / "a.gz").read_bytes()
    with pytest.raises(InvalidInputError):
        write(tmp_path / "a.gz", [removal(1)])
    assert (tmp_path / "a.gz").read_bytes() == before


def test_names_that_are_no_archive(tmp_path, plan):
    """The plan itself, and what keeps nothing."""
    refuse_archive_name(tmp_path / "new", plan)
    with pytest.raises(InvalidInputError, match="is the plan"):
        refuse_archive_name(plan, plan)
    with pytest.raises(InvalidInputError, match="/dev/null"):
        refuse_archive_name("/dev/null", plan)


PLAN = "f" * 64
