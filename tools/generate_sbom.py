"""
The software bill of materials (CycloneDX 1.6): dependencies of the package, and jars that it may download. The build
puts it into the wheel (``hatch_build.py``).

Dependencies are ranges, as in pyproject.toml, since pip chooses the versions; the jars of the local servers are exact,
each with its SHA-256 from ``es_simhash/servers/locked/``. The same tree gives the same bytes.
A library for this (cyclonedx-python-lib) has four dependencies and saves a few of the lines below.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import json
import re
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "es_simhash" / "servers" / "locked"
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def build_sbom(version: str) -> dict[str, Any]:
    """Return the bill of materials of this tree as *version*."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{project['name']}@{version}",
        "name": project["name"],
        "version": version,
        "purl": f"pkg:pypi/{project['name']}@{version}",
        "licenses": [{"license": {"id": project["license"]}}],
    }
    components = _python_components(project) + _jar_components()
    required = sorted(part["bom-ref"] for part in components if part["scope"] == "required")
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": required}],
    }
    return {"serialNumber": uuid.uuid5(NAMESPACE, json.dumps(body, sort_keys=True)).urn, **body}


def _python_components(project: dict[str, Any]) -> list[dict[str, Any]]:
    wanted = {requirement: ["base"] for requirement in project["dependencies"]}
    for extra, requirements in project["optional-dependencies"].items():
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
    qualifiers = f"type={packaging}" + "".join(f"&classifier={kind}" for kind in classifier)
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
