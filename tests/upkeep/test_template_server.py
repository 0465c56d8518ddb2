"""Our fields in index templates that exist: of an alias, of a data stream, by name; on real servers."""

import json

import pytest

from es_simhash import InvalidInputError, MappingError, build_component_template, build_index_template
from es_simhash.mapping.meta import markers_in_use
from tests.servers.command_line import failed
from tests.servers.support import ONE_SHARD, numbered, read_all, texts

OWN = {"dynamic_templates": [], "_meta": {"owner": "news desk"}, "properties": {"title": {"type": "keyword"}}}


@pytest.fixture
def templates(server, index):
    """Return a function that stores an index template; it reads one if it gets no body. All are deleted afterwards."""
    made = set()

    def store(name, body=None, *, kind="index"):
        path = f"/_{kind}_template/{name}" if kind else f"/_template/{name}"
        if body is None:
            return server.request("GET", path)[f"{kind}_templates"][0][f"{kind}_template"]
        made.add(path)
        return server.request("PUT", path, body)

    yield store
    if server.product == "opensearch":
        server.request("DELETE", f"/_data_stream/{index}*", missing_ok=True)
    for path in sorted(made, reverse=True):
        server.request("DELETE", path, missing_ok=True)


def plain(index, **more):
    """Return an index template of somebody's own for what begins with *index*."""
    content = {"settings": ONE_SHARD, "mappings": OWN, "aliases": {f"{index}-read": {}}}
    return {
        "index_patterns": [f"{index}*"],
        "priority": 700,
        "version": 7,
        "_meta": {"team": "a"},
        "template": content,
    } | more


@pytest.fixture
def alias(server, index, simhash):
    """An alias with a write index that has our fields, and whose name a rollover counts on."""
    simhash.create_index(f"{index}-000001", text_field="body", max_distance=6, settings=ONE_SHARD)
    server.request("PUT", f"/{index}-000001/_alias/{index}-all", {"is_write_index": True})
    return f"{index}-all"


def test_an_alias_is_refused_and_then_rolls_over(server, index, simhash, alias, templates):
    """The refusal names the command; everything else of the template stays, and what a rollover makes is written to."""
    templates(index, plain(index))
    templates(f"{index}-low", plain(index, priority=600))
    documents = numbered(texts(4))
    with pytest.raises(MappingError, match=f"put_index_template\\('{alias}'\\)") as refused:
        list(simhash.ingest(alias, documents))
    assert refused.value.kinds == ("template",)
    before = templates(index)
    change = simhash.put_index_template(alias, dry_run=True)
    assert (change.name, change.stored, templates(index)) == (index, False, before)
    assert '+            "block0": {' in change.difference
    assert "\n-" not in change.difference.partition("+++")[2]
    assert simhash.put_index_template(alias).stored
    after = templates(index)
    ours = after["template"]["mappings"]["properties"].pop("simhash")
    assert ours["properties"]["block3"] == {"type": "keyword"}
    recorded = after["template"]["mappings"]["_meta"].pop("es_simhash")["simhash"]
    assert (recorded["text_fields"], recorded["max_distance"], "grouping" in recorded) == (["body"], 6, False)
    assert {name: value for name, value in after.items() if "date" not in name} == {
        name: value for name, value in before.items() if "date" not in name
    }
    assert templates(f"{index}-low")["priority"] == 600
    list(simhash.ingest(alias, documents[:2]))
    server.request("POST", f"/{alias}/_rollover", {})
    list(simhash.ingest(alias, documents[2:]))
    server.request("POST", f"/{alias}/_refresh")
    assert sorted(read_all(server, f"{index}-000002")) == ["00002", "00003"]
    assert [each.ready for each in simhash.check(alias)] == [True, True]
    first, second = (each.grouping for each in simhash.check(alias))
    assert first == second is not None
    assert simhash.find_near_dups(alias, documents[3]["body"], max_distance=0)[0].id == "00003"
    again = simhash.put_index_template(alias)
    assert (again.stored, again.difference) == (False, "")


def test_a_rollover_that_came_first(server, index, simhash, alias, templates):
    """The index that the server mapped as text cannot be repaired; the template can, and the next index is right."""
    templates(index, plain(index))
    server.request("POST", f"/{alias}/_rollover", {})
    server.request("PUT", f"/{index}-000002/_doc/x?refresh=true", {"simhash": {"block0": "0000"}})
    assert simhash.put_index_template(alias).stored
    server.request("POST", f"/{alias}/_rollover", {})
    server.request("POST", "/_aliases", {"actions": [{"remove": {"index": f"{index}-000002", "alias": alias}}]})
    assert [each.action for each in simhash.ingest(alias, numbered(texts(1)))] == ["written"]


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_data_stream(server, index, simhash, templates):
    """By its own name, although the template has another one; what is created after a rollover has its fingerprint."""
    templates(f"{index}-of-stream", plain(index, data_stream={}) | {"template": {"settings": ONE_SHARD}})
    server.request("PUT", f"/_data_stream/{index}", None)
    simhash.put_mapping(index, text_field="body")
    documents = [{**each, "@timestamp": "2026-01-01"} for each in numbered(texts(4))]
    with pytest.raises(MappingError, match=f"put_index_template\\('{index}'\\)"):
        list(simhash.ingest(index, documents, op_type="create"))
    assert simhash.put_index_template(index).name == f"{index}-of-stream"
    assert all(each.kind is None for each in simhash.ingest(index, documents[:2], op_type="create"))
    server.request("POST", f"/{index}/_rollover", {})
    assert all(each.kind is None for each in simhash.ingest(index, documents[2:], op_type="create"))
    server.request("POST", f"/{index}/_refresh")
    found = simhash.find_near_dups(index, documents[3]["body"], max_distance=0)
    assert ("00003", 2) in {(each.id, int(each.index.rsplit("-", 1)[-1])) for each in found}


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_the_template_of_streams_to_come(server, index, simhash, templates):
    """By the name of the template, before there is a stream."""
    templates(index, plain(index, data_stream={}))
    assert simhash.put_index_template(index, text_field="body").stored
    server.request("PUT", f"/_data_stream/{index}", None)
    documents = [{**each, "@timestamp": "2026-01-01"} for each in numbered(texts(2))]
    assert all(each.kind is None for each in simhash.ingest(index, documents, op_type="create"))


def test_a_template_by_its_name(server, index, simhash, templates):
    """Without indices it needs the text field; with them it records what they do."""
    templates(index, plain(index))
    with pytest.raises(InvalidInputError, match="name the text field"):
        simhash.put_index_template(index)
    assert simhash.put_index_template(index, text_field="body").stored
    server.request("PUT", f"/{index}-1")
    assert [each.ready for each in simhash.check(f"{index}-1")] == [True]
    simhash.put_mapping(f"{index}-1", text_field="body", max_distance=9, passages=True)
    with pytest.raises(InvalidInputError, match="differs"):
        simhash.put_index_template(index, text_field="title")
    assert simhash.put_index_template(index).stored
    server.request("PUT", f"/{index}-2")
    mapping = server.request("GET", f"/{index}-2/_mapping")[f"{index}-2"]["mappings"]
    recorded = mapping["_meta"]["es_simhash"]["simhash"]
    assert (recorded["max_distance"], recorded["passages"]["state"]) == (9, "complete")
    assert len(markers_in_use(mapping, prefix="simhash")) == 1
    assert not simhash.put_index_template(index).stored


def test_a_component_that_has_the_fields(server, index, simhash, alias, templates):
    """Nothing is stored beside it; one with other settings is put right where that is possible, else refused."""
    templates(index, build_component_template(text_field="body", max_distance=6), kind="component")
    templates(index, build_index_template([f"{index}*"], component=index, priority=700))
    assert not simhash.put_index_template(alias).stored
    templates(index, build_component_template(text_field="body", max_distance=3), kind="component")
    assert simhash.put_index_template(alias).stored
    server.request("POST", f"/{alias}/_rollover", {})
    mapping = server.request("GET", f"/{index}-000002/_mapping")[f"{index}-000002"]["mappings"]
    assert mapping["_meta"]["es_simhash"]["simhash"]["max_distance"] == 6
    assert len(markers_in_use(mapping, prefix="simhash")) == 1
    templates(index, build_component_template(text_field="body", passages=True), kind="component")
    with pytest.raises(InvalidInputError, match=rf"\({index}\): take it out of composed_of"):
        simhash.put_index_template(alias)


def test_templates_that_are_not_ours_to_change(index, simhash, alias, templates):
    """Each with what to do."""
    with pytest.raises(MappingError, match="no index template matches") as missing:
        simhash.put_index_template(alias)
    assert missing.value.kinds == ("no_template",)
    with pytest.raises(InvalidInputError, match="check the name"):
        simhash.put_index_template(f"no-{index}")
    templates(f"{index}-old", {"index_patterns": [f"{index}*"], "settings": ONE_SHARD}, kind="")
    for name in (alias, f"{index}-old"):
        with pytest.raises(InvalidInputError, match="is a legacy template"):
            simhash.put_index_template(name)
    templates(f"{index}@custom", {"template": {}}, kind="component")
    managed = plain(index, _meta={"managed": True, "managed_by": "fleet"})
    templates(index, managed)
    with pytest.raises(InvalidInputError, match="managed by 'fleet'.*copy it"):
        simhash.put_index_template(alias)
    templates(index, managed | {"composed_of": [f"{index}@custom"]})
    with pytest.raises(InvalidInputError, match=f"component template '{index}@custom'"):
        simhash.put_index_template(alias)
    templates(f"{index}@custom", build_component_template(text_field="body", max_distance=6), kind="component")
    assert not simhash.put_index_template(alias).stored
    templates(f"{index}@custom", {"template": {}}, kind="component")
    templates(index, plain(index, template={"mappings": {"properties": {"simhash": {"type": "text"}}}}))
    with pytest.raises(InvalidInputError, match=f"index template '{index}' does not fit.*one of your own"):
        simhash.put_index_template(alias)


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_derived_source(server, index, simhash, alias, templates):
    """It takes no marker; the server refuses one only when the index is made."""
    mappings = {"properties": {"body": {"type": "text", "store": True}}}
    content = {"settings": {**ONE_SHARD, "index.derived_source.enabled": True}, "mappings": mappings}
    templates(index, plain(index, template=content))
    assert simhash.put_index_template(alias).stored
    server.request("POST", f"/{alias}/_rollover", {})
    mapping = server.request("GET", f"/{index}-000002/_mapping")[f"{index}-000002"]["mappings"]
    assert markers_in_use(mapping, prefix="simhash") == []
    assert [each.action for each in simhash.ingest(alias, numbered(texts(1)))] == ["written"]


def test_the_command(run, server, index, templates):
    """It shows the difference, and stores it with --install --yes."""
    templates(index, plain(index))
    assert run("export", "index-template", index, "-t", "body", "--yes").exit_code == 2
    shown = run("export", "index-template", index, "-t", "body")
    assert '+            "block0": {' in shown.stdout
    assert "pass --install --yes to do it" in shown.stdout
    assert "on condition" in shown.stderr
    assert (
        "nothing changed, pass --yes to do it"
        in run("export", "index-template", index, "-t", "body", "--install").stdout
    )
    planned = json.loads(run("export", "index-template", index, "-t", "body", "--json").stdout)
    assert (planned["changed"], planned["stored"]) == (True, False)
    assert "simhash" not in templates(index)["template"]["mappings"]["properties"]
    done = run("export", "index-template", index, "-t", "body", "--install", "--yes")
    assert f"stored index template {index}" in done.stdout
    assert templates(index)["template"]["mappings"]["properties"]["simhash"]
    assert "nothing to store" in run("export", "index-template", index, "--install", "--yes").stdout
    assert json.loads(run("export", "index-template", index, "--json").stdout)["changed"] is False
    failed(run("export", "index-template", f"{index}*"), "cannot be that of")
    templates(index, plain(index, _meta={"managed": True}))
    failed(run("export", "index-template", index, "-t", "body"), "managed by a program")
