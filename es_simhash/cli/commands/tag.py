"""``es-simhash tag``: duplicates shown, or tagged in the index."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.duplicates import given, show
from es_simhash.cli.grouping_options import contained as contained_option, grouping as grouping_option
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, print_line
from es_simhash.cli.stopping import say_if_stopped


@options.manual(
    "es-simhash tag news --preset near",
    "es-simhash tag news --preset near --yes",
    "es-simhash tag mails --contained 0.95 --yes",
    common=(
        *("--contained", "--yes", "--preset", "--verify", "--max-distance", "--rule"),
        *("--canonical", "--url", "--json"),
    ),
)
@click.argument("index")
@contained_option
@options.yes
@grouping_option
@options.target
def command(
    index: str, contained: float | None, grouping: dict[str, Any], target: Target, *, yes: bool, as_json: bool
) -> int:
    """
    Show which documents of INDEX are duplicates, and of what. With --yes they are tagged.

    A duplicate is tagged with the canonical of its group, as es-simhash reconcile does, and the grouping is recorded if
    there is no record. With --contained the tag is the field contained_in of documents that add nothing: most of their
    text stands in a longer document. Such tags that are right no longer are removed.
    """
    asked = given(grouping, {"contained": contained})
    with connect(target, index) as connection:
        records = connection.simhash.tag_duplicates(index, dry_run=not yes, **asked)
        with closing(records), say_if_stopped():
            counts = show(records, by_containment=contained is not None, as_json=as_json)
    tags = f", {count(counts.untagged, 'tag')} {'removed' if yes else 'to remove'}" if counts.untagged else ""
    if not as_json and yes:
        print_line(f"{count(counts.done, 'document')} tagged{tags}")
    elif not as_json:
        hint = "; pass --yes to tag them" if counts.total or counts.untagged else ""
        print_line(f"{count(counts.total, 'duplicate')} found{tags}, nothing changed{hint}")
    return 1 if counts.kinds else 0
