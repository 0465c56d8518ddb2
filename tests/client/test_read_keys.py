"""Buckets of numbers, read from the text of an answer: the same as by the client's own reader, or read by that."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from es_simhash.client.dialects import _RawReader, read_keys
from es_simhash.lookup.index_table import read_fingerprints

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1])
WORDS = st.sampled_from(['"buckets":[{"key":1}]', "]", "}],[{", "é", "\ud800", '{"key":'])
SHARDS = st.fixed_dictionaries({"total": st.integers(0, 9), "failed": st.integers(0, 9)}, optional={"failures": WORDS})
FOUND = st.fixed_dictionaries(
    {"sum_other_doc_count": st.integers(0, 9)},
    optional={"buckets": st.lists(st.builds(lambda key: {"key": key}, NUMBERS), max_size=5)},
)
RESPONSES = st.fixed_dictionaries({"error": WORDS, "status": st.integers(400, 503)}) | st.fixed_dictionaries(
    {"_shards": SHARDS, "timed_out": st.booleans()},
    optional={
        "aggregations": st.fixed_dictionaries({"fingerprints": FOUND, "last": st.just({"value": 9.0})}),
        "hits": st.just({"hits": []}),
        "status": st.just(200),
    },
)
ANSWERS = st.fixed_dictionaries({"took": st.integers(0, 9), "responses": st.lists(RESPONSES, max_size=4)})


class Reader:
    """The reader of a client."""

    def loads(self, data, mimetype=None):
        return json.loads(data)


def read(answer, *, is_bytes=True):
    """Return *answer* as a client reads it from the server's text."""
    text = json.dumps(answer, separators=(",", ":"))
    return _RawReader(Reader(), read_keys).loads(text.encode() if is_bytes else text)


def of(buckets):
    return {"responses": [{"aggregations": {"fingerprints": {"buckets": buckets}}}]}


def plain(answer):
    """Return *answer* with lists of buckets in place of arrays."""
    for response in answer["responses"]:
        for each in response.get("aggregations", {}).values():
            if isinstance(each.get("buckets"), np.ndarray):
                each["buckets"] = [{"key": int(key)} for key in each["buckets"]]
    return answer


@given(ANSWERS, st.booleans())
def test_the_answer_is_the_same(answer, is_bytes):
    """Also what it says of shards, time and errors, and texts that look like buckets."""
    assert plain(read(answer, is_bytes=is_bytes)) == answer


@given(st.lists(NUMBERS, min_size=1))
def test_every_number_of_64_bits(numbers):
    """The smallest and the largest are read by the client: numpy would give these for larger ones too."""
    [response] = read(of([{"key": each} for each in numbers]))["responses"]
    buckets = response["aggregations"]["fingerprints"]["buckets"]
    assert isinstance(buckets, np.ndarray) == {-(2**63), 2**63 - 1}.isdisjoint(numbers)
    assert read_fingerprints(buckets).tolist() == [each % 2**64 for each in numbers]


KEYS = [1.5, 1e30, "00ff", "12", None, {"a": 1}, [1], 2**63, -(2**64)]


@pytest.mark.parametrize("bucket", [{"key": 1, "doc_count": 2}, *({"key": each} for each in KEYS)], ids=str)
@pytest.mark.parametrize("others", [[], [{"key": 7}]], ids=len)
def test_anything_else_is_left_to_the_client(bucket, others):
    """Then nothing is taken for a number that is none."""
    assert read(of([*others, bucket])) == of([*others, bucket])
