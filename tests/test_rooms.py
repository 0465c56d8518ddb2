"""What import-linter cannot say of the rooms: which files wait for a server, and that all others are pure."""

import ast
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import es_simhash

PACKAGE = Path(es_simhash.__file__).parent
# The port and its pages; the clients; Spark's readers and writers, which have operations of their own.
LOWEST = ("transport/", "mapping/port.py", "client/", "spark/")
# What a framework asks for, and a caller's own async iterable, which only its owner may close.
OF_OTHERS = {"cli/mcp.py", "ingest/with_fingerprints.py"}
OF_OTHERS |= {"integrations/haystack.py", "integrations/llama_index.py"}
NAMES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
# The files of operations, by room; all others are read, and tested, without a server.
OPERATIONS = {
    "dashboards": "pack",
    "folding": "search_distinct",
    "groups": "neighbourhood pairs_and_groups read reconcile recorded",
    "ingest": "ingest near reading screen",
    "lookup": "documents find find_many index_table judge plan",
    "mapping": "resolve shards",
    "passages": "find_passages",
    "pipeline": "install",
    "quality": "check_sample explanation read_report read_searches read_stats sampling tune",
    "removal": "apply delete find_shown make_plan present regroup restore",
    "": "setup",
    "upkeep": "backfill check follow follow_changes put_fields remove_fields tag_written",
    "writes": "bulk targets",
}
WAITING = {f"{room}/{name}.py".removeprefix("/") for room, names in OPERATIONS.items() for name in names.split()}
PURE = [name for name in NAMES if name not in WAITING | OF_OTHERS and not name.startswith(LOWEST)]


@cache
def nodes_of(name):
    return list(ast.walk(ast.parse((PACKAGE / name).read_text("utf-8"))))


def waits(name):
    return any(isinstance(node, ast.AsyncFunctionDef) for node in nodes_of(name))


def test_only_operations_wait_for_a_server():
    """A pure module can be read, and tested, without one; an operation is a coroutine, or belongs to the pure ones."""
    assert not [name for name in PURE if waits(name)]
    assert not [name for name in WAITING if not waits(name)]


def test_why_a_request_is_sent_again_stands_in_one_table():
    """No endless loop around a request, and no wait for a server, outside the conversation; a service waits as such."""
    for name in sorted(WAITING):
        nodes = nodes_of(name)
        loops = [node for node in nodes if isinstance(node, ast.While) and isinstance(node.test, ast.Constant)]
        assert not [node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Await)], name
        names = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert not names & {"Patience", "pause"} or name == "upkeep/follow.py", name


def test_two_rooms_have_no_file_of_one_name():
    """Commands and client methods are named for what they are about; all else is found by its name."""
    names = [name.rpartition("/")[2] for name in NAMES if not name.startswith(("cli/", "client/"))]
    assert sorted(each for each in set(names) if names.count(each) > 1) == ["__init__.py"]


def test_each_stream_is_closed_by_who_reads_it():
    """Else what it opened on the server stays open until an event loop, or nobody, closes it."""
    for name in sorted(set(NAMES) - OF_OTHERS - {"client/async_port.py"}):
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
        assert not [ast.unparse(loop) for loop in loops if loop not in closed], name


def test_benches_and_tools_import_what_is_there():
    """No test runs them."""
    root = PACKAGE.parent
    for path in [*(root / "bench").glob("*.py"), *(root / "tools").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("es_simhash"):
                module = import_module(node.module)
                for name in (alias.name for alias in node.names):
                    assert hasattr(module, name) or find_spec(f"{node.module}.{name}"), (path.name, name)
