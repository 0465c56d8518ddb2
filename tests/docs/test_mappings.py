"""The files in mappings/: what the library builds, nothing else, and Dev Tools text whose every body is JSON."""

import json

import pytest

from es_simhash.hashing import get_scheme
from es_simhash.mapping.faults import find_faults
from es_simhash.mapping.meta import read_settings
from tests.docs.blocks import ROOT, load_tool

MAPPINGS = ROOT / "mappings"


@pytest.fixture(scope="module")
def files():
    """What the library builds: seconds that only the process of these tests shall need."""
    return load_tool("generate_docs").build_mappings()


def test_the_files_are_what_the_library_builds(files):
    held = {str(path.relative_to(MAPPINGS)): path.read_text(encoding="utf-8") for path in MAPPINGS.glob("*/*")}
    assert held == files


@pytest.mark.parametrize("product", ["elasticsearch", "opensearch"])
def test_the_mapping_is_one_that_lookups_accept(files, product):
    """A live index with this mapping has no faults, and says its scheme and text field."""
    mapping = json.loads(files[f"{product}/mapping.json"])["mappings"]
    assert find_faults(mapping) == []
    settings = read_settings(mapping)
    assert (settings.scheme.id, settings.text_fields) == (get_scheme().id, ("body",))
