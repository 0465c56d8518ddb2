"""
What a release is made by: the workflow file, which is not run on a forge here, and the public names. And what it is run
by: docker-compose.yml, checked as YAML and, where it holds a shell script, by running that with a stand-in for curl.
"""

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib

import pytest
import yaml

import es_simhash
from tests.docs.blocks import ROOT
from tests.servers.command_line import parse

WORKFLOWS = [*(ROOT / ".github/workflows").glob("*.yml")]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
STEPS = [(name, step) for name, job in WORKFLOW["jobs"].items() for step in job["steps"]]


def test_every_action_is_pinned_by_commit():
    """A tag can be moved to other code; a commit cannot."""
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    used = [line for text in texts for line in re.findall(r"\buses: *(\S+)", text)]
    assert len(used) > 10
    assert all(re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}", each) for each in used)


def test_only_publishing_may_do_more_than_read():
    """And no job keeps the token of the checkout, or has a secret."""
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}, path
    more = {name: job["permissions"] for name, job in WORKFLOW["jobs"].items() if "permissions" in job}
    assert more == {"publish": {"id-token": "write", "attestations": "write", "contents": "read"}}
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert "secrets." not in json.dumps(WORKFLOW)
    assert "checkout" not in json.dumps(WORKFLOW["jobs"]["publish"])


def test_a_release_needs_everything_that_must_pass():
    """Only a tag is published, after all jobs; those that need a registry of images have a file of their own."""
    publish = WORKFLOW["jobs"]["publish"]
    assert set(publish["needs"]) == WORKFLOW["jobs"].keys() - {"publish"}
    assert "refs/tags/v" in publish["if"]


def test_every_supported_python_is_tested():
    """The classifiers say what is supported; the matrix of the tests and COMPATIBILITY.md name the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    assert WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"] == supported
    assert f"| Python | {', '.join(supported)} |" in (ROOT / "COMPATIBILITY.md").read_text(encoding="utf-8")


def test_public_names_are_those_that_were_promised():
    """
    Names, methods, parameters and fields. From 0.1.0 on a line goes only after a year of warnings (docs/promises.md);
    ``ES_SIMHASH_NAMES=write`` writes the list anew.
    """
    path, lines = ROOT / "tests" / "public_names.txt", []
    for name in sorted(es_simhash.__all__):
        found = getattr(es_simhash, name)
        members = inspect.getmembers(found) if inspect.isclass(found) else []
        called = [(f"{name}.{own}", value) for own, value in members if own[0] != "_" and inspect.isfunction(value)]
        for whole, value in [(name, found), *called]:
            is_ours = inspect.isfunction(value) or (inspect.isclass(value) and "__init__" in vars(value))
            lines.append(" ".join([whole, *(inspect.signature(value).parameters if is_ours else ())]))
    if os.environ.get("ES_SIMHASH_NAMES") == "write":
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines() == lines


SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
ONE_SHOT = "kibana-password"


def test_ports_are_published_on_loopback_only_and_do_not_collide():
    """Both profiles can run at once, and neither is reachable from the network."""
    published = []
    for service in SERVICES.values():
        for port in service.get("ports", []):
            match = re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z]+_PORT:-(\d+)\}:(9200|5601)", port)
            assert match, port
            published.append(match[1])
    assert sorted(published) == ["5601", "5602", "9200", "9201"]


def test_passwords_come_from_one_required_variable():
    """No password is written in the file, and an unset or empty one stops Compose with a message."""
    found = 0
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if "PASSWORD" in key:
                assert re.fullmatch(r"\$\{ES_SIMHASH_PASSWORD:\?[^}]+\}", value)
                found += 1
    assert found == 7


@pytest.mark.parametrize("name", ["docker-compose.yml", "deploy/es-simhash-follow.service"])
def test_the_command_of_the_service_that_follows_can_be_parsed(name):
    """In the compose file and in the systemd unit."""
    text = (ROOT / name).read_text(encoding="utf-8")
    [line] = re.findall(r"exec es-simhash (follow .+)|ExecStart=\S+ (follow .+)", text)
    assert parse(shlex.split("".join(line)))["metrics"] == 60


@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is written for bash")
@pytest.mark.parametrize("password", ["plain", "it's `x` $(y) a\"b\\c$d:e", '\\\\""密码 with spaces'])
def test_the_script_for_kibana_sends_any_password_unchanged(password, tmp_path):
    """Quotes, backslashes and dollars in a password reach the server as they are."""
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/bash\nprintf "%s\\0" "$@"\n')
    curl.chmod(0o755)
    service = SERVICES[ONE_SHOT]
    # Compose turns $$ into $ before the container sees it.
    command = [part.replace("$$", "$") for part in service["entrypoint"] + service["command"]]
    command[0] = shutil.which("bash")
    run = subprocess.run(
        command, env={"PASSWORD": password, "PATH": str(tmp_path)}, capture_output=True, check=True, timeout=30
    )
    arguments = run.stdout.decode().rstrip("\0").split("\0")
    assert arguments[arguments.index("--user") + 1] == f"elastic:{password}"
    assert json.loads(arguments[arguments.index("--data") + 1]) == {"password": password}
    assert arguments[-1] == "http://elasticsearch:9200/_security/user/kibana_system/_password"
    assert "--fail" in arguments


@pytest.mark.parametrize("name", ["kibana-pack", "opensearch-dashboards-pack"])
def test_the_pack_that_is_loaded_is_one_of_ours_and_can_be_another(name):
    """A file of mappings/ unless the variable names another; the container cannot change it."""
    [volume] = SERVICES[name]["volumes"]
    match = re.fullmatch(r"\$\{ES_SIMHASH_PACK:-(\./[^}]+)\}:/tmp/pack.ndjson:ro", volume)
    lines = (ROOT / match[1]).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["type"] for line in lines].count("dashboard") == 2
