"""
The texts of a pack that are longer than a title: what the numbers mean, and what to do. Markdown.
"""

from __future__ import annotations

import shlex

from es_simhash.dashboards.subject import Subject

__all__ = ["about_group", "about_numbers"]


def about_numbers(subject: Subject) -> str:
    """
    Return what stands beside the charts.
    """
    links = " · ".join(
        f"[{words}](../app/discover#/view/{subject.id_of(kind)})"
        for kind, words in (
            ("duplicates", "Duplicates"),
            ("canonicals", "Canonicals"),
            ("without", "Without fingerprint"),
        )
    )
    index = shlex.quote(subject.index)
    hidden = (
        "\n\nDocuments without the field "
        f"`{subject.time_field}` are in no range of time, so this dashboard does not count them."
        if subject.time_field
        else ""
    )
    return f"""\
**What the numbers mean**

Two documents are *near-duplicates* when the fingerprints of their texts differ in few of 64 bits. Near-duplicates \
that belong together are a *group*. One document, the *canonical*, stands for the group; the others are its \
*duplicates*.

- **Distance**: bits that differ from the canonical. 0: almost always the same words. It grows with the \
number of words that differ.
- **Groups with duplicates**: counted approximately above 40,000 groups.
- **Hot blocks**: 16 bits of the fingerprint that many documents have in common. A lookup reads all of these \
documents. Many duplicates there are normal. Many *other* documents there make lookups slow: often they have the \
same words in every text, such as a notice.{hidden}

**What to do**

- *Without fingerprint*: run `es-simhash backfill {index}`. Documents without words have none.
- *Not grouped yet*: run `es-simhash reconcile {index}`.
- A group that is too large, or does not belong together: open it and read. Then group again with a smaller distance.
- One source with a large share: it often sends the same text again. Ingest it with `--on-duplicate skip`.

See: {links}
"""


def about_group(subject: Subject) -> str:
    """
    Return what stands above the documents of one group.
    """
    fields = subject.fields
    return f"""\
The table has the documents that match the filters at the top. Click on a value of `{fields.group}` anywhere, and this \
page shows that group. The canonical is the document without `{fields.duplicate_of}`. \
[All near-duplicates](../app/dashboards#/view/{subject.id_of("overview")})
"""
