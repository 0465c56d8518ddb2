"""
Write ``mappings/``: what ``es-simhash export`` prints.

``make mappings`` runs it, and a test compares the files with what it builds.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the package beside this file, not the one that is installed

from es_simhash.cli.export import COMPONENT
from es_simhash.dashboards import build_dashboards
from es_simhash.mapping.mapping import build_component_template, build_index_template, build_mapping
from es_simhash.pipeline.build import build_pipeline, build_search_template

ROOT = Path(__file__).parents[1]
TEXT_FIELD = "body"
PATTERN = "my-index-*"

# Packs for Kibana and Dashboards, by the name of the file.
PACKS: dict[str, dict[str, str]] = {
    "my-index": {
        "index": "my-index",
        "time_field": "published_at",
        "source_field": "source",
        "text_field": TEXT_FIELD,
    },
    "logs": {
        "index": "logs-*",
        "time_field": "@timestamp",
        "source_field": "data_stream.dataset",
        "text_field": "message",
    },
}


def build_files() -> dict[str, str]:
    """Return the content of each file by its path below ``mappings/``."""
    documents = {
        "mapping.json": {"mappings": build_mapping(text_field=TEXT_FIELD)},
        "component-template.json": build_component_template(text_field=TEXT_FIELD),
        "index-template.json": build_index_template([PATTERN], component=COMPONENT),
        "pipeline.json": build_pipeline(text_field=TEXT_FIELD),
        "search-template.json": build_search_template(),
    }
    files = {}
    for product in ("elasticsearch", "opensearch"):
        for name, document in documents.items():
            files[f"{product}/{name}"] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    for name, arguments in PACKS.items():
        lines = [json.dumps(each, ensure_ascii=False) for each in build_dashboards(**arguments)]
        files[f"dashboards/{name}.ndjson"] = "\n".join(lines) + "\n"
    return files


def main() -> None:
    """Write every file."""
    for name, content in build_files().items():
        path = ROOT / "mappings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
