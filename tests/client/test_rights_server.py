"""The rights that each command needs: a user who has exactly those of COMPATIBILITY.md's table can use it."""

from __future__ import annotations

import json
import re
import uuid

import pytest
from opensearchpy import OpenSearch

from es_simhash import SimHashClient
from es_simhash.cli.app import COMMANDS
from es_simhash.lookup import lookup_options as request
from tests.docs.blocks import ROOT
from tests.servers.command_line import failed
from tests.servers.security import LOGIN, LOGIN_BCRYPT, ask, program

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
DOCUMENTS = "".join(json.dumps({"_id": f"{n}", "body": f"{TEXT} {n % 3}"}) + "\n" for n in range(9))
PASSWORD = LOGIN[1]

# Each use of a command, with an index that is missing, plain (without our fields), with passages, or grouped; uses that
# change nothing, or only groups, share one.
USES = {
    "setup": ("plain", "setup INDEX -t body"),
    "setup --yes": ("plain", "setup INDEX -t body --yes"),
    "create": ("missing", "create INDEX -t body"),
    "create --dry-run": ("missing", "create INDEX -t body --dry-run"),
    "create --existing": ("shared", "create INDEX --existing -d 8"),
    "create --existing --yes": ("plain", "create INDEX --existing -t body --yes"),
    "check": ("shared", "check INDEX"),
    "find --query": ("shared", "find INDEX --id 1 --query kql -d 8"),
    "find": ("shared", "find INDEX bridge -d 12"),
    "find --id": ("shared", "find INDEX --id 1 -d 12"),
    "find --verify": ("shared", "find INDEX bridge -d 64 --verify 0"),
    "find --input": ("shared", "find INDEX --input - -d 12"),
    "passages": ("passages", "passages INDEX bridge"),
    "passages --id": ("passages", "passages INDEX --id 1"),
    "explain INDEX": ("shared", "explain INDEX 1 2"),
    "check --sample": ("shared", "check INDEX --sample 9"),
    "tune": ("shared", "tune INDEX"),
    "groups": ("shared", "groups INDEX"),
    "report": ("shared", "report INDEX"),
    "report --out": ("shared", "report INDEX --out REPORT"),
    "groups --pairs": ("shared", "groups INDEX --pairs"),
    "plan": ("shared", "plan INDEX"),
    "plan --out": ("shared", "plan INDEX --out PLAN --max-share 1"),
    "apply PLAN --yes": ("planned", "apply PLAN --yes"),
    "restore": ("removed", "restore OUT"),
    "restore --dry-run": ("removed", "restore OUT --dry-run"),
    "reconcile": ("shared", "reconcile INDEX -d 12"),
    "reconcile --dry-run": ("shared", "reconcile INDEX -d 12 --dry-run"),
    "reconcile --regroup": ("shared", "reconcile INDEX -d 3 --regroup"),
    "ingest": ("shared", "ingest INDEX -"),
    "ingest --on-duplicate none": ("shared", "ingest INDEX - --on-duplicate none"),
    "export pipeline --install --yes": ("grouped", "export pipeline INDEX --install --name INDEX --use-as final --yes"),
    "export pipeline --install": ("shared", "export pipeline INDEX --install --name INDEX --use-as final"),
    "follow --once": ("shared", "follow INDEX --once --state-index STATE"),
    "remove-fields": ("shared", "remove-fields INDEX"),
    "remove-fields --yes": ("grouped", "remove-fields INDEX --yes"),
}
INGEST = "ingest INDEX - --create -t body -d 12"
STATES = {
    "passages": ["create INDEX -t body --passages", INGEST],
    "grouped": [INGEST],
    "planned": [INGEST, "plan INDEX --out PLAN --max-share 1"],
    "removed": [INGEST, "plan INDEX --out OUT --max-share 1", "apply OUT --yes"],
}
# Also mcp, which serves: tests/cli/test_mcp_server.py is about its rights.
WITHOUT_A_SERVER = {"mcp", "fingerprint", "serve", "review", "history"}


def rights():
    """Return for each use of a command its rights on the index and on the cluster, as the table has them."""
    lines = (ROOT / "COMPATIBILITY.md").read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| commands | rights on the index"))
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        commands, index, cluster = (re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|"))
        found |= dict.fromkeys(commands, (index, cluster))
    return found


def test_the_table_has_every_command():
    """Each use is in it, and no command that talks to a server is missing."""
    assert set(rights()) == set(USES)
    commands = {name for names in COMMANDS.values() for name in names}
    assert {use.split()[0] for use in USES} == commands - WITHOUT_A_SERVER


@pytest.fixture(scope="module")
def users(secured):
    """The name of a user for each use of a command, who has the rights of the table on all indices of these tests."""
    table = rights() | {"nothing": ([], [])}
    distinct = [each for n, each in enumerate(table.values()) if each not in list(table.values())[:n]]
    roles, users = [], []
    for number, (index, cluster) in enumerate(distinct):
        role = {"index_patterns": ["rights-*"], "allowed_actions": index}
        value = {"cluster_permissions": cluster, "index_permissions": [role]}
        roles.append({"op": "add", "path": f"/rights-{number}", "value": value})
        user = {"hash": LOGIN_BCRYPT, "opendistro_security_roles": [f"rights-{number}"]}
        users.append({"op": "add", "path": f"/rights-{number}", "value": user})
    ask(secured, "PATCH", "/_plugins/_security/api/roles", roles)
    ask(secured, "PATCH", "/_plugins/_security/api/internalusers", users)
    return {use: f"rights-{distinct.index(each)}" for use, each in table.items()}


@pytest.fixture(scope="module")
def shared(secured):
    """The name of a grouped index for all uses that change nothing."""
    name = f"rights-{uuid.uuid4().hex}"
    with OpenSearch([secured.url], http_auth=secured.login, ca_certs=str(secured.ca_path)) as client:
        simhash = SimHashClient(client)
        simhash.create_index(name, text_field="body", max_distance=12)
        list(simhash.ingest(name, map(json.loads, DOCUMENTS.splitlines())))
        client.indices.refresh(index=name)
    yield name
    ask(secured, "DELETE", f"/{name},{name}-state?ignore_unavailable=true")


@pytest.fixture
def index(secured, use, shared):
    """The name of an index of the test's own, or of the shared one."""
    if USES[use][0] == "shared":
        yield shared
        return
    name = f"rights-{uuid.uuid4().hex}"
    yield name
    ask(secured, "DELETE", f"/{name}-000001,{name}-state?ignore_unavailable=true")
    ask(secured, "DELETE", f"/{name}?ignore_unavailable=true")


@pytest.fixture
def run(secured, index, monkeypatch, tmp_path):
    """Return a function that runs one use of a command as a user."""
    invoke = program(secured, monkeypatch)
    words = {"INDEX": index, "PLAN": str(tmp_path / "removal.db"), "OUT": str(tmp_path / "other.db")}
    words |= {"STATE": f"{index}-state", "REPORT": str(tmp_path / "report.html")}

    def run(line, name, password):
        return invoke(*(words.get(word, word) for word in line.split()), login=(name, password), stdin=DOCUMENTS)

    return run


def prepare(secured, run, index, state):
    """Make *index* what a use of a command needs; the shared one is ready."""
    if state == "plain":
        ask(secured, "PUT", f"/{index}", {"mappings": {"properties": {"body": {"type": "text"}}}})
        ask(secured, "PUT", f"/{index}/_doc/1?refresh=true", {"body": TEXT})
    for line in STATES.get(state, ()):
        done = run(line, *secured.login)
        assert done.exit_code == 0, done.output
        ask(secured, "POST", f"/{index}/_refresh")


@pytest.mark.parametrize("use", USES)
def test_the_rights_of_the_table_are_enough(secured, users, run, index, use):
    """Without any right a command fails with a 403 and one line; with those of the table it does its work."""
    state, line = USES[use]
    prepare(secured, run, index, state)
    if use == next(each for each in USES if each.split()[0] == use.split()[0]):
        failed(run(line, users["nothing"], PASSWORD), "(403)")
    done = run(line, users[use], PASSWORD)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("use", ["ingest"])
def test_who_may_not_see_the_numbers_of_shards(users, run, use, monkeypatch):
    """The server is asked instead."""
    monkeypatch.setattr(request, "FEWEST_LOOKUPS", 1)
    monkeypatch.setattr(request, "READ_FINGERPRINT_MS", 0.0)
    done = run("ingest INDEX -", users[use], PASSWORD)
    assert done.exit_code == 0, done.output
