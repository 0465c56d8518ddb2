"""What a release is made by: the workflow file, which is not run on a forge here, and the public names."""

import inspect
import json
import os
import re
import tomllib

import yaml

import es_simhash
from tests.docs.blocks import ROOT

WORKFLOWS = [*(ROOT / ".github/workflows").glob("*.yml")]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
STEPS = [(name, step) for name, job in WORKFLOW["jobs"].items() for step in job["steps"]]


def test_every_action_is_pinned_by_commit():
    """A tag can be moved to other code; a commit cannot."""
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    used = [line for text in texts for line in re.findall(r"\buses: *(\S+)", text)]
    assert len(used) > 10
    assert all(re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}", each) for each in used)


def test_only_publishing_may_do_more_than_read():
    """And no job keeps the token of the checkout, or has a secret."""
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}, path
    more = {name: job["permissions"] for name, job in WORKFLOW["jobs"].items() if "permissions" in job}
    assert more == {"publish": {"id-token": "write", "attestations": "write", "contents": "read"}}
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert "secrets." not in json.dumps(WORKFLOW)
    assert "checkout" not in json.dumps(WORKFLOW["jobs"]["publish"])


def test_a_release_needs_everything_that_must_pass():
    """Only a tag is published, after all jobs; those that need a registry of images have a file of their own."""
    publish = WORKFLOW["jobs"]["publish"]
    assert set(publish["needs"]) == WORKFLOW["jobs"].keys() - {"publish"}
    assert "refs/tags/v" in publish["if"]


def test_every_supported_python_is_tested():
    """The classifiers say what is supported; the matrix of the tests and COMPATIBILITY.md name the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    assert WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"] == supported
    assert f"| Python | {', '.join(supported)} |" in (ROOT / "COMPATIBILITY.md").read_text(encoding="utf-8")


def test_public_names_are_those_that_were_promised():
    """
    Names, methods, parameters and fields. From 0.1.0 on a line goes only after a year of warnings (docs/promises.md);
    ``ES_SIMHASH_NAMES=write`` writes the list anew.
    """
    path, lines = ROOT / "tests" / "public_names.txt", []
    for name in sorted(es_simhash.__all__):
        found = getattr(es_simhash, name)
        members = inspect.getmembers(found) if inspect.isclass(found) else []
        called = [(f"{name}.{own}", value) for own, value in members if own[0] != "_" and inspect.isfunction(value)]
        for whole, value in [(name, found), *called]:
            is_ours = inspect.isfunction(value) or (inspect.isclass(value) and "__init__" in vars(value))
            lines.append(" ".join([whole, *(inspect.signature(value).parameters if is_ours else ())]))
    if os.environ.get("ES_SIMHASH_NAMES") == "write":
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines() == lines
