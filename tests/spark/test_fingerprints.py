"""Fingerprints that Spark computes are those of the library."""

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")
pytest.importorskip("pyarrow", reason="needs the extra spark")

from es_simhash import fingerprint, get_scheme
from es_simhash.errors import InvalidInputError, SchemeError, WrongTypeError
from es_simhash.hashing import to_hex
from es_simhash.spark import with_fingerprints

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    None,
    "",
    " ... ",
    "长江是中华民族的母亲河",
    "a word " * 40_000 + "and a zero byte \0",
    "😀",
]


@pytest.fixture(scope="module")
def documents(spark):
    return spark.createDataFrame(list(enumerate(TEXTS)), "id int, body string")


def expected(scheme):
    found = [None if text is None else fingerprint(text, scheme=scheme) for text in TEXTS]
    return [None if value is None else to_hex(value) for value in found]


def test_the_bits_are_those_of_the_scheme(documents, tmp_path):
    """Also those of a dictionary that is on no executor."""
    path = tmp_path / "dictionary.txt"
    path.write_text("母亲河 10 n\n", encoding="utf-8")
    keywords = get_scheme("keywords", dictionary=path)
    found = with_fingerprints(documents, "body")
    found = with_fingerprints(found, "body", scheme=keywords, output="keywords")
    wanted = expected(keywords)
    path.rename(tmp_path / "elsewhere.txt")
    rows = found.orderBy("id").collect()
    assert [row.fingerprint for row in rows] == expected("shingles")
    assert [row.keywords for row in rows] == wanted
    assert [row.body for row in rows] == TEXTS
    with pytest.raises(SchemeError):
        with_fingerprints(documents, "body", scheme=keywords)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"text": "missing"}, InvalidInputError),
        ({"text": "id"}, WrongTypeError),
        ({"text": 3}, WrongTypeError),
        ({"text": "body", "output": "id"}, InvalidInputError),
        ({"text": "body", "scheme": "weighted"}, SchemeError),
    ],
)
def test_arguments_are_checked(documents, arguments, error):
    with pytest.raises(error):
        with_fingerprints(documents, **arguments)
    with pytest.raises(WrongTypeError):
        with_fingerprints([], **arguments)
