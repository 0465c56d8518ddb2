"""
How long a command takes to begin: ``import es_simhash``, and help to its first line, against an empty program.

    python bench/start.py

Each is a process of its own; they take turns, round by round. Prints JSON: the median seconds of each, to the first
line where it prints, else to its end.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from harness import arguments, show

STARTED = {
    "python": ["-c", ""],
    "import es_simhash": ["-c", "import es_simhash"],
    "es-simhash --help": ["-m", "es_simhash", "--help"],
    "es-simhash find --help": ["-m", "es_simhash", "find", "--help"],
}


def start_seconds(command: list[str]) -> float:
    """Return how long a new process takes to its first line, or to its end."""
    before = time.perf_counter()
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds = time.perf_counter() - before
        process.stdout.read()
    return seconds


def main() -> None:
    """Measure, and print JSON."""
    parser = arguments(__doc__, product=False)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    seconds: dict[str, list[float]] = {name: [] for name in STARTED}
    for _ in range(rounds + 1):  # the first fills caches
        for name, command in STARTED.items():
            seconds[name].append(start_seconds(command))
    medians = {name: round(statistics.median(found[1:]), 3) for name, found in seconds.items()}
    show(rounds=rounds, median_seconds=medians)


if __name__ == "__main__":
    main()
