"""
The English sentences about the health of an index: for each kind of finding its topic, what was found, and what to do.

What stands in braces is a value of the finding. The report has the same in other languages. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from es_simhash.mapping.faults import Fault

FindingKind = Literal[
    "not_ready",
    "no_source",
    "partial_source",
    "text_field_unknown",
    "unreadable_texts",
    "broken",
    "rounded",
    "numbers",
    "stale",
    "short",
    "two_scripts",
    "missing",
    "missing_of_sample",
    "featureless",
    "hot",
    "hot_copies",
    "hot_template",
    "group_template",
    "lost_canonicals",
]


class Sentence(NamedTuple):
    """What is said of one kind of finding."""

    topic: str
    message: str
    advice: str


_SHARE = "{part:,} of {whole:,} sampled documents"
_HOT = "{field} {term!r} is in {documents:,} documents; by chance it would be in {chance:,}"
_COOLER = (
    "texts with much in common, such as boilerplate or copies: lookups near them read more; leave boilerplate out "
    "(es-simhash boilerplate), or group the copies"
)
_LEARN = (
    "if it is template and not content, leave it out: es-simhash boilerplate {index} --out mask.json, then backfill a "
    "second prefix with --boilerplate mask.json"
)

SENTENCES: Mapping[FindingKind, Sentence] = {
    "not_ready": Sentence("mapping", "{index}: {fault}", "{advice}"),
    "no_source": Sentence("mapping", f"{{index}}: {Fault('no_source')}", Fault("no_source").advice),
    "partial_source": Sentence(
        "mapping", f"{{index}}: {Fault('partial_source', found='{left_out}')}", Fault("partial_source").advice
    ),
    "text_field_unknown": Sentence(
        "texts",
        "the mapping does not record the text field, so texts were not examined",
        "record the text field: put_mapping, or es-simhash create --existing --text-field",
    ),
    "unreadable_texts": Sentence(
        "texts",
        f"{_SHARE} have a fingerprint but no readable text, such as {{example!r}}",
        "verification cannot compare them: keep the text in _source, and let this user read it",
    ),
    "broken": Sentence(
        "broken",
        f"{_SHARE} have a fingerprint that is not 16 lower-case hex digits, or block terms that are not its own, such "
        "as document {example!r}",
        "write the fields with this library only, and backfill these documents",
    ),
    "rounded": Sentence(
        "numbers",
        f"{_SHARE} have a {{field}} other than their fingerprint, such as {{example!r}}",
        "a program that reads numbers as doubles, such as JavaScript, rounded them: backfill the index",
    ),
    "numbers": Sentence(
        "numbers",
        f"{_SHARE} hold {{field}} as a number, which a program that reads numbers as doubles, such as JavaScript, "
        "would round; therefore lookups use no scripts",
        "backfill the index: it writes decimal strings",
    ),
    "stale": Sentence(
        "stale",
        f"{_SHARE} have a fingerprint of another text, such as document {{example!r}}",
        "the text was updated without the fields, or is redacted for this user: backfill them, and send updates "
        "through with_fingerprints",
    ),
    "lost_canonicals": Sentence(
        "groups",
        "documents that name a canonical that is not there: {documents:,}, in {groups:,} groups; who searches for "
        "documents that are no duplicates does not find them",
        "run reconcile over all indices that are grouped together",
    ),
    "short": Sentence(
        "short",
        f"{_SHARE} have fewer than {{least}} shingles, such as document {{example!r}}",
        "one changed word changes many of their bits: look up with a preset or with verification",
    ),
    "two_scripts": Sentence(
        "texts",
        "{traditional:,} of the sampled texts are in traditional and {simplified:,} in simplified Chinese; {pairs:,} "
        "pairs of them are the same text in the two scripts",
        "they are not found as near-duplicates of each other: backfill a second prefix with a scheme that has "
        "the preprocess step t2s",
    ),
    "missing": Sentence("missing", "documents without a fingerprint: {missing:,}", "backfill the index"),
    "missing_of_sample": Sentence(
        "missing",
        f"documents without a fingerprint: {{missing:,}}; {_SHARE} of those examined should have one",
        "backfill the index",
    ),
    "featureless": Sentence(
        "missing",
        "documents without a fingerprint: {missing:,}; those examined ({whole:,}) have no features",
        "nothing: such texts match nothing",
    ),
    "hot": Sentence("hot", _HOT, _COOLER),
    "hot_copies": Sentence("hot", f"{_HOT}; {{copies:,}} documents share one fingerprint", _COOLER),
    "hot_template": Sentence(
        "hot",
        "of {whole:,} different documents with {field} {term!r}, {part:,} have this text in common: {text!r}",
        _LEARN,
    ),
    "group_template": Sentence(
        "texts",
        "the group {group!r} has {documents:,} documents, but of {whole:,} different ones {part:,} have this text in "
        "common: {text!r}",
        _LEARN,
    ),
}
"""The sentences of each kind."""
