"""The commands that need no server: what they print, what they say to bad input, and that they answer line by line."""

import json
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from es_simhash import fingerprint, get_scheme, servers, to_hex
from es_simhash.cli.options import settle
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.mapping import build_mapping
from tests.servers.command_line import failed, parse

FOX = "the quick brown fox jumps over the lazy dog"


def test_scheme_and_parameters_reach_the_library(local):
    """Steps before features too, in the order given; JSON names the scheme."""
    wanted = get_scheme("shingles", size=5, preprocess=["numbers"])
    given = ("--set", "size=5", "--preprocess", "numbers", "job 4711 ended at 22:31:07", "--json")
    found = json.loads(local("fingerprint", *given).stdout)
    assert found == {"fingerprint": to_hex(fingerprint("job ended at", scheme=wanted)), "scheme": str(wanted)}


def test_mapping_is_the_librarys(local):
    result = local("export", "mapping", "-t", "title", "-t", "body", "-d", "8", "--prefix", "near", "--json")
    wanted = build_mapping(prefix="near", text_field=["title", "body"], max_distance=8)
    assert json.loads(result.stdout) == wanted


def test_each_line_of_stdin_is_a_text(local):
    """Lines and fingerprints correspond, whatever the line break, and a line without features has a dash."""
    result = local("fingerprint", stdin="a line\r\n\n...\n你好，世界\n")
    assert result.stdout.splitlines() == [to_hex(fingerprint("a line")), "-", "-", to_hex(fingerprint("你好，世界"))]


def test_files_are_named_beside_their_fingerprints(local, tmp_path):
    """Several files give several lines, in order."""
    (tmp_path / "a.txt").write_text(FOX)
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbf" + FOX.encode())
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    result = local("fingerprint", "--file", names[0], "--file", names[1])
    assert result.stdout.splitlines() == [f"{to_hex(fingerprint(FOX))}  {name}" for name in names]


def test_bytes_that_are_not_utf8_are_told_with_their_place(local):
    """The line is named, and no traceback is shown."""
    failed(local("fingerprint", stdin=b"ok\nab\xff\n"), "line 2 is not UTF-8 text (byte 3)")
    failed(local("fingerprint", "-", stdin=b"\xff\x00a"), "stdin is not UTF-8")
    failed(local("fingerprint", "-", stdin="text".encode("utf-16")), "stdin is UTF-16 text, not UTF-8")


@pytest.mark.parametrize(
    "words",
    [
        "fingerprint a --scheme keywords --set top",
        "explain --file index a b",
        "export mapping --component-template --index-template news-*",
        "export pipeline index -t body --yes",
        "find index",
        "find index text --id 1",
        "find index text --source ,",
        "find index --fingerprint 00000000000000FF",
        "ingest index",
        "ingest index - --create",
        "ingest index - --max-distance 3 --on-duplicate none",
        "create index --existing --settings {}",
        "create index --yes",
        "create index --existing --dry-run",
        "plan news --no-verify --numbers same",
        "apply plan --preset near",
        "reconcile index --yes",
        "reconcile index --regroup --dry-run --yes",
        "groups index --against other",
        "groups index --max-distance 3",
        "groups index --pairs --sort size",
        "check index http://u:s3cret@h:1",
    ],
)
def test_wrong_usage_exits_with_two(local, words):
    """Before anything is asked or written: also where options do not go together."""
    result = local(*words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert "s3cret" not in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of Windows gives what it has")
def test_each_line_is_answered_at_once():
    """Several lines that come at once too, and the last one, which has no line break."""
    texts = [FOX, "...", "日本語の新聞記事を読む", "a\r"]
    expected = ["-" if (found := fingerprint(text)) is None else to_hex(found) for text in texts]
    command = [sys.executable, "-m", "es_simhash", "fingerprint"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        for text, digits in zip(texts, expected, strict=True):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert process.stdout.readline().strip() == digits
        process.stdin.write("\n".join(texts[:3]))
        process.stdin.close()
        assert process.stdout.read().split() == expected[:3]
    assert process.returncode == 0


def test_serve_says_where_and_keeps_the_data(local, monkeypatch, tmp_path):
    """Until Ctrl-C."""

    def interrupt():
        raise KeyboardInterrupt

    served = SimpleNamespace(url="http://127.0.0.1:9201", version="9.5.3", is_running=interrupt)
    started = Mock(return_value=nullcontext(served))
    monkeypatch.setattr(servers, "embedded_server", started)
    done = local("serve", "--product", "elasticsearch", "--port", "9201", "--data", tmp_path, "--json")
    started.assert_called_once_with("elasticsearch", version=None, data=tmp_path, port=9201)
    assert (done.exit_code, json.loads(done.stdout)["url"]) == (0, served.url)
    assert "stopped; the data are kept" in done.stderr


BASE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


def test_explain_texts_and_files(local, tmp_path):
    edited = BASE.replace("Tuesday", "Friday")
    found = json.loads(local("explain", BASE, edited, "--json").stdout)
    assert found["distance"] > 0
    path = tmp_path / "old.txt"
    path.write_text(BASE, encoding="utf-8")
    assert json.loads(local("explain", "--file", path, "-", "--json", stdin=edited).stdout) == found
    shown = local("explain", BASE, edited).stdout
    assert "[-Tuesday-]{+Friday+}" in shown
    assert f"distance {found['distance']} bits of 64 (shingles-3)" in " ".join(shown.split())


def test_explain_bad_input(local, tmp_path):
    """Texts without features and binary files are said to be so; contradictions are usage errors."""
    assert "no fingerprint" in local("explain", "...", BASE).stdout
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x80\x81" * 100)
    failed(local("explain", "--file", binary, binary), "not UTF-8")
    failed(local("explain", "--file", tmp_path / "missing", binary), "is not a file")
    assert local("explain", "a", "b", "--file", "--index", "i").exit_code == 2
    assert local("explain", "--file", "-", "-").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], None),
        (["--verify", "0.7"], 0.7),
        (["--no-verify"], False),
        (["--numbers", "same"], Verification(numbers="same")),
        (["--preset", "noisy", "--verify", "0.7"], 0.7),
        (["--preset", "similar", "--verify", "0.7", "--numbers", "any"], Verification(0.7, numbers="any")),
    ],
)
def test_what_the_options_of_verification_stand_for(arguments, expected):
    """What they do not say is that of the preset."""
    given = parse(["plan", "news", *arguments])
    assert settle(given).get("verify") == expected
