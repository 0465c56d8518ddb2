"""A lookup without a usable mapping, scheme, index name or option is refused before it searches."""

import pytest

from es_simhash import InvalidInputError, MappingError, build_mapping
from es_simhash.lookup.find import find
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.context import Context
from tests.lookup.looking import look
from tests.transport.by_hand import ServerError, drive, scripted
from tests.transport.fake_server import Candidates


def test_the_mapping_is_asked_for_again_after_a_minute():
    """Somebody may have replaced the index."""
    now = [0.0]
    context = Context(clock=lambda: now[0])
    look(Candidates([]), context=context)
    now[0] = 61.0
    _, calls, _ = look(Candidates([]), context=context)
    assert calls[0].api == "get_mapping"


def test_a_mapping_without_our_fields_is_refused():
    """With what to do."""
    with pytest.raises(MappingError, match="fill them with setup"):
        look(Candidates([], mapping={"properties": {"body": {"type": "text"}}}))


def test_dynamic_mapping_is_refused():
    """Blocks mapped as text would lose near-duplicates silently."""
    text = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    mapping = build_mapping()
    mapping["properties"]["simhash"]["properties"]["block2"] = text
    with pytest.raises(MappingError, match=r"simhash.block2' is mapped as 'text'"):
        look(Candidates([], mapping=mapping))


def test_who_may_not_read_the_mapping_names_the_scheme():
    """And is told so."""

    class Closed(Candidates):
        def get_mapping(self, index):
            return ServerError(403, "not you")

    with pytest.raises(ServerError) as caught:
        look(Closed([0]))
    assert "give scheme" in caught.value.__notes__[0]
    found, _, _ = look(Closed([0]), context=Context(wanted="shingles"))
    assert len(found) == 1


@pytest.mark.parametrize("index", ["far:i", "i,far:i", ["i", "far:i"]])
def test_an_index_on_another_cluster_is_refused(index):
    """Its mapping cannot be read, so nothing says by which rule it is searched."""
    flow = find(scripted(Context(wanted="shingles")), index, LookupOptions(), fingerprint=0)
    with pytest.raises(InvalidInputError, match="'far:i' is on another cluster"):
        drive(flow, Candidates([0]))


@pytest.mark.parametrize(
    ("text", "fingerprint", "error"),
    [("a", 1, TypeError), (None, None, TypeError), (3, None, TypeError), (None, 2**64, InvalidInputError)],
)
def test_exactly_one_question(text, fingerprint, error):
    """A text or a fingerprint."""
    with pytest.raises(error):
        drive(find(scripted(), "i", LookupOptions(), text=text, fingerprint=fingerprint), Candidates([]))
