"""
What ``doctor`` says of the template text that some documents share.
"""

from __future__ import annotations

from collections.abc import Sequence

from es_simhash.hashing import Scheme
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.quality.boilerplate.learn import learn_boilerplate
from es_simhash.quality.health import Finding, Severity, Values
from es_simhash.quality.health_words import FindingKind

__all__ = ["judge_template"]

_FEWEST, _LEAST_SHARE = 5, 0.5
_SHOWN = 200


def judge_template(
    kind: FindingKind, texts: Sequence[str], *, scheme: Scheme, severity: Severity, values: Values
) -> list[Finding]:
    """
    Return a finding about the longest passage that at least half of *texts* share although their contents differ.

    Args:
        kind:
            The kind of the finding.
        texts:
            Texts of documents that are near each other.
        scheme:
            Scheme of the index; what it leaves out is no cause any more.
        severity:
            Severity of the finding.
        values:
            What the finding says beside the passage.
    """
    prepare = preprocessor(scheme)
    found = learn_boilerplate(
        texts if prepare is None else prepare(texts), min_documents=_FEWEST, min_share=_LEAST_SHARE
    )
    longest = max(found.passages, key=lambda each: len(each.text), default=None)
    if longest is None:
        return []
    text = " ".join(longest.text.split())
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    passage: Values = {"part": longest.documents or 0, "whole": found.counted, "text": shown}
    return [Finding(severity, kind, {**values, **passage})]
