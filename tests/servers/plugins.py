"""
Embedded OpenSearch servers with a plugin that the package does not bring: only tests start them.

Which files a plugin needs stands in ``locked/NAME.json``, written by ``tools/lock_servers.py``.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from es_simhash.servers import EmbeddedServer
from es_simhash.servers.artifacts import fetch

LOCKS = Path(__file__).with_name("locked")


class PluginServer(EmbeddedServer):
    """An OpenSearch server with the *plugin* of one lock file, which decides the server's version."""

    def __init__(self, plugin: str, **options: Any) -> None:
        self._plugin = json.loads((LOCKS / f"{plugin}.json").read_text("utf-8"))
        super().__init__("opensearch", version=self._plugin["version"], **options)

    def configuration(self) -> dict[str, Any]:
        """Return the configuration of a server with the plugin on its class path."""
        config = super().configuration()
        present = {Path(path).name for path in config["class_path"]}
        config["plugins"].append(self._plugin["class"])
        config["class_path"] += self._unpack(present)
        return config

    def _unpack(self, present: set[str]) -> list[str]:
        """Return the jars of the plugin, without those that the server has as well: its own must win."""
        folder = self.data / "plugin"
        folder.mkdir(exist_ok=True)
        jars = []
        for path in fetch(self._plugin["files"]):
            if path.suffix == ".jar":
                jars.append(str(path))
                continue
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".jar") and "/" not in name and name not in present:
                        archive.extract(name, folder)
                        jars.append(str(folder / name))
        return jars
