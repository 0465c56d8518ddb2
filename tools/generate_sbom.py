"""
Write a software bill of materials (CycloneDX 1.6, JSON): dependencies of the package, and jars that it may download.

    python tools/generate_sbom.py dist/sbom.cdx.json

Dependencies are ranges, as in pyproject.toml, since pip chooses the versions; the jars of the local servers are exact,
each with its SHA-256 from ``es_simhash/servers/locked/``. With SOURCE_DATE_EPOCH the same commit gives the same bytes.
A library for this (cyclonedx-python-lib) has four dependencies and saves a few of the lines below.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import json
import os
import re
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import es_simhash

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "es_simhash" / "servers" / "locked"
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def build_sbom(*, moment: datetime) -> dict[str, Any]:
    """Return the bill of materials of this checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{project['name']}@{es_simhash.__version__}",
        "name": project["name"],
        "version": es_simhash.__version__,
        "purl": f"pkg:pypi/{project['name']}@{es_simhash.__version__}",
        "licenses": [{"license": {"id": project["license"]}}],
    }
    components = _python_components(project) + _jar_components()
    required = sorted(each["bom-ref"] for each in components if each["scope"] == "required")
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": own},
        "components": components,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": required}],
    }
    return {"serialNumber": uuid.uuid5(NAMESPACE, json.dumps(body, sort_keys=True)).urn, **body}


def _python_components(project: dict[str, Any]) -> list[dict[str, Any]]:
    wanted = {requirement: ["base"] for requirement in project["dependencies"]}
    for extra, requirements in project["optional-dependencies"].items():
        if extra not in {"dev", "fuzz", "real"}:
            for requirement in requirements:
                wanted.setdefault(requirement, []).append(extra)
    components = []
    for requirement, extras in sorted(wanted.items()):
        name = re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0]
        components.append(
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{name.lower()}",
                "name": name,
                "purl": f"pkg:pypi/{name.lower()}",
                "scope": "required" if "base" in extras else "optional",
                "properties": [
                    {"name": "es_simhash:requirement", "value": requirement},
                    {"name": "es_simhash:extras", "value": ",".join(extras)},
                ],
            }
        )
    return components


def _jar_components() -> list[dict[str, Any]]:
    digests: dict[str, str] = {}
    servers: dict[str, list[str]] = {}
    for path in sorted(LOCKS.glob("*.json")):
        lock = json.loads(path.read_text(encoding="utf-8"))
        for coordinates, digest in {**lock["jars"], **lock.get("http_jars", {})}.items():
            if digests.setdefault(coordinates, digest) != digest:
                raise ValueError(f"{coordinates} has two digests: {path.name} differs from {servers[coordinates]}")
            servers.setdefault(coordinates, []).append(path.stem)
    return [_jar(coordinates, digests[coordinates], servers[coordinates]) for coordinates in sorted(digests)]


def _jar(coordinates: str, digest: str, servers: list[str]) -> dict[str, Any]:
    group, name, packaging, *classifier, version = coordinates.split(":")
    qualifiers = f"type={packaging}" + "".join(f"&classifier={each}" for each in classifier)
    purl = f"pkg:maven/{group}/{name}@{version}?{qualifiers}"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": group,
        "name": name,
        "version": version,
        "purl": purl,
        "scope": "optional",
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "properties": [{"name": "es_simhash:servers", "value": ",".join(servers)}],
    }


def main() -> None:
    """Write the file that the command line names."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(build_sbom(moment=moment), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
