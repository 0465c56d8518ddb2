"""The commands that need no server: what they print, what they say to bad input, and that they answer line by line."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from es_simhash import (
    InvalidInputError,
    build_esql,
    build_esql_tool,
    build_query_bar,
    fingerprint,
    from_hex,
    get_scheme,
    hamming_distance,
    to_hex,
)
from es_simhash.cli import app
from es_simhash.cli.parameter_types import parse_bytes
from es_simhash.hashing.pool import PoolSizes
from es_simhash.lookup.plan import explain_plan, plan_lookup
from es_simhash.lookup.query import build_query, build_query_of, distance_source, with_distances
from es_simhash.mapping.context import IndexStats
from es_simhash.mapping.mapping import build_mapping
from es_simhash.transport.limits import Limits
from tests.servers.command_line import failed

FOX = "the quick brown fox jumps over the lazy dog"
PRINT = "00000000000000ff"


def test_a_report_needs_an_extra(local, monkeypatch, tmp_path):
    """Without it one line says what to install, before any server is asked, and no file is left."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    line = failed(local("report", "news", "--out", str(tmp_path / "report.html")))
    assert "vl-convert-python" in line
    assert "pip install 'es-simhash[report]'" in line
    assert list(tmp_path.iterdir()) == []


def test_fingerprint_of_a_text_is_the_librarys(local):
    assert local("fingerprint", FOX).stdout == to_hex(fingerprint(FOX)) + "\n"


def test_steps_before_features_are_options(local):
    """The default scheme takes them, in the order given; --set says where they are."""
    line = "job 4711 ended at 22:31:07"
    assert local("fingerprint", "--preprocess", "numbers", line).stdout == to_hex(fingerprint("job ended at")) + "\n"
    refused = local("fingerprint", "--scheme", "words", "--set", "preprocess=numbers", line)
    assert refused.exit_code == 2
    assert "--preprocess STEP" in refused.stderr


def test_each_line_of_stdin_is_a_text(local):
    """Lines and fingerprints correspond, whatever the line break, and a line without features has a dash."""
    result = local("fingerprint", stdin="a line\r\n\n...\n你好，世界\n")
    assert result.stdout.splitlines() == [to_hex(fingerprint("a line")), "-", "-", to_hex(fingerprint("你好，世界"))]


def test_many_lines_are_taken_in_batches(local):
    lines = [f"line number {n}" for n in range(2500)]
    assert local("fingerprint", stdin="\n".join(lines)).stdout.split() == [to_hex(fingerprint(line)) for line in lines]


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
    wanted = get_scheme("words", size=3)
    result = json.loads(local("fingerprint", FOX, "--scheme", "words", "--set", "size=3", "--json").stdout)
    assert result == {"fingerprint": to_hex(fingerprint(FOX, scheme=wanted)), "scheme": "words-1(size=3)"}


def test_a_dictionary_makes_the_keywords_scheme(local, tmp_path):
    """A file for keywords needs no --scheme, and becomes part of the scheme by its digest."""
    (tmp_path / "words.txt").write_text("临江地铁 1000 n\n", encoding="utf-8")
    text = "临江地铁六号线开通试运营"
    result = json.loads(local("fingerprint", text, "--dictionary", str(tmp_path / "words.txt"), "--json").stdout)
    scheme = get_scheme("keywords", dictionary=tmp_path / "words.txt")
    assert result == {"fingerprint": to_hex(fingerprint(text, scheme=scheme)), "scheme": str(scheme)}


@pytest.mark.parametrize("text", ["", " \t\n", "…!?", "\N{PILE OF POO}", "\x00", "\udcff"])
def test_texts_without_features_have_no_fingerprint(local, text):
    result = local("fingerprint", "--json", text)
    assert (result.exit_code, json.loads(result.stdout)["fingerprint"]) == (0, None)


def test_a_text_of_ten_megabytes_is_no_problem(local):
    """It comes through stdin, since no argument can be that long."""
    text = "0123456789 abcdefghij " * 480_000
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


def test_the_distance_of_fingerprints(local):
    """Two fingerprints have their Hamming distance, and what it says about the features."""
    assert local("explain", "--fingerprints", PRINT, "000000000000000f").stdout.startswith("4 bits of 64; ")
    result = json.loads(local("explain", "--fingerprints", PRINT, "000000000000000f", "--json").stdout)
    assert result["distance"] == 4
    assert result["estimated_cosine"] == pytest.approx(0.9808, abs=1e-4)


def test_the_distance_of_texts_and_files(local, tmp_path):
    other = FOX.replace("dog", "cat")
    wanted = hamming_distance(fingerprint(FOX), fingerprint(other))
    assert json.loads(local("explain", FOX, other, "--json").stdout)["distance"] == wanted
    (tmp_path / "a").write_text(FOX)
    found = local("explain", "--file", str(tmp_path / "a"), "-", "--json", stdin=other)
    assert json.loads(found.stdout)["distance"] == wanted


@pytest.mark.parametrize("given", [["0", "1"], ["00000000000000FF", "0" * 16]])
def test_what_is_no_fingerprint_has_no_distance(local, given):
    result = local("explain", "--fingerprints", *given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{given[0]!r} is not a fingerprint" in result.stderr


def test_mapping_is_the_librarys(local):
    result = local(
        "export", "mapping", "-t", "title", "-t", "body", "-d", "8", "--no-value", "--prefix", "near", "--json"
    )
    wanted = build_mapping(prefix="near", text_field=["title", "body"], max_distance=8, value=False)
    assert json.loads(result.stdout) == wanted


def test_templates_fit_together(local):
    component = json.loads(local("export", "mapping", "--component-template").stdout)
    template = json.loads(local("export", "mapping", "--index-template", "news-*", "--name", "mine").stdout)
    assert component["template"]["mappings"] == build_mapping()
    assert (template["index_patterns"], template["composed_of"]) == (["news-*"], ["mine"])


def test_query_is_the_librarys(local):
    """The body is that of build_query, with filter and excluded ids in it; what it means is told on stderr."""
    options = ["-d", 8, "--documents", 5000, "--no-scripts", "--exclude-id", 1, "--filter", '{"term": {"lang": "en"}}']
    result = local("query", FOX, *options)
    plan = plan_lookup(8, stats=IndexStats(documents=5000), limits=Limits(scripts=False))
    wanted = build_query(
        fingerprint(FOX), max_distance=8, plan=plan, exclude_ids=["1"], filter={"term": {"lang": "en"}}
    )
    assert json.loads(result.stdout) == wanted
    assert f"fingerprint {to_hex(fingerprint(FOX))}" in result.stderr


def test_a_text_may_come_from_stdin_alone(local):
    """A pipe or a file on stdin is the text if nothing else is given; an empty one is wrong usage."""
    assert local("query", stdin=FOX).stdout == local("query", FOX).stdout == local("query", "-", stdin=FOX).stdout
    assert local("query", "--only", "duplicates", "--kql", stdin=FOX).exit_code == 0


def test_query_as_console_text_is_a_request_and_its_body(local):
    """What follows the request line is JSON, so Dev Tools take it as it is; the comments say what the hits are."""
    result = local("query", "--fingerprint", PRINT, "--console", "--index", "news", "-d", 3, "--source", "title,url")
    comments, _, rest = result.stdout.partition("GET ")
    request, body = rest.split("\n", 1)
    assert all(line.startswith("# ") for line in comments.splitlines())
    assert comments.startswith(
        f"# near-duplicates of fingerprint {PRINT}; within 3 bits, texts not compared; lookup plan "
    )
    assert request == "news/_search"
    search = build_query(from_hex(PRINT), plan=plan_lookup(3), source=["title", "url"])
    assert json.loads(body) == with_distances(search, "script", from_hex(PRINT))


def test_a_search_without_a_script_shows_candidates(local):
    result = local("query", "--fingerprint", PRINT, "--console", "-d", 3, "--no-scripts")
    assert result.stdout.startswith(f"# candidates of fingerprint {PRINT}; within 3 bits, texts not compared; ")
    assert "# a near-duplicate has a fingerprint within 3 bits: es-simhash explain --fingerprints\n" in result.stdout
    assert "script" not in result.stdout.partition("/_search")[2]


@pytest.mark.parametrize("form", [["--console"], ["--esql"], ["--esql", "--console"], ["--kql"], ["--tool"], []])
def test_without_an_index_three_bits_are_said_to_be_the_default(local, form):
    """In the comment of the text to paste, or on stderr where the text has no comments."""
    subject = [] if form == ["--tool"] else ["--fingerprint", PRINT]
    done = local("query", *subject, *form)
    said = done.stdout if {"--console", "--esql"}.intersection(form) else done.stderr
    assert "within 3 bits, texts not compared, the default without --index" in said
    assert "the default" not in local("query", *subject, *form, "-d", 3).output


def test_a_runtime_field_in_a_search_is_for_one_product(local):
    """OpenSearch refuses runtime_mappings; the search says so, and what both products take."""
    comments = local("query", "--fingerprint", PRINT, "--runtime-field", "--console").stdout.partition("GET ")[0]
    assert "# runtime_mappings are for Elasticsearch alone; --script-field prints" in comments


def test_a_query_by_id_needs_no_server_up_to_distance_3(local):
    """The server takes the block terms from the stored document."""
    result = local("query", "--id", "a/b", "--index", "news", "--max-distance", "2", "--json")
    assert json.loads(result.stdout) == build_query_of("a/b", index="news", max_distance=2)
    said = [json.loads(line)["note"]["message"] for line in result.stderr.splitlines()]
    assert said[0] == 'candidates of document "a/b"; within 2 bits, texts not compared; terms lookup'
    assert said[1].startswith("the document itself is among the hits")


def test_query_prints_as_many_plans_as_asked_for(local):
    """The cheapest first, each a request of its own."""
    result = local(
        "query", "--fingerprint", "00000000000000ff", "-d", "10", "--plans", "3", "--no-scripts", "--console"
    )
    names = [each.plan.name for each in explain_plan(10, limits=Limits(scripts=False))[:3]]
    heads = [line for line in result.stdout.splitlines() if line.startswith("# candidates of fingerprint")]
    assert [name in head for name, head in zip(names, heads, strict=True)] == [True] * 3
    assert local("query", "--fingerprint", PRINT, "--plans", "3").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--esql", "--index", "a,b", "-d", "8"], build_esql("a,b", 255, max_distance=8)),
        (
            ["--esql", "-d", "3", "--size", "5", "--exclude-id", "x"],
            build_esql("my-index", 255, size=5, exclude_ids=["x"]),
        ),
        (["--esql", "--one-per-group", "-d", "3"], build_esql("my-index", 255, one_per_group=True)),
        (["--kql", "--prefix", "h"], build_query_bar("kql", fingerprint=255, prefix="h")),
        (["--lucene", "-d", "9"], build_query_bar("lucene", fingerprint=255, max_distance=9)),
        (["--runtime-field"], distance_source("runtime", 255)),
        (["--script-field"], distance_source("script", 255)),
    ],
)
def test_text_to_paste_is_the_librarys(local, arguments, wanted):
    """And nothing else is on stdout: one line break ends it."""
    assert local("query", "--fingerprint", PRINT, *arguments).stdout == f"{wanted}\n"


def test_esql_as_a_request_takes_a_filter(local):
    arguments = ("query", "--fingerprint", PRINT, "-d", "3", "--esql", "--console")
    done = local(*arguments, "--filter", '{"term": {"lang": "en"}}')
    request, body = done.stdout.split("\n", 1)
    assert request == "POST /_query"
    wanted = {"bool": {"filter": [{"term": {"lang": "en"}}]}}
    assert json.loads(body) == {"query": build_esql("my-index", 255), "filter": wanted}


def test_a_tool_for_agents(local):
    """With --console as a request to Kibana."""
    wanted = build_esql_tool("news", max_distance=8, one_per_group=True, size=5)
    arguments = ("query", "--tool", "--index", "news", "-d", "8", "--one-per-group", "--size", "5")
    assert json.loads(local(*arguments).stdout) == wanted
    request, body = local(*arguments, "--console").stdout.split("\n", 1)
    assert (request, json.loads(body)) == ("POST kbn:/api/agent_builder/tools", wanted)


def test_a_query_for_nothing_is_one_line(local):
    """A text without features can have no near-duplicates, so there is no query."""
    failed(local("query", "..."), "has no features")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["fingerprint", "a", "--file", __file__],
        ["fingerprint", "a", "--set", "size=3"],
        ["fingerprint", "a", "--scheme", "words", "--set", "size"],
        ["fingerprint", "--file", "/no/such/file"],
        ["explain", "a"],
        ["explain", "--fingerprints", "a", "b", "--scheme", "words"],
        ["explain", "--fingerprints", "--file", "a", "b"],
        ["export", "mapping", "--component-template", "--console"],
        ["export", "mapping", "-d", "65"],
        ["query"],
        ["query", "a", "--lines"],
        ["query", "--lines", "--console"],
        ["query", "--lines", "--kql"],
        ["query", "a", "--fingerprint", "0" * 16],
        ["query", "--fingerprint", "xyz"],
        ["query", "a", "--filter", "{broken"],
        ["query", "a", "--filter", "3"],
        ["query", "a", "-d", "-1"],
        ["query", "a", "--console", "--json"],
        ["query", "a", "--esql", "--json"],
        ["query", "a", "--esql", "--kql"],
        ["query", "a", "--esql", "--filter", "{}"],
        ["query", "a", "--esql", "--plans", "2", "--console"],
        ["query", "a", "--one-per-group"],
        ["query", "a", "--tool"],
        ["query", "--tool", "--esql"],
        ["query", "--tool", "--exclude-id", "1"],
        ["query", "--tool", "--json"],
        ["query", "a", "--kql", "--console"],
        ["query", "a", "--lucene", "--exclude-id", "1"],
        ["query", "--group", "a"],
        ["query", "--group-of", "a"],
        ["query", "--group-of", "a", "--kql"],
        ["query", "--id", "a"],
        ["query", "a", "--esql", "--source", "title"],
        ["query", "a", "--script-field", "--source", "title"],
        ["query", "--only", "duplicates", "--esql"],
        ["query", "--only", "all", "--kql"],
        ["query", "--only", "duplicates", "--group", "a", "--kql"],
        ["find", "index"],
        ["find", "index", "text", "--id", "1"],
        ["find", "index", "text", "--text-field", "body"],
        ["find", "index", "text", "--source", ","],
        ["ingest", "index"],
        ["ingest", "index", "-", "--create"],
        ["ingest", "index", "-", "--passages"],
        ["ingest", "index", "-", "--max-distance", "3", "--on-duplicate", "none"],
        ["create", "index", "--existing", "--settings", "{}"],
        ["serve", "--port", "70000"],
    ],
)
def test_wrong_usage_exits_with_two(local, arguments):
    result = local(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr or json.loads(result.stderr)["error"]["kind"] == "usage"


def test_version(local):
    import es_simhash

    assert local("--version").stdout == f"es-simhash {es_simhash.__version__}\n"


def test_bytes_are_read_in_thousands_and_in_1024s():
    assert [parse_bytes(each) for each in ("10", "2kB", "2KiB", "1.5 GiB")] == [10, 2_000, 2_048, 3 * 2**29]


@pytest.mark.parametrize("text", ["", "M", "-5", "1.5", "1e6", "1,000", "5Q", "1.2345k", "٣", "5 5", "9" * 30])
def test_what_is_no_number_of_bytes_is_refused(text):
    with pytest.raises(InvalidInputError):
        parse_bytes(text)


def test_workers_keep_the_order(local):
    """``fingerprint --workers`` prints what it prints without; the first line is so long that processes are started."""
    lines = [f"line number {number}" for number in range(3500)]
    result = local("fingerprint", "--workers", 2, stdin="\n".join([" " * PoolSizes().enough, *lines]))
    assert result.stdout.splitlines()[1:] == [to_hex(fingerprint(line)) for line in lines]
    assert local("fingerprint", "--workers", 0, stdin="a").exit_code == 2


TEXTS = ["the quick brown fox jumps over the lazy dog", "...", "日本語の新聞記事を読む", "a\r"]


def as_fingerprint(text):
    found = fingerprint(text)
    return "-" if found is None else to_hex(found)


def as_query(text):
    """The search that the command prints for one text."""
    if fingerprint(text) is None:
        return None
    return json.loads(CliRunner().invoke(app, ["query", text, "--max-distance", "3"]).stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell whether a line waits")
@pytest.mark.parametrize(
    ("arguments", "expected", "read"),
    [
        (["fingerprint"], as_fingerprint, str.strip),
        (["fingerprint", "--workers", "2"], as_fingerprint, str.strip),
        (["query", "--lines", "--max-distance", "3"], as_query, json.loads),
    ],
    ids=["fingerprint", "fingerprint with workers", "query"],
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


@pytest.mark.parametrize("arguments", [["explain", "news", "-x1", "B"], ["history", "-x1", __file__]])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_argument_that_begins_with_a_dash_goes_after_two(local, arguments, more):
    """An id may begin so; what looks like an option gets the names of options instead."""
    result = local(*arguments, *more)
    assert result.exit_code == 2
    assert "If '-x1' is no option, put -- before the arguments" in result.stderr
    assert "put --" not in local(arguments[0], "--jsn").stderr
