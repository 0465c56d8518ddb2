"""Fingerprints in processes of their own: the same, in order, bounded; and every way to end."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from es_simhash import (
    InvalidInputError,
    WorkerError,
    fingerprint,
    fingerprint_fields,
    fingerprints,
    get_scheme,
    with_fingerprints,
)
from es_simhash.hashing.pool import PROCESS_TEXTS, FingerprintPool, TextHashes

posix = pytest.mark.skipif(os.name != "posix", reason="there are no groups of processes, and no signals to send")

TEXTS = [f"text number {number}, some words of its own {number * 7}" for number in range(700)] + ["", "?!", "京都"]


def children(pool):
    return list(pool._executor._processes.values())


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_same_in_the_same_order():
    """Processes give what one gives, in the order of the texts, also from an iterator and in several parts."""
    texts = TEXTS * 7
    assert fingerprints(iter(texts), workers=2) == fingerprints(texts)
    scheme = get_scheme("shingles", size=3)
    with FingerprintPool(scheme, workers=1, passages=True) as pool, FingerprintPool(scheme, passages=True) as alone:
        assert len(texts) > PROCESS_TEXTS
        assert pool.compute(texts) == alone.compute(texts)
        assert len(children(pool)) == 1


@posix
def test_a_killed_worker_is_an_error_and_no_hang():
    """When a process is killed, the caller gets an error that says so, and the next call too; closing does not hang."""
    with FingerprintPool(get_scheme(), workers=1) as pool:
        assert pool.submit(TEXTS)() == list(map(TextHashes, fingerprints(TEXTS)))
        for child in children(pool):
            os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="killed, or out of memory"):
            pool.submit(TEXTS * 20)()
        with pytest.raises(WorkerError):
            pool.submit(TEXTS)


def test_an_error_of_a_text_is_the_callers(tmp_path):
    """What goes wrong in a process is raised where its result is asked for."""
    path = tmp_path / "stop.txt"
    path.write_text("的\n", encoding="utf-8")
    scheme = get_scheme("keywords", stop_words=path)
    path.unlink()
    with FingerprintPool(scheme, workers=1) as pool, pytest.raises(InvalidInputError, match="cannot read stop_words"):
        pool.submit(["北京大学"])()


def test_actions_keep_their_order():
    """Those that it gives without processes; it reads little ahead, and stops what it began; also an async iterator."""
    documents = [{"_id": str(number), "body": text} for number, text in enumerate(TEXTS)]
    expected = list(with_fingerprints(documents, text_field="body"))
    read = 0

    def source():
        nonlocal read
        for document in documents:
            read += 1
            yield document

    stream = with_fingerprints(source(), text_field="body", workers=2, batch=20)
    ahead = 0
    for number, action in enumerate(stream):
        assert action == expected[number]
        ahead = max(ahead, read - number)
    assert number + 1 == len(documents)
    # The batch being given, one for each process, and the one being read.
    assert 20 < ahead <= 20 * 4
    stream = with_fingerprints(documents, text_field="body", workers=1, batch=20)
    next(stream)
    stream.close()
    wait_until(lambda: not any("QueueManager" in thread.name for thread in threading.enumerate()))

    async def collect():
        async def documents_of_a_loop():
            for document in documents:
                yield document

        return [action async for action in with_fingerprints(documents_of_a_loop(), text_field="body", workers=1)]

    assert asyncio.run(collect()) == expected


def test_a_source_that_breaks():
    """When the source of actions breaks, what it gave before comes first, then its error."""

    def source():
        yield from ({"body": text} for text in TEXTS[:110])
        raise OSError("disk")

    got = []
    with pytest.raises(OSError, match="disk"):
        got.extend(with_fingerprints(source(), text_field="body", workers=1, batch=20))
    assert len(got) == 110


SCRIPT = """
import sys, time
from es_simhash import with_fingerprints

def forever():
    number = 0
    while True:
        number += 1
        yield {"body": f"a text with the number {number}"}

if __name__ == "__main__":
    for number, _ in enumerate(with_fingerprints(forever(), text_field="body", workers=2)):
        if number == 5_000:
            print("begun", flush=True)
"""

UNGUARDED = """
from es_simhash import fingerprints
fingerprints(["a text", "another"], workers=2)
"""


def begin(tmp_path, script):
    path = tmp_path / "script.py"
    path.write_text(script, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def without_tracker(errors):
    """The lines that the script wrote: Python's resource tracker, a process of its own, may warn after the last one."""
    return [line for line in errors.splitlines() if "resource_tracker" not in line]


def is_gone(group):
    """Whether a process group has no member left that runs; nobody may be there to bury the dead."""
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return False
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return True


@posix
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL] if hasattr(signal, "SIGKILL") else [])
def test_no_process_outlives_its_parent(tmp_path, sent):
    """Ctrl-C, which all of a terminal get, ends everything, the caller's own traceback last; so does a kill."""
    process = begin(tmp_path, SCRIPT)
    assert process.stdout.readline() == "begun\n"
    (os.killpg if sent == signal.SIGINT else os.kill)(process.pid, sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -sent
    assert sent == signal.SIGKILL or without_tracker(errors)[-1] == "KeyboardInterrupt"
    wait_until(lambda: is_gone(process.pid))


def test_a_script_without_guard_is_told(tmp_path):
    """A script that each process would run again ends with an error that names the line that is missing."""
    process = begin(tmp_path, UNGUARDED)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    last = without_tracker(errors)[-1]
    assert "WorkerError" in last
    assert "if __name__ == '__main__':" in last


def test_a_thread_works_ahead_of_the_caller():
    """One thread, and no longer than somebody asks."""

    def threads():
        return [each for each in threading.enumerate() if each.name.startswith("es_simhash_fingerprints")]

    documents = [{"_id": str(n), "body": f"the text with number {n}, which is like no other"} for n in range(9)]
    expected = [fingerprint_fields(fingerprint(each["body"]))["simhash"] for each in documents]
    seen = []
    for action in with_fingerprints(documents, text_field="body", batch=2):
        seen.append((action["simhash"], len(threads())))
    assert [fields for fields, _ in seen] == expected
    assert {count for _, count in seen[:-2]} == {1}
    assert threads() == []
    given_up = with_fingerprints(documents, text_field="body", batch=2)
    for _ in range(4):
        next(given_up)
    assert len(threads()) == 1
    given_up.close()
    assert threads() == []
    assert len([*with_fingerprints(documents[:1], text_field="body")]) == 1
