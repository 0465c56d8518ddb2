"""The report as values, and as one HTML page, ``report.html.jinja``, that has no script and loads nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.mapping.rule import Grouping, rule_words
from es_simhash.quality.health import SENTENCES, Diagnosis
from es_simhash.quality.searches import Searched, Searches
from es_simhash.quality.shown import Member, ShownGroup
from es_simhash.quality.stats import Stats
from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet, cell_text, cut, template, user_text
from es_simhash.tables.tabular import Tabular, sheets_of
from es_simhash.tables.words import Words
from es_simhash.texts.worddiff import word_diff


@dataclass(frozen=True, slots=True)
class IndexReport(Tabular, Record):
    """
    Everything that a page says about an index.

    Attributes:
        stats:
            Its numbers, exact.
        diagnosis:
            The health of its fingerprints, from a sample.
        groups:
            The largest groups.
        at:
            The moment at which it was made, ISO 8601 in UTC.
        version:
            Version of this library.
        seed:
            What chose the samples.
        filter:
            The queries that the counted documents match; empty where all were counted.
        searches:
            What people's own searches show of copies; ``None`` unless ``queries`` was given.
    """

    _NAMES = "at version seed filter stats diagnosis groups searches"

    stats: Stats
    diagnosis: Diagnosis
    groups: tuple[ShownGroup, ...] = ()
    at: str = ""
    version: str = ""
    seed: int = 0
    filter: tuple[Mapping[str, Any], ...] = ()
    searches: Searches | None = None

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows of :class:`Stats`."""
        return self.stats.to_dicts()

    def _title(self) -> str:
        return sheets_of(self.stats)[0]

    def _sheets(self) -> Sequence[Part]:
        parts = [self.searches, self.stats, self.diagnosis]
        return [sheet for part in parts if part is not None for sheet in sheets_of(part)[1]]

    def html(self, *, language: str = "en") -> str:
        """
        Return the report as one HTML page that loads nothing.

        Args:
            language:
                ``"en"`` or ``"zh"``.

        Raises:
            InvalidInputError: If the language is another one.
        """
        say = Words(language, "quality/report/words")
        return template("quality/report/report.html.jinja").render(
            report=self,
            stats=self.stats,
            say=say,
            moment=f"{self.at[:16].replace('T', ' ')} UTC",
            filter=json.dumps(self.filter, ensure_ascii=False, default=str) if self.filter else "",
            sentence=_sentence(self.stats, say),
            rules=[say("; ").join(_rule(grouping, say)) for grouping in self.stats.grouping],
            tables=[_table(sheet, say) for sheet in self.stats.counts()],
            searches=self.searches,
            worst=[_searched(search, say) for search in self.searches.worst] if self.searches else [],
            groups=[_group(group, say) for group in self.groups],
            sentences=SENTENCES,
        )


def _table(sheet: Sheet, say: Words) -> dict[str, Any]:
    """Return *sheet* in the words of a language: its rows are cells, the first a name, and how full the bar is."""
    names, (bar, full) = sheet.columns(), next(iter(sheet.bars.items()))

    rows = [([cell_text(name, row.get(name)) for name in names], row[bar] / full) for row in sheet.rows]
    return {"title": say(sheet.title), "head": [say(name) for name in names], "rows": rows}


def _rule(grouping: Mapping[str, Any], say: Words) -> list[str]:
    words = rule_words(say.language)
    return Grouping.from_dict(grouping).sentences(lambda key, **values: words[key].format(**values))


# What may be the address of a link: a script would run in the page.
_WEB = re.compile(r"https?://[^\s/]", re.IGNORECASE)
_LONGEST_TEXT = 400
_CHANGES = 4


def _searched(search: Searched, say: Words) -> dict[str, Any]:
    new = [] if search.new is None else [say("new hits without copies: {number}", number=search.new)]
    return {
        "words": search.search[:_LONGEST_TEXT],
        "why": [say("{repeats} of {hits} hits repeat an earlier one", repeats=search.repeats, hits=search.hits), *new],
        "earlier": search.earlier and _about(search.earlier, None, [], say),
        "repeat": search.repeat and _about(search.repeat, search.earlier, [], say),
    }


def _group(group: ShownGroup, say: Words) -> dict[str, Any]:
    canonical = group.canonical
    return {
        "id": group.id,
        "documents": group.documents,
        "canonical": canonical and _about(canonical, None, [], say),
        "members": [_about(member, canonical, _nearness(member, say), say) for member in group.members],
        "left": group.documents - len(group.members) - (canonical is not None),
    }


def _nearness(member: Member, say: Words) -> list[str]:
    similar = "text not compared" if member.similarity is None else "{share} similar"
    share = "" if member.similarity is None else say.percent(cut(member.similarity))
    numbers = [say("only numbers differ")] if member.has_other_numbers else []
    return [say("{number} of 64 bits differ", number=member.distance), say(similar, share=share), *numbers]


def _about(member: Member, canonical: Member | None, nearness: list[str], say: Words) -> dict[str, Any]:
    """Return what is shown of a document: its beginning, or where it differs from the text of *canonical*."""
    found: dict[str, Any] = {
        "id": member.id,
        "title": member.title,
        "url": member.url if _WEB.match(member.url) else "",
        "facts": [*nearness, *(user_text(fact) for fact in (member.source, member.time) if fact)],
        "beginning": None,
        "excerpts": (),
        "notes": [],
    }
    if member.text is None:
        return found | {"notes": [say("no text could be read")]}
    text = " ".join(member.text.split())
    if canonical is None or canonical.text is None:
        if not member.is_cut and len(text) <= _LONGEST_TEXT:
            return found | {"beginning": text}
        is_cut = say("The text has {length} characters; its beginning is shown.", length=member.length)
        return found | {"beginning": f"{text[:_LONGEST_TEXT]} …", "notes": [is_cut]}
    diff = word_diff(text, " ".join(canonical.text.split()), max_changes=_CHANGES)
    notes = [] if diff.excerpts or diff.is_cut else [say("The same words.")]
    notes += [say("more places: {number}", number=diff.omitted)] if diff.omitted else []
    is_part = diff.is_cut or member.is_cut or canonical.is_cut
    notes += [say("only the beginnings of the texts were compared here")] if is_part else []
    return found | {"excerpts": diff.excerpts, "notes": notes}


def _sentence(stats: Stats, say: Words) -> str:
    """Return what a person reads first."""
    if not stats.documents:
        return say("The index has no documents.")
    if stats.duplicates:
        share = say.percent(stats.share)
        sentence = "{duplicates} of {documents} documents ({share}) repeat another one."
        return say(sentence, duplicates=stats.duplicates, documents=stats.documents, share=share)
    if stats.ungrouped and stats.ungrouped == stats.fingerprinted:
        return say("No document is grouped yet: run es-simhash reconcile, and make the report again.")
    return say("No document repeats another one.")
