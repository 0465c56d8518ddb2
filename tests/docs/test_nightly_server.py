"""The script of docs/removal.md on a real server, night after night; and the files that run it."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from es_simhash import SimHashClient, removal_summary
from tests.docs.blocks import ROOT
from tests.servers.fixtures import make_client
from tests.servers.removals import OTHER, TEXT, decide_file
from tests.servers.support import ONE_SHARD, put, random_texts, read_all

PAGE = (ROOT / "docs/removal.md").read_text(encoding="utf-8")
DEPLOY = ROOT / "deploy"
EXEC = "/opt/es-simhash/bin/nightly news "


def test_the_nights(opensearch, tmp_path, monkeypatch):
    """
    What was approved goes the next night, and what somebody kept stays in every night after. Without approval all goes
    that loses nothing, but not too much. The script starts many programs, so on one product.
    """
    server, programs, folder = opensearch, tmp_path / "bin", tmp_path / "removals"
    programs.mkdir()
    folder.mkdir()
    shutil.copy(DEPLOY / "nightly", programs)
    (programs / "es-simhash").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m es_simhash "$@"\n')
    (programs / "date").write_text('#!/bin/sh\n[ "$*" = "-u +%Y-%m-%d" ] && echo "$TODAY"\n')
    for name in ("es-simhash", "date"):
        (programs / name).chmod(0o755)
    # As cron does: with its own PATH, from another folder.
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "ES_SIMHASH_URL": server.url}

    def run(today, **more):
        done = subprocess.run(
            ["sh", programs / "nightly", "news", folder],
            env=os.environ | environment | {"TODAY": f"2026-11-{today}", **more},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        server.request("POST", "/news/_refresh")
        return done

    def file(name):
        return folder / f"news-2026-{name}"

    server.remove("news")
    server.request("PUT", "/news", {"settings": ONE_SHARD, "mappings": {"properties": {"body": {"type": "text"}}}})
    *many, last = random_texts(61, 5)
    put(server, "news", [{"_id": f"n{n:02}", "body": text} for n, text in enumerate(many)])
    documents = {"a": TEXT, "b": TEXT.upper(), "c": OTHER, "d": OTHER.upper()}
    put(server, "news", [{"_id": id_, "body": body} for id_, body in documents.items()])
    try:
        with make_client(server) as client:
            SimHashClient(client).setup("news", text_field="body", preset="similar")
        first = run("01", APPROVE="1")
        assert (first.returncode, len(read_all(server, "news"))) == (0, 64), first.stderr
        assert file("11-01.html").stat().st_size > 10_000
        decide_file(file("11-01.decisions.json"), removal_summary(file("11-01.db"))["plan"], [("news", "b", None)])
        shutil.copy(file("11-01.db"), file("10-31.db"))
        file("10-31.decisions.json").write_text("{}")  # is refused, and tried again each night
        second = run("02", APPROVE="1")
        assert (second.returncode, documents.keys() - read_all(server, "news").keys()) == (1, {"d"}), second.stderr
        assert removal_summary(file("11-02.db"))["total"]["removals"] == 0
        assert (file("10-31.decisions.json").exists(), file("11-01.decisions.json").exists()) == (True, False)
        assert file("11-02.html").exists()
        put(server, "news", [{"_id": f"e{n}", "body": last} for n in range(5)])
        refused = run("03")
        assert refused.returncode == 1
        assert "more than the share of 0.05" in refused.stderr
        assert len(read_all(server, "news")) == 68
        allowed = run("03", MAX_SHARE="0.1")
        assert (allowed.returncode, allowed.stderr.count("error")) == (0, 0), allowed.stderr
        assert len(read_all(server, "news")) == 64
        assert documents.keys() - read_all(server, "news").keys() == {"d"}
        assert {each.stat().st_mode & 0o077 for each in folder.glob("news-2026-11-*.db")} == {0}
    finally:
        server.remove("news")


def test_the_units_of_systemd(tmp_path):
    """Verified by systemd, where it is here; the program and the folder are those of cron."""
    service, timer = ((DEPLOY / f"es-simhash-nightly.{kind}").read_text() for kind in ("service", "timer"))
    assert f"ExecStart={EXEC}/var/lib/es-simhash\n" in service
    assert "StateDirectory=es-simhash\n" in service
    [environment] = re.findall(r"`30 2 \* \* \* set -a; \. (\S+); nightly news /var/lib/es-simhash`", PAGE)
    assert f"EnvironmentFile={environment}\n" in service
    assert "OnCalendar=*-*-* 02:30:00 UTC\n" in timer
    if (verify := shutil.which("systemd-analyze")) is None:
        pytest.skip("no systemd is installed")
    for unit in DEPLOY.glob("es-simhash-*"):
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/es-simhash/bin/", "/bin/true "))
    done = subprocess.run(
        [verify, "verify", "--man=no", *tmp_path.glob("es-simhash-*")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [line for line in done.stderr.splitlines() if "es-simhash" in line] == []


def test_the_dag_of_airflow():
    """It says what cron says; Airflow itself is no dependency."""
    dag = (DEPLOY / "nightly_airflow.py").read_text(encoding="utf-8")
    assert 'bash_command="nightly news /var/lib/es-simhash"' in dag
    assert 'schedule="30 2 * * *"' in dag
