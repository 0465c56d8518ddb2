"""
An embedded OpenSearch with the security plugin: TLS, a login, users and roles, as production has them.

Writes the files that the plugin reads; starts nothing but ``openssl`` and the server. The login below is no secret: it
opens a server on the loopback interface for as long as a test runs. Tests make further users and roles, of the same
password, through the plugin's own REST API.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
from typing import TYPE_CHECKING, Any

from tests.servers.command_line import invoke
from tests.servers.plugins import PluginServer
from tests.servers.servers import send

if TYPE_CHECKING:
    from pathlib import Path

LOGIN = ("admin", "Embedded-7-Okapi")
# With the lowest cost: by the plugin's own, each of a hundred users would take a second or two of the processor.
LOGIN_BCRYPT = "$2b$04$TuKvI5czXjxDznE44dLxyOXD7SdgmPOiadb.2e3U.DpIln1J.OvPK"

CA_FILE, KEY_FILE = "ca.pem", "key.pem"
HEALTH_SECONDS = 10.0


class SecuredServer(PluginServer):
    """An OpenSearch with TLS, whose certificate is in *ca_path*, and users, of whom *login* is the administrator."""

    login = LOGIN

    def __init__(self, **options: Any) -> None:
        super().__init__("security", **options)
        self.ca_path = self.data / "config" / CA_FILE

    @property
    def url(self) -> str:
        """Where the server answers, ``"https://127.0.0.1:PORT"``."""
        return f"https://127.0.0.1:{self.port}"

    def connection(self) -> tuple[http.client.HTTPConnection, dict[str, str]]:
        """Return a connection that trusts the server's certificate, and the administrator's login."""
        context = ssl.create_default_context(cafile=str(self.ca_path))
        login = base64.b64encode(":".join(self.login).encode()).decode()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=HEALTH_SECONDS, context=context)
        return connection, {"Authorization": f"Basic {login}"}

    def configuration(self) -> dict[str, Any]:
        """Return the configuration of a server with the plugin, and write its certificate and its users."""
        config = super().configuration()
        folder = self.data / "config"
        _write_certificate(folder)
        _write_users(folder / "opensearch-security")
        # The plugin warns about keys and users that others may read.
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)
        config["settings"] |= _settings()
        return config


def ask(server: SecuredServer, method: str, path: str, body: Any = None) -> Any:
    """Send a request as the administrator, and return the answer."""
    name, password = server.login
    status, answer, _ = send(f"https://{name}:{password}@127.0.0.1:{server.port}", method, path, body)
    assert status < 300, answer
    return answer


def let(server: SecuredServer, name: str, cluster: list[str], *indices: dict[str, Any]) -> tuple[str, str]:
    """Make a user with a role of that name, who may do what is given; return the login."""
    role = {"cluster_permissions": cluster, "index_permissions": indices}
    user = {"hash": LOGIN_BCRYPT, "opendistro_security_roles": [name]}
    for path, body in (("roles", role), ("internalusers", user)):
        ask(server, "PUT", f"/_plugins/_security/api/{path}/{name}", body)
    return name, LOGIN[1]


def program(server: SecuredServer, monkeypatch: Any) -> Any:
    """Return a function that runs a command line with a login, or with none."""
    for name in ("PRODUCT", "API_KEY", "DEBUG"):
        monkeypatch.delenv(f"ES_SIMHASH_{name}", raising=False)
    monkeypatch.setenv("ES_SIMHASH_URL", server.url)
    monkeypatch.setenv("ES_SIMHASH_CA_FILE", str(server.ca_path))

    def run(*args: object, login: tuple[str, str] | None = server.login, stdin: str | None = None) -> Any:
        for name, value in zip(("USER", "PASSWORD"), login or ("", ""), strict=True):
            monkeypatch.setenv(f"ES_SIMHASH_{name}", value)
        return invoke([str(each) for each in args], stdin=stdin)

    return run


def _settings() -> dict[str, Any]:
    files = {"pemcert": CA_FILE, "pemkey": KEY_FILE, "pemtrustedcas": CA_FILE}
    stores = {
        f"plugins.security.ssl.{layer}.{kind}_filepath": file
        for layer in ("transport", "http")
        for kind, file in files.items()
    }
    return {
        **stores,
        "plugins.security.ssl.http.enabled": "true",
        "plugins.security.ssl.transport.enforce_hostname_verification": "false",
        "plugins.security.nodes_dn": ["CN=localhost"],
        "plugins.security.allow_default_init_securityindex": "true",
        "plugins.security.restapi.roles_enabled": ["all_access"],
        "plugins.security.audit.type": "noop",
    }


def _write_certificate(folder: Path) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(folder / KEY_FILE)]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command = ["openssl", "req", "-x509", *key, *names, "-out", str(folder / CA_FILE)]
    subprocess.run(command, check=True, capture_output=True)


def _write_users(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name, _ = LOGIN
    basic = {
        "http_enabled": True,
        "order": 0,
        "http_authenticator": {"type": "basic", "challenge": True},
        "authentication_backend": {"type": "intern"},
    }
    documents: dict[str, tuple[str, dict[str, Any]]] = {
        "config": ("config", {"config": {"dynamic": {"authc": {"basic": basic}}}}),
        "internal_users": ("internalusers", {name: {"hash": LOGIN_BCRYPT, "reserved": False}}),
        "roles": ("roles", {}),
        "roles_mapping": ("rolesmapping", {"all_access": {"users": [name], "reserved": False}}),
        "action_groups": ("actiongroups", {}),
        "tenants": ("tenants", {}),
        "nodes_dn": ("nodesdn", {}),
        "allowlist": ("allowlist", {"config": {"enabled": False, "requests": {}}}),
    }
    for file, (kind, content) in documents.items():
        # JSON is also YAML.
        document = {"_meta": {"type": kind, "config_version": 2}, **content}
        (folder / f"{file}.yml").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
