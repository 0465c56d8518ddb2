"""Which archived fingerprints belong into an index, judged many at a time."""

import json

import pytest

from es_simhash import fingerprint_fields
from es_simhash.hashing import fingerprint, get_scheme
from es_simhash.removal import fits
from es_simhash.removal.fits import Incoming, find_misfits

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
SHINGLES, KEYWORDS = get_scheme("shingles"), get_scheme("keywords")


def incoming(scheme, body=TEXT, *, of=TEXT, is_elsewhere=False, by=SHINGLES):
    """Return a document with *body* and the fingerprint that *by* gives the text *of*, for an index of *scheme*."""
    fields = {} if of is None else fingerprint_fields(fingerprint(of, scheme=by))
    return Incoming(json.dumps({"body": body, **fields}), scheme, ["body"], is_elsewhere)


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_misfits(is_elsewhere, monkeypatch):
    """At home a stale fingerprint stays, unless another scheme made it; elsewhere only the scheme's own fits."""
    monkeypatch.setattr(fits, "schemes", lambda: ["shingles", "keywords"])
    cases = [
        (incoming(SHINGLES, is_elsewhere=is_elsewhere), False),
        (incoming(KEYWORDS, is_elsewhere=is_elsewhere), True),
        (incoming(SHINGLES, of="an older text of it", is_elsewhere=is_elsewhere), is_elsewhere),
        (incoming(KEYWORDS, by=KEYWORDS, is_elsewhere=is_elsewhere), False),
        (incoming(SHINGLES, by=KEYWORDS, is_elsewhere=is_elsewhere), True),
        (incoming(SHINGLES, of=None, is_elsewhere=is_elsewhere), False),
        (incoming(SHINGLES, body=5, is_elsewhere=is_elsewhere), is_elsewhere),
        (incoming(SHINGLES, body="?!", is_elsewhere=is_elsewhere), is_elsewhere),
        (incoming(SHINGLES, body=None, is_elsewhere=is_elsewhere), is_elsewhere),
    ]
    wanted = {place for place, (_, is_misfit) in enumerate(cases) if is_misfit}
    assert find_misfits([each for each, _ in cases], prefix="simhash") == wanted
    for place, (each, _) in enumerate(cases):
        assert find_misfits([each], prefix="simhash") == ({0} if place in wanted else set())


def test_a_number_of_many_digits():
    """Python refuses to read it as a whole number; the document is none the worse for it."""
    source = incoming(SHINGLES).source[:-1] + ', "n": ' + "1" * 5_000 + "}"
    assert find_misfits([Incoming(source, SHINGLES, ["body"], True)], prefix="simhash") == set()
