"""The report as values, and as one HTML page, ``report.html.jinja``, that has no script and loads nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from es_simhash.dashboards.charts import size_rows
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.rule import Grouping, rule_words
from es_simhash.quality.health import SENTENCES, Diagnosis
from es_simhash.quality.stats import Count, Stats
from es_simhash.record import Record
from es_simhash.tables.notebook import Child, Html, cut, join, percent, template, user_text
from es_simhash.texts.worddiff import word_diff


@dataclass(frozen=True, slots=True)
class NumberTable:
    """A table: its *head*, and *rows* of cells, of which the first is a name, each with how full its bar is, 0 to 1."""

    title: str
    head: Sequence[str]
    rows: Sequence[tuple[Sequence[str], float]]
    note: str = ""


def number_tables(stats: Stats, say: Speech) -> Iterator[NumberTable]:
    """Yield the tables of what was counted."""
    if stats.time is not None and stats.time.parts:
        counts = stats.time.rows(say("earlier"), say("later"), say("no_value"))
        yield _counted("over_time", "from", counts, say, note=say(stats.time.interval))
    if stats.sources is not None and stats.sources.parts:
        counts = stats.sources.rows(lambda number: say("other_sources", number=number), say("no_value"))
        yield _counted("by_source", "source", counts, say)
    sizes = {row["label"]: row["groups"] for row in size_rows(stats.groups.sizes)}
    distances = {str(bits): number for bits, number in stats.distances.items()}
    for key, head, numbers in (
        ("sizes", (say("size"), say("number_of_groups")), sizes),
        ("distances", (say("distance"), say("duplicates")), distances),
    ):
        if numbers:
            yield NumberTable(say(key), head, _bars(numbers))


def _bars(numbers: Mapping[str, int]) -> list[tuple[Sequence[str], float]]:
    most = max(numbers.values())
    return [((name, f"{number:,}"), number / most) for name, number in numbers.items()]


def _counted(key: str, name: str, counts: Iterable[tuple[str, Count]], say: Speech, *, note: str = "") -> NumberTable:
    """Return a table whose bars are the share of duplicates."""
    rows = [
        ((label, f"{count.documents:,}", f"{count.duplicates:,}", say.percent(count.share)), count.share or 0.0)
        for label, count in counts
    ]
    return NumberTable(say(key), (say(name), say("documents"), say("duplicates"), say("share")), rows, note)


_HERE = Path(__file__).parent
_EN, _ZH = (json.loads((_HERE / f"words.{name}.json").read_text("utf-8")) for name in ("en", "zh"))


def _health(sentences: Iterable[tuple[str, tuple[str, str]]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, (message, advice) in sentences:
        found |= {f"found_{kind}": message, f"advice_{kind}": advice}
    return found


WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        **_EN["words"],
        **rule_words("en"),
        **_health((kind, (sentence.message, sentence.advice)) for kind, sentence in SENTENCES.items()),
    },
    "zh": {**_ZH["words"], **rule_words("zh"), **_health(_ZH["findings"].items())},
}
"""The words of each language by key; what stands in braces is filled in."""

LANGUAGES = tuple(WORDS)


@dataclass(frozen=True, slots=True)
class Speech:
    """The words of a report in one language, ``"en"`` or ``"zh"``; another one raises InvalidInputError."""

    language: str = "en"

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise InvalidInputError(f"language {shorten(self.language)} is not known: give {' or '.join(LANGUAGES)}")

    def __call__(self, key: str, **values: object) -> str:
        """Return the words *key*, those for one where *number* is 1; numbers are written with separators."""
        if values.get("number") == 1 and f"{key}_1" in WORDS[self.language]:
            key = f"{key}_1"
        written = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
        return WORDS[self.language][key].format(**written)

    def html(self, key: str, **values: Child | float) -> Html:
        """Return the words *key* as markup; each value that is a text is a text of a user."""
        parts: list[Child] = []
        for literal, name, _, _ in Formatter().parse(WORDS[self.language][key]):
            parts.append(literal)
            if name is not None:
                value = values[name]
                if isinstance(value, (int, float)):
                    parts.append(f"{value:,}")
                else:
                    parts.append(value if isinstance(value, Html) else user_text(value))
        return join(*parts)

    def percent(self, share: float | None) -> str:
        """Return a share in percent as the language writes it; empty for ``None``."""
        text = percent(share)
        return text.replace(" %", "%") if self.language == "zh" else text


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
            "why": {reason.reason: reason.number for reason in self.why},
            "canonical": self.canonical and self.canonical.to_dict(),
            "members": [member.to_dict() for member in self.members],
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
            groups=[_group(group, say) for group in self.groups],
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
        "why": [say(f"why_{reason.reason}", number=reason.number) for reason in group.why],
        "canonical": canonical and _about(canonical, None, [], say),
        "members": [_about(member, canonical, _nearness(member, say), say) for member in group.members],
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
        "facts": [*nearness, *(user_text(fact) for fact in (member.source, member.time) if fact)],
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
    if lost := [
        finding.values["documents"] for finding in report.diagnosis.findings if finding.kind == "lost_canonicals"
    ]:
        return say("sentence_lost", number=lost[0], **words)
    if stats.duplicates:
        return say("sentence", **words)
    is_ungrouped = stats.ungrouped and stats.ungrouped == stats.fingerprinted
    return say("sentence_ungrouped" if is_ungrouped else "sentence_none")


def _rule(stats: Stats, say: Speech) -> str:
    rule = say("list_mark").join(_grouping(grouping, say) for grouping in stats.grouping)
    return say("by_rule", rule=rule) if rule else ""


def _measured(report: IndexReport, say: Speech) -> dict[str, str]:
    stats = report.stats
    given = [part.field for part in (stats.time, stats.sources) if part is not None]
    groupings = [_grouping(grouping, say) for grouping in stats.grouping] or [say("never_grouped")]
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
    return say("list_mark").join(Grouping.from_dict(grouping).sentences(say))
