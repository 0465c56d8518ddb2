"""
Mutation testing of the files that decide (group ``mutants``). ``make mutants`` runs all; from the project's folder::

    python -m tests.mutants                              # every file
    python -m tests.mutants lookup/judge removal/classes # these
    python -m tests.mutants --write                      # every file, and the table in CONTRIBUTING.md

Cosmic Ray changes a copy of the tree in ``.mutants/``, one place at a time, and the tests that cover the file run until
one fails. The seed is fixed: the same file has the same mutants. Their diffs are kept there, those that lived first.

Three kinds of change say nothing about tests, and are not made: in an annotation or a constant of a module, ``is`` in
place of ``==`` (the same for small numbers, names and ``None``), and in ``strict=`` of a zip, which is an assertion.
"""

import ast
import difflib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

# What the tests import besides: the processes that run them begin with it.
import elasticsearch  # noqa: F401
import hypothesis  # noqa: F401
import numpy as np  # noqa: F401
import opensearchpy  # noqa: F401
import pytest
from cosmic_ray.commands.init import _all_work_items
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

TESTS = {
    "lookup/judge": "lookup/test_judge lookup/test_refusals lookup/test_find_many",
    "lookup/plan": "lookup/test_plan lookup/test_query lookup/test_find lookup/test_plan_property",
    "lookup/fingerprint_table": "lookup/test_fingerprint_table_property",
    "transport/answers": "transport/test_refusals transport/test_pages lookup/test_find",
    "transport/refusals": "transport/test_refusals transport/test_pages writes/test_bulk",
    "groups/joins": "groups/test_joins_property",
    "groups/assign": "groups/test_assign_property",
    "ingest/decide": "ingest/test_decide_property",
    "removal/classes": "removal/test_classes",
    "removal/may_delete": "removal/test_may_delete",
    "mapping/rule": "groups/test_rule mapping/test_mapping groups/test_content",
}
MEMORY = 4 << 30
MUTANTS_A_FILE = int(os.environ.get("ES_SIMHASH_MUTANTS", "30"))
FOLDER = Path(".mutants").absolute()
PAGE = Path("CONTRIBUTING.md").absolute()


def places_of(nodes) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where *nodes* begin and end."""
    return [((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in nodes]


# By the names of Cosmic Ray's operators.
ALIKE = re.compile(r"_(Eq_Is|Is_Eq|NotEq_IsNot|IsNot_NotEq)$")


def find_deciding(source: str):
    """Return the predicate of places: in a function, in no annotation and no assertion of a zip."""
    nodes = list(ast.walk(ast.parse(source)))
    functions = places_of(node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    notes = [getattr(node, name, None) for node in nodes for name in ("annotation", "returns")]
    strict = [node for node in nodes if isinstance(node, ast.keyword) and node.arg == "strict"]
    others = places_of([*filter(None, notes), *strict])
    return lambda place: (
        any(start <= place < end for start, end in functions) and not any(start <= place < end for start, end in others)
    )


def compiles(source: str) -> bool:
    """Return whether *source* is Python: a mutant that is none says nothing about the tests."""
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def choose_mutants(path: Path) -> list[str]:
    """Return a sample of what changes make of the file at *path*, in order: of each place, at most one."""
    source = path.read_text("utf-8")
    is_deciding = find_deciding(source)
    places: dict = {}
    for item in _all_work_items([path], {}):
        [mutation] = item.mutations
        if is_deciding(mutation.start_pos) and not ALIKE.search(mutation.operator_name):
            places.setdefault(mutation.start_pos, []).append(mutation)
    chance = random.Random(path.as_posix())
    order = sorted(places)
    chance.shuffle(order)
    chosen = {}
    for place in order:
        mutation = chance.choice(places[place])
        operator = get_operator(mutation.operator_name)(**mutation.operator_args)
        mutant = mutate_code(source, operator, mutation.occurrence)
        if compiles(mutant):
            chosen[place] = mutant
        if len(chosen) == MUTANTS_A_FILE:
            break
    return [chosen[place] for place in sorted(chosen)]


def passes(options: list[str], timeout_seconds: float) -> bool:
    """Return whether the tests pass, in a process that is a copy of this one."""
    child = os.fork()
    if not child:
        # A mutant may have made an endless loop, which fills the memory.
        signal.alarm(int(timeout_seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.modules.pop("tests", None)
        code = 1
        try:
            code = pytest.main(options)
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def run_file(name: str) -> tuple[int, int]:
    """Run the mutants of a file of ours; return how many died, and how many there were."""
    files = [f"tests/{test}.py" for test in TESTS[name].split()]
    options = "-x -q -n 0 -p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning"
    options = [*options.split(), "--hypothesis-profile", "mutants", *files]
    began = time.monotonic()
    if not passes(options, 600):
        raise SystemExit(f"the tests of {name} fail without a mutant: pytest {' '.join(options)}")
    timeout_seconds = 20 + 3 * (time.monotonic() - began)
    lived, died = [], []
    path = Path(f"es_simhash/{name}.py")
    source = path.read_text("utf-8")
    for mutant in choose_mutants(path):
        path.write_text(mutant, "utf-8")
        diff = "\n".join(difflib.unified_diff(source.splitlines(), mutant.splitlines(), lineterm=""))
        (lived if passes(options, timeout_seconds) else died).append(diff)
    path.write_text(source, "utf-8")
    report = ["# lived", *lived, "# died", *died]
    (FOLDER / f"{name.replace('/', '-')}.diff").write_text("\n".join(report), "utf-8")
    say(f"{name}: {len(died)} of {len(lived) + len(died)} died")
    for diff in lived:
        say("\n".join(line for line in diff.splitlines() if re.match(r"@@|[-+](?![-+])", line)))
    return len(died), len(lived) + len(died)


def say(text: str) -> None:
    """Print a line at once: a run takes long."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def copy_tree(target: Path) -> None:
    """Make *target* a copy of what is in the project's folder, without what Git ignores."""
    shutil.rmtree(target, ignore_errors=True)
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and Path(name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, target / name)


def main() -> int:
    """Run the mutants of the files named, or of all."""
    names = [name for name in sys.argv[1:] if name != "--write"] or list(TESTS)
    copy_tree(FOLDER / "tree")
    os.chdir(FOLDER / "tree")
    rows = {name: run_file(name) for name in names}
    died, all_mutants = (sum(counts) for counts in zip(*rows.values()))
    say(f"all: {died} of {all_mutants} died, {died / all_mutants:.0%}")
    if "--write" in sys.argv:
        table = "".join(f"| `{name}.py` | {count} of {tried} |\n" for name, (count, tried) in rows.items())
        page = PAGE.read_text("utf-8")
        PAGE.write_text(re.sub(r"(?<=\| mutants that die \|\n\|---\|---\|\n)(\|.*\n)+", table, page), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
