"""The command line and an OpenSearch with logins: what the environment gives, and what a refusal says."""

import json

import pytest
from click.testing import CliRunner

from es_simhash.cli import app
from tests.servers.command_line import TEXT, failed
from tests.servers.security import LOGIN


@pytest.fixture
def run(secured, monkeypatch):
    """Return a function that runs a command line with a login, by default one that may do everything."""
    for name in ("PRODUCT", "API_KEY", "DEBUG"):
        monkeypatch.delenv(f"ES_SIMHASH_{name}", raising=False)
    monkeypatch.setenv("ES_SIMHASH_URL", secured.url)
    monkeypatch.setenv("ES_SIMHASH_CA_FILE", str(secured.ca_path))

    def run(*args, login=LOGIN, stdin=None):
        for name, value in zip(("USER", "PASSWORD"), login or ("", ""), strict=True):
            monkeypatch.setenv(f"ES_SIMHASH_{name}", value)
        return CliRunner().invoke(app, list(args), input=stdin)

    return run


def test_login_and_certificate_come_from_the_environment(run):
    """With both right everything works, the product told from the answer to a request on the index."""
    made = run("ingest", "news", "-", "--create", "-t", "body", stdin=json.dumps({"_id": "1", "body": TEXT}))
    assert made.exit_code == 0, made.output
    assert json.loads(run("check", "news", "--json").stdout)["indices"][0]["ready"] is True


@pytest.mark.parametrize("login", [None, ("admin", "wrong"), ("nobody", "x")])
def test_a_wrong_login_is_one_line(run, login):
    """It names the variables, with the product detected as well as given, and never the password."""
    failed(run("check", "news", login=login), "(401)", "ES_SIMHASH_USER")
    failed(run("check", "news", "--product", "opensearch", login=login), "(401)", "ES_SIMHASH_USER")


def test_a_certificate_that_nobody_vouches_for_is_one_line(run, monkeypatch):
    """Without the CA file it is refused; --insecure takes it, with a warning."""
    monkeypatch.delenv("ES_SIMHASH_CA_FILE")
    failed(run("check", "news"), "could not be verified", "ES_SIMHASH_CA_FILE")
    run("create", "insecure", "-t", "body", "--insecure")
    result = run("check", "insecure", "--insecure")
    assert result.exit_code == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("warning: the certificate of https://")


def test_a_login_without_rights_is_one_line(run, secured):
    """What the server says is passed on, with what to do; a reader who may not see the mapping names the scheme."""
    import ssl
    import urllib.request

    from es_simhash.connection import Login

    context = ssl.create_default_context(cafile=secured.ca_path)
    headers = {**Login(user=LOGIN[0], password=LOGIN[1]).headers, "content-type": "application/json"}

    def put(path, body):
        request = urllib.request.Request(  # noqa: S310 -- the test's own server
            f"{secured.url}{path}", json.dumps(body).encode(), headers, method="PUT"
        )
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:  # noqa: S310
            assert answer.status < 300

    def login(name, cluster, *actions):
        permissions = [{"index_patterns": ["read*"], "allowed_actions": actions}]
        put(f"/_plugins/_security/api/roles/{name}", {"cluster_permissions": cluster, "index_permissions": permissions})
        user = {"password": "Heron-42-Quay!", "opendistro_security_roles": [name]}
        put(f"/_plugins/_security/api/internalusers/{name}", user)
        return name, "Heron-42-Quay!"

    reader = login("cli-reader", [], "read")
    assert run("ingest", "read", "-", "--create", "-t", "body", stdin=json.dumps({"body": TEXT})).exit_code == 0
    failed(run("find", "read", TEXT, login=reader), "(403)", "login")
    assert run("find", "read", TEXT, "--scheme", "shingles", login=reader).exit_code == 0
    failed(run("create", "other", "-t", "body", login=reader), "(403)")
    # A writer who may not refresh hears nothing of that: others see the document after a refresh of the server's own.
    writer = login("cli-writer", ["cluster_composite_ops"], "read", "write", "indices:admin/mappings/get")
    line = json.dumps({"_id": "2", "body": TEXT})
    written = run("ingest", "read", "-", "--on-duplicate", "none", login=writer, stdin=line)
    assert (written.exit_code, written.stderr) == (0, ""), written.output
