"""Setup of an index that exists, on real servers: what it records, goes on with, leaves alone and refuses."""

import json
import shlex
from random import Random

import pytest

from es_simhash import InvalidInputError, MappingError, SimHashClient
from es_simhash.cli import look
from es_simhash.cli.show import print_line
from es_simhash.hashing.preprocess import html_to_text
from es_simhash.mapping.mapping import NEEDED_FIELDS
from es_simhash.removal import guard_rails
from tests.estates.wire import Wire
from tests.servers.command_line import failed, parse
from tests.servers.fixtures import client_through
from tests.servers.support import ONE_SHARD, put, random_texts, read_all, stored_groups

MAPPINGS = {"properties": {"body": {"type": "text"}, "published": {"type": "date"}, "title": {"type": "keyword"}}}


def documents(count=12):
    """Texts of their own, each with a copy in which one word differs, and which is older."""
    found = []
    for number, text in enumerate(random_texts(count, 3)):
        found += [
            {"_id": f"{number}b", "body": text, "published": f"2026-01-01T00:00:{number:02}"},
            {"_id": f"{number}a", "body": f"{text} again", "published": f"2026-01-02T00:00:{number:02}"},
        ]
    return found


@pytest.fixture
def plain(server, index):
    """An index with documents, and with nothing of ours."""
    server.request("PUT", f"/{index}", {"mappings": MAPPINGS, "settings": ONE_SHARD})
    put(server, index, documents())
    return index


def meta_of(server, index):
    mapping = next(iter(server.request("GET", f"/{index}/_mapping").values()))["mappings"]
    return (mapping.get("_meta") or {}).get("es_simhash", {}).get("simhash")


def test_an_index_that_exists(server, plain, simhash):
    """It is measured, recorded, filled and grouped; the earliest is canonical; again there is nothing to do."""
    would = simhash.setup(plain, text_field="body", time_field="published", dry_run=True)
    assert meta_of(server, plain) is None
    assert (would.recorded, would.filled, would.missing) == (("fields", "grouping", "max_distance"), None, 24)
    found = simhash.setup(plain, text_field="body", time_field="published")
    assert (found.preset, found.measured.preset, found.sampled) == (would.preset, would.preset, 24)
    assert found.measured.recall_similar >= 0.98
    assert (found.documents, found.filled.changed, found.groups.duplicates) == (24, 24, 12)
    assert found.is_complete
    assert not found.is_already
    held = read_all(server, plain)
    assert {each["simhash"].get("duplicate_of") for each in held.values()} - {None} == {f"{n}b" for n in range(12)}
    recorded = meta_of(server, plain)
    assert recorded["grouping"]["canonical"] == ["published"]
    assert recorded["max_distance"] == recorded["grouping"]["max_distance"] == found.max_distance
    again = simhash.setup(plain)
    assert (again.is_already, again.recorded, again.sampled, again.preset) == (True, (), 0, found.preset)
    assert simhash.setup(plain, text_field="body", time_field="published").is_already
    assert read_all(server, plain) == held


def test_a_dry_run_foresees_what_is_written(server, plain, simhash):
    """Of an index that is set up: nothing, or the same as the run after it, stale fingerprints too."""
    simhash.setup(plain, text_field="body")
    assert simhash.setup(plain, dry_run=True).is_already
    put(server, plain, [{"_id": "new", "body": documents()[0]["body"]}])
    server.request("POST", f"/{plain}/_update/3a?refresh=true", {"doc": {"body": "another text of other words"}})
    held = read_all(server, plain)
    would = simhash.setup(plain, dry_run=True)
    assert (would.filled.changed, would.filled.stale, would.groups, would.is_already) == (2, 1, None, False)
    assert read_all(server, plain) == held
    done = simhash.setup(plain)
    assert (done.filled.changed, done.filled.stale) == (2, 1)


@pytest.mark.parametrize("left", [8, 24, 40])
def test_a_run_that_ended_early(server, plain, left, impatient):
    """The next one goes on, with the rule that the first one recorded, and ends as if there had been one run."""
    how = {"text_field": "body", "time_field": "published"}
    failure: Exception | None = None
    with client_through(server, Wire(left=left)) as simhash:
        try:
            simhash.setup(plain, **how)
        except Exception as error:  # noqa: BLE001 -- of either client
            failure = error
    recorded = meta_of(server, plain) or {}
    assert failure is None or not recorded or "run it again" in "".join(failure.__notes__)
    with client_through(server, Wire(script={})) as simhash:
        found = simhash.setup(plain, **how)
        assert found.is_complete
        assert found.groups.duplicates == 12
        assert simhash.setup(plain).is_already
    assert meta_of(server, plain)["grouping"] == recorded.get("grouping", found.grouping)


def test_what_is_recorded_decides(server, plain, simhash):
    """A grouping and a distance stay, and the run says which preset was measured to find more."""
    simhash.put_mapping(plain, text_field="body", max_distance=5)
    found = simhash.setup(plain)
    assert (found.recorded, found.preset, found.max_distance) == (("grouping",), None, 5)
    assert found.grouping["max_distance"] == 5
    assert found.measured.max_distance >= 8
    before = meta_of(server, plain)
    with pytest.raises(InvalidInputError, match="grouped by"):
        simhash.setup(plain, time_field="published")
    with pytest.raises(InvalidInputError, match="differs from"):
        simhash.setup(plain, text_field="title")
    assert meta_of(server, plain) == before


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({}, InvalidInputError, r"give text_field=FIELD \(mapped as text: body\)"),
        ({"text_field": "title"}, InvalidInputError, "has a field .title.: check the name"),
        ({"text_field": "body", "time_field": "title"}, MappingError, "canonical: name 'published'"),
        ({"text_field": ["body", "boddy"]}, InvalidInputError, "has a field 'boddy': check the name"),
    ],
)
def test_a_wrong_field_leaves_the_index_as_it_was(server, plain, simhash, arguments, error, said):
    with pytest.raises(error, match=said):
        simhash.setup(plain, **arguments)
    assert meta_of(server, plain) is None


def test_another_scheme_has_no_preset(plain, sync_client):
    """Its texts are compared as those that were edited; with too few texts to measure, the usual distance counts."""
    found = SimHashClient(sync_client, scheme="keywords").setup(plain, text_field="body")
    assert (found.preset, found.measured, found.max_distance) == (None, None, 12)
    assert found.grouping["similarity"]["at_least"] == 0.6
    assert found.groups.duplicates >= 11


def test_the_distance_of_another_scheme_is_measured(server, index, sync_client):
    """The smallest that finds nearly as many edited copies as the largest; what is given goes before it."""
    words = [f"w{n}{letter}" for n in range(400) for letter in "abc"]
    chance = Random(7)
    put(server, index, [{"_id": str(n), "body": " ".join(chance.sample(words, 80))} for n in range(60)])
    server.request("POST", f"/{index}/_refresh")
    simhash = SimHashClient(sync_client, scheme="keywords")
    found = simhash.setup(index, text_field="body", dry_run=True)
    assert found.sampled == 60
    assert 3 <= found.max_distance <= 16
    assert simhash.setup(index, text_field="body", max_distance=9, verify=0.5, dry_run=True).max_distance == 9


def test_the_rule_is_an_option(plain, simhash):
    """Whatever ingest takes; it is recorded, and a time field is an order like any other."""
    found = simhash.setup(plain, text_field="body", preset="near", canonical="-published")
    assert (found.preset, found.grouping["canonical"], found.grouping["max_distance"]) == ("near", ["-published"], 8)
    assert simhash.setup(plain, preset="near").is_already
    with pytest.raises(InvalidInputError, match="grouped by"):
        simhash.setup(plain, preset="identical")
    with pytest.raises(InvalidInputError, match="not both"):
        simhash.setup(plain, time_field="published", canonical="id")


def test_a_short_text_with_many_titles_is_told(server, plain, simhash):
    """Only where the titles tell its documents apart; a true copy has the same title."""
    texts = {"No description available.": "Thing {}", "N/A": "Item {}", "The same few words as ever.": "News"}
    for text, title in texts.items():
        put(server, plain, [{"_id": f"{n} {text}", "body": text, "title": title.format(n)} for n in range(6)])
    found = simhash.setup(plain, text_field="body")
    told, other = sorted(
        (each for each in found.findings if each.kind == "short_text"), key=lambda each: -len(each.message)
    )
    assert (other.values["text"], found.groups.duplicates) == ("N/A", 22)
    assert told.advice.endswith(f"es-simhash setup {plain} --text-field title --text-field body --prefix simhash2")
    assert told.message == (
        "6 documents have the short text 'No description available.', and 6 of them that were read have 6 different "
        "values of title"
    )


@pytest.mark.parametrize("step", ["html", "links"])
def test_a_step_that_the_texts_ask_for(run, server, index, simhash, step):
    """Tags and references are left out where no scheme is asked for; links only by an option, which is named."""
    html, links = ("<p>&quot;{}&quot; &#39;s</p>", " &amp; "), ("{} https://t.co/aBcDeFgH{}", " ")
    mark, blank = {"html": html, "links": links}[step]
    bodies = [mark.format(text[:90].replace(" ", blank), n) for n, text in enumerate(random_texts(60, 3))]
    put(server, index, [{"_id": str(n), "body": body} for n, body in enumerate(bodies)])
    server.request("POST", f"/{index}/_refresh")
    shown = run("setup", index, "--text-field", "body").stdout
    is_html = step == "html"
    assert f" more copies are found without {'tags or' if is_html else 'links: --preprocess links'}" in shown
    assert ("(chosen)" in shown) == is_html
    assert "measured: similar finds " in shown
    found = simhash.setup(index, text_field="body")
    assert [said.endswith("(chosen)") for said in found.notes] == [is_html]
    assert found.scheme == ("shingles-3(preprocess=html)" if is_html else "shingles-3")
    assert len(simhash.find_near_dups(index, html_to_text(bodies[7]))) == 1
    assert simhash.setup(index).is_already


def test_a_large_group_comes_before_a_plan(run, server, index, monkeypatch):
    """Where very many documents repeat one, no removal is advised before that is said."""
    monkeypatch.setattr(guard_rails, "FEWEST_LARGE", 50)
    put(server, index, [{"_id": f"{n:04d}", "body": documents()[0]["body"]} for n in range(52)])
    server.request("POST", f"/{index}/_refresh")
    shown = run("setup", index, "--text-field", "body", "--yes").stdout
    names = [line.split()[1] for line in shown.splitlines() if line.startswith("es-simhash ")]
    assert "51 documents repeat document" in shown, shown
    assert names[0] == "groups"
    assert "plan" not in names


def test_few_documents(server, index, simhash):
    """An empty index gets the widest preset; one document, and no duplicates at all, are no special case."""
    server.request("PUT", f"/{index}", {"mappings": MAPPINGS, "settings": ONE_SHARD})
    found = simhash.setup(index, text_field="body")
    assert (found.preset, found.documents, found.measured, found.is_complete) == ("similar", 0, None, True)
    server.remove(index)
    server.request("PUT", f"/{index}", {"mappings": MAPPINGS, "settings": ONE_SHARD})
    put(server, index, documents()[:1])
    found = simhash.setup(index, text_field="body")
    assert (found.preset, found.sampled, found.filled.changed, found.groups.duplicates) == ("similar", 1, 1, 0)
    put(server, index, documents()[2::2])
    assert simhash.setup(index).groups.duplicates == 0


def test_an_alias(server, plain, simhash):
    """All indices behind it are set up alike, and grouped together; it says what a rollover would lack."""
    other, alias = f"{plain}-000001", f"{plain}-alias"
    server.request("PUT", f"/{other}", {"mappings": MAPPINGS, "settings": ONE_SHARD})
    put(server, other, [{"_id": "x", "body": documents()[0]["body"]}])
    actions = [{"add": {"index": plain, "alias": alias}}]
    actions += [{"add": {"index": other, "alias": alias, "is_write_index": True}}]
    server.request("POST", "/_aliases", {"actions": actions})
    try:
        found = simhash.setup(alias, text_field="body")
        assert found.indices == (plain, other)
        assert found.groups.duplicates == 13
        assert "rollover" in found.rollover
        assert "docs/your-index.md" in found.rollover
        assert meta_of(server, plain)["grouping"] == meta_of(server, other)["grouping"]
        assert len(set(stored_groups(read_all(server, alias)).values())) == 12
        assert simhash.setup(alias).is_already
    finally:
        server.remove(other)


def test_the_command(run, server, plain):
    """Without --yes at most ten lines of what would be; with it what was recorded, found, and what comes next."""
    would = run("setup", plain, "-t", "body", "--time-field", "published")
    assert would.exit_code == 0, would.output
    assert "would be recorded now: the fields, the rule, the distance of lookups" in would.stdout
    assert would.stdout.endswith("nothing changed, pass --yes to do it\n")
    assert meta_of(server, plain) is None
    done = run("setup", plain, "-t", "body", "--time-field", "published", "--yes")
    assert done.exit_code == 0, done.output
    assert "12 duplicates" in done.stdout
    assert "stays: the earliest by published" in done.stdout
    assert done.output.count("shingles are the same") == 1
    assert "measured: nothing: 24 texts, and 50 are needed; similar is the preset for few texts" in done.stdout
    assert "80 % of the 7-letter shingles are the same; stays" in done.stdout
    for options in ([], ["--yes"]):
        again = run("setup", plain, *options)
        assert "already set up" in again.stdout
        lines = [line for line in again.stdout.splitlines() if line.startswith("es-simhash ")]
        commands = [shlex.split(line, comments=True)[1:] for line in lines]
        assert [name for name, *_ in commands] == ["groups", "report", "follow", "plan"]
        for name, *rest in commands:
            parse([name, *rest])  # an option that is not there raises
        assert run(*commands[0]).exit_code == 0
    assert max(len(each.stdout.splitlines()) for each in (would, done, again)) <= 14
    plan = json.loads(run("setup", plain, "--yes", "--json").stdout)
    assert (plan["is_already"], plan["groups"]["duplicates"], plan["dry_run"]) == (True, 12, False)


def test_what_lacks_a_fingerprint(run, server, plain, simhash, tmp_path, monkeypatch):
    """A setup that was stopped: each command that then shows too little names the one that goes on."""
    put(server, plain, [{"_id": "none", "title": "x"}, {"_id": "empty", "body": ""}, {"_id": "dots", "body": "..."}])
    assert run("create", plain, "--existing", "-t", "body", "--yes").exit_code == 0
    goes_on = f"; run es-simhash setup {plain} --yes\n"
    assert f"no lookup and no group has them{goes_on}" in run("find", plain, "--id", "0a").stderr
    failed(run("groups", plain), "was never grouped: run es-simhash setup INDEX")
    # Elasticsearch takes an empty text for one, and OpenSearch does not.
    missing = simhash.setup(plain, dry_run=True).missing
    assert 24 <= missing <= 26
    assert f"would give up to {missing} documents a first fingerprint" in run("setup", plain).stdout
    assert "27 compared, 24 got their first fingerprint" in run("setup", plain, "--yes").stdout
    empty = missing - 24
    more = (("report", plain, "--out", tmp_path / "page.html"), ("plan", plain))
    commands = (("find", plain, "--id", "0a"), ("groups", plain), *more)

    def lacking():
        by_check = [int(fault.found) for fault in simhash.check(plain)[0].faults if fault.kind == "without_fingerprint"]
        findings = simhash.check_sample(plain).findings
        by_sample = [each.severity for each in findings if "without fingerprint" in str(each)]
        return sum(by_check), by_sample, simhash.plan_removal(plain).without_fingerprint

    assert lacking() == (empty, [], empty)
    assert "already set up" in run("setup", plain).stdout
    for command in commands:
        assert "without fingerprint" not in run(*command).stderr
    put(server, plain, [{"_id": "new", "body": documents()[0]["body"]}])
    assert lacking() == (empty + 1, ["error"], empty + 1)
    for command in commands:
        said = run(*command).stderr
        assert "warning: 1 document with a text and without fingerprint: " in said
        assert goes_on in said
    [told] = [json.loads(line) for line in run("find", plain, "--id", "0a", "--json").stderr.splitlines()]
    assert (told["warning"]["kind"], told["warning"]["number"]) == ("without_fingerprint", 1)
    monkeypatch.setattr(look, "warn_of_lacking", lambda *_, **__: print_line("counted"))
    answer, last = run("find", plain, "--input", "-", stdin=json.dumps(documents()[0]["body"])).stdout.splitlines()
    assert ("near_dups" in answer, last) == (True, "counted")  # no lookup waits for it


def test_several_indices_each_by_its_own_record(server, index, simhash):
    """Other text fields, and a marker that one of them lacks: nothing recorded is overwritten, nothing miscounted."""
    names = [f"{index}-{field}" for field in ("body", "title")]
    for name, field in zip(names, ("body", "title"), strict=True):
        mappings = {"properties": {"title": {"type": "text"}, "body": {"type": "text"}}}
        simhash.create_index(name, text_field=field, settings=ONE_SHARD, mappings=mappings)
        put(server, name, [{"_id": field, field: "a text of this index"}, {"_id": "other", "note": field}])
    put(server, names[0], [{"_id": "without", "title": "not the text here"}])
    [lacking] = (each["mappings"] for each in server.request("GET", f"/{names[1]}/_mapping").values())
    ours = lacking["properties"]["simhash"]["properties"]
    lacking["properties"]["simhash"]["properties"] = {name: ours[name] for name in NEEDED_FIELDS}
    server.request("PUT", f"/{index}-x-lacking", {"settings": ONE_SHARD, "mappings": lacking})
    names.append(f"{index}-x-lacking")
    would = simhash.setup(f"{index}-*", dry_run=True)
    assert (would.missing, would.text_fields) == (2, ("body", "title"))
    simhash.setup(f"{index}-*")
    assert [meta_of(server, name)["text_fields"] for name in names] == [["body"], ["title"], ["title"]]
    held = {name: read_all(server, name) for name in names}
    assert ["simhash" in held[names[0]][id_] for id_ in ("body", "other", "without")] == [True, False, False]
    assert held[names[1]]["title"]["simhash"]["fingerprint"] == held[names[0]]["body"]["simhash"]["fingerprint"]
