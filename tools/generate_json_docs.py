"""Write ``docs/json.md`` from the classes of the answers. ``make docs`` runs it, and tests compare it with answers."""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

sys.path.insert(0, str(Path(__file__).parents[1]))  # the package beside this file, not the one that is installed

import es_simhash as package
from es_simhash.ingest.written import RefusedKind
from es_simhash.lookup.near_dups import Rejected
from es_simhash.mapping.faults import Fault
from es_simhash.pipeline.install import InstalledPipeline
from es_simhash.quality.explanation import Explanation
from es_simhash.quality.health import Diagnosis, Finding
from es_simhash.quality.searches import Searches
from es_simhash.quality.steps import StepFigures
from es_simhash.quality.tune import PresetFigures, Tuning
from es_simhash.writes.operations import FailureKind

TARGET = Path(__file__).parents[1] / "docs" / "json.md"

_INTRODUCTION = """\
<!-- make docs generates this page: change the docstrings of the classes, or tools/generate_json_docs.py. -->

# What `--json` prints

Every command prints JSON with `--json`, and in a pipe or a file: one object, or one object a line. This page is a
promise: a field that is named here keeps its name, its type and its meaning. Later versions may add fields, so ignore
fields that you do not know. A field without a value is `null` or is left out. Distances are in bits, shares are from 0
to 1, moments are ISO 8601 in UTC, fingerprints have 16 hex digits. Warnings, notes and errors are objects on stderr:
see [the command line](cli.md). `export` prints what a server takes as it is: mappings, templates, pipelines and saved
objects.
"""


class Shape(NamedTuple):
    """An object: the *fields*, whose texts the class has, or *more*; *inner*: which of them hold which shapes."""

    cls: type[Any] | None
    fields: str
    more: Mapping[str, str] = {}
    inner: Mapping[str, str] = {}


_KINDS = sorted({f"`{kind}`" for kinds in (FailureKind, *get_args(RefusedKind)) for kind in get_args(kinds)})
_DRY = {"dry_run": "Whether nothing was written."}
_DOCUMENT = {"id": "Its `_id`.", "index": "Name of its index.", "routing": "Its routing value, where it has one."}
SHAPES: dict[str, Shape] = {
    "Near-duplicate": Shape(
        package.NearDup, "id index distance fingerprint routing similarity containment numbers unverified source"
    ),
    "Rejected": Shape(
        Rejected,
        "id index distance fingerprint routing similarity containment numbers unverified source because at_least words",
        {
            **_DOCUMENT,
            "distance": "Hamming distance.",
            "fingerprint": "Its fingerprint.",
            "similarity": "How alike the texts are.",
            "containment": "Which share of one text the other one has.",
            "numbers": "Whether both texts have the same numbers.",
            "unverified": "Why the texts were not compared.",
            "source": "The fields that were asked for.",
            "because": "Which condition of the rule it does not meet.",
            "at_least": "The least similarity that the rule accepts.",
            "words": "That, as a sentence.",
        },
    ),
    "Rule": Shape(
        package.LookupRule,
        "words max_distance similarity measure unit numbers per within origin not_applied",
        {
            "words": "The rule, for people.",
            "max_distance": "Largest distance.",
            "similarity": "Least similarity of the texts; `null` where they are not compared.",
            "measure": "By what similarity is measured.",
            "unit": "What the shingles are made of.",
            "numbers": "Whether `any` numbers may differ, `most` must be the same, or all (`same`).",
            "per": "Field whose value is the same in near-duplicates.",
            "within": "Field and span of time within which near-duplicates are.",
        },
    ),
    "Failure": Shape(
        package.Failure,
        "kind index id reason status file line",
        {
            "kind": f"What became of the document, or what is in its way: {', '.join(_KINDS)}.",
            **_DOCUMENT,
            "reason": "Why, in the words of the server, or of the library.",
            "status": "HTTP status, where the server refused it.",
            "file": "Of an ingest: the file that it is from.",
            "line": "Of an ingest: the line that it is from.",
        },
    ),
    "Fault": Shape(
        Fault,
        "kind field found wanted",
        {
            "kind": "What is wrong, as a word.",
            "field": "The field that is concerned.",
            "found": "What was found there.",
            "wanted": "What must be there.",
        },
    ),
    "Finding": Shape(
        Finding,
        "severity topic message advice kind values",
        {
            "severity": "`error`, `warning` or `note`.",
            "topic": "What it concerns.",
            "message": "What was found.",
            "advice": "What to do.",
            "kind": "What was found, as a word.",
            "values": "The numbers and names in the message.",
        },
    ),
    "Health": Shape(
        Diagnosis,
        "index documents fingerprinted sampled findings reasons healthy",
        {
            "index": "Name of the index.",
            "documents": "All documents.",
            "fingerprinted": "Those that have a fingerprint.",
            "sampled": "Those that were read, at random.",
            "findings": "What is wrong, errors first.",
            "reasons": "Why the figures are not about all documents.",
            "healthy": "Whether there is no error, and no such reason.",
        },
        {"findings": "Finding"},
    ),
    "Presets": Shape(
        PresetFigures,
        "preset max_distance similarity recall recall_similar found copies pairs",
        {
            "preset": "Its name.",
            "max_distance": "Its largest distance.",
            "similarity": "Its least similarity of texts.",
            "recall": "Share of the edited copies that it finds.",
            "recall_similar": "Share of those that share 80 % of their words.",
            "found": "How many of the edited copies it finds.",
            "copies": "How many edited copies there are.",
            "pairs": "How many pairs of the texts themselves it takes for near-duplicates that share less than 80 %.",
        },
    ),
    "Steps": Shape(
        StepFigures,
        "step preprocess texts found found_after",
        {
            "step": "A step of `--preprocess`.",
            "preprocess": "All steps of the scheme then.",
            "texts": "How many texts of the sample have what it changes.",
            "found": "Of so many copies, how many are found without the step; `null` of `t2s`.",
            "found_after": "How many are found with it; `null` of `t2s`.",
        },
    ),
    "Filled": Shape(
        package.BackfillProgress,
        "total seen changed stale empty failures failed is_done is_settled",
        inner={"failures": "Failure"},
    ),
    "Grouped": Shape(
        package.Reconciled,
        "documents groups duplicates changed failures is_settled unread rule unreadable first_unreadable dry_run",
        _DRY,
        {"failures": "Failure"},
    ),
    "Removed": Shape(
        package.Removed,
        "id index canonical canonical_index at path plan distance routing deleted kept restored approved",
    ),
    "Index": Shape(
        package.IndexCheck,
        "index ready scheme text_fields max_distance documents fingerprinted problems faults grouping with_passages",
        inner={"faults": "Fault"},
    ),
    "Statistics": Shape(
        package.Stats,
        "index documents duplicates share fingerprinted without_fingerprint ungrouped groups largest sizes distances "
        "largest_groups without_canonical several_canonicals time sources scheme grouping",
        {
            "groups": "How many groups of two documents or more.",
            "sizes": "How many groups have each size.",
            "distances": "How many duplicates are at each distance.",
            "largest_groups": "The largest groups.",
            "without_canonical": "Groups whose canonical is not there.",
            "several_canonicals": "Groups with more than one canonical.",
        },
    ),
    "Passage": Shape(package.Passage, "start end other_start other_end text"),
    "Overlap": Shape(
        package.Overlap,
        "id index contained contains similarity passages routing source",
        {"source": "The fields that were asked for."},
        {"passages": "Passage"},
    ),
    "Outcome": Shape(
        package.DuplicateResult,
        "id index canonical canonical_index distance similarity loss action kind reason routing earlier",
        {"reason": "Why it was kept or restored, as a sentence."},
    ),
    "Searches": Shape(
        Searches,
        "searches hits repeats share unseen new reason worst",
        {
            "searches": "How many searches.",
            "hits": "Their first ten hits, all together.",
            "repeats": "Hits that repeat an earlier one.",
            "unseen": "Hits that could not be judged.",
            "new": "New hits that a search without copies shows.",
            "reason": "Why `new` is not known.",
            "worst": "The twenty searches with the most repeats, with two texts of each.",
        },
    ),
}
"""Objects that stand in answers."""

_FOUND = "near_dups complete max_distance rule scheme plan candidates unverified rejected"
_FOUND_MORE = {
    "near_dups": "The near-duplicates, the most similar first.",
    "rejected": "Documents that were near by bits, and that the rule does not accept.",
    "line": "With `--input`: number of the line.",
    "no_fingerprint": "With `--input`: why the text has no fingerprint.",
    "error": "With `--input`: why there is no answer to the line.",
    "text": "With `--query`: what to paste, and nothing else.",
}
COMMANDS: dict[str, tuple[str, Shape]] = {
    "setup": (
        "One object.",
        Shape(
            package.Setup,
            "index indices text_fields scheme max_distance grouping preset recorded documents missing sampled measured "
            "presets notes findings filled groups outside rollover is_already is_complete dry_run",
            _DRY,
            {
                "presets": "Presets",
                "measured": "Presets",
                "findings": "Finding",
                "filled": "Filled",
                "groups": "Grouped",
            },
        ),
    ),
    "ingest": (
        "One object.",
        Shape(
            None,
            "index dry_run written fingerprinted updated too_short tagged skipped unchanged dropped refused unreadable "
            "seconds failures",
            {
                "index": "Name of the index.",
                **_DRY,
                "written": "Documents that were written.",
                "fingerprinted": "Those of them that got a fingerprint.",
                "too_short": "Those of them whose text is too short to be near another.",
                "updated": "Those of them that replaced another version.",
                "tagged": "Those of them that record their canonical.",
                "skipped": "Documents that were not written, as near-duplicates.",
                "unchanged": "Documents that are in the index as they were given.",
                "dropped": "Documents that a pipeline of the index dropped.",
                "refused": "Documents that the server refused, or that cannot be used.",
                "unreadable": "Lines that cannot be read.",
                "seconds": "How long that took.",
                "failures": "What could not be done, at most the first ten.",
            },
            {"failures": "Failure"},
        ),
    ),
    "find": (
        "One object; with `--input` one a line.",
        Shape(
            package.NearDups,
            f"{_FOUND} line no_fingerprint error text",
            _FOUND_MORE,
            {"near_dups": "Near-duplicate", "rejected": "Rejected", "rule": "Rule"},
        ),
    ),
    "report": (
        "One object: without `--out` the fields of [Statistics](#statistics); with `--out` these.",
        Shape(
            package.IndexReport,
            "at version seed filter stats diagnosis searches groups",
            inner={"stats": "Statistics", "diagnosis": "Health", "searches": "Searches"},
        ),
    ),
    "plan": (
        "With `--out` one object; else the fields of [Outcome](#outcome), an object a line.",
        Shape(
            package.RemovalPlan,
            "path sha256 count documents duplicates left_out excess large_group without_fingerprint ungrouped unmet "
            "rule held losses kept_is_shorter newer date also examples",
        ),
    ),
    "review": (
        "One object.",
        Shape(
            None,
            "plan at indices grouping asked shown also max_share excess large_group decisions kept total losses "
            "groups canonicals lowest differing",
            {
                "plan": "SHA-256 of the plan.",
                "at": "When it was made.",
                "indices": "The indices of its documents.",
                "grouping": "The rule of the groups.",
                "asked": "The options that it was made with.",
                "shown": "The fields that it shows.",
                "max_share": "Largest share of the documents that may go.",
                "also": "The classes that are taken in.",
                "excess": "The share that would go, where it is larger.",
                "large_group": "How many documents would go for one, where they are very many.",
                "decisions": "What people decided.",
                "kept": "How many documents stay because of that.",
                "total": "How many documents would go, and of how many.",
                "groups": "The documents that stand for most removals.",
                "canonicals": "How many different documents stay.",
                "lowest": "The smallest similarity.",
                "losses": "How many duplicates have each class, what is held back too.",
                "differing": "For each field, how many documents have another value than what stays.",
            },
        ),
    ),
    "apply": (
        "With `--yes` the fields of [Outcome](#outcome), an object a line; with `--quiet`, or without `--yes`, these.",
        Shape(
            None,
            "plan count indices would_delete kept deleted deleted_earlier",
            {
                "plan": "The file of the removal.",
                "count": "Documents that it plans to remove.",
                "indices": "Their indices.",
                "would_delete": "How many would be deleted.",
                "kept": "How many would stay, or stayed, by the reason.",
                "deleted": "How many were deleted.",
                "deleted_earlier": "How many an earlier run deleted.",
            },
        ),
    ),
    "restore": (
        "One object.",
        Shape(
            None,
            "dry_run documents",
            {**_DRY, "documents": "How many documents had each outcome."},
        ),
    ),
    "check": (
        "One object.",
        Shape(
            None,
            "indices sample",
            {"indices": "Each index.", "sample": "With `--sample`: what the documents show."},
            {"indices": "Index", "sample": "Health"},
        ),
    ),
    "create": (
        "One object.",
        Shape(
            package.IndexSettings,
            "created scheme text_fields max_distance value passages dry_run indices",
            {
                "created": "Name of the index that was made; of a dry run, that would be made.",
                "indices": "With `--existing`: the indices that get the fields.",
                **_DRY,
            },
        ),
    ),
    "follow": (
        "One object at the end, and one at each interval of `--metrics`.",
        Shape(
            package.FollowReport,
            "time index state read written stale conflicts regrouped failed lag_operations lag_seconds errors problem "
            "peak_memory_bytes",
            {
                "time": "When that was so.",
                "index": "Name of the index.",
                "peak_memory_bytes": "Largest memory of the process so far.",
            },
        ),
    ),
    "reconcile": ("One object: the fields of [Grouped](#grouped).", Shape(None, "")),
    "groups": (
        "An object a line; with `--pairs` the fields of a pair.",
        Shape(
            package.Group,
            "id size members canonicals unreadable",
            {"size": "How many documents it has."},
            {"members": "Near-duplicate"},
        ),
    ),
    "groups --pairs": (
        "An object a line.",
        Shape(package.Pair, "id index other_id other_index distance routing other_routing similarity unverified rule"),
    ),
    "passages": (
        "One object.",
        Shape(
            package.Overlaps,
            "overlaps complete min_contained min_run candidates stale",
            {"overlaps": "The documents that share a passage, that which has most of the text first."},
            {"overlaps": "Overlap"},
        ),
    ),
    "explain": (
        "One object.",
        Shape(
            Explanation,
            "verdict because index rule scheme fingerprints distance similarity numbers diff unverified",
            {
                "fingerprints": "Of both texts.",
                "diff": "The words that differ, in excerpts of the texts.",
            },
        ),
    ),
    "history": (
        "One object.",
        Shape(
            package.History,
            "id removals stands_for",
            {
                "id": "The `_id` that was asked about.",
                "removals": "Its removals, oldest first.",
                "stands_for": "Removals of other documents, whose canonical has this id.",
            },
            {"removals": "Removed", "stands_for": "Removed"},
        ),
    ),
    "tune": (
        "One object.",
        Shape(
            Tuning,
            "index documents sampled presets recommended enough_distance steps reasons short",
            {
                "index": "Name of the index.",
                "documents": "All documents.",
                "sampled": "Those whose texts were edited.",
                "presets": "What each preset finds.",
                "recommended": "The strictest preset that finds enough.",
                "enough_distance": "The smallest distance that finds enough.",
                "steps": "Steps before features by which more copies are found.",
                "reasons": "Why not every document could be looked at.",
                "short": "How many texts were left out as too short to compare.",
            },
            {"presets": "Presets", "steps": "Steps"},
        ),
    ),
    "fingerprint": (
        "One object; of a file one a line.",
        Shape(
            None,
            "fingerprint scheme line file",
            {
                "fingerprint": "The fingerprint; `null` for a text without features.",
                "scheme": "Id of the scheme.",
                "line": "Number of the line of stdin, where the text is one.",
                "file": "With `--file`: name of the file.",
            },
        ),
    ),
    "remove-fields": (
        "One object.",
        Shape(package.RemovedFields, "documents failures indices is_settled dry_run", _DRY, {"failures": "Failure"}),
    ),
    "export pipeline": (
        "With `--install` one object; else the pipeline.",
        Shape(InstalledPipeline, "name indices use_as scheme text_fields dry_run", _DRY),
    ),
    "serve": (
        "One object; with `--demo` the groups.",
        Shape(
            None,
            "url product version data documents groups",
            {
                "url": "Address of the server.",
                "product": "`elasticsearch` or `opensearch`.",
                "version": "Its version.",
                "data": "The folder of its data.",
                "documents": "With `--demo`: how many documents there are.",
                "groups": "With `--demo`: the groups found.",
            },
        ),
    ),
}
"""The answer of each command."""

# Shapes whose fields a command has as its own.
_AS = {"report": "Statistics", "plan": "Outcome", "apply": "Outcome", "reconcile": "Grouped"}
_ENTRIES = re.compile(r"^Attributes:\n((?:(?:    .*)?\n?)*)", re.MULTILINE)


def texts_of(cls: type[Any] | None) -> dict[str, str]:
    """Return what the docstrings of a class say of its attributes and properties."""
    if cls is None:
        return {}
    found = {
        name: inspect.getdoc(value) or "" for name, value in inspect.getmembers(cls) if isinstance(value, property)
    }
    for base in reversed(cls.__mro__):
        if entries := _ENTRIES.search(inspect.cleandoc(base.__doc__ or "")):
            for entry in re.split(r"^    (?=\S)", entries[1], flags=re.MULTILINE)[1:]:
                names, _, text = entry.partition(":\n")
                found |= dict.fromkeys(names.split(", "), text)
    return found


def _plain(text: str) -> str:
    """Return the first sentence of a docstring as Markdown in a cell."""
    text = re.sub(r":\w+:`([^`]+)`|``([^`]+)``|\*(\w+)\*", r"`\1\2\3`", " ".join(text.split()))
    for python, plain in {"`None`": "`null`", "`True`": "`true`", "`False`": "`false`", "|": "\\|"}.items():
        text = text.replace(python, plain)
    return re.split(r"(?<=[.])\s", text)[0]


def rows_of(shape: Shape) -> Iterator[str]:
    """Yield the rows of the table of a shape; raise KeyError for a field that nothing describes."""
    known = texts_of(shape.cls)
    yield "| field | meaning |\n|---|---|"
    for name in shape.fields.split():
        inner = shape.inner.get(name)
        link = f" See [{inner}](#{inner.lower().replace(' ', '-')})." if inner else ""
        yield f"| `{name}` | {_plain(shape.more.get(name) or known[name])}{link} |"


def build_text() -> str:
    """Return the whole of ``docs/json.md``."""
    parts = [_INTRODUCTION]
    for name, (said, shape) in COMMANDS.items():
        parts.append(f"## `{name}`\n\n{said}\n")
        if shape.fields:
            parts.append("\n".join(rows_of(shape)) + "\n")
    parts.append("## Objects in answers\n")
    for name, shape in SHAPES.items():
        parts.append(f"### {name}\n\n" + "\n".join(rows_of(shape)) + "\n")
    return "\n".join(parts)


def find_unknown(command: str, answer: Any) -> list[str]:
    """Return the fields of an *answer* of a command that the page does not name."""
    return sorted({path for name, path in _printed(answer, [command]) if not name})


def find_unprinted(answers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the fields, by object, that the page names without a condition, and that no answer of a command has."""
    printed = {found for command, answer in answers.items() for found in _printed(answer, [command])}
    unprinted = {}
    for name, shape in {**SHAPES, **{command: COMMANDS[command][1] for command in answers}}.items():
        always = [field for field in shape.fields.split() if not shape.more.get(field, "").startswith("With `--")]
        unprinted[name] = [field for field in always if (name, field) not in printed]
    return {name: fields for name, fields in unprinted.items() if fields}


def _printed(value: Any, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each field of a *value* with the name of its object: one of *names*, or nothing if the page has none."""
    names = [*names, *(_AS[name] for name in names if name in _AS)]
    shapes = {name: SHAPES[name] if name in SHAPES else COMMANDS[name][1] for name in names}
    for item in value if isinstance(value, list) else [value]:
        for field, held in item.items() if isinstance(item, dict) else ():
            of_field = {name: shape for name, shape in shapes.items() if field in shape.fields.split()}
            yield from ((name, field) for name in of_field or [""])
            if inner := [shape.inner[field] for shape in of_field.values() if field in shape.inner]:
                yield from ((name, path if name else f"{field}.{path}") for name, path in _printed(held, inner))


if __name__ == "__main__":
    TARGET.write_text(build_text(), encoding="utf-8")
