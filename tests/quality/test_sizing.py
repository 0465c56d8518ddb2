"""The calculator of size: what it says follows from the plan, and grows as its parts do."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from es_simhash import InvalidInputError, Limits, estimate_size, explain_plan
from es_simhash.cli import app
from es_simhash.cli.commands.tune import show_bytes, show_count
from es_simhash.cli.parameter_types import parse_bytes, parse_count
from es_simhash.mapping.context import IndexStats
from es_simhash.quality.size import IndexSize, SizeOptions


def test_a_lookup_has_the_numbers_of_its_plan():
    size = estimate_size(40_000_000, max_distance=8, density=3.0)
    best = explain_plan(8, stats=IndexStats(40_000_000, 3.0))[0]
    plain = explain_plan(8, stats=IndexStats(40_000_000, 3.0), limits=Limits(scripts=False))[0]
    assert size.plans == (best.plan.name, plain.plan.name)
    assert size.figure("block_terms").high == best.plan.terms
    assert size.figure("candidates").high == best.passing
    without = estimate_size(40_000_000, max_distance=8, density=3.0, scripts=False)
    assert without.plans == (plain.plan.name,)
    assert _range(without, "lookup_as_written") == _range(size, "lookup_without_scripts")


def _range(size, name):
    return size.figure(name).low, size.figure(name).high


def test_the_measured_lookups_are_met_within_a_third():
    """Among 4 million documents, by docs/benchmarks.md: product, segments, scripts, distance, times an empty search."""
    measured = [
        ("opensearch", 8, True, 3, 1.8),
        ("opensearch", 8, True, 12, 18.5),
        ("opensearch", 8, False, 10, 17.8),
        ("opensearch", 1, False, 16, 83.2),
        ("elasticsearch", 12, False, 8, 4.1),
        ("elasticsearch", 1, False, 14, 28.6),
    ]
    for product, segments, scripts, distance, times in measured:
        size = estimate_size(
            4_000_000, max_distance=distance, product=product, segments=segments, scripts=scripts, shards=1
        )
        low, high = _range(size, "lookup_as_written")
        assert low == high == pytest.approx(times, rel=1 / 3)


def test_shards_follow_from_documents_and_from_bytes():
    assert estimate_size(1_000).shards == 1
    assert estimate_size(500_000_000).shards == 3
    assert estimate_size(100_000_000, document_bytes=5_000).shards == 10
    assert estimate_size(10**12).shards == 1_024


def test_every_figure_says_how_it_is_known_and_whether_it_is_extrapolated():
    small, large = (estimate_size(number).to_dict() for number in (100_000, 10**9))
    assert {each["basis"] for each in small["figures"]} == {"measured", "modelled", "exact"}
    assert not any(each["is_beyond"] for each in small["figures"])
    assert all(each["is_beyond"] == (each["basis"] != "exact") for each in large["figures"])
    assert json.loads(json.dumps(large)) == large


def test_a_notebook_shows_figures_and_advice():
    size = estimate_size(40_000_000, max_distance=8)
    page = size._repr_html_()
    assert size.to_dicts() == size.to_dict()["figures"]
    assert {each["name"] for each in size.to_dicts()} == {each.name for each in size.figures}
    assert all(each.name in page for each in size.figures)
    assert all(each.setting in page for each in size.advice)
    assert "40,000,000 documents" in page


def test_an_index_grows_from_what_it_is():
    """The bytes that are not ours, the shards, the replicas and the skew are those of the index."""
    measured = IndexSize("news", 1_000, 1_000, 1_155_000, 2, 1, 6, 4.0)
    size = SizeOptions(documents=10_000).apply(measured)
    assert (size.documents, size.shards, size.replicas, size.segments) == (10_000, 2, 1, 3)
    assert size.figure("disk_other_fields").high == 1_000 * 10_000 * 2
    assert size.figure("disk_other_fields").is_beyond(10_000)
    assert size.figure("postings").high == 4 * estimate_size(10_000).figure("postings").high
    assert size.measured == measured
    assert SizeOptions().apply(IndexSize("logs-*", 10, 0, 10, 5_000, 0, 5_000)).shards == 5_000


@pytest.mark.parametrize("arguments", [{"shards": 0}, {"replicas": -1}, {"density": 0}, {"product": "solr"}])
def test_what_no_index_can_be_is_refused(arguments):
    with pytest.raises(InvalidInputError):
        estimate_size(1_000, **arguments)


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("500M", 500_000_000), ("1.5B", 1_500_000_000), ("2k", 2_000)])
def test_counts_are_read_as_people_write_them(text, number):
    assert parse_count(text) == number


@pytest.mark.parametrize("text", ["", "M", "-5", "1.5", "1e6", "1,000", "5Q", "1.2345k", "٣", "5 5", "9" * 30])
def test_other_counts_are_refused(text):
    with pytest.raises(InvalidInputError):
        parse_count(text)


def test_bytes_are_read_in_thousands_and_in_1024s():
    assert [parse_bytes(each) for each in ("10", "2kB", "2KiB", "1.5 GiB")] == [10, 2_000, 2_048, 3 * 2**29]


def test_quantities_are_shown_in_three_digits():
    assert [show_count(each) for each in (0, 7.25, 999.6, 30_142, 10**13)] == ["0", "7.25", "1.00k", "30.1k", "10T"]
    assert show_bytes(138_500_000_000) == "138 GB"


def test_the_command_fits_80_columns_and_json_has_everything():
    arguments = ["size", "--documents", "500M", "--distance", "8", "--document-bytes", "2kB"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.stdout.splitlines())) <= 80
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert found == estimate_size(500_000_000, max_distance=8, document_bytes=2_000).to_dict()


@pytest.mark.parametrize(
    "arguments", [[], ["--documents", "0"], ["--documents", "5Q"], ["news", "--document-bytes", "1"]]
)
def test_a_command_that_cannot_be_answered_is_a_usage_error(arguments):
    assert CliRunner().invoke(app, ["size", *arguments]).exit_code == 2
