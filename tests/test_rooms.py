"""What import-linter cannot say of the rooms: only an operation waits for a server, and its file is named for it."""

import ast
from pathlib import Path

import pytest

import es_simhash

PACKAGE = Path(es_simhash.__file__).parent
# The port and its pages; the clients; Spark's readers and writers, which have operations of their own.
LOWEST = ("transport/", "mapping/port.py", "client/", "spark/")
# What a framework asks for, and a caller's own async iterable, which only its owner may close.
OF_OTHERS = {"cli/agent_tools.py", "cli/commands/mcp.py", "ingest/with_fingerprints.py", "integrations/haystack.py"}
NAMES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
PURE = [
    name for name in NAMES if not name.endswith("_flow.py") and not name.startswith(LOWEST) and name not in OF_OTHERS
]


def nodes_of(name):
    return list(ast.walk(ast.parse((PACKAGE / name).read_text("utf-8"))))


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_waits_for_nothing(name):
    """It can be read, and tested, without a server."""
    assert not [node for node in nodes_of(name) if isinstance(node, ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*_flow.py")), ids=lambda path: path.name)
def test_an_operation_is_a_coroutine(path):
    """A file that is named for one has one."""
    assert any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(ast.parse(path.read_text("utf-8"))))


@pytest.mark.parametrize("name", sorted(set(NAMES) - OF_OTHERS - {"client/async_port.py"}))
def test_each_stream_is_closed_by_who_reads_it(name):
    """Else what it opened on the server stays open until an event loop, or nobody, closes it."""
    nodes = nodes_of(name)
    closed = {
        body
        for node in nodes
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func).endswith("aclosing")
        for body in ast.walk(node)
        if isinstance(body, ast.AsyncFor | ast.comprehension)
        and isinstance(body.iter, ast.Name)
        and ast.unparse(item.optional_vars) == body.iter.id
    }
    loops = [node for node in nodes if isinstance(node, ast.AsyncFor)]
    loops += [node for node in nodes if isinstance(node, ast.comprehension) and node.is_async]
    assert not [ast.unparse(loop) for loop in loops if loop not in closed]
