"""
Fuzz with atheris (extra ``fuzz``). ``make fuzz`` runs every target; from the project's folder::

    python -m tests.fuzz.run                                   # all, ES_SIMHASH_FUZZ_SECONDS (60) each
    python -m tests.fuzz.run meta -max_total_time=600          # one, with options of libFuzzer
    python -m tests.fuzz.run meta .fuzz/meta-crash-0123        # what was found, once more

Inputs that reach new code are kept in ``.fuzz/`` for the next time, and findings too.
"""

import os
import subprocess
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["es_simhash", "tests.fuzz.targets"]):
    from tests.fuzz.targets import TARGETS

FOLDER = Path(".fuzz")


def main() -> int:
    """Run one target, or each in a process of its own; stop at the first finding."""
    if sys.argv[1:]:
        target = TARGETS[sys.argv.pop(1)]
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()
        return 0
    seconds = int(os.environ.get("ES_SIMHASH_FUZZ_SECONDS", "60"))
    for name in TARGETS:
        corpus = FOLDER / name
        corpus.mkdir(parents=True, exist_ok=True)
        options = [f"-max_total_time={seconds}", "-max_len=400", "-len_control=0", "-timeout=20"]
        options.append(f"-artifact_prefix={FOLDER / name}-")
        command = [sys.executable, "-m", "tests.fuzz.run", name, *options, str(corpus)]
        if code := subprocess.run(command, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
