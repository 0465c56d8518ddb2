"""
Puts the software bill of materials (CycloneDX 1.6) into the wheel, as PEP 770 says; hatchling calls it.

It lists the dependencies of the package, and the jars that it may download. Dependencies are ranges, as in
pyproject.toml, since pip chooses the versions, so no program that reads an environment could write it; the jars of the
local servers are exact, with their SHA-256 from ``es_simhash/servers/locked/``. The same tree gives the same bytes.
"""

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LOCKS = Path(__file__).parent / "es_simhash" / "servers" / "locked"
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


class BillOfMaterials(BuildHookInterface):
    """Writes the bill beside the wheel, and names it to hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """*version*: the kind of wheel, such as ``editable``."""
        if version != "editable":
            path = Path(self.directory) / "sbom.cdx.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            bill = build_sbom(self.metadata.config["project"], self.metadata.version)
            path.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
            build_data["sbom_files"].append(str(path))


def build_sbom(project: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the bill of materials of this tree as *version*; *project*: of pyproject.toml."""
    own = _component(f"pkg:pypi/{project['name']}@{version}", name=project["name"], version=version)
    components = [*_dependencies(project), *_jars()]
    required = [part["bom-ref"] for part in components if part["scope"] == "required"]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own | {"licenses": [{"license": {"id": project["license"]}}]}},
        "components": components,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": required}],
    }
    return {"serialNumber": uuid.uuid5(NAMESPACE, json.dumps(body, sort_keys=True)).urn, **body}


def _component(purl: str, **fields: Any) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "purl": purl, **fields}


def _properties(**values: list[str]) -> list[dict[str, str]]:
    return [{"name": f"es_simhash:{name}", "value": ",".join(value)} for name, value in values.items()]


def _dependencies(project: dict[str, Any]) -> Iterator[dict[str, Any]]:
    wanted = {requirement: ["base"] for requirement in project["dependencies"]}
    for extra, requirements in project["optional-dependencies"].items():
        for requirement in requirements:
            wanted.setdefault(requirement, []).append(extra)
    for requirement, extras in sorted(wanted.items()):
        name = re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0]
        scope = "required" if "base" in extras else "optional"
        properties = _properties(requirement=[requirement], extras=extras)
        yield _component(f"pkg:pypi/{name.lower()}", name=name, scope=scope, properties=properties)


def _jars() -> Iterator[dict[str, Any]]:
    servers = defaultdict(list)
    for path in sorted(LOCKS.glob("*.json")):
        lock = json.loads(path.read_text(encoding="utf-8"))
        for jar in (lock["jars"] | lock["http_jars"]).items():
            servers[jar].append(path.stem)
    for (coordinates, digest), names in sorted(servers.items()):
        group, name, packaging, *classifier, version = coordinates.split(":")
        purl = f"pkg:maven/{group}/{name}@{version}?type={packaging}" + "".join(f"&classifier={c}" for c in classifier)
        hashes = [{"alg": "SHA-256", "content": digest}]
        fields = {"group": group, "name": name, "version": version, "scope": "optional", "hashes": hashes}
        yield _component(purl, **fields, properties=_properties(servers=names))
