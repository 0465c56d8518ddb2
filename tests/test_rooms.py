"""What import-linter cannot say of the rooms: only a flow makes requests, and its file is named for it."""

import ast
from pathlib import Path

import pytest

import es_simhash

PACKAGE = Path(es_simhash.__file__).parent
REQUESTS = {"Call", "Compute", "Emit", "Tell", "Together", "Wait"}
# The protocol and its pages; the drivers; Spark's readers and writers, which run flows inside their tasks.
LOWEST = ("transport/", "client/", "spark/")
MODULES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*.py")
    if not path.name.endswith("_flow.py") and not path.relative_to(PACKAGE).as_posix().startswith(LOWEST)
)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_is_no_flow_makes_no_request(name):
    """It constructs nothing that a driver would carry out."""
    tree = ast.parse((PACKAGE / name).read_text())
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & REQUESTS


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*_flow.py")), ids=lambda path: path.name)
def test_a_flow_is_a_generator(path):
    """A file that is named for a flow has one."""
    assert any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(ast.parse(path.read_text())))
