"""The script of docs/removal.md on real servers, night after night; and the files that run it, and who approves."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from es_simhash import removal_summary
from tests.docs.blocks import ROOT
from tests.servers.removals import OTHER, TEXT, decide_file
from tests.servers.support import ONE_SHARD, put, random_texts, read_all

PAGE = (ROOT / "docs/removal.md").read_text(encoding="utf-8")
DEPLOY = ROOT / "deploy"
SCRIPT = DEPLOY / "nightly"
EXEC = "/opt/es-simhash/bin/nightly news "


@pytest.fixture
def server(opensearch, monkeypatch):
    """The script starts some sixty programs, and does on one product what it does on the other."""
    monkeypatch.setenv("ES_SIMHASH_URL", opensearch.url)
    return opensearch


@pytest.fixture
def night(server, tmp_path, monkeypatch):
    """Run the script in the night of a date, as cron does: with its own PATH, from another folder."""
    programs, folder = tmp_path / "bin", tmp_path / "removals"
    programs.mkdir()
    folder.mkdir()
    shutil.copy(SCRIPT, programs)
    (programs / "es-simhash").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m es_simhash "$@"\n')
    (programs / "date").write_text('#!/bin/sh\n[ "$*" = "-u +%Y-%m-%d" ] && echo "$TODAY"\n')
    for name in ("es-simhash", "date"):
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(today, **environment):
        done = subprocess.run(
            ["nightly", "news", folder],
            env=os.environ | {"TODAY": today, **environment},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        server.request("POST", "/news/_refresh")
        return done

    run.folder = folder
    server.remove("news")
    server.request("PUT", "/news", {"settings": ONE_SHARD, "mappings": {"properties": {"body": {"type": "text"}}}})
    put(server, "news", [{"_id": f"n{n:02}", "body": text} for n, text in enumerate(random_texts(60, 5))])
    subprocess.run(["es-simhash", "setup", "news", "-t", "body", "--preset", "similar", "--yes"], check=True)
    yield run
    server.remove("news")


def test_duplicates_go_every_night(server, night):
    """The first document of each text stays. What other titles or too many removals would refuse stays whole."""
    put(server, "news", [{"_id": "a", "body": TEXT}, {"_id": "b", "body": TEXT.upper()}])
    done = night("2026-11-01")
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    assert {"a", "b"} & read_all(server, "news").keys() == {"a"}
    again = night("2026-11-01")
    assert again.returncode == 0, again.stderr
    put(server, "news", [{"_id": f"c{n}", "body": TEXT} for n in range(4)])
    refused = night("2026-11-02")
    assert refused.returncode == 1
    assert "more than the share of 0.05" in refused.stderr
    assert len(read_all(server, "news")) == 65
    allowed = night("2026-11-02", MAX_SHARE="0.1")
    assert allowed.returncode == 0, allowed.stderr
    assert len(read_all(server, "news")) == 61
    assert sorted(each.name for each in night.folder.iterdir()) == ["news-2026-11-01.db", "news-2026-11-02.db"]
    assert {each.stat().st_mode & 0o077 for each in night.folder.iterdir()} == {0}


def test_what_was_approved_goes_the_next_night(server, night):
    """What somebody kept stays in every night after, though later plans do not see the file of decisions."""
    documents = {"a": TEXT, "b": TEXT.upper(), "c": OTHER, "d": OTHER.upper()}
    put(server, "news", [{"_id": id_, "body": body} for id_, body in documents.items()])
    first = night("2026-11-01", APPROVE="1")
    assert (first.returncode, len(read_all(server, "news"))) == (0, 64), first.stderr
    plan = night.folder / "news-2026-11-01.db"
    assert (night.folder / "news-2026-11-01.html").stat().st_size > 10_000
    decisions = night.folder / "news-2026-11-01.decisions.json"
    decide_file(decisions, removal_summary(plan)["plan"], [("news", "b", None)])
    second = night("2026-11-02", APPROVE="1")
    assert second.returncode == 0, second.stderr
    assert documents.keys() - read_all(server, "news").keys() == {"d"}
    assert removal_summary(night.folder / "news-2026-11-02.db")["total"]["removals"] == 0
    third = night("2026-11-03")
    assert third.returncode == 0, third.stderr
    assert documents.keys() - read_all(server, "news").keys() == {"d"}
    assert not decisions.exists()
    decisions.write_text("{}")
    fourth = night("2026-11-04", APPROVE="1")
    assert (fourth.returncode, decisions.exists()) == (1, True)
    assert (night.folder / "news-2026-11-04.html").exists()


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
