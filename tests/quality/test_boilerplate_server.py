"""Template text on real servers: learned, left out under a prefix of its own, by every operation that compares."""

import json
import random

import pytest

from es_simhash import IndexSettings, SchemeError, get_scheme
from es_simhash.hashing import preprocess
from es_simhash.quality.boilerplate import find_shared_templates
from es_simhash.quality.health import Finding
from tests.servers.command_line import failed
from tests.servers.support import ONE_SHARD, WORDS

FOOTER = (
    "The information in this message is confidential and meant only for the person or the company to which it was "
    "sent. If you have received it by mistake, please tell the sender at once, delete the message and each copy of it, "
    "and do not use what it says. Opinions in it are those of the sender, and need not be those of the company. "
    "Messages are checked for viruses, but no harm that they do is paid for; whoever opens an attachment does so at "
    "their own risk."
)


def mails(count):
    """Short texts of different words, each with the footer; the last is a copy of the first with another footer."""
    chance = random.Random(4)
    found = [" ".join(chance.choice(WORDS) + chance.choice(WORDS) for _ in range(12)) for _ in range(count)]
    return [*(f"{text}\n-- \n{FOOTER}" for text in found), f"{found[0]}\nSent from home."]


@pytest.fixture
def filled(sync_simhash, server, index):
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    documents = [{"_id": f"{n:02d}", "body": text, "from": "a" if n % 2 else "b"} for n, text in enumerate(mails(24))]
    list(sync_simhash.ingest(index, documents, on_duplicate=None))
    server.request("POST", f"/{index}/_refresh")
    return index


def test_a_learned_mask(filled, simhash, make_simhash, tmp_path, monkeypatch):
    """The footer is learned; under a second prefix it takes no part in fingerprints, verification, groups and plans."""
    found = simhash.boilerplate(filled, source_field="from.keyword")
    assert (found.sampled, found.reasons) == (25, ())
    assert [(each.documents, each.source) for each in found.passages] == [(24, None)]
    assert FOOTER.rstrip(".").endswith(found.passages[0].text[-100:])
    mask = tmp_path / "mask.json"
    mask.write_text(found.to_json(), encoding="utf-8")
    scheme = get_scheme("shingles", boilerplate=mask)
    bare = make_simhash(prefix="bare", scheme=scheme)
    assert bare.put_mapping(filled, text_field="body") == [filled]
    list(bare.backfill(filled))

    similar = {"max_distance": 20, "verify": 0.5}
    looked_up = mails(24)[0]
    assert len(simhash.find_near_dups(filled, looked_up, **similar)) > 10
    assert [each.id for each in bare.find_near_dups(filled, looked_up, **similar)] == ["00", "24"]
    assert len(bare.find_near_dups(filled, FOOTER, max_distance=64)) == 0
    bare.reconcile(filled, **similar)
    assert [{each.id for each in group.members} for group in bare.groups(filled)] == [{"00", "24"}]
    assert [(each.id, each.other_id) for each in bare.pairs(filled, **similar)] == [("00", "24")]
    assert bare.plan_removal(filled, max_share=1.0, **similar).count == 1
    assert simhash.plan_removal(filled, max_share=1.0, **similar).count > 10
    assert (
        bare.explain(filled, "00", "01").similarity.jaccard
        < 0.3
        < simhash.explain(filled, "00", "01").similarity.jaccard
    )

    simhash.reconcile(filled, **similar)
    templates = [each for each in simhash.check_sample(filled).findings if each.kind.endswith("template")]
    assert [(each.kind, each.values["part"], each.values["whole"]) for each in templates] == [
        ("group_template", 24, 24)
    ]
    assert templates[0].values["text"] in templates[0].message
    assert not [each for each in bare.check_sample(filled).findings if each.kind.endswith("template")]

    # A process that has not read the mask.
    monkeypatch.setattr(preprocess, "_cutters", {})
    without = make_simhash(prefix="bare")
    operations = [
        lambda: without.find_near_dups(filled, "a text"),
        lambda: list(without.backfill(filled)),
        lambda: list(without.pairs(filled, **similar)),
        lambda: list(without.ingest(filled, [{"_id": "x", "body": "a text"}])),
        lambda: without.check_sample(filled),
    ]
    for operation in operations:
        with pytest.raises(SchemeError) as caught:
            operation()
        assert (caught.value.missing_file, caught.value.digest) == ("boilerplate", scheme.digests["boilerplate"])


def test_the_template_behind_a_hot_term(filled, sync_simhash):
    """Documents that share a term are read, and the passage that they share is named."""
    hot = Finding("warning", "hot", {"field": "from.keyword", "term": "a"})
    settings = IndexSettings(get_scheme("shingles"), ("body",))
    [found] = sync_simhash._run(find_shared_templates(sync_simhash._server(), filled, settings, ["body"], [hot, hot]))
    assert (found.severity, found.kind, found.values["part"]) == ("warning", "hot_template", 12)
    assert found.values["text"].startswith("The information in this message is confidential")
    assert f"es-simhash boilerplate {filled} --out mask.json" in found.advice


def test_the_commands(filled, run, tmp_path, monkeypatch):
    """The mask goes from one command to the next as a file; without it, a command says which option it needs."""
    mask = tmp_path / "mask.json"
    nothing = run("boilerplate", filled, "--min-documents", "25", "--out", mask)
    assert (nothing.exit_code, mask.exists()) == (0, False)
    shown = json.loads(run("boilerplate", filled, "--min-share", "0.5", "--out", mask, "--json").stdout)
    assert [each["text"] for each in shown["passages"]] == [
        each["text"] for each in json.loads(mask.read_text())["passages"]
    ]
    failed(run("boilerplate", filled, "--source-field", "nosuch", "--out", mask), "nosuch")
    assert run("boilerplate", filled, "--source-field", "from", "--min-documents", "25", "--out", mask).exit_code == 0
    failed(run("find", filled, "a text", "--boilerplate", mask), "scheme")
    bare = ["--prefix", "bare", "--boilerplate", mask]
    assert run("backfill", filled, *bare, "-t", "body").exit_code == 0
    found = json.loads(run("find", filled, mails(24)[0], *bare, "-d", "12", "--verify", "0.5", "--json").stdout)
    assert {each["id"] for each in found["near_dups"]} == {"00", "24"}
    warning = json.loads(run("find", filled, FOOTER, *bare, "--json").stderr)["warning"]
    assert warning["kind"] == "template"
    monkeypatch.setattr(preprocess, "_cutters", {})
    failed(run("find", filled, "a text", "--prefix", "bare"), "pass --boilerplate PATH")
