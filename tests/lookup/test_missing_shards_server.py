"""Shards without any copy: each operation says that documents may be missing, and none decides by the rest."""

import pytest

from es_simhash import IncompleteSearchError
from tests.servers.support import ON_BOTH

TEXT = "the council votes on the new bridge across the harbour"
NOWHERE = {"index.routing.allocation.require._name": "nobody"}
FEW = {"number_of_shards": 1, "number_of_replicas": 0}


@pytest.fixture
def partial(server, simhash, call, index):
    """An alias of two indices, of which the one has no active copy; both have our fields."""
    other = f"{index}-red"
    call(simhash.create_index(index, text_field="body", settings=FEW))
    mapping = server.request("GET", f"/{index}/_mapping")[index]["mappings"]
    server.request("PUT", f"/{other}?wait_for_active_shards=0", {"settings": {**FEW, **NOWHERE}, "mappings": mapping})
    documents = [{"_id": str(n), "body": TEXT} for n in range(3)]
    assert len(list(call(simhash.ingest(index, documents, on_duplicate="tag")))) == 3
    server.request("POST", f"/{index}/_refresh")
    yield f"{index},{other}"
    server.request("DELETE", f"/{other}")


@ON_BOTH
def test_lookups_are_incomplete(partial, simhash, call):
    """One, many, by id and verified; the error has what was found, by the rule that was asked for."""
    found = []
    for lookup in (
        lambda: simhash.find_near_dups(partial, TEXT),
        lambda: simhash.find_near_dups(partial, TEXT, max_distance=12),
        lambda: simhash.find_near_dups(partial, TEXT, size=1),
        lambda: simhash.find_near_dups_of(partial, "0"),
        lambda: simhash.find_near_dups(partial, TEXT, verify=True),
    ):
        with pytest.raises(IncompleteSearchError) as caught:
            call(lookup())
        assert len(caught.value.reasons) == 1
        found.append((len(caught.value.results), caught.value.results.complete))
    assert found == [(3, False), (3, False), (1, False), (2, False), (3, False)]
    many = call(simhash.find_near_dups_many(partial, [TEXT] * 3))
    assert [(type(each), len(each.results)) for each in many] == [(IncompleteSearchError, 3)] * 3


@pytest.mark.usefixtures("impatient")
def test_what_is_screened_is_never_new(partial, simhash, call):
    """One that is near what was found is near it, whatever else there is; of any other nobody knows."""
    near, other = call(simhash.screen(partial, [TEXT, "nothing of this kind was ever told in the north"]))
    assert (near.answer, near.id) == ("near", "0")
    assert (other.answer, other.id) == ("unsure", None)
    assert other.reason.startswith("a near-duplicate may have been missed (")


@ON_BOTH
def test_what_reads_everything_is_an_error(partial, simhash, call):
    """Groups, pairs, and a count of what is there; but what samples says that it could not read everything."""
    for reading in (simhash.pairs, simhash.groups):
        with pytest.raises(IncompleteSearchError):
            list(call(reading(partial)))
    with pytest.raises(IncompleteSearchError):
        simhash.stats(partial)
    assert len(call(simhash.tune(partial, sample=3)).reasons) == 1
    good, red = call(simhash.check(partial))
    assert good.ready
    assert not red.ready


@pytest.mark.usefixtures("impatient")
def test_what_writes_names_an_index_without_a_shard_at_once(partial, simhash, call):
    """Before anything is written, and without the minute that a server waits for the shard."""
    red = partial.split(",")[1]
    documents = [{"_id": "new", "body": TEXT}]
    for writing in (
        lambda: simhash.reconcile(partial),
        lambda: simhash.backfill(partial),
        lambda: simhash.backfill(partial, dry_run=True),
        lambda: simhash.remove_fields(partial),
        lambda: simhash.ingest(red, documents),
        lambda: simhash.ingest(red, documents, on_duplicate=None),
    ):
        with pytest.raises(IncompleteSearchError) as caught:
            list(call(writing()))
        [reason] = caught.value.reasons
        assert f"{red}: " in reason
