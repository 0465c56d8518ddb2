"""``report`` and ``tune``: how many near-duplicates an index has, and which rule fits its texts. Nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from es_simhash import SimHashClient
from es_simhash.cli.connect import connect, warn_of_lacking, warn_of_shared_ids
from es_simhash.cli.failures import WrongUseError
from es_simhash.cli.options import To, takes
from es_simhash.cli.output_files import refuse_output, write_whole
from es_simhash.cli.show import PARTLY, Output, print_json, print_line, show, warn


@takes(SimHashClient.report, "filter")
def report(
    index: str,
    /,
    *,
    out: str | None = None,
    language: Literal["en", "zh"] = "en",
    queries: str | None = None,
    to: To = To(),
    **how: Any,
) -> None:
    """
    Print how many documents, duplicates and groups INDEX has, by size and by distance.

    Every number is exact, because the server counts all documents: about two searches for every 10,000 groups. With
    --out a page shows them, with the largest groups and the words that differ; the health of the fingerprints; and how
    all that was measured. With --json the numbers are printed too. With --queries it says how many of the first ten
    hits of these searches repeat an earlier one, and how many new hits they would show without copies. Writes nothing
    to the index.

    For example:

        es-simhash report news
        es-simhash report news --queries searches.txt
        es-simhash report 'news-*' --out report.html
        es-simhash report news --filter '{"term": {"lang": "en"}}' --json | jq .duplicates

    Args:
        index:
            A name, an alias, a pattern, or several of them separated by commas.
        out:
            Write a page to this file: HTML that opens anywhere and loads nothing.
        language:
            Language of the page.
        queries:
            Say how many hits of these searches repeat another: one a line, words or the JSON of a search body.
    """
    if out is None and language != "en":
        raise WrongUseError("--language needs --out")
    if out is None and queries is None:
        with connect(to, index) as connection:
            stats = connection.simhash.stats(index, **how)
        show(stats)
        warn_of_shared_ids(stats.groups.several_canonicals)
        return
    if out is not None:
        refuse_output(out)
    with connect(to, index) as connection:
        found = connection.simhash.report(index, **how, queries=queries)
        warn_of_lacking(connection, to, index)
    if out is not None:
        write_whole(Path(out), [found.html(language=language)])
    if Output.as_json:
        print_json(found.to_dict())
        return
    if found.searches is not None:
        show(found.searches)
    if out is not None:
        print_line(f"the report is in {out}: open it in a browser")


@takes(SimHashClient.tune, "text_field sample")
def tune(index: str, /, *, to: To = To(), **how: Any) -> int:
    """
    Recommend a preset for the texts of INDEX.

    Makes edits of known kinds in a sample of the texts (typos, boilerplate, dates, cuts, moved sentences, punctuation),
    and reports how many of them each preset would find (recall). Recommends the strictest that finds 98 % of the copies
    that share 80 % of their words. Writes nothing. If INDEX does not have the fields yet, pass --text-field. Exits with
    3 if not every document could be looked at, or not the whole of a text. How many documents a preset would remove
    says es-simhash plan INDEX --preset PRESET.

    For example:

        es-simhash tune articles --text-field body --sample 2000

    Args:
        index:
            A name, an alias, a pattern, or several of them separated by commas.
    """
    with connect(to, index) as connection:
        found = connection.simhash.tune(index, **how)
    way = (
        []
        if found.recommended is None
        else [f"to try it: {to.command('find', index, '--preset', found.recommended)} ..."]
    )
    show(found, *way)
    for reason in found.reasons:
        warn(reason)
    return PARTLY if found.reasons else 0
