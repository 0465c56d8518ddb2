"""
A policy for ingest that verifies: a document is a duplicate only if its text is similar to the other's.

Pure. What follows from a verdict is decided in ``decide``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.ingest.decide import VERDICTS, Verdict
from es_simhash.lookup.near_dups import NearDup
from es_simhash.mapping.documents import read_text
from es_simhash.mapping.meta import check_text_fields
from es_simhash.texts.measures import Measure, TextMeasure, Unit
from es_simhash.texts.similarity import DEFAULT_SIMILARITY, check_bound


@dataclass(frozen=True, slots=True)
class IfSimilar:
    """
    An ``on_duplicate`` for ``ingest``: what to do with a near-duplicate whose text is similar; others are written.

    A near-duplicate whose text cannot be read does not count as a duplicate.

    A grouping that verifies (``ingest(verify=0.8)``) makes it unnecessary: that compares the texts for every policy,
    and is recorded, so that ``reconcile`` makes the same groups. Use this one for a stricter bound in one ingest, or
    for other fields than those that the index records.

    Args:
        text_field:
            Field or fields of the text, in both documents.
        then:
            ``"tag"``, ``"skip"`` or ``"replace"``.
        similarity:
            Smallest similarity of a duplicate, 0 to 1.
        measure, unit:
            What the similarity is: see :class:`~es_simhash.Verification`.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If *then*, *measure* or *unit* is another word, *similarity* is out of range, or a field name
            cannot be used.

    Examples:
        >>> policy = IfSimilar("body", then="skip")
        >>> old = NearDup("1", "news", 2, 0, source={"body": "The boat leaves at nine."})
        >>> policy({"body": "the boat leaves at nine"}, old), policy({"body": "Something else"}, old)
        ('skip', 'write')
    """

    text_field: str | Sequence[str]
    then: Verdict = "tag"
    similarity: float = DEFAULT_SIMILARITY
    measure: Measure = "jaccard"
    unit: Unit = "words"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text_field", check_text_fields(self.text_field))
        check_bound(self.similarity, name="similarity")
        TextMeasure(self.measure, self.unit)
        if self.then not in VERDICTS[:3]:
            raise InvalidInputError(f"then {shorten(self.then)} is not known: give 'tag', 'skip' or 'replace'")

    def __call__(self, new: Mapping[str, Any], old: NearDup) -> Verdict:
        """Return *then* for similar texts, and ``"write"`` for others."""
        texts = []
        for document in (new, old.source or {}):
            try:
                text = read_text(document, self.text_field)
            except InvalidInputError:
                text = None
            if text is None:
                return "write"
            texts.append(text)
        measure = TextMeasure(self.measure, self.unit)
        score = measure.compare(*measure.prepare(texts), bound=self.similarity)
        return self.then if score.similarity >= self.similarity else "write"
