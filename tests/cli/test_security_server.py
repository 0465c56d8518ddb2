"""The command line and an OpenSearch with logins: what the environment gives, and what a refusal says."""

import json

import pytest

from tests.servers.command_line import TEXT, failed
from tests.servers.security import program


@pytest.fixture
def run(secured, monkeypatch):
    return program(secured, monkeypatch)


def test_login_and_certificate_come_from_the_environment(run):
    """With both right everything works, the product told from the answer to a request on the index."""
    made = run("ingest", "news", "-", "--create", "-t", "body", stdin=json.dumps({"_id": "1", "body": TEXT}))
    assert made.exit_code == 0, made.output
    assert json.loads(run("check", "news", "--json").stdout)["indices"][0]["ready"] is True


@pytest.mark.parametrize("login", [None, ("admin", "wrong"), ("nobody", "x")])
def test_a_wrong_login_is_one_line(run, login, monkeypatch):
    """It names the variables, with the product detected as well as given, and never the password."""
    failed(run("check", "news", login=login), "(401)", "ES_SIMHASH_USER")
    monkeypatch.setenv("ES_SIMHASH_PRODUCT", "opensearch")
    failed(run("check", "news", login=login), "(401)", "ES_SIMHASH_USER")


def test_a_certificate_that_nobody_vouches_for_is_one_line(run, monkeypatch):
    """Without the CA file it is refused; ES_SIMHASH_INSECURE takes it, with a warning."""
    monkeypatch.delenv("ES_SIMHASH_CA_FILE")
    failed(run("check", "news"), "could not be verified", "ES_SIMHASH_CA_FILE")
    monkeypatch.setenv("ES_SIMHASH_INSECURE", "1")
    run("create", "insecure", "-t", "body")
    result = run("check", "insecure")
    assert result.exit_code == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("warning: the certificate of https://")
