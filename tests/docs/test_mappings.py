"""The files in mappings/: what the library builds, nothing else, and Dev Tools text whose every body is JSON."""

import json
import re

import pytest

from es_simhash.hashing import get_scheme
from es_simhash.mapping.faults import find_faults
from es_simhash.mapping.meta import read_settings
from tests.docs.blocks import ROOT, load_tool

FILES = load_tool("generate_mappings").build_files()
MAPPINGS = ROOT / "mappings"


def test_the_files_are_what_the_library_builds():
    held = {str(path.relative_to(MAPPINGS)): path.read_text(encoding="utf-8") for path in MAPPINGS.glob("*/*")}
    assert held == FILES


@pytest.mark.parametrize("product", ["elasticsearch", "opensearch"])
def test_the_mapping_is_one_that_lookups_accept(product):
    """A live index with this mapping has no faults, and says its scheme and text field."""
    mapping = json.loads(FILES[f"{product}/mapping.json"])["mappings"]
    assert find_faults(mapping) == []
    settings = read_settings(mapping)
    assert (settings.scheme.id, settings.text_fields) == (get_scheme().id, ("body",))


@pytest.mark.parametrize("product", ["elasticsearch", "opensearch"])
def test_console_text_is_requests_with_json_bodies(product):
    """Each part is comments, a request, and nothing or JSON: what both consoles take."""
    parts = parse_console(FILES[f"{product}/devtools.txt"])
    assert [request.split()[0] for request, _ in parts] == ["PUT", "PUT", "PUT", "PUT", "GET"]
    mapping = json.loads(FILES[f"{product}/mapping.json"])
    assert parts[0] == ("PUT my-index", mapping)
    assert parts[1][1] == json.loads(FILES[f"{product}/component-template.json"])
    assert parts[2][1] == json.loads(FILES[f"{product}/index-template.json"])
    assert parts[3] == ("PUT my-index/_mapping", mapping["mappings"])


def parse_console(text):
    """Return the requests of Dev Tools text with their bodies, ``None`` for a request without one."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    parts = re.split(r"(?m)^(?=(?:GET|PUT|POST|DELETE|HEAD) )", "\n".join(lines))
    split = (part.strip().partition("\n") for part in parts if part.strip())
    return [(request, json.loads(body) if body.strip() else None) for request, _, body in split]
