"""
docker-compose.yml, checked as YAML and, where it holds a shell script, by running that script with a stand-in for curl.

No container engine is needed; whether the images start is for whoever runs them.
"""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.servers.command_line import parse

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load(TEXT)
SERVICES = COMPOSE["services"]
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
