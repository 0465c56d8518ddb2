"""The report as values, and as one HTML page, ``report.html.jinja``, that has no script and loads nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.mapping.rule import Grouping
from es_simhash.quality.health import Diagnosis
from es_simhash.quality.report.number_tables import number_tables
from es_simhash.quality.report.words import Speech
from es_simhash.quality.stats import Stats
from es_simhash.record import Record
from es_simhash.tables.notebook import cut, user_text
from es_simhash.tables.page_frame import template
from es_simhash.texts.worddiff import word_diff

Reason = Literal["largest", "farthest"]


@dataclass(frozen=True, slots=True)
class WhyShown:
    """Why a group is shown; *number*: documents (largest), or bits (farthest)."""

    reason: Reason
    number: int


@dataclass(frozen=True, slots=True)
class Member(Record):
    """
    A document of a group that is shown.
    *text*: the beginning; ``None`` if no text could be read. *length*: characters of the whole text. *distance*,
    *similarity*: to the canonical; the canonical has the distance 0; ``None``: the texts were not compared.
    *has_other_numbers*: whether nothing else differs from the canonical's text. *source*, *time*, *title*, *url*: empty
    if the document has no value.
    """

    _NAMES = "id index title url length distance similarity has_other_numbers source time"

    id: str
    index: str
    text: str | None
    length: int = 0
    distance: int = 0
    similarity: float | None = None
    has_other_numbers: bool = False
    source: str = ""
    time: str = ""
    title: str = ""
    url: str = ""

    @property
    def is_cut(self) -> bool:
        return self.text is not None and len(self.text) < self.length


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """
    A group, with some of its documents.
    *id*: the name of the group. *canonical*: ``None`` if it could not be read.
    *members*: some of its duplicates, those with the largest distance first.
    """

    id: str
    documents: int
    why: tuple[WhyShown, ...]
    canonical: Member | None
    members: tuple[Member, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values, without the texts."""
        return {
            "id": self.id,
            "documents": self.documents,
            "why": {each.reason: each.number for each in self.why},
            "canonical": self.canonical and self.canonical.to_dict(),
            "members": [each.to_dict() for each in self.members],
        }


@dataclass(frozen=True, slots=True)
class IndexReport(Record):
    """
    Everything that a page says about an index.

    Attributes:
        stats:
            Its numbers, exact.
        diagnosis:
            The health of its fingerprints, from a sample.
        groups:
            The largest groups, and those with a member far from their canonical.
        at:
            The moment at which it was made, ISO 8601 in UTC.
        version:
            Version of this library.
        seed:
            What chose the samples.
        filter:
            The queries that the counted documents match; empty where all were counted.
    """

    _NAMES = "at version seed filter stats diagnosis groups"

    stats: Stats
    diagnosis: Diagnosis
    groups: tuple[ShownGroup, ...] = ()
    at: str = ""
    version: str = ""
    seed: int = 0
    filter: tuple[Mapping[str, Any], ...] = ()

    @property
    def uncharted(self) -> tuple[str, ...]:
        """Of ``"time"`` and ``"source"`` those by which nothing was counted, because no field was named."""
        parts = {"time": self.stats.time, "source": self.stats.sources}
        return tuple(name for name, part in parts.items() if part is None)

    def html(self, *, language: str = "en") -> str:
        """
        Return the report as one HTML page that loads nothing.

        Args:
            language:
                ``"en"`` or ``"zh"``.

        Raises:
            InvalidInputError: If the language is another one.
        """
        say = Speech(language)
        return template("quality/report/report.html.jinja").render(
            report=self,
            stats=self.stats,
            say=say,
            moment=_moment(self),
            filter=_filter(self),
            sentence=_sentence(self, say),
            rule=_rule(self.stats, say),
            tiles=_tiles(self.stats, say),
            tables=number_tables(self.stats, say),
            hints=[say(f"no_{name}") for name in self.uncharted],
            groups=[_group(each, say) for each in self.groups],
            measured=_measured(self, say),
        )


# What may be the address of a link: a script would run in the page.
_WEB = re.compile(r"https?://[^\s/]", re.IGNORECASE)
_LONGEST_TEXT = 400
_CHANGES = 4


def _group(group: ShownGroup, say: Speech) -> dict[str, Any]:
    canonical = group.canonical
    return {
        "id": group.id,
        "documents": group.documents,
        "why": [say(f"why_{each.reason}", number=each.number) for each in group.why],
        "canonical": canonical and _about(canonical, None, [], say),
        "members": [_about(each, canonical, _nearness(each, say), say) for each in group.members],
        "left": group.documents - len(group.members) - (canonical is not None),
    }


def _nearness(member: Member, say: Speech) -> list[str]:
    if member.similarity is None:
        similar = say("not_compared")
    else:
        similar = say("similar", share=say.percent(cut(member.similarity)))
    return [say("bits", number=member.distance), similar, *([say("other_numbers")] if member.has_other_numbers else [])]


def _about(member: Member, canonical: Member | None, nearness: list[str], say: Speech) -> dict[str, Any]:
    """Return what is shown of a document: its beginning, or where it differs from the text of *canonical*."""
    found: dict[str, Any] = {
        "id": member.id,
        "title": member.title,
        "url": member.url if _WEB.match(member.url) else "",
        "facts": [*nearness, *(user_text(each) for each in (member.source, member.time) if each)],
        "beginning": None,
        "excerpts": (),
    }
    if member.text is None:
        return found | {"notes": say("no_text")}
    text = " ".join(member.text.split())
    if canonical is None or canonical.text is None:
        is_cut = member.is_cut or len(text) > _LONGEST_TEXT
        beginning = text[:_LONGEST_TEXT] + (" …" if is_cut else "")
        return found | {"beginning": beginning, "notes": say("cut", length=member.length) if is_cut else ""}
    diff = word_diff(text, " ".join(canonical.text.split()), max_changes=_CHANGES)
    notes = [] if diff.excerpts or diff.is_cut else [say("same_words")]
    notes += [say("more_places", number=diff.omitted)] if diff.omitted else []
    notes += [say("beginnings")] if diff.is_cut or member.is_cut or canonical.is_cut else []
    return found | {"excerpts": diff.excerpts, "notes": say("list_mark").join(notes)}


def _moment(report: IndexReport) -> str:
    return f"{report.at[:16].replace('T', ' ')} UTC"


def _filter(report: IndexReport) -> str:
    queries = list(map(dict, report.filter))
    return json.dumps(queries[0] if len(queries) == 1 else queries, ensure_ascii=False, default=str) if queries else ""


def _tiles(stats: Stats, say: Speech) -> list[tuple[str, int, str]]:
    return [
        ("documents", stats.documents, ""),
        ("duplicates", stats.duplicates, say.percent(stats.share)),
        ("groups", stats.groups.number, ""),
        ("largest", stats.largest, ""),
        ("without", stats.without_fingerprint, ""),
        ("ungrouped", stats.ungrouped, ""),
    ]


def _sentence(report: IndexReport, say: Speech) -> str:
    stats = report.stats
    if not stats.documents:
        return say("sentence_empty")
    words = {"documents": stats.documents, "duplicates": stats.duplicates, "share": say.percent(stats.share)}
    if lost := [each.values["documents"] for each in report.diagnosis.findings if each.kind == "lost_canonicals"]:
        return say("sentence_lost", number=lost[0], **words)
    if stats.duplicates:
        return say("sentence", **words)
    is_ungrouped = stats.ungrouped and stats.ungrouped == stats.fingerprinted
    return say("sentence_ungrouped" if is_ungrouped else "sentence_none")


def _rule(stats: Stats, say: Speech) -> str:
    rule = say("list_mark").join(_grouping(each, say) for each in stats.grouping)
    return say("by_rule", rule=rule) if rule else ""


def _measured(report: IndexReport, say: Speech) -> dict[str, str]:
    stats = report.stats
    given = [part.field for part in (stats.time, stats.sources) if part is not None]
    groupings = [_grouping(each, say) for each in stats.grouping] or [say("never_grouped")]
    return {
        "index": stats.index,
        "moment": _moment(report),
        "version": f"es_simhash {report.version}",
        "scheme": stats.scheme,
        "grouping": say("list_mark").join(groupings),
        **({"filter": _filter(report)} if report.filter else {}),
        **({"fields": say("and").join(given)} if given else {}),
        "exact": say("exact_words"),
        "sampled": say(
            "sampled_words",
            health=report.diagnosis.sampled,
            seed=str(report.seed),
        ),
    }


def _grouping(grouping: Mapping[str, Any], say: Speech) -> str:
    return say("list_mark").join(Grouping.from_dict(grouping).parts(say))
