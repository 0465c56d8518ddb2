"""Texts with wrong letters, on real servers: found, grouped and planned by the edits of their letters."""

import random

import pytest

from es_simhash import get_scheme
from tests.servers.support import ONE_SHARD, texts

BY_LETTERS = {"preset": "noisy"}
ORIGINALS = [texts(1, seed=seed)[0] for seed in (1, 2)]


def misread(text, seed=0, one_of=50):
    """Return *text* with every 50th letter another one."""
    chance = random.Random(seed)
    places = [at for at, letter in enumerate(text) if letter.isalpha()]
    letters = list(text)
    for at in chance.sample(places, len(places) // one_of):
        letters[at] = "q"
    return "".join(letters)


SCANS = [misread(ORIGINALS[0], seed) for seed in range(3)]
DOCUMENTS = {"a": ORIGINALS[0], "b": SCANS[0], "c": SCANS[1], "z": ORIGINALS[1]}


@pytest.fixture
def made(simhash, index):
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    return index


def fill(server, index, simhash):
    """Index the documents without groups."""
    list(simhash.ingest(index, [{"_id": id_, "body": body} for id_, body in DOCUMENTS.items()], on_duplicate=None))
    server.request("POST", f"/{index}/_refresh")


def test_lookups_by_letters(server, made, simhash):
    """A preset, a document and many texts; where edits are counted there is no containment."""
    fill(server, made, simhash)
    found = simhash.find_near_dups(made, SCANS[2], preset="noisy")
    assert {each.id for each in found} == {"a", "b", "c"}
    assert (found[0].id, found[0].similarity > 0.95, found[0].containment) == ("a", True, None)
    assert len(simhash.find_near_dups(made, SCANS[2], preset="similar")) == 0
    assert {each.id for each in simhash.find_near_dups_of(made, "a", **BY_LETTERS)} == {"b", "c"}
    [one, error] = simhash.find_near_dups_many(made, [SCANS[2], 5], preset="edited", verify=0.6)
    assert {each.id for each in one} == {"a", "b", "c"}
    assert isinstance(error, TypeError)


def test_traditional_and_simplified_chinese_are_verified_after_the_conversion(server, index, simhash):
    """A scheme that converts them finds, groups and plans them as one text."""
    opencc = pytest.importorskip("opencc", reason="needs the extra preprocess")
    simplified = "长江是中华民族的母亲河，也是中华民族发展的重要支撑，国家和沿江省市把修复长江生态环境摆在重要位置。"
    documents = [{"_id": "a", "body": simplified}, {"_id": "b", "body": opencc.OpenCC("s2t").convert(simplified)}]
    simhash.create_index(
        index, text_field="body", scheme=get_scheme("shingles", preprocess=["t2s"]), settings=ONE_SHARD
    )
    assert [each.canonical for each in simhash.ingest(index, documents)] == ["a", "a"]
    server.request("POST", f"/{index}/_refresh")
    assert [each.similarity for each in simhash.find_near_dups(index, simplified, verify=True)] == [1.0, 1.0]
    assert simhash.reconcile(index).changed == 0
    [group] = simhash.groups(index)
    assert [each.id for each in group.members] == ["a", "b"]
    assert [each.similarity for each in simhash.pairs(index, verify=True)] == [1.0]
    plain = f"{index}-plain"
    simhash.create_index(plain, text_field="body", settings=ONE_SHARD)
    assert [each.canonical for each in simhash.ingest(plain, documents)] == ["a", "b"]
    server.request("POST", f"/{plain}/_refresh")
