"""The files of a restore: archives that were cut or damaged, the command's report, and files that are no documents."""

from __future__ import annotations

import gzip
import json
from warnings import catch_warnings

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.removal.archive import read_archive
from es_simhash.removal.plan_flow import RemovalSizes
from es_simhash.removal.restore_flow import restore
from tests.servers.archives import map_index, put_raw, source_of, write_archive
from tests.servers.support import put, read_all


@pytest.fixture
def made(server, index):
    """An index with our mapping."""
    return map_index(server, index)


def test_an_archive_that_was_cut_off(server, made, simhash, run, tmp_path):
    """Whole lines of the end are put back, and the rest is not said to be there."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(6)]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    with pytest.warns(UserWarning, match="may be missing"):
        records = list(simhash.restore(path))
    assert [each.id for each in records][:3] == ["d0", "d1", "d2"]
    assert len(records) < 6
    with catch_warnings(action="default"):
        result = run("restore", path, "--dry-run", "--json")
    assert (result.exit_code, set(json.loads(result.stdout)["documents"])) == (1, {"exists"})
    assert "may be missing" in result.stderr
    path.write_bytes(whole[:-4])
    with pytest.warns(UserWarning, match="only their checksum"):
        records = list(simhash.restore(path))
    assert {each.id for each in records} == set(read_all(server, made)) == {f"d{n}" for n in range(6)}
    with catch_warnings(action="default"):
        assert run("restore", path, "--dry-run").exit_code == 0


def test_a_damaged_archive_restores_nothing(server, made, simhash, tmp_path):
    """Not even the lines, or the archives, before the damage."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(3)]
    good = write_archive(tmp_path / "good.jsonl.gz", rows)
    bad = tmp_path / "bad.jsonl.gz"
    bad.write_bytes(good.read_bytes() + gzip.compress(b'{"_id": "x"}\n'))
    with pytest.raises(InvalidInputError, match="line 4"):
        list(simhash.restore([good, bad]))
    assert read_all(server, made) == {}


def test_the_command(server, made, run, tmp_path):
    """Counts, the outcome of each document in the report, and exit codes."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(4)]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    result = run("restore", path, "--dry-run", "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents"]) == (0, {"would restore": 4})
    put_raw(server, made, "d3", '{"body": "another"}')
    report = tmp_path / "report.jsonl"
    result = run("restore", path, "--report", report, "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents"]) == (1, {"restored": 3, "differs": 1})
    assert len(result.stderr.splitlines()) == 1
    assert [json.loads(line)["action"] for line in report.read_text().splitlines()] == ["restored"] * 3 + ["differs"]
    result = run("restore", path)
    assert result.stdout.splitlines()[0].startswith("4 documents: ")
    (tmp_path / "no").write_text('{"_id": 1}\n')
    result = run("restore", tmp_path / "no")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)


def test_no_line_of_an_archive_is_lost_between_batches(server, made, sync_simhash, tmp_path):
    """More lines than a batch, and lines too long to share one."""
    rows = [(made, f"d{n:02d}", None, source_of("x " * (900 if n % 5 == 0 else 2) + str(n)), "c") for n in range(23)]
    path = write_archive(tmp_path / "removed.jsonl.gz", rows)
    flow = restore(sync_simhash._context, [path], sizes=RemovalSizes(restored=4, characters=2_000))
    assert [each.id for each in sync_simhash._stream(flow)] == [row[1] for row in rows]
    assert len(read_all(server, made)) == 23
    assert len(list(read_archive(path))) == 23


def test_our_own_files_are_no_documents(server, made, run, simhash, tmp_path):
    """An ingest of an archive, a plan or a report writes nothing, and says what to do with it."""
    rows = [(made, f"d{n}", None, source_of(f"text number {n} of some"), "c") for n in range(4)]
    archive = write_archive(tmp_path / "removed.jsonl.gz", rows)
    put(
        server,
        made,
        [{"_id": "a", **json.loads(source_of("one two"))}, {"_id": "b", **json.loads(source_of("one two"))}],
    )
    plan = tmp_path / "plan.jsonl"
    assert simhash.plan_removal(made, plan, max_share=1.0).count == 1
    report = tmp_path / "report.jsonl"
    good = tmp_path / "good.jsonl"
    good.write_text(json.dumps({"_id": "new", "body": "another text"}) + "\n")
    assert run("ingest", made, good, "--report", report).exit_code == 0
    other = tmp_path / "tagged.jsonl"
    records = [each.to_dict() for each in simhash.tag_duplicates(made, dry_run=True)]
    other.write_text("".join(json.dumps(each) + "\n" for each in records))
    before = read_all(server, made)
    for path in (archive, plan, report, other):
        result = run("ingest", made, path)
        assert result.exit_code == 1, result.output
        assert "restore" in result.stderr
        assert len(result.stderr.splitlines()) == 1
    lines = [json.loads(line) for line in gzip.decompress(archive.read_bytes()).splitlines()]
    for documents in (lines, [json.loads(plan.read_text().splitlines()[1])], records):
        with pytest.raises(InvalidInputError, match="document 0 is a line of"):
            list(simhash.ingest(made, documents))
    assert read_all(server, made) == before
