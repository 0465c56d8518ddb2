"""The checkpoint of an ingest of files: whole or refused, with one clear line; and records from where it stands."""

import gzip
from contextlib import closing

import pytest

from es_simhash import InvalidInputError
from es_simhash.cli.ingest_run import IngestActions, IngestRun, Tally
from es_simhash.cli.input_records import Reader
from es_simhash.cli.output import Tracker
from es_simhash.ingest.checkpoint import IndexIdentity, IngestCheckpoint, Position
from es_simhash.ingest.written import Written

PURPOSE = {"index": "news", "id_field": None}


@pytest.fixture
def begun(tmp_path):
    """A checkpoint of one file, and what opens it again."""
    source = tmp_path / "news.jsonl"
    source.write_text('{"n": 1}\n{"n": 2}\n')
    path = tmp_path / "checkpoint"

    opened = []

    def open_it(purpose=PURPOSE, files=(str(source),)):
        for each in opened:
            each.close()  # as the end of its process does
        opened.append(IngestCheckpoint(str(path), purpose, files))
        return opened[-1]

    yield path, source, open_it
    for each in opened:
        each.close()


def test_it_goes_on_with_the_same_ids(begun):
    _, _, open_it = begun
    first = open_it()
    assert first.is_new
    position = Position(0, 2, 2, {"written": 2, "fingerprinted": 1}, 17)
    first.save(position)
    second = open_it()
    assert not second.is_new
    assert second.position == position
    assert second.id_for(0, 3) == first.id_for(0, 3)
    assert len({second.id_for(file, line) for file in range(3) for line in range(3)}) == 9


def test_ids_of_two_runs_differ(begun):
    """Otherwise the same file ingested again on purpose would replace its own documents."""
    path, _, open_it = begun
    with closing(open_it()) as saved:
        first = saved.id_for(0, 1)
    path.unlink()
    assert open_it().id_for(0, 1) != first


def test_another_index_under_the_same_name_is_refused(begun):
    """A rollover adds an index behind the name, and is none of that; what is not known is not refused."""
    open_it = begun[2]
    open_it().record_index(IndexIdentity("first", frozenset({"first"})))
    for now in (
        None,
        IndexIdentity("first", frozenset({"first"})),
        IndexIdentity("next", frozenset({"next", "first"})),
    ):
        going_on = open_it()
        going_on.check_index(now)
        going_on.record_index(now)
    for now in (IndexIdentity("other", frozenset({"other"})), IndexIdentity(None, frozenset())):
        with pytest.raises(InvalidInputError, match="news"):
            open_it().check_index(now)


@pytest.mark.parametrize(
    ("purpose", "word"),
    [({"index": "other", "id_field": None}, "index"), ({"index": "news", "id_field": "url"}, "id_field")],
)
def test_other_options_are_refused(begun, purpose, word):
    open_it = begun[2]
    open_it()
    with pytest.raises(InvalidInputError, match=word):
        open_it(purpose)


@pytest.mark.parametrize("change", ["longer", "other start", "other end"])
def test_a_changed_file_is_refused(begun, tmp_path, change):
    _, source, open_it = begun
    source.write_bytes(b"{}\n" * 100_000)
    open_it()
    whole = bytearray(source.read_bytes())
    if change == "longer":
        whole += b"{}\n"
    else:
        whole[1 if change == "other start" else -3] = ord("x")
    source.write_bytes(whole)
    with pytest.raises(InvalidInputError, match="has changed"):
        open_it()


def test_other_files_are_refused(begun, tmp_path):
    open_it = begun[2]
    open_it()
    other = tmp_path / "other"
    other.write_text("")
    with pytest.raises(InvalidInputError, match="files"):
        open_it(files=(str(other),))


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("after", range(7))
def test_records_from_the_place_where_it_stopped(tmp_path, suffix, compress, after):
    """Whatever record it stopped at: the rest follows, nothing else; rows may have several lines."""
    texts = {
        ".jsonl": ['{"n": 1}\n\n{"n": 2}\nnot json\n{"n": 3}\n', '{"n": 4}\n{"n": 5}'],
        ".csv": ['n,t\n1,"two\nlines"\n2,x\n3,too,many\n', 'n\n"4\n4"\n5\n'],
    }[suffix]
    names = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(gzip.compress(text.encode()) if compress else text.encode())
        names.append(str(path))
    whole = list(Reader(names))
    after = min(after, len(whole) - 1)
    start = (whole[after].number, whole[after].line)
    reader = Reader(names, start=start)
    assert list(reader) == whole[after + 1 :]
    assert reader.position == reader.total


def test_a_document_whose_outcome_is_not_known_is_sent_again(begun):
    """The library reports what it knows before it raises an error; the checkpoint stands before what it does not."""
    _, source, open_it = begun
    source.write_text("".join(f'{{"n": {n}}}\n' for n in range(6)))
    saved, reader = open_it(), Reader([str(source)])

    class Connection:
        class simhash:  # noqa: N801 -- an attribute
            @staticmethod
            def ingest(index, actions, **arguments):
                assert len(list(actions)) == 6
                yield from (Written(n, f"{n}", "news", "written", fingerprinted=True) for n in (0, 1, 3, 4))
                raise OSError("the connection was lost")

    tally = Tally(None)
    run = IngestRun(IngestActions(iter(reader), None, saved), tally, reader, saved, skip=0)
    with pytest.raises(OSError, match="lost"), Tracker("ingesting", total=None) as tracker:
        run.write(Connection, "news", {}, tracker)
    assert tally.lines == 2
    assert open_it().position.line == 2
    assert "up to 4 documents more may be written" in run._done()
