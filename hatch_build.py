"""Puts the software bill of materials into the wheel, as PEP 770 says; hatchling calls it."""

import json
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BillOfMaterials(BuildHookInterface):
    """Writes the bill beside the wheel, and names it to hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """*version*: the kind of wheel, such as ``editable``."""
        if version != "editable":
            tool = runpy.run_path(str(Path(self.root) / "tools" / "generate_sbom.py"))
            path = Path(self.directory) / "sbom.cdx.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(tool["build_sbom"](self.metadata.version), indent=1) + "\n", encoding="utf-8")
            build_data["sbom_files"].append(str(path))
