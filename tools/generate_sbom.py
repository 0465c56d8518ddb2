"""
The software bill of materials (CycloneDX 1.6): dependencies of the package, and jars that it may download. The build
puts it into the wheel (``hatch_build.py``).

Dependencies are ranges, as in pyproject.toml, since pip chooses the versions; the jars of the local servers are exact,
each with its SHA-256 from ``es_simhash/servers/locked/``. The same tree gives the same bytes.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import json
import re
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "es_simhash" / "servers" / "locked"
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def build_sbom(version: str) -> dict[str, Any]:
    """Return the bill of materials of this tree as *version*."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = _component(f"pkg:pypi/{project['name']}@{version}", name=project["name"], version=version)
    components = [*_dependencies(project), *_jars()]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own | {"licenses": [{"license": {"id": project["license"]}}]}},
        "components": components,
        "dependencies": [
            {
                "ref": own["bom-ref"],
                "dependsOn": [part["bom-ref"] for part in components if part["scope"] == "required"],
            }
        ],
    }
    return {"serialNumber": uuid.uuid5(NAMESPACE, json.dumps(body, sort_keys=True)).urn, **body}


def _component(purl: str, properties: dict[str, list[str]] | None = None, **fields: Any) -> dict[str, Any]:
    named = [{"name": f"es_simhash:{name}", "value": ",".join(values)} for name, values in (properties or {}).items()]
    return {"type": "library", "bom-ref": purl, "purl": purl, **fields} | ({"properties": named} if named else {})


def _dependencies(project: dict[str, Any]) -> Iterator[dict[str, Any]]:
    wanted = {requirement: ["base"] for requirement in project["dependencies"]}
    for extra, requirements in project["optional-dependencies"].items():
        for requirement in requirements:
            wanted.setdefault(requirement, []).append(extra)
    for requirement, extras in sorted(wanted.items()):
        name = re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0]
        scope = "required" if "base" in extras else "optional"
        properties = {"requirement": [requirement], "extras": extras}
        yield _component(f"pkg:pypi/{name.lower()}", properties, name=name, scope=scope)


def _jars() -> Iterator[dict[str, Any]]:
    servers: dict[tuple[str, str], list[str]] = {}
    for path in sorted(LOCKS.glob("*.json")):
        lock = json.loads(path.read_text(encoding="utf-8"))
        for jar in {**lock["jars"], **lock.get("http_jars", {})}.items():
            servers.setdefault(jar, []).append(path.stem)
    for (coordinates, digest), names in sorted(servers.items()):
        group, name, packaging, *classifier, version = coordinates.split(":")
        purl = f"pkg:maven/{group}/{name}@{version}?type={packaging}" + "".join(f"&classifier={c}" for c in classifier)
        hashes = [{"alg": "SHA-256", "content": digest}]
        fields = {"group": group, "name": name, "version": version, "scope": "optional", "hashes": hashes}
        yield _component(purl, {"servers": names}, **fields)
