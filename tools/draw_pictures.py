"""
Draws the pictures of docs/views.md: panels of the pack.

    python tools/draw_pictures.py licenses/docs.jsonl.gz --out docs

Ingests the texts of the file (JSON Lines with id, title and text) into an OpenSearch of its own, sends the search of
each panel as the products do where no filter is chosen, and lets Vega draw the answer. Needs vl-convert-python
and pillow.
"""

# ruff: noqa: INP001 - a script, not part of a package

from __future__ import annotations

import argparse
import gzip
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import vl_convert
from opensearchpy import OpenSearch
from PIL import Image

from es_simhash import SimHashClient, build_dashboards
from es_simhash.servers import embedded_server

INDEX = "licences"
MAX_DISTANCE = 10
# Panel, file, width and height.
PANELS = {
    "largest groups": ("panel-largest-groups", 860, 260),
    "sizes of groups": ("panel-sizes", 430, 220),
}
FONT = "Inter, 'Open Sans', 'Noto Sans CJK SC', sans-serif"


def read_texts(path: str) -> list[dict[str, str]]:
    """Return the documents of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def fill(client: Any, documents: list[dict[str, str]]) -> None:
    """Ingest *documents*, and group them."""
    simhash = SimHashClient(client)
    simhash.create_index(INDEX, text_field="body", max_distance=MAX_DISTANCE)
    actions = ({"_id": each["id"], "_source": {"title": each["title"], "body": each["text"]}} for each in documents)
    refused = [each for each in simhash.ingest(INDEX, actions) if each.action == "refused"]
    if refused:
        raise RuntimeError(str(refused[0]))
    client.indices.refresh(index=INDEX)


def answered(client: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification of a panel with the answer to its search in place of the search."""
    first = spec["data"][0]
    body = first.pop("url")["body"] | {"query": {"match_all": {}}}
    first["values"] = client.search(index=INDEX, body=body)
    return spec


def write(spec: dict[str, Any], path: Path, width: int, height: int) -> None:
    """Draw *spec* in the colours of Kibana's light theme."""
    spec |= {"width": width, "height": height, "background": "#ffffff"}
    label, title = ({"fill": fill, "font": FONT} for fill in ("#343741", "#1a1c21"))
    grid = "#e0e5ee"
    spec["config"] = {
        "style": {"guide-label": label, "guide-title": title, "group-title": title},
        "axis": {"gridColor": grid, "tickColor": grid, "domainColor": grid},
    }
    picture = Image.open(BytesIO(vl_convert.vega_to_png(spec, scale=1.5)))
    picture.convert("RGB").quantize(64).save(path, optimize=True)


def main() -> None:
    """Run, and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", help="JSON Lines with id, title and text, gzip")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    documents = read_texts(arguments.texts)
    pack = build_dashboards(INDEX, text_field="body")
    states = [json.loads(part["attributes"]["visState"]) for part in pack if part["type"] == "visualization"]
    specs = {state["title"].partition(", ")[2]: state["params"]["spec"] for state in states if state["type"] == "vega"}
    with embedded_server("opensearch", heap="512m") as server:
        client = OpenSearch([server.url], timeout=60)
        fill(client, documents)
        for title, (name, width, height) in PANELS.items():
            write(answered(client, json.loads(specs[title])), arguments.out / f"{name}.png", width, height)
        client.close()


if __name__ == "__main__":
    main()
