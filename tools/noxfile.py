"""
What needs environments of its own: the tests with old and new Pythons, clients and servers, and the wheel alone.

    nox -f tools/noxfile.py -s compat                   # all runs below: `make compat`
    nox -f tools/noxfile.py -s 'compat(oldest-older)'   # one of them
    nox -f tools/noxfile.py -s wheel -k 'async or mcp'  # the wheel with these extras

Environments and logs go to .compat/, which git ignores. pyenv puts several Pythons on the PATH with
``pyenv shell 3.14 3.13 3.12 3.11``; a run without its Python fails. What a version can and cannot do is described in
COMPATIBILITY.md by hand; `compat` writes the facts of its runs there.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import atexit
import contextlib
import functools
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import nox

from es_simhash.servers import embedded_server

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".compat"
DOCUMENT = ROOT / "COMPATIBILITY.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]

nox.options.envdir = str(WORK)
nox.options.error_on_missing_interpreters = True

OLDER = "opensearch-2.19.1,elasticsearch-8.19.21"
NEWEST = "opensearch-3.8.0,elasticsearch-9.5.3"
OTHER_FOLDERS = [
    f"--ignore=tests/{room}" for room in ("docs", "estates", "fuzz", "integrations", "spark", "strangers", "typing")
]
WITHOUT_SERVERS = [*OTHER_FOLDERS, "-m", "not servers"]
# Kills and restarts servers of its own, which no client has a part in.
WITH_SERVERS = ["-m", "servers and not faults"]
# aiohttp before 3.12 lets go of TLS connections only some time after its session was closed.
SECURED = ["tests/client/test_security_server.py", "-W", "ignore:unclosed:ResourceWarning"]

# Python, dependencies, servers, tests. The newest of all, on the installed Python, are `make test`.
RUNS = {
    "oldest-3.11": ("3.11", "oldest", "", WITHOUT_SERVERS),
    "newest-3.12": ("3.12", "newest", "", WITHOUT_SERVERS),
    "newest-3.13": ("3.13", "newest", "", WITHOUT_SERVERS),
    "newest-3.14": ("3.14", "newest", "", WITHOUT_SERVERS),
    "oldest-older": ("3.11", "oldest", OLDER, WITH_SERVERS),
    "oldest-secured": ("3.11", "oldest", "opensearch-3.4.0", SECURED),
    "oldest-newer": ("3.11", "oldest", NEWEST, WITH_SERVERS),
    # elasticsearch-py 9 is refused by an 8.x server, which is documented: OpenSearch alone.
    "newest-older": ("3.13", "newest", OLDER.partition(",")[0], [*WITH_SERVERS, "-k", "not elasticsearch"]),
}


def constraints(dependencies: str, *extras: str) -> str:
    """Return the file that holds the *oldest* dependencies to the lowest release series allowed."""
    wanted = chain(PROJECT["dependencies"], *(EXTRAS[extra] for extra in extras)) if dependencies == "oldest" else ()
    lines = [re.sub(r"^([\w-]+)>=([\d.]+).*$", r"\1==\2.*", requirement) for requirement in dict.fromkeys(wanted)]
    path = WORK / f"{dependencies}-{len(extras)}.txt"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


@nox.session(reuse_venv=True)
@nox.parametrize(
    ("python", "name", "dependencies", "servers", "select"),
    [nox.param(python, name, *rest, id=name) for name, (python, *rest) in RUNS.items()],
)
def compat(session: nox.Session, name: str, dependencies: str, servers: str, select: list[str]) -> None:
    """Run the tests, and put the row of this run into the table of COMPATIBILITY.md."""
    session.chdir(ROOT)
    session.install("--upgrade", "pip>=25.1")  # the first with --group
    held = constraints(dependencies, "async", "opensearch")
    own = ".[async,embedded,fast,mcp,opensearch,preprocess]"
    session.install("--upgrade", "-c", held, "--editable", own, "--group", "dev")
    environment = {"ES_SIMHASH_TEST_VERSIONS": servers, "ES_SIMHASH_REQUIRE_SERVERS": "1", "ES_SIMHASH_TEST_URLS": None}
    environment["ES_SIMHASH_EVERY_MODE"] = "1"  # each product has a sync and an async client of its own
    pytest = ["python", "-m", "pytest", "-p", "no:cacheprovider", *select]
    printed = str(session.run(*pytest, env=environment, silent=True, success_codes=[0, 1]))
    log = WORK / f"{name}.log"
    log.write_text(printed, "utf-8")
    total = {kind: int(number) for number, kind in re.findall(r"(\d+) (\w+)", printed.splitlines()[-1])}
    versions = "import importlib.metadata as m, platform as p; print(p.python_version(), *map(m.version, {}))"
    asked = session.run("python", "-c", versions.format(["elasticsearch", "opensearch-py"]), silent=True)
    failed = sum(total.get(kind, 0) for kind in ("failed", "error", "errors"))
    served = servers.replace(",", ", ").replace("-", " ") or "none"
    counts = f"{total.get('passed', 0)} | {failed} | {total.get('skipped', 0)}"
    row = f"| {' | '.join([name, *str(asked).split(), served, counts])} |\n"
    text = re.sub(rf"^\| {name} \|.*\n", "", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    DOCUMENT.write_text(re.sub(r"(?m)^\| run \|.*\n(\|.*\n)*", lambda table: table[0] + row, text), "utf-8")
    if failed or "passed" not in total:
        session.error(f"not all passed, see {log}")


@functools.cache
def built() -> Path:
    """Return the wheel, made from the source archive."""
    shutil.rmtree(WORK / "dist", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", WORK / "dist", ROOT], check=True)  # noqa: S603 - our own
    [wheel] = (WORK / "dist").glob("*.whl")
    return wheel


@functools.cache
def address(product: str) -> str:
    """Return the URL of a server that runs until the end."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(embedded_server(product)).url


@nox.session
@nox.parametrize("extra", ["", *EXTRAS], ids=["none", *EXTRAS])
@nox.parametrize(
    ("python", "dependencies"),
    [("3.11", "oldest"), ("3.11", "newest"), ("3.14", "newest")],
    ids=["3.11-oldest", "3.11-newest", "3.14-newest"],
)
def wheel(session: nox.Session, dependencies: str, extra: str) -> None:
    """Install the wheel as a stranger does, and use it where nothing of the checkout can be imported."""
    session.install("-c", constraints(dependencies, *EXTRAS), f"{built()}[{extra}]" if extra else str(built()))
    folder = Path(session.create_tmp())
    shutil.copyfile(ROOT / "tools/use_wheel.py", folder / "use_wheel.py")
    shutil.copyfile(ROOT / "tests/vectors.json", folder / "vectors.json")
    url = address("opensearch" if extra == "opensearch" else "elasticsearch")
    environment = {"ES_SIMHASH_URL": url, "PYTHONPATH": None}
    session.chdir(folder)
    session.run("python", "-I", "use_wheel.py", extra, env=environment)
