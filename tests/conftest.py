"""
What every test shares: Hypothesis profiles, the guard against network use, and the data sets beside the checkout.

A test that has the fixtures ``server`` and ``mode`` runs on both products, and with the sync and the async clients, but
not in all four combinations: operations are shared and the async client is generated, so two tell as much.
The name of the test and the number of its case decide which two, so that each method meets all four in its tests.
In most folders the cases of one test take turns at the two products, and a test of the command line runs on one unless
it names its products itself. ``ES_SIMHASH_EVERY_MODE=1`` runs all.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.servers.servers import PRODUCTS, SERVERS, Servers, SharedServers, StartedServers

pytest_plugins = ("tests.servers.fixtures",)

settings.register_profile("laptop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("laptop"), derandomize=True)
# The first example that fails is enough.
settings.register_profile("mutants", parent=settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("ci" if os.environ.get("CI") else "laptop")

# A server that changes an index waits until its files are on the disk: with files in memory it needs a third of the
# time. What a process has written there outlives that process too, and tests kill no more than processes.
MEMORY = Path("/dev/shm")  # noqa: S108 -- tempfile makes names in it
# Containers often have 64 MB of it, and may not load libraries from there, as the servers do.
MEMORY_BYTES = 4 << 30


def is_fit_for_files(folder):
    """Return whether temporary files, those of servers among them, can be in *folder*."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return False
    return shutil.disk_usage(folder).free >= MEMORY_BYTES and not os.statvfs(folder).f_flag & os.ST_NOEXEC


if "TMPDIR" not in os.environ and is_fit_for_files(MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Where Python is to leave no bytecode (as in many containers), each of the hundreds of commands that tests start would
# compile all modules of ours, a third of its time. Git ignores the bytecode, and `make clean` removes it.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

# Commands of tests print what a terminal shows, with and without a process of their own; a pipe gets JSON.
os.environ["TTY_COMPATIBLE"] = "1"

# Servers of tests live for minutes at most: the JVM's second compiler would cost more time than it saves, and verifying
# classes is a good part of a start. Every child process reads this variable, also a server that a command of ours
# starts.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK_JAVA)

# The folder in which the leading process writes down its servers.
SERVERS_FOLDER = pytest.StashKey[str]()

# With 1, tests run in every combination of product and mode.
EVERY_MODE = "ES_SIMHASH_EVERY_MODE"

# Folders in which each case of a test runs on one product: what differs between the cases is not what servers decide.
TAKING_TURNS = {
    *("client", "dashboards", "folding", "groups", "ingest", "lookup", "passages", "quality", "removal", "upkeep"),
    *("upgrade", "writes"),
}
# Folders in which that holds for a test of one case, too; where a server decides, its test names the products.
ON_ONE_PRODUCT = {*TAKING_TURNS, "cli"} - {"client", "ingest"}

# Folders whose tests may use the network; elsewhere those may whose file is named for it.
NETWORKED = {"docs", "estates", "spark", "strangers"}
SHARED = Path(__file__).parents[2] / "shared" / "data"


def pytest_configure(config):
    """Keep the servers with the session: each is started once; parallel workers share those of the leading process."""
    # Under nohup, or behind a shell's "&", SIGINT is ignored, and every child that a test starts would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        servers = SharedServers(Path(config.workerinput["servers"]))
    elif config.getoption("numprocesses", None):
        config.stash[SERVERS_FOLDER] = tempfile.mkdtemp(prefix="es-simhash-tests-")
        servers = StartedServers(Path(config.stash[SERVERS_FOLDER]))
    else:
        servers = Servers()
    config.stash[SERVERS] = servers


def is_networked(path):
    """Return whether the tests in the file *path* may open connections."""
    return path.stem.endswith("_server") or path.parent.name in NETWORKED


def pytest_collection_modifyitems(config, items):
    """Mark the tests of files named for servers, and leave out half of the combinations of product and mode."""
    for item in items:
        if item.path.stem.endswith("_server"):
            item.add_marker("servers")
    if os.environ.get(EVERY_MODE) == "1":
        return
    cases, products = defaultdict(dict), defaultdict(set)
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test].setdefault(case_of(item), len(cases[test]))
        products[test].add(params_of(item).get("server"))
    left_out = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        takes_turns = item.path.parent.name in TAKING_TURNS and len(cases[test]) > 1
        takes_turns |= item.path.parent.name in ON_ONE_PRODUCT and not names_products(item)
        takes_turns &= len(products[test]) > 1
        if not is_chosen(item, cases[test][case_of(item)], takes_turns=takes_turns):
            left_out.add(item)
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


def params_of(item):
    """Return the parameters of a test."""
    return item.callspec.params if hasattr(item, "callspec") else {}


def names_products(item):
    """Return whether a test says itself on which products it runs."""
    return any("server" in mark.args[0] for mark in item.iter_markers("parametrize"))


def case_of(item):
    """Return what distinguishes a test from the others of its name, but for the product and the mode."""
    return repr([each for each in params_of(item).items() if each[0] not in ("server", "mode")])


def is_chosen(item, number, *, takes_turns):
    """
    Return whether a test, the case *number* of its name, runs: on one product with the sync clients, on the other with
    the async ones. *takes_turns*: on one of the products only.
    """
    params = params_of(item)
    number += zlib.crc32(item.originalname.encode())
    is_opensearch = params.get("server") == "opensearch"
    if takes_turns and is_opensearch != (number % 2 == 0):
        return False
    if not {"server", "mode"} <= params.keys():
        return True
    is_swapped = (number // 2 if takes_turns else number) % 2 == 1
    return (is_opensearch == (params["mode"] == "sync")) != is_swapped


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a parallel worker where the servers are written down."""
    node.workerinput["servers"] = node.config.stash[SERVERS_FOLDER]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """
    Give parallel workers whole groups of tests: no two workers use one server, or one expensive fixture, at a time.
    Groups with many tests come first. The cluster has few, which take long: they go with those of the secured server.
    """
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file, _, test = nodeid.partition("::")
            used = re.search(r"[\[-](secured|cluster|opensearch|elasticsearch)\b", test)
            group = used[1] if used and is_networked(Path(file)) else file
            return "secured" if group == "cluster" else group

    return GroupScheduling(config, log)


def pytest_unconfigure(config):
    """Stop what was started."""
    config.stash[SERVERS].close()
    if SERVERS_FOLDER in config.stash:
        shutil.rmtree(config.stash[SERVERS_FOLDER])


def pytest_report_header(config):
    """Say which servers the tests run on."""
    return [f"{product}: {config.stash[SERVERS].describe(product)}" for product in PRODUCTS]


@pytest.fixture(autouse=True)
def no_network(request, monkeypatch):
    """Fail a test that opens a connection, except where tests are about servers."""
    if is_networked(request.path):
        return

    def refuse(self, address):
        if self.family == socket.AF_UNIX:
            return original(self, address)
        raise AssertionError(f"a test in a file not named for servers connects to {address}")

    original = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="session")
def shared_texts():
    """Return a function that reads the first *count* texts of a data set, or skips the test where it is missing."""

    def read(name: str, count: int) -> list[str]:
        path = SHARED / name / "docs.jsonl.gz"
        if not path.exists():
            pytest.skip(f"the data set {name} is not beside the checkout")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line)["text"] for _, line in zip(range(count), lines)]

    return read


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 128 KiB of its own, and a function that fills it until so many bytes are free."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")

    def fill(free=0):
        left = os.statvfs(folder)
        (folder / "rest").write_bytes(bytes(max(0, left.f_bavail * left.f_bsize - free)))

    yield folder, fill
    subprocess.run(["umount", str(folder)], check=True)
