"""
The OpenSearch security plugin in an embedded server: TLS, a login, users and roles, as production has them.

Writes what the plugin wants to find; starts nothing but ``keytool``. The login below is no secret: it opens a server on
the loopback interface for as long as a test runs. Further users and roles are made through the plugin's own REST API.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any

from es_simhash.errors import EmbeddedServerError, shorten
from es_simhash.servers.artifacts import fetch

if TYPE_CHECKING:
    from pathlib import Path

    from es_simhash.servers.artifacts import Release
    from es_simhash.servers.java import Java

__all__ = ["CA_FILE", "LOGIN", "add_security"]

LOGIN = ("admin", "Embedded-7-Okapi")
LOGIN_BCRYPT = "$2b$10$TuKvI5czXjxDznE44dLxyOKV4hmNld98GbC2d1f.1gbSuZ3Sm6076"

CA_FILE = "ca.pem"
STORE_PASSWORD = "changeit"  # noqa: S105 - guards a key that is made anew for each folder
KEYTOOL_SECONDS = 60
PLUGIN_CLASS = "org.opensearch.security.OpenSearchSecurityPlugin"


def add_security(config: dict[str, Any], release: Release, java: Java, *, home: Path) -> None:
    """
    Change *config*, what a child process is told, so that its node has the security plugin.

    Raises:
        EmbeddedServerError: If a file cannot be had, or the certificate cannot be made.
    """
    config["plugins"].append(PLUGIN_CLASS)
    config["class_path"] += _unpack(
        release, home / "security", {path.rpartition("/")[2] for path in config["class_path"]}
    )
    _write_certificate(java, home / "config")
    _write_users(home / "config" / "opensearch-security")
    # The plugin complains of keys and users that others may read, and rightly.
    for path in [home / "config", *(home / "config").rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    stores: dict[str, str] = {}
    for layer in ("transport", "http"):
        prefix = f"plugins.security.ssl.{layer}"
        for store, file in (("keystore", "node.p12"), ("truststore", "trust.p12")):
            stores |= {
                f"{prefix}.{store}_type": "PKCS12",
                f"{prefix}.{store}_filepath": file,
                f"{prefix}.{store}_password": STORE_PASSWORD,
            }
    config["settings"] |= {
        **stores,
        "plugins.security.ssl.http.enabled": "true",
        "plugins.security.ssl.transport.enforce_hostname_verification": "false",
        "plugins.security.nodes_dn": ["CN=localhost"],
        "plugins.security.allow_default_init_securityindex": "true",
        "plugins.security.restapi.roles_enabled": ["all_access"],
        "plugins.security.audit.type": "noop",
    }


def _unpack(release: Release, folder: Path, present: set[str]) -> list[str]:
    """
    Return the plugin's jars, without those that the server has as well: its own must win.
    """
    folder.mkdir(exist_ok=True)
    jars = []
    for path in fetch(release.security_files):
        if path.suffix == ".jar":
            jars.append(str(path))
            continue
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".jar") and "/" not in name and name not in present:
                    archive.extract(name, folder)
                    jars.append(str(folder / name))
    return jars


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
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=KEYTOOL_SECONDS)  # noqa: S603
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
        # JSON is YAML as well, and this way there is no YAML library to need.
        document = {"_meta": {"type": kind, "config_version": 2}, **content}
        (folder / f"{file}.yml").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
