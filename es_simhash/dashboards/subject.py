"""
What a pack is about: the names of an index and its fields, checked, and the ids of the saved objects.

No saved object and no search is built here.

The texts of a pack that are longer than a title: what the numbers mean, and what to do. Markdown.
"""

from __future__ import annotations

import re
import shlex
import uuid
from dataclasses import dataclass

from es_simhash.arguments import check_field, check_name
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields

# Ids must not change from version to version: an import then replaces the objects of an earlier pack.
_NAMESPACE = uuid.UUID("1b0c6f1e-1f0e-5c8a-9d59-7f0d2b0a6c11")


# What no name of an index, alias or pattern may have. A comma joins several names.
_FORBIDDEN = re.compile(r"[\\/?\"<>|#\s\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Subject:
    """
    The index and the fields that a pack is about.

    Args:
        index:
            Name of an index, alias or data stream, a pattern, or several of them separated by commas.
        time_field:
            Date field of the documents, or ``None``.
        source_field:
            Keyword field that says where a document comes from, or ``None``.
        text_field:
            Field whose text is shown, or ``None``.
        prefix:
            Name of the object that holds our fields.

    Raises:
        TypeError: If a name is not a string.
        InvalidInputError: If a name cannot be that of an index or a field.
    """

    index: str
    time_field: str | None = None
    source_field: str | None = None
    text_field: str | None = None
    prefix: str = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        check_name("index", self.index)
        if not all(self.index.split(",")) or _FORBIDDEN.search(self.index):
            raise InvalidInputError(
                f"index {shorten(self.index)} cannot be a name: give an index, alias, data stream or pattern, "
                "or several separated by commas without blanks"
            )
        for role in ("time_field", "source_field", "text_field"):
            _check_field(role, getattr(self, role))
        Fields(self.prefix)

    @property
    def fields(self) -> Fields:
        """The names of our fields."""
        return Fields(self.prefix)

    def id_of(self, kind: str) -> str:
        """
        Return the id of the saved object *kind* of this index and prefix.

        The same names give the same id, so that importing a pack again replaces the objects; another index or prefix
        gives other ids, so that packs stand side by side.
        """
        return str(uuid.uuid5(_NAMESPACE, f"{self.index}\n{self.prefix}\n{kind}"))


def _check_field(role: str, name: str | None) -> None:
    if name is None:
        return
    check_field(role, name)
    if "*" in name or not name.isprintable():
        raise InvalidInputError(f"{role} {shorten(name)} cannot be the name of one field: give a field as it is mapped")


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
