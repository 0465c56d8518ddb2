"""
Run the tests with every combination of Python, clients and servers that is supported, and tabulate what passed.

    python tools/compat.py                     # all runs below
    python tools/compat.py oldest-older        # some of them
    python tools/compat.py --write             # put their rows into COMPATIBILITY.md; the other rows stay

Environments and logs go to .compat/, which git ignores. A run on a Python that is not on the PATH fails and
says so; pyenv puts several there with ``pyenv shell 3.13 3.12 3.11``. What a version can and cannot do is described in
COMPATIBILITY.md by hand; here are only the facts of a run.
"""

# ruff: noqa: INP001, T201, S603 - a script; it runs pip and pytest
from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".compat"
DOCUMENT = ROOT / "COMPATIBILITY.md"
HEADER = ("run", "Python", "elasticsearch", "opensearch-py", "servers", "passed", "failed", "skipped")

# Client versions of an environment, as pip constraints. "oldest" also holds every other base dependency to its lowest.
OLDER = "opensearch-2.19.1,elasticsearch-8.19.21"
NEWEST = "opensearch-3.8.0,elasticsearch-9.5.3"
OTHER_FOLDERS = tuple(
    f"--ignore=tests/{room}" for room in ("docs", "estates", "fuzz", "integrations", "spark", "strangers", "typing")
)
WITHOUT_SERVERS = (*OTHER_FOLDERS, "-m", "not servers")
# Kills and restarts servers of its own, which no client has a part in.
WITH_SERVERS = ("-m", "servers and not faults")
# aiohttp before 3.12 lets go of TLS connections only some time after its session was closed.
SECURED = ("tests/client/test_security_server.py", "-W", "ignore:unclosed:ResourceWarning")


@dataclass(frozen=True)
class Run:
    """A row of the table; *clients* is a key of ``prepare``, *servers* has the form that the tests expect."""

    name: str
    python: str
    clients: str
    servers: str = ""
    select: tuple[str, ...] = WITHOUT_SERVERS


# The newest clients with the newest servers, on the installed Python, are `make test`.
RUNS = (
    Run("oldest-3.11", "3.11", "oldest"),
    Run("newest-3.12", "3.12", "newest"),
    Run("newest-3.13", "3.13", "newest"),
    Run("newest-3.14", "3.14", "newest"),
    Run("oldest-older", "3.11", "oldest", OLDER, WITH_SERVERS),
    Run("oldest-secured", "3.11", "oldest", "opensearch-3.4.0", SECURED),
    Run("oldest-newer", "3.11", "oldest", NEWEST, WITH_SERVERS),
    # elasticsearch-py 9 is refused by an 8.x server, which is documented: OpenSearch alone.
    Run("newest-older", "3.13", "newest", OLDER.partition(",")[0], (*WITH_SERVERS, "-k", "not elasticsearch")),
)


def main() -> int:
    """Carry out the runs asked for; return 1 if one failed or could not be made."""
    parser = argparse.ArgumentParser(description="Run the tests with old and new Pythons, clients and servers.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run to make; all by default")
    parser.add_argument("--write", action="store_true", help="put the rows into COMPATIBILITY.md")
    arguments = parser.parse_args()
    # A job in the background ignores Ctrl-C, and so would the programs that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    known = {run.name: run for run in RUNS}
    if unknown := [name for name in arguments.runs if name not in known]:
        parser.error(f"no run is called {unknown[0]!r}: give some of {', '.join(known)}")
    rows: list[tuple[str, ...]] = []
    failures = 0
    for run in [known[name] for name in arguments.runs] or RUNS:
        interpreter = find_python(run.python)
        if interpreter is None:
            print(f"{run.name}: not run, there is no python{run.python} on the PATH", file=sys.stderr)
            failures += 1
            continue
        try:
            row, has_passed = carry_out(run, prepare(run, interpreter))
        except (subprocess.CalledProcessError, RuntimeError) as error:
            print(f"{run.name}: broken off: {error}", file=sys.stderr)
            failures += 1
            continue
        rows.append(row)
        failures += not has_passed
    print("\n".join(table([HEADER, *rows])))
    if arguments.write:
        write(rows)
    return int(failures > 0)


def find_python(version: str) -> str | None:
    """Return the interpreter of that version, ``None`` if there is none; a shim with nothing behind it is none."""
    path = shutil.which(f"python{version}")
    works = path is not None and subprocess.run([path, "-V"], check=False, capture_output=True).returncode == 0
    return path if works else None


def prepare(run: Run, interpreter: str) -> Path:
    """Return the Python of the virtual environment for *run*, made or brought up to date."""
    folder = WORK / f"{run.clients}-{run.python}"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
    constraints = {"oldest": lowest("async", "opensearch"), "newest": ()}[run.clients]
    (folder / "constraints.txt").write_text("\n".join(constraints) + "\n", "utf-8")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*pip, "pip>=25.1"], check=True)  # the first with --group
    own = [".[async,embedded,fast,mcp,opensearch,preprocess]", "--group", "dev"]
    subprocess.run([*pip, "-c", folder / "constraints.txt", "--editable", *own], check=True, cwd=ROOT)
    return python


def lowest(*extras: str) -> list[str]:
    """Return constraints that hold dependencies, and those of *extras*, to the lowest release series allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = chain(project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras))
    return [re.sub(r"^([\w-]+)>=([\d.]+).*$", r"\1==\2.*", requirement) for requirement in dict.fromkeys(wanted)]


def carry_out(run: Run, python: Path) -> tuple[tuple[str, ...], bool]:
    """Run the tests; return the row of the table, and whether all passed. Tests that did not all run are an error."""
    log = WORK / f"{run.name}.log"
    environment = {**os.environ, "ES_SIMHASH_TEST_VERSIONS": run.servers, "ES_SIMHASH_REQUIRE_SERVERS": "1"}
    environment["ES_SIMHASH_EVERY_MODE"] = "1"  # each product has a sync and an async client of its own
    environment.pop("ES_SIMHASH_TEST_URLS", None)
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", *run.select]
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code not in (0, 1):
        raise RuntimeError(f"pytest ended with {code}, see {log.relative_to(ROOT)}")
    if code == 1:
        print(f"{run.name}: some failed, see {log.relative_to(ROOT)}", file=sys.stderr)
    *_, last = log.read_text("utf-8").splitlines()
    total = {name: int(number) for number, name in re.findall(r"(\d+) (passed|failed|error|skipped)", last)}
    failed, passed = total.get("failed", 0) + total.get("error", 0), total.get("passed", 0)
    versions = "import importlib.metadata as m, platform as p; print(p.python_version(), *map(m.version, {}))"
    asked = [python, "-c", versions.format(["elasticsearch", "opensearch-py"])]
    found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    servers = run.servers.replace(",", ", ").replace("-", " ") or "none"
    return (run.name, *found, servers, str(passed), str(failed), str(total.get("skipped", 0))), code == 0 and passed > 0


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return *rows*, the first one the header, as lines of a Markdown table."""
    header, *others = [f"| {' | '.join(row)} |" for row in rows]
    return [header, "|" + "---|" * len(rows[0]), *others]


def write(rows: list[tuple[str, ...]]) -> None:
    """Put *rows* into the table of COMPATIBILITY.md, in the order of ``RUNS``, in place of older ones."""
    lines = DOCUMENT.read_text("utf-8").splitlines()
    start = lines.index(f"| {' | '.join(HEADER)} |")
    end = next((place for place in range(start, len(lines)) if not lines[place].startswith("|")), len(lines))
    present = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[start + 2 : end]]
    known = {row[0]: row for row in [*present, *rows]}
    ordered = [known[run.name] for run in RUNS if run.name in known]
    lines[start:end] = table([HEADER, *ordered])
    DOCUMENT.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
