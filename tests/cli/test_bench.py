"""The command ``bench``, and ``--workers`` where no server is needed."""

import json

import pytest
from click.testing import CliRunner

from es_simhash import fingerprint, get_scheme, to_hex
from es_simhash.cli import app
from es_simhash.hashing.pool import PoolSizes


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)


@pytest.fixture
def texts(tmp_path):
    """A file with 250 texts, one of them in an export's ``_source``, and lines that have none."""
    path = tmp_path / "texts.jsonl"
    lines = [{"body": f"国家统计局今天发布第 {number} 号数据，text number {number}"} for number in range(249)]
    lines += [{"_id": "1", "_source": {"body": "one more"}}, {"title": "no body"}, {"body": 5}, [1]]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n{broken\n", encoding="utf-8")
    return path


def test_every_scheme_is_measured(texts):
    """One line for each scheme that takes text, with rates and a projection that fit together."""
    result = run("bench", texts, "--text-field", "body", "--documents", 5000, "--json")
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["scheme"] for each in found] == [str(get_scheme(name)) for name in ("shingles", "words", "keywords")]
    for each in found:
        assert each["documents"] == 250
        assert each["documents_per_second"] > 0
        assert each["characters_per_second"] > each["documents_per_second"]
        assert each["projected_documents"] == 5000
        assert each["projected_seconds"] == pytest.approx(5000 / each["documents_per_second"], rel=0.05, abs=0.002)


def test_time_is_limited(texts):
    """Measuring ends with the first batch after the time is up."""
    result = run("bench", texts, "-t", "body", "--seconds", 1e-9, "--scheme", "words", "--set", "size=3", "--json")
    assert json.loads(result.stdout)["documents"] == 100
    assert json.loads(result.stdout)["scheme"] == str(get_scheme("words", size=3))


def test_table(texts):
    """Without --json a table is printed, with the number of documents that the time is projected for."""
    result = run("bench", texts, "-t", "body", "--scheme", "shingles", "--documents", 100_000_000, "--limit", 10)
    assert "100,000,000 documents" in result.stdout
    assert "10 texts of" in result.stderr


def test_file_without_texts(texts):
    """A field that no line has is told in one line."""
    result = run("bench", texts, "-t", "content")
    assert result.exit_code == 1
    assert "check --text-field" in result.stderr
    assert run("bench", texts).exit_code == 2


def test_workers_keep_the_order():
    """``fingerprint --workers`` prints what it prints without; the first line is so long that processes are started."""
    lines = [f"line number {number}" for number in range(3500)]
    result = run("fingerprint", "--workers", 2, stdin="\n".join([" " * PoolSizes().enough, *lines]))
    assert result.stdout.splitlines()[1:] == [to_hex(fingerprint(line)) for line in lines]
    assert run("fingerprint", "--workers", 0, stdin="a").exit_code == 2
