"""Errors: each can be sent to another process, and carries its data there."""

import copy
import pickle

import numpy as np
import pytest

import es_simhash
from es_simhash import NearDup, NearDups, errors, get_scheme
from es_simhash.lookup.plan import plan_lookup
from es_simhash.transport.protocol import error_text, status_of

FOUND = NearDups(
    (NearDup("1", "i", 0, 7, {"a": 1}),), complete=False, scheme=get_scheme("shingles"), plan=plan_lookup(3)
)
EXAMPLES = [
    errors.SimHashError("m"),
    errors.InvalidInputError("m"),
    errors.SchemeError("m"),
    errors.SchemeMismatchError("m", index_scheme="a-1", client_scheme="b-1"),
    errors.MappingError("m", problems=("p", "q")),
    errors.IncompleteSearchError("m", results=FOUND, reasons=("r",)),
    errors.NoIndexError("m", reasons=("r",)),
    errors.MissingDependencyError("m"),
    errors.WorkerError("m"),
    errors.IncompleteWriteError("m", changed=1, refused=2),
    errors.WritesRefusedError("m", kind="blocked", index="i"),
    errors.EmbeddedServerError("m"),
    errors.GuardRailError("m", excess=(1,)),
    errors.WrongTypeError("m"),
]


def test_every_error_has_an_example_here():
    """So that a new one is not forgotten."""
    classes = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)}
    assert classes == {type(each) for each in EXAMPLES}
    assert {each.__name__ for each in classes} <= set(es_simhash.__all__)
    assert issubclass(errors.SchemeError, ValueError)
    assert issubclass(errors.MissingDependencyError, ImportError)


def _pickled(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 -- its own


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("again", [_pickled, copy.copy])
def test_an_error_survives(error, again):
    """Message, attributes and class."""
    back = again(error)
    assert (type(back), str(back), vars(back)) == (type(error), "m", vars(error))
    assert isinstance(back, errors.SimHashError)


@pytest.mark.parametrize(
    "value", ["x" * 10_000, b"x" * 10_000, list(range(1_000)), "a\nb", {"k": "v" * 200}, np.eye(3)]
)
def test_a_value_in_a_message_is_short_and_on_one_line(value):
    """Whatever it is."""
    text = errors.shorten(value)
    assert len(text) <= 80
    assert "\n" not in text


def test_exceptions_of_a_client_that_cannot_tell_are_read_all_the_same():
    """opensearch-py takes its attributes from arguments that are not always there."""
    from opensearchpy.exceptions import TransportError

    error = TransportError("N/A", "Unable to sniff hosts.")
    assert status_of(error) is None
    assert "Unable to sniff hosts." in error_text(error)
    assert status_of(TransportError()) is None
    assert status_of(TransportError(429, "busy", {})) == 429
