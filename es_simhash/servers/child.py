"""
The process of one embedded server: it starts a JVM inside itself and one node in that JVM, and watches the parent.

The parent runs this file by its path. The package never imports it, and it imports nothing of the package:
the start is quick and does not depend on the working directory of the parent. The protocol has three steps:

1. the parent writes one line of JSON, the whole configuration, to standard input, and keeps that pipe open;
2. this process answers with one line of JSON on standard output, ``{"ready": true}`` or ``{"error": "why"}``;
   everything else that Python or the JVM prints goes to standard error, which is the log file;
3. it serves until a second line or SIGTERM comes, or the pipe closes, because the parent is gone; then it closes the
   node and ends.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

# A process forked from the parent may keep the writing end of the pipe open, so the parent itself is checked too.
PARENT_CHECK_SECONDS = 1.0
REMOVAL_SECONDS = 10.0


def main() -> None:
    """Start the configured node, report, and serve until the parent closes the pipe."""
    parent = os.getppid()
    # The report uses the real standard output; what the JVM prints there goes to the log.
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _raise_exit)
    config = json.loads(sys.stdin.readline())
    exit_code, is_orphaned = 0, False
    try:
        node = start_node(config)
        try:
            _answer(report, {"ready": True})
            is_orphaned = _wait_for_the_end(parent)
        finally:
            node.close()
    except SystemExit:
        pass
    except Exception as error:  # noqa: BLE001 - the parent must hear of every failure
        traceback.print_exc()
        _answer(report, {"error": describe(error)})
        exit_code = 1
    if config["remove_when_orphaned"] and (is_orphaned or os.getppid() != parent):
        _remove(config["home"])
    sys.stderr.flush()
    # The node is closed and its files are synced; a normal exit would only wait for the JVM's idle threads.
    os._exit(exit_code)


def _remove(home: str) -> None:
    # Threads of the JVM may still write while the node's folder is removed, and a folder that is not empty stays.
    deadline = time.monotonic() + REMOVAL_SECONDS
    while os.path.lexists(home) and time.monotonic() < deadline:
        shutil.rmtree(home, ignore_errors=True)
        time.sleep(0.05)


def _raise_exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(number)


def _answer(report: TextIO, message: dict[str, Any]) -> None:
    # A parent that is gone reads nothing; the watch notices it as well.
    with suppress(BrokenPipeError):
        report.write(json.dumps(message) + "\n")
        report.flush()


def _wait_for_the_end(parent: int) -> bool:
    """Return whether the parent is gone: its pipe closes before the system gives this process another parent."""
    while os.getppid() == parent:
        readable, _, _ = select.select([sys.stdin], [], [], PARENT_CHECK_SECONDS)
        if readable:
            return not os.read(sys.stdin.fileno(), 1024)
    return True


def describe(error: BaseException) -> str:
    """Return the causes of a Python or Java exception on one line, outermost first."""
    causes: list[str] = []
    cause: Any = error
    while cause is not None and len(causes) < 8:
        line = " ".join(str(cause).split()) or type(cause).__name__
        # Java repeats the message of a cause in the exception around it.
        if not any(line in earlier for earlier in causes):
            causes.append(line)
        cause = cause.getCause() if hasattr(cause, "getCause") else cause.__cause__
    return "; caused by ".join(causes)


def start_node(config: dict[str, Any]) -> Any:
    import jpype  # noqa: PLC0415 - a missing or broken jpype is reported like every other failure

    jpype.startJVM(config["libjvm"], *config["jvm_options"], classpath=config["class_path"], interrupt=False)
    return STARTERS[config["product"]](jpype.JClass, config)


def _settings(builder: Any, config: dict[str, Any]) -> Any:
    for key, value in config["settings"].items():
        if isinstance(value, list):
            builder.putList(key, value)
        else:
            builder.put(key, value if isinstance(value, str) else json.dumps(value))
    return builder.build()


def _start_opensearch(java: Callable[[str], Any], config: dict[str, Any]) -> Any:
    settings = _settings(java("org.opensearch.common.settings.Settings").builder(), config)
    java("org.opensearch.common.logging.LogConfigurator").configureWithoutConfig(settings)
    plugins = java("java.util.ArrayList")()
    for name in config["plugins"]:
        plugins.add(java(name).class_)
    home = java("java.nio.file.Path").of(config["home"])
    environment = java("org.opensearch.env.Environment")(settings, home.resolve("config"))
    return java("org.codelibs.opensearch.runner.node.OpenSearchRunnerNode")(environment, plugins).start()


def _start_elasticsearch(java: Callable[[str], Any], config: dict[str, Any]) -> Any:
    settings = _settings(java("org.elasticsearch.common.settings.Settings").builder(), config)
    java("org.elasticsearch.common.logging.LogConfigurator").configureWithoutConfig(settings)
    home = java("java.nio.file.Path").of(config["home"])
    environment = java("org.elasticsearch.env.Environment")(settings, home.resolve("config"))
    loader = java("org.elasticsearch.plugins.PluginsLoader")
    # Version 9 also asks whether stable plugins may be among them.
    options = [] if config["version"].startswith("8.") else [False]
    bundles = loader.loadModulesBundles(home.resolve("modules"), *options)
    plugins = loader.createPluginsLoader(bundles, java("java.util.Set").of(), java("java.util.Map").of())
    return java("org.elasticsearch.node.Node")(environment, plugins).start()


STARTERS: dict[str, Callable[[Callable[[str], Any], dict[str, Any]], Any]] = {
    "opensearch": _start_opensearch,
    "elasticsearch": _start_elasticsearch,
}

if __name__ == "__main__":
    main()
