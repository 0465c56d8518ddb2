"""``es-simhash history``: where a removed document has gone."""

from __future__ import annotations

import click

from es_simhash.cli import options
from es_simhash.cli.output import count, note, print_json, warn
from es_simhash.cli.parameter_types import FILE
from es_simhash.cli.tables import Lines, Value
from es_simhash.removal.history import History, Removed, find_history


@options.manual(
    "es-simhash history 4711 --archive removed.jsonl.gz",
    "es-simhash history 4711 --archive january.jsonl.gz --archive february.jsonl.gz --json",
)
@click.argument("id_", metavar="ID")
@click.option(
    "--archive",
    "archives",
    metavar="FILE",
    multiple=True,
    required=True,
    type=FILE,
    help="Archive of a removal. Repeat it for several.",
)
@click.argument("more", metavar="[FILE...]", nargs=-1, type=FILE)
@options.prefix
def command(id_: str, archives: tuple[str, ...], more: tuple[str, ...], prefix: str, *, as_json: bool) -> int:
    """
    Say where the documents with the _id ID have gone, and for which removed documents they stand.

    Further archives may follow as FILE... The archives are read, and no server is asked. So the command knows what was
    archived to be removed, but not what the server refused to delete, or what came back. Where the document that stayed
    was archived later, the command goes on with that one. The exit code is 1 if the archives do not know the ID, or if
    the end of one was cut off, so that documents may be missing.
    """
    history = find_history(id_, [*archives, *more], prefix=prefix)
    if as_json:
        print_json(history.to_dict())
    else:
        _show(history)
    for path, sentence in history.cut.items():
        warn(f"the end of {path} was cut off: {sentence}")
    if not history:
        note(f"{id_} is in none of these archives, as far as they can be read")
    return 0 if history and not history.is_incomplete else 1


def _show(history: History) -> None:
    with Lines() as lines:
        for chain in history.removals:
            for depth, each in enumerate(chain):
                lines.print("  " * depth, *_sentence(each))
        if history.stands_for:
            lines.print(Value("id", history.id), " stands for these removed documents:")
            for each in history.stands_for:
                lines.print("  ", *_sentence(each))


def _sentence(removed: Removed) -> list[str | Value]:
    same = removed.canonical_index == removed.index
    canonical = removed.canonical if same else f"{removed.canonical_index}/{removed.canonical}"
    bits = "" if removed.distance is None else f", {count(removed.distance, 'bit')} apart"
    return [
        f"{removed.at}  ",
        Value("document", f"{removed.index}/{removed.id}"),
        " was archived to be removed for ",
        Value("canonical", canonical),
        f"{bits}; it is in {removed.archive}",
    ]
