"""Documents that add nothing to another one, removed by a plan and tagged, on real servers, sync and async."""

import json
import re

import pytest

from es_simhash import GuardRailError, IncompleteSearchError, InvalidInputError, MappingError, with_fingerprints
from es_simhash.removal.make_plan import RemovalSizes, plan_removal
from es_simhash.removal.plan_options import PlanOptions
from es_simhash.removal.take_decisions import decide_removal
from tests.passages.test_passages_server import han, words
from tests.servers.removals import archived, decide_file, outcomes, plan_again, read_plan
from tests.servers.support import ONE_SHARD, put, read_all, send_lines

ARTICLE, MAIL, CHAIN = words(1, 200), words(2, 60), words(3, 120)
DOCUMENTS = {
    "article": ARTICLE,
    "teaser": " ".join(ARTICLE.split()[:40]),
    "mail": MAIL,
    "reply": f"{words(4, 20)}\n> {MAIL.upper()}\n{words(5, 20)}",
    "chain1": " ".join(CHAIN.split()[:40]),
    "chain2": " ".join(CHAIN.split()[:80]),
    "chain3": CHAIN,
    "equal1": words(6, 50),
    "equal2": words(6, 50),
    "short": " ".join(ARTICLE.split()[50:60]),
    "half": f"{MAIL} {words(7, 30)}",
    "chinese": han(1, 400),
    "excerpt": han(1, 400)[100:250],
    "other": words(8, 100),
}
GONE = {
    "teaser": "article",
    "mail": "half",
    "chain1": "chain3",
    "chain2": "chain3",
    "equal2": "equal1",
    "excerpt": "chinese",
}
CONTAINED = {"contained": 0.95}
ALL = {**CONTAINED, "max_share": 1.0}


@pytest.fixture
def filled(server, index, simhash):
    """An index with passages and the documents."""
    return fill(server, index, simhash, DOCUMENTS)


def fill(server, index, simhash, documents, *, mappings=None, **options):
    """Make *index* with passages and *documents*, id to text or source; return its name."""
    simhash.create_index(index, text_field="body", passages=True, settings=ONE_SHARD, mappings=mappings)
    sources = [{"_id": id_, **({"body": each} if isinstance(each, str) else each)} for id_, each in documents.items()]
    written = list(simhash.ingest(index, sources, **{"on_duplicate": None, **options}))
    assert {each.action for each in written} <= {"written", "tagged"}
    server.request("POST", f"/{index}/_refresh")
    return index


def containers(plan):
    """Return id to id of the one that contains it, of each line of a plan."""
    return {each.document.id: each.canonical.id for each in read_plan(plan).removals()}


def tags(server, index):
    """Return id to tag of the documents that have one."""
    own = {id_: source["simhash"].get("contained_in") for id_, source in read_all(server, index).items()}
    return {id_: tag for id_, tag in own.items() if tag is not None}


def test_what_was_decided_before_stays_whatever_contains_it(filled, simhash, plan, tmp_path):
    """It is counted once, and may still be what others are contained in."""
    earlier = tmp_path / "earlier.db"
    sha256 = simhash.plan_removal(filled, earlier, **ALL).sha256
    keep = [(filled, id_, None) for id_ in ("mail", "chain2")]
    decide_removal(earlier, decide_file(tmp_path / "decided", sha256, keep))
    made = simhash.plan_removal(filled, plan, **ALL, after=[earlier])
    assert containers(plan).keys() == GONE.keys() - {"mail", "chain2"}
    assert made.left_out["decided"] == 2


def test_what_adds_nothing_is_planned_removed_and_restored(server, filled, simhash, plan):
    """Also at the end of a chain, and of equal texts one; what is too short stays."""
    before = read_all(server, filled)
    made = simhash.plan_removal(filled, plan, **ALL)
    assert containers(plan) == GONE
    assert (made.count, made.documents, made.duplicates, made.left_out) == (6, 14, 7, {"not_similar": 1})
    lines = list(read_plan(plan).removals())
    assert {(each.reason, each.similarity) for each in lines} == {("contained", 1.0)}
    assert min(each.distance for each in lines if each.document.id == "teaser") > 3
    assert read_plan(plan).header.grouping == {"contained": 0.95, "canonical": ["id"]}
    assert outcomes(simhash.apply_removal(plan)) == dict.fromkeys(GONE, ("deleted", None))
    assert read_all(server, filled) == {id_: source for id_, source in before.items() if id_ not in GONE}
    assert archived(plan) == {id_: before[id_] for id_ in GONE}
    assert simhash.plan_removal(filled, **ALL).count == 0
    assert {each.action for each in simhash.restore(plan)} == {"restored"}
    assert read_all(server, filled) == before


def test_what_others_change_since_the_plan_stays(server, filled, simhash, plan):
    """A container that was changed or deleted keeps what it contained, and so does a text that was changed."""
    simhash.plan_removal(filled, plan, **ALL)
    send_lines(
        server,
        [
            {"update": {"_index": filled, "_id": "article"}},
            {"doc": {"body": words(9, 100)}},
            {"update": {"_index": filled, "_id": "mail"}},
            {"doc": {"body": f"{MAIL} {words(10, 20)}"}},
            {"delete": {"_index": filled, "_id": "chain3"}},
        ],
    )
    assert outcomes(simhash.apply_removal(plan)) == {
        "teaser": ("kept", "canonical_changed"),
        "mail": ("kept", "changed"),
        "chain1": ("kept", "canonical_missing"),
        "chain2": ("kept", "canonical_missing"),
        "equal2": ("deleted", None),
        "excerpt": ("deleted", None),
    }
    assert set(archived(plan)) == {"equal2", "excerpt"}
    # Passages of the old text are still there; its present text is compared.
    plan_again(simhash, filled, plan, **ALL)
    assert containers(plan) == {"chain1": "chain2"}


def test_a_container_in_another_index_of_an_alias(server, index, simhash, plan):
    """Both are planned by the alias; without the other index nothing is removed."""
    for part, ids in (("a", ["teaser", "mail", "other"]), ("b", ["article", "reply"])):
        fill(server, f"{index}-{part}", simhash, {id_: DOCUMENTS[id_] for id_ in ids})
    server.request("POST", "/_aliases", {"actions": [{"add": {"index": f"{index}-*", "alias": f"{index}-all"}}]})
    assert simhash.plan_removal(f"{index}-a", plan, **ALL).count == 0
    plan_again(simhash, f"{index}-all", plan, **ALL)
    [canonical] = [each.canonical for each in read_plan(plan).removals() if each.document.id == "teaser"]
    assert (canonical.index, canonical.id) == (f"{index}-b", "article")
    server.request("DELETE", f"/{index}-b")
    kept = ("kept", "index_replaced")
    assert outcomes(simhash.apply_removal(plan)) == {"teaser": kept, "mail": kept}
    assert set(read_all(server, f"{index}-a")) == {"teaser", "mail", "other"}


def test_an_index_without_all_passages_is_refused(server, index, simhash, plan):
    """What is not in the index as passages may contain others, or be contained: nothing is planned."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    put(server, index, [{"_id": id_, "body": text} for id_, text in DOCUMENTS.items()])
    with pytest.raises(MappingError, match=r"has no passages: add them with put_mapping\(passages=True\)"):
        simhash.plan_removal(index, plan, **ALL)
    simhash.put_mapping(index, passages=True)
    with pytest.raises(IncompleteSearchError, match="when it had documents: backfill it"):
        plan_again(simhash, index, plan, **ALL)
    list(simhash.backfill(index))
    assert plan_again(simhash, index, plan, **ALL).count == 6
    plan.unlink()
    put(server, index, list(with_fingerprints([{"_id": "new", "body": ARTICLE}], text_field="body")))
    for method in (simhash.plan_removal, lambda index, *_, **__: list(simhash.tag_contained(index, contained=0.95))):
        with pytest.raises(IncompleteSearchError, match="1 documents of .* have a fingerprint and no passages"):
            method(index, plan, **ALL)
    assert not plan.exists()


def test_a_text_that_cannot_be_read(server, filled, simhash, plan):
    """It is left out and counted, and what only it contains stays."""
    article = read_all(server, filled)["article"]
    send_lines(server, [{"update": {"_index": filled, "_id": "article"}}, {"doc": {"body": 7}}])
    assert read_all(server, filled)["article"]["simhash"] == article["simhash"]
    made = simhash.plan_removal(filled, plan, **ALL)
    assert containers(plan) == {id_: GONE[id_] for id_ in GONE if id_ != "teaser"}
    assert made.left_out["unreadable"] == 1


def test_guard_rails_and_options(server, index, simhash, plan):
    """Shares, filters and limits hold as for duplicates; a text that the filter leaves out stays."""
    languages = {"teaser": "en", "mail": "en", "excerpt": "zh"}
    documents = {id_: {"body": text, "lang": languages.get(id_, "xx")} for id_, text in DOCUMENTS.items()}
    fill(server, index, simhash, documents, mappings={"properties": {"lang": {"type": "keyword"}}})
    for options, said in (
        (CONTAINED, "6 of 14 documents"),
        ({"protect": "lang", "max_share": 0.5, **CONTAINED}, "2 of 2 documents with lang 'en'"),
    ):
        assert said in " ".join(map(str, simhash.plan_removal(index, plan, **options).excess))
        with pytest.raises(GuardRailError, match=said):
            list(simhash.apply_removal(plan))
        plan.unlink()
    made = plan_again(simhash, index, plan, filter={"terms": {"lang": ["en", "zh"]}}, **ALL)
    assert set(containers(plan)) == set(languages)
    assert made.left_out["filtered"] >= 3
    assert plan_again(simhash, index, plan, limit=2, **ALL).left_out["limit"] == 4
    plan_again(simhash, index, plan, per="lang", **ALL)
    assert containers(plan) == {id_: GONE[id_] for id_ in GONE if id_ not in languages}
    for name, value in {"verify": 0.9, "preset": "near", "max_distance": 3, "min_similarity": 0.9}.items():
        with pytest.raises(InvalidInputError, match=f"leave {name} out"):
            plan_again(simhash, index, plan, **{name: value}, **ALL)
    with pytest.raises(InvalidInputError, match=r"contained 0.5 is out of range: give a share from 0.8 to 1"):
        plan_again(simhash, index, plan, contained=0.5)


def test_passages_that_very_many_documents_have(server, index, simhash, plan):
    """Documents are not compared for them alone; those that were not compared with all are counted."""
    notice = words(11, 60)
    documents = {f"{n:02d}": f"{words(n + 100, 20)} {notice}" for n in range(8)}
    documents |= {"notice": notice, "part": documents["03"].split(maxsplit=5)[-1]}
    fill(server, index, simhash, documents)
    options = PlanOptions(contained=0.95, max_share=1.0)
    sizes = RemovalSizes(common=5)
    made = simhash._run(plan_removal(simhash._server(), index, plan, options, sizes=sizes))
    assert containers(plan) == {"part": "03"}
    assert made.left_out == {"common": 9}
    assert plan_again(simhash, index, plan, **ALL).count == 2


def test_groups_that_lose_their_canonical(server, index, simhash, plan):
    """A near-duplicate of what was removed is not left as the duplicate of nothing."""
    start = ARTICLE.split()[:60]
    documents = {"a": " ".join(start), "b": " ".join([*start[:-4], *words(12, 4).split()]), "c": ARTICLE}
    fill(server, index, simhash, documents, on_duplicate="tag", max_distance=16, verify=0.8)
    assert read_all(server, index)["b"]["simhash"]["duplicate_of"] == "a"
    simhash.plan_removal(index, plan, **ALL)
    assert containers(plan) == {"a": "c"}
    assert outcomes(simhash.apply_removal(plan)) == {"a": ("deleted", None)}
    found = read_all(server, index)["b"]["simhash"]
    assert (found["group"], found.get("duplicate_of")) == ("b", None)


def test_groups_that_hang_together_by_what_goes(server, index, simhash, plan):
    """Under the rule "connected" a group falls apart, though its canonical stays."""
    first, second = words(1, 60).split(), words(2, 60).split()
    a, b, c = (" ".join(first[:shared] + second[shared:]) for shared in (60, 52, 44))
    fill(server, index, simhash, {"a": a, "b": b, "c": c, "long": f"{b} {words(5, 200)}"})
    simhash.reconcile(index, rule="connected", max_distance=16, verify=0.7)
    assert read_all(server, index)["c"]["simhash"]["duplicate_of"] == "a"
    simhash.plan_removal(index, plan, **ALL)
    assert outcomes(simhash.apply_removal(plan)) == {"b": ("deleted", None)}
    assert read_all(server, index)["c"]["simhash"].get("duplicate_of") is None
    assert simhash.reconcile(index).changed == 0


def test_tags_of_a_container_that_another_program_deleted(server, filled, simhash, plan):
    """An apply that keeps a document for that reason removes the tags that name the container."""
    list(simhash.tag_contained(filled, **CONTAINED))
    assert tags(server, filled)["teaser"] == "article"
    made = simhash.plan_removal(filled, plan, filter={"ids": {"values": ["teaser"]}}, **ALL)
    assert made.count == 1
    server.request("DELETE", f"/{filled}/_doc/article?refresh=true")
    [kept, *_] = list(simhash.apply_removal(plan))
    assert (kept.id, kept.action, kept.kind) == ("teaser", "kept", "canonical_missing")
    assert "article" not in tags(server, filled).values()


def test_groups_that_reach_into_other_indices(server, index, simhash, plan):
    """A plan over one of two indices that are grouped together takes no canonical of the other one away."""
    news, wires = f"{index}-news", f"{index}-wires"
    fill(server, news, simhash, {"near": f"{MAIL} more", "article": ARTICLE, "teaser": DOCUMENTS["teaser"]})
    fill(server, wires, simhash, {"mail": MAIL, "second": f"{DOCUMENTS['teaser']} more"})
    both = [news, wires]
    simhash.reconcile(both, verify=0.8, max_distance=16)

    def duplicates():
        documents = {**read_all(server, news), **read_all(server, wires)}
        own = {id_: source["simhash"].get("duplicate_of") for id_, source in documents.items()}
        return {id_: canonical for id_, canonical in own.items() if canonical is not None}

    assert duplicates() == {"near": "mail", "teaser": "second"}
    simhash.plan_removal(news, plan, **ALL)
    with pytest.warns(UserWarning, match="were left as they are.*run reconcile over all indices"):
        assert outcomes(simhash.apply_removal(plan)) == {"teaser": ("deleted", None)}
    assert duplicates() == {"near": "mail"}


def test_tags(server, filled, simhash):
    """They are written once, shown beside groups, and removed where they are right no longer."""
    assert outcomes(simhash.tag_contained(filled, dry_run=True, **CONTAINED)) == dict.fromkeys(
        GONE, ("would tag", None)
    )
    assert tags(server, filled) == {}
    assert outcomes(simhash.tag_contained(filled, **CONTAINED)) == dict.fromkeys(GONE, ("tagged", None))
    assert tags(server, filled) == GONE
    versions = server.request("GET", f"/{filled}/_search?version=true&size=99")["hits"]["hits"]
    assert outcomes(simhash.tag_contained(filled, **CONTAINED)) == dict.fromkeys(GONE, ("tagged", None))
    assert server.request("GET", f"/{filled}/_search?version=true&size=99")["hits"]["hits"] == versions
    # Neither grouping nor a backfill touches them.
    simhash.reconcile(filled)
    assert list(simhash.backfill(filled))[-1].changed == 0
    assert tags(server, filled) == GONE
    [group] = simhash.groups(filled, contained=True)
    assert (group.id, [each.id for each in group.members], group.contained) == (
        "equal1",
        ["equal1", "equal2"],
        ((filled, "equal2", None),),
    )
    assert next(iter(simhash.groups(filled))).contained is None
    server.request("DELETE", f"/{filled}/_doc/chinese?refresh=true")
    left = {id_: container for id_, container in GONE.items() if id_ != "excerpt"}
    records = outcomes(simhash.tag_contained(filled, **CONTAINED))
    assert records == dict.fromkeys(left, ("tagged", None)) | {"excerpt": ("untagged", None)}
    assert tags(server, filled) == left
    simhash.remove_fields(filled, groups_only=True)
    assert tags(server, filled) == {}


def test_a_text_that_changes_loses_its_tag(server, filled, simhash):
    """Whatever flow of ours writes the new text, or its fingerprint."""
    list(simhash.tag_contained(filled, **CONTAINED))
    operations = [
        {"_op_type": "update", "_id": "teaser", "doc": {"body": words(20, 40)}},
        {"_id": "mail", "body": words(21, 40), "simhash": {"contained_in": "half"}},
        {"_op_type": "update", "_id": "equal2", "doc": {"other": 1}},
    ]
    assert {each.action for each in simhash.ingest(filled, operations)} == {"written"}
    for id_, number in (("chain1", 22), ("chain2", 23)):
        send_lines(server, [{"update": {"_index": filled, "_id": id_}}, {"doc": {"body": words(number, 40)}}])
    assert tags(server, filled) == {id_: GONE[id_] for id_ in ("chain1", "chain2", "equal2", "excerpt")}
    list(simhash.backfill(filled, filter={"ids": {"values": ["chain1"]}}))
    assert set(tags(server, filled)) == {"chain2", "equal2", "excerpt"}
    list(simhash.follow(filled, once=True, state_index=f"{filled}-state"))
    assert set(tags(server, filled)) == {"equal2", "excerpt"}


def test_a_removal_takes_the_tags_that_name_what_it_deletes(server, filled, simhash, plan):
    """Whatever the reason for which it goes: what stood in it is nowhere else."""
    list(simhash.tag_contained(filled, **CONTAINED))
    list(simhash.ingest(filled, [{"_id": "copy", "body": f"{ARTICLE} too"}], on_duplicate=None))
    near = {"canonical": "longest", "max_distance": 16, "filter": {"ids": {"values": ["article"]}}, "max_share": 1.0}
    simhash.plan_removal(filled, plan, **near)
    assert containers(plan) == {"article": "copy"}
    untagged = {id_: ("untagged", None) for id_, container in GONE.items() if container == "article"}
    assert outcomes(simhash.apply_removal(plan)) == {"article": ("deleted", None), **untagged}
    assert tags(server, filled) == {id_: container for id_, container in GONE.items() if container != "article"}


def test_tags_need_their_field(server, index, simhash):
    """An index with passages that lacks it gets it by the command that adds passages."""
    fill(server, index, simhash, {"teaser": DOCUMENTS["teaser"], "article": ARTICLE})
    mapping = server.request("GET", f"/{index}")[index]["mappings"]
    documents = read_all(server, index)
    server.request("DELETE", f"/{index}")
    del mapping["properties"]["simhash"]["properties"]["contained_in"]
    server.request("PUT", f"/{index}", {"mappings": mapping, "settings": ONE_SHARD})
    put(server, index, [{"_id": id_, **source} for id_, source in documents.items()])
    assert outcomes(simhash.tag_contained(index, dry_run=True, **CONTAINED)) == {"teaser": ("would tag", None)}
    with pytest.raises(MappingError, match=r"does not map simhash.contained_in: add it with put_mapping"):
        list(simhash.tag_contained(index, **CONTAINED))
    simhash.put_mapping(index)
    assert outcomes(simhash.tag_contained(index, **CONTAINED)) == {"teaser": ("tagged", None)}
    assert tags(server, index) == {"teaser": "article"}


def test_the_command(run, filled, tmp_path):
    """Shown, tagged, planned, reviewed, applied."""
    planned = run("plan", filled, "--contained", "0.95").output
    assert re.search("would delete +teaser +article", planned)
    assert "plan " + f"{filled} --contained 0.95 --out FILE" in planned
    shown = run("reconcile", filled, "--contained", "0.95", "--dry-run")
    assert re.search("would tag +teaser +article", shown.output)
    assert "6 documents would be tagged; dry run: nothing was written" in shown.output
    lines = run("reconcile", filled, "--contained", "0.95", "--dry-run", "--json").output.splitlines()
    assert {each["id"]: each["canonical"] for each in map(json.loads, lines)} == GONE
    assert "6 documents tagged" in run("reconcile", filled, "--contained", "0.95").output
    plan = tmp_path / "removal.db"
    made = run("plan", filled, "--contained", "0.95", "--max-share", "1", "--out", plan)
    assert (made.exit_code, "6 documents of 14 would be removed" in made.output) == (0, True), made.output
    review = " ".join(run("review", plan).output.split())
    assert "/teaser would go, article stays (contains it, a part is cut)" in review
    assert "at least 95 % stands in what stays" in review
    assert json.loads(run("review", plan, "--json").output)["grouping"]["contained"] == 0.95
    page = tmp_path / "page.html"
    assert run("review", plan, "--html", page).exit_code == 0
    assert "contained: " in page.read_text()
    assert re.search("deleted +teaser +article", run("apply", plan, "--yes").output)
    for wrong in (
        ["--contained", "0.5"],
        ["--contained", "0.95", "--limit", "3"],
        ["--contained", "0.95", "--verify", "0.9"],
    ):
        assert run("reconcile", filled, *wrong).exit_code in (1, 2)


def change_by_others(server, index):
    """Change containers, and a document that is tagged, as programs do that know nothing of tags."""
    server.request("DELETE", f"/{index}/_doc/article?refresh=true")
    bodies = {"half": words(7, 90), "chain3": f"{words(40, 20)} {CHAIN}", "excerpt": han(9, 200)}
    for id_, body in bodies.items():
        send_lines(server, [{"update": {"_index": index, "_id": id_}}, {"doc": {"body": body}}])
    return {"chain1": "chain3", "chain2": "chain3", "equal2": "equal1"}


def test_reconcile_removes_tags_that_are_true_no_more(server, filled, simhash, run):
    """Whoever deleted or changed the container, or the tagged document; a text that cannot be read says nothing."""
    list(simhash.tag_contained(filled, **CONTAINED))
    simhash.reconcile(filled)
    left = change_by_others(server, filled)
    assert simhash.reconcile(filled, since="2020-01-01").untagged == 0
    expected = simhash.reconcile(filled, dry_run=True)
    assert (expected.untagged, expected.is_settled, tags(server, filled)) == (3, False, GONE)
    result = run("reconcile", filled)
    assert "3 documents lost a tag contained_in that is true no more" in result.stdout
    assert tags(server, filled) == left
    again = simhash.reconcile(filled)
    assert (again.untagged, again.is_settled, again.failures) == (0, True, ())
    send_lines(server, [{"update": {"_index": filled, "_id": "equal1"}}, {"doc": {"body": 7}}])
    assert (simhash.reconcile(filled).untagged, tags(server, filled)) == (0, left)


def test_follow_removes_tags_that_are_true_no_more(server, filled, simhash, index):
    """As soon as it sees that the container has another text."""
    list(simhash.tag_contained(filled, **CONTAINED))
    simhash.reconcile(filled)
    state = {"once": True, "state_index": f"{index}-state"}
    list(simhash.follow(filled, **state))
    list(simhash.follow(filled, **state))
    send_lines(server, [{"update": {"_index": filled, "_id": "half"}}, {"doc": {"body": words(7, 90)}}])
    list(simhash.follow(filled, **state))
    assert tags(server, filled) == {id_: GONE[id_] for id_ in GONE if id_ != "mail"}


def test_a_container_in_another_index_counts(server, filled, simhash, sync_client):
    """Where both indices are named."""
    other = f"{filled}-b"
    fill(server, other, simhash, {"part": " ".join(ARTICLE.split()[100:])})
    both = [filled, other]
    list(simhash.tag_contained(both, **CONTAINED))
    assert tags(server, other) == {"part": "article"}
    assert (simhash.reconcile(both).untagged, tags(server, other)) == (0, {"part": "article"})
    assert (simhash.reconcile(other).untagged, tags(server, other)) == (1, {})
