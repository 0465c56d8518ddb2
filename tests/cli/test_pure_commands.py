"""The commands that need no server: what they print, what they say to bad input, and that they answer line by line."""

import json
import subprocess
import sys

import pytest

from es_simhash import fingerprint, get_scheme, hamming_distance, to_hex
from es_simhash.cli.options import settle
from es_simhash.cli.show import show
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.mapping import build_mapping
from es_simhash.quality.stats import Stats
from tests.servers.command_line import failed, invoke, parse

FOX = "the quick brown fox jumps over the lazy dog"


def test_fingerprint_of_a_text_is_the_librarys(local):
    assert local("fingerprint", FOX).stdout == to_hex(fingerprint(FOX)) + "\n"


def test_steps_before_features_are_options(local):
    """The default scheme takes them, in the order given; --set says where they are."""
    line = "job 4711 ended at 22:31:07"
    assert local("fingerprint", "--preprocess", "numbers", line).stdout == to_hex(fingerprint("job ended at")) + "\n"
    refused = local("fingerprint", "--scheme", "keywords", "--set", "preprocess=numbers", line)
    assert refused.exit_code == 2
    assert "--preprocess STEP" in refused.stderr


def test_each_line_of_stdin_is_a_text(local):
    """Lines and fingerprints correspond, whatever the line break, and a line without features has a dash."""
    result = local("fingerprint", stdin="a line\r\n\n...\n你好，世界\n")
    assert result.stdout.splitlines() == [to_hex(fingerprint("a line")), "-", "-", to_hex(fingerprint("你好，世界"))]


def test_a_dash_takes_all_of_stdin_as_one_text(local):
    assert local("fingerprint", "-", stdin="two\nlines\n").stdout.strip() == to_hex(fingerprint("two\nlines\n"))


def test_files_are_named_beside_their_fingerprints(local, tmp_path):
    """Several files give several lines, in order."""
    (tmp_path / "a.txt").write_text(FOX)
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbf" + FOX.encode())
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    result = local("fingerprint", "--file", names[0], "--file", names[1])
    assert result.stdout.splitlines() == [f"{to_hex(fingerprint(FOX))}  {name}" for name in names]


def test_scheme_and_parameters_reach_the_library(local):
    """--scheme and --set make the scheme that get_scheme makes, and JSON names it."""
    wanted = get_scheme("keywords", top="auto")
    result = json.loads(local("fingerprint", FOX, "--scheme", "keywords", "--set", "top=auto", "--json").stdout)
    assert result == {"fingerprint": to_hex(fingerprint(FOX, scheme=wanted)), "scheme": "keywords-1(top=auto)"}


def test_a_dictionary_makes_the_keywords_scheme(local, tmp_path):
    """A file for keywords needs no --scheme, and becomes part of the scheme by its digest."""
    (tmp_path / "words.txt").write_text("临江地铁 1000 n\n", encoding="utf-8")
    text = "临江地铁六号线开通试运营"
    result = json.loads(local("fingerprint", text, "--set", f"dictionary={tmp_path / 'words.txt'}", "--json").stdout)
    scheme = get_scheme("keywords", dictionary=tmp_path / "words.txt")
    assert result == {"fingerprint": to_hex(fingerprint(text, scheme=scheme)), "scheme": str(scheme)}


@pytest.mark.parametrize("text", ["", " \t\n", "…!?", "\N{PILE OF POO}", "\x00", "\udcff"])
def test_texts_without_features_have_no_fingerprint(local, text):
    result = local("fingerprint", "--json", text)
    assert (result.exit_code, json.loads(result.stdout)["fingerprint"]) == (0, None)


def test_a_text_of_two_megabytes_is_no_problem(local):
    """It comes through stdin, since no argument can be that long."""
    text = "0123456789 abcdefghij " * 96_000
    assert local("fingerprint", "-", stdin=text).stdout.strip() == to_hex(fingerprint(text))


def test_bytes_that_are_not_utf8_are_told_with_their_place(local):
    """The line is named, and no traceback is shown."""
    failed(local("fingerprint", stdin=b"ok\nab\xff\n"), "line 2 is not UTF-8 text (byte 3)")
    failed(local("fingerprint", "-", stdin=b"\xff\x00a"), "stdin is not UTF-8")
    failed(local("fingerprint", "-", stdin="text".encode("utf-16")), "stdin is UTF-16 text, not UTF-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheme", "shingels"], "unknown scheme 'shingels'"),
        (["--scheme", "shingles-99"], "unknown scheme 'shingles-99'"),
        (["--scheme", "shingles", "--set", "sise=3"], "sise"),
        (["--scheme", "shingles", "--set", "size=many"], "size"),
        (["--scheme", "shingles", "--set", "size=0"], "size"),
    ],
)
def test_a_scheme_that_cannot_be_is_one_line(local, arguments, message):
    failed(local("fingerprint", FOX, *arguments), message)


def test_the_distance_of_texts_and_files(local, tmp_path):
    other = FOX.replace("dog", "cat")
    wanted = hamming_distance(fingerprint(FOX), fingerprint(other))
    assert json.loads(local("explain", FOX, other, "--json").stdout)["distance"] == wanted
    (tmp_path / "a").write_text(FOX)
    found = local("explain", "--file", str(tmp_path / "a"), "-", "--json", stdin=other)
    assert json.loads(found.stdout)["distance"] == wanted


@pytest.mark.parametrize("given", ["0", "00000000000000FF"])
def test_what_is_no_fingerprint_is_named(local, given):
    result = local("find", "news", "--fingerprint", given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{given!r} is not a fingerprint" in result.stderr


def test_mapping_is_the_librarys(local):
    result = local("export", "mapping", "-t", "title", "-t", "body", "-d", "8", "--prefix", "near", "--json")
    wanted = build_mapping(prefix="near", text_field=["title", "body"], max_distance=8)
    assert json.loads(result.stdout) == wanted


def test_templates_fit_together(local):
    component = json.loads(local("export", "mapping", "--component-template").stdout)
    template = json.loads(local("export", "mapping", "--index-template", "news-*", "--name", "mine").stdout)
    assert component["template"]["mappings"] == build_mapping()
    assert (template["index_patterns"], template["composed_of"]) == (["news-*"], ["mine"])


@pytest.mark.parametrize(
    "words",
    [
        "nonsense",
        f"fingerprint a --file {__file__}",
        "fingerprint a --set size=3",
        "fingerprint a --scheme keywords --set top",
        "explain a",
        "explain --file index a b",
        "export mapping --component-template --index-template news-*",
        "export pipeline index -t body --yes",
        "export pipeline -t body --name news",
        "find index",
        "find index text --scheme shingles",
        "find index text --id 1",
        "find index text --text-field body",
        "find index text --source ,",
        "ingest index",
        "ingest index - --create",
        "ingest index - --passages",
        "ingest index - --max-distance 3 --on-duplicate none",
        "create index --existing --settings {}",
        "create index --yes",
        "create index --existing --dry-run",
        "plan",
        "plan index --yes",
        "apply plan --preset near",
        "apply plan --out file",
        "reconcile",
        "reconcile index --max-share 1",
        "reconcile index --quiet",
        "reconcile index --yes",
        "reconcile index --regroup --dry-run --yes",
        "groups index --against other",
        "groups index --max-distance 3",
        "groups index --pairs --sort size",
        "serve --wait --demo",
        "serve --wait --port 0",
        "check index --seed 3",
        "check index -t body",
        "check index http://u:s3cret@h:1",
        "http://u:s3cret@h:1",
    ],
)
def test_wrong_usage_exits_with_two(local, words):
    """Before anything is asked or written: also where options do not go together."""
    result = local(*words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert "s3cret" not in result.stderr


def test_version(local):
    import es_simhash

    assert local("--version").stdout == f"es-simhash {es_simhash.__version__}\n"


def test_wrong_use_names_the_help_of_its_command():
    for words, hint in (
        (
            ["export", "pipeline", "news", "--install", "--use-as", "x"],
            "es-simhash export pipeline --help lists the options",
        ),
        (["export", "nothing"], "es-simhash export --help lists the commands"),
        (["find", "news", "--nothing"], "es-simhash find --help lists the options"),
        (["nothing"], "es-simhash --help lists the commands"),
    ):
        refused = invoke(words)
        assert (refused.exit_code, hint in refused.stderr) == (2, True), refused.stderr


def test_workers_keep_the_order(local):
    """``fingerprint --workers`` prints what it prints without."""
    lines = [f"line number {number}" for number in range(3500)]
    result = local("fingerprint", "--workers", 2, stdin="\n".join(lines))
    assert result.stdout.splitlines() == [to_hex(fingerprint(line)) for line in lines]
    failed(local("fingerprint", "--workers", 0, stdin="a"), "workers 0 is out of range")


TEXTS = ["the quick brown fox jumps over the lazy dog", "...", "日本語の新聞記事を読む", "a\r"]


def as_fingerprint(text):
    found = fingerprint(text)
    return "-" if found is None else to_hex(found)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell whether a line waits")
@pytest.mark.parametrize(
    ("arguments", "expected", "read"),
    [
        (["fingerprint"], as_fingerprint, str.strip),
        (["fingerprint", "--workers", "2"], as_fingerprint, str.strip),
    ],
    ids=["fingerprint", "fingerprint with workers"],
)
def test_each_line_is_answered_at_once(arguments, expected, read):
    """Several lines that come at once too, and the last one, which has no line break."""
    command = [sys.executable, "-m", "es_simhash", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        for text in TEXTS:
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert read(process.stdout.readline()) == expected(text)
        process.stdin.write("\n".join(TEXTS[:3]))
        process.stdin.close()
        assert [read(line) for line in process.stdout] == list(map(expected, TEXTS[:3]))
    assert process.returncode == 0


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


def test_texts_are_compared_or_not():
    assert invoke(["plan", "news", "--no-verify", "--numbers", "same"]).exit_code == 2


def test_a_small_share_is_not_nothing(capsys):
    """2 duplicates of 5,000 documents are no 0.0 %, on the terminal and in a notebook."""
    stats = Stats("news", documents=5_000, duplicates=2)
    show(stats)
    for shown in (capsys.readouterr().out, stats._title()):
        assert ("< 0.1 %" in shown, "0.0" in shown) == (True, False)
