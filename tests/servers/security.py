"""
An embedded OpenSearch with the security plugin: TLS, a login, users and roles, as production has them.

Writes the files that the plugin reads; starts nothing but ``keytool`` and the server. The login below is no secret: it
opens a server on the loopback interface for as long as a test runs. Tests make further users and roles through the
plugin's own REST API.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
from typing import TYPE_CHECKING, Any

from es_simhash.errors import EmbeddedServerError, shorten
from tests.servers.command_line import invoke
from tests.servers.plugins import PluginServer
from tests.servers.servers import send

if TYPE_CHECKING:
    from pathlib import Path

    from es_simhash.servers.launch import Java

LOGIN = ("admin", "Embedded-7-Okapi")
LOGIN_BCRYPT = "$2b$10$TuKvI5czXjxDznE44dLxyOKV4hmNld98GbC2d1f.1gbSuZ3Sm6076"

CA_FILE = "ca.pem"
STORE_PASSWORD = "changeit"  # noqa: S105 - guards a key that is made for one folder
KEYTOOL_SECONDS = 60
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
        _write_certificate(self._java, folder)
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
    password = "Giraffe-19-Lake"  # noqa: S105 -- of a server that lives as long as these tests
    role = {"cluster_permissions": cluster, "index_permissions": indices}
    user = {"password": password, "opendistro_security_roles": [name]}
    for path, body in (("roles", role), ("internalusers", user)):
        ask(server, "PUT", f"/_plugins/_security/api/{path}/{name}", body)
    return name, password


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


def secured_server() -> SecuredServer:
    """Start an OpenSearch with the security plugin and return it; as a context manager it is closed at the end."""
    server = SecuredServer()
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server


def _settings() -> dict[str, Any]:
    stores: dict[str, str] = {}
    for layer in ("transport", "http"):
        prefix = f"plugins.security.ssl.{layer}"
        for store, file in (("keystore", "node.p12"), ("truststore", "trust.p12")):
            stores |= {
                f"{prefix}.{store}_type": "PKCS12",
                f"{prefix}.{store}_filepath": file,
                f"{prefix}.{store}_password": STORE_PASSWORD,
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


def _write_certificate(java: Java, folder: Path) -> None:
    if (folder / CA_FILE).exists():
        return
    common = ["-noprompt", "-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-alias", "node"]
    names = ["-dname", "CN=localhost", "-ext", "SAN=ip:127.0.0.1,dns:localhost", "-ext", "BC=ca:true"]
    key, trust, certificate = (str(folder / name) for name in ("node.p12", "trust.p12", CA_FILE))
    for arguments in (
        ["-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "3650", *names, "-keystore", key],
        ["-exportcert", "-rfc", "-file", certificate, "-keystore", key],
        ["-importcert", "-file", certificate, "-keystore", trust],
    ):
        command = [str(java.home / "bin" / "keytool"), *arguments, *common]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=KEYTOOL_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            reason = getattr(error, "stdout", None) or str(error)
            raise EmbeddedServerError(
                f"keytool could not make a certificate: {shorten(' '.join(reason.split()), limit=200)}"
            ) from error


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
