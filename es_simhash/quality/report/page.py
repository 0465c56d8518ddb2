"""The report as values, and as one HTML page with its style and without a script; it loads nothing from anywhere."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Literal

from es_simhash.quality.health import Diagnosis
from es_simhash.quality.known_pairs import Estimate, PresetSample
from es_simhash.quality.report.figures import figures, table
from es_simhash.quality.report.words import Speech
from es_simhash.quality.stats import Stats
from es_simhash.removal.review_page import excerpt
from es_simhash.tables.notebook import Child, Html, element, join, user_text
from es_simhash.texts.measures import PRESETS
from es_simhash.texts.worddiff import word_diff

WIDEST_SEARCH = 1_000
"""The largest groups among which those of many sources and over a long time are looked for."""

Reason = Literal["largest", "farthest", "sources", "span"]


@dataclass(frozen=True, slots=True)
class WhyShown:
    """Why a group is shown; *number*: documents (largest), bits (farthest), sources, or milliseconds (span)."""

    reason: Reason
    number: int


@dataclass(frozen=True, slots=True)
class Member:
    """
    A document of a group that is shown.

    *text*: the beginning; ``None`` if no text could be read. *length*: characters of the whole text.
    *distance*, *similarity*: to the canonical; the canonical has the distance 0; ``None``: the texts were not
    compared.
    *source*, *time*: empty if the document has no value.
    """

    id: str
    index: str
    text: str | None
    length: int = 0
    distance: int = 0
    similarity: float | None = None
    source: str = ""
    time: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning of the text is here."""
        return self.text is not None and len(self.text) < self.length

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values, without the text."""
        names = ("id", "index", "length", "distance", "similarity", "source", "time")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """
    A group, with some of its documents.

    *id*: the id of its canonical, which is the name of the group.
    *canonical*: ``None`` if it could not be read.
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
class IndexReport:
    """
    Everything that a page says about an index.

    Attributes:
        stats:
            Its numbers, exact.
        diagnosis:
            The health of its fingerprints, from a sample.
        presets:
            What each preset would remove, from a sample; empty where the presets do not fit the scheme of the index, or
            no text could be read.
        groups:
            The largest and the strangest groups.
        at:
            The moment at which it was made, ISO 8601 in UTC.
        version:
            Version of this library.
        seed:
            What chose the samples.
        filter:
            The queries that the counted documents match; empty where all were counted.
    """

    stats: Stats
    diagnosis: Diagnosis
    presets: tuple[PresetSample, ...] = ()
    groups: tuple[ShownGroup, ...] = ()
    at: str = ""
    version: str = ""
    seed: int = 0
    filter: tuple[Mapping[str, Any], ...] = ()

    def html(self, *, language: str = "en") -> str:
        """
        Return the report as one HTML page that loads nothing.

        Args:
            language:
                ``"en"`` or ``"zh"``.

        Raises:
            InvalidInputError: If the language is another one.
            MissingDependencyError: If the charts cannot be drawn: ``pip install 'es-simhash[report]'``.
        """
        say = Speech(language)
        header = element(
            "header",
            element("h1", say.html("title", index=self.stats.index)),
            element("p", say("made", at=_moment(self), version=self.version), class_="quiet"),
            *([element("p", say.html("filtered", filter=_filter(self)))] if self.filter else []),
        )
        sections = [section(self, say) for section in (_numbers, _groups, _presets, _health, _measured)]
        footer = element("footer", element("p", say("complete")))
        return "".join([*_opening(self, say), header, *sections, footer, "</main></body></html>\n"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values, without texts."""
        return {
            "at": self.at,
            "version": self.version,
            "seed": self.seed,
            "filter": [dict(each) for each in self.filter],
            "stats": self.stats.to_dict(),
            "diagnosis": self.diagnosis.to_dict(),
            "presets": [each.to_dict() for each in self.presets],
            "groups": [each.to_dict() for each in self.groups],
        }


_LONGEST_TEXT = 400
_CHANGES = 4
_DAY = 86_400_000


def _article(group: ShownGroup, say: Speech) -> Html:
    canonical = group.canonical
    left = group.documents - len(group.members) - (canonical is not None)
    return element(
        "article",
        element("h3", say.html("group", id=group.id, documents=group.documents)),
        element("ul", *(element("li", _why(each, say)) for each in group.why), class_="why"),
        element("p", say("canonical_missing"), class_="warn") if canonical is None else _canonical(canonical, say),
        *(_member(each, canonical, say) for each in group.members),
        element("p", say("more_members", number=left), class_="quiet") if left > 0 else "",
        class_="removal group",
    )


def _why(why: WhyShown, say: Speech) -> str:
    number = why.number // _DAY if why.reason == "span" else why.number
    return say(f"why_{why.reason}", number=number)


def _canonical(canonical: Member, say: Speech) -> Html:
    return element(
        "div",
        element("h4", user_text(canonical.id), element("span", f" {say('canonical')}", class_="tag")),
        _facts(canonical, []),
        _text(canonical, say),
        class_="canonical",
    )


def _member(member: Member, canonical: Member | None, say: Speech) -> Html:
    facts: list[Child] = [say("bits", number=member.distance)]
    if member.similarity is not None:
        # Cut and not rounded, so that only texts with the same words show 100 %.
        facts.append(say("similar", share=say.percent(int(member.similarity * 1000 + 1e-6) / 1000)))
    else:
        facts.append(say("not_compared"))
    return element(
        "div",
        element("h4", user_text(member.id)),
        _facts(member, facts),
        _difference(member, canonical, say),
        class_="member diff",
    )


def _facts(member: Member, more: list[Child]) -> Html:
    values = [*more, *(user_text(each) for each in (member.source, member.time) if each)]
    parts = [join(" · " if place else "", each) for place, each in enumerate(values)]
    return element("p", *parts, class_="quiet") if parts else Html("")


def _text(member: Member, say: Speech) -> Html:
    if member.text is None:
        return element("p", say("no_text"), class_="quiet")
    text = " ".join(member.text.split())
    is_cut = member.is_cut or len(text) > _LONGEST_TEXT
    body = element("p", user_text(text[:_LONGEST_TEXT] + (" …" if is_cut else "")), class_="beginning")
    return join(body, element("p", say("cut", length=member.length), class_="quiet") if is_cut else "")


def _difference(member: Member, canonical: Member | None, say: Speech) -> Html:
    if canonical is None or canonical.text is None or member.text is None:
        return _text(member, say)
    diff = word_diff(" ".join(member.text.split()), " ".join(canonical.text.split()), max_changes=_CHANGES)
    is_cut = diff.is_cut or member.is_cut or canonical.is_cut
    notes = [say("more_places", number=diff.omitted)] if diff.omitted else []
    notes += [say("beginnings")] if is_cut else []
    if not diff.excerpts and not diff.is_cut:
        notes.insert(0, say("same_words"))
    return join(
        *(excerpt(each) for each in diff.excerpts),
        element("p", say("list_mark").join(notes), class_="quiet") if notes else "",
    )


@cache
def _style() -> str:
    parts = (("es_simhash.removal", "review.css"), ("es_simhash.quality.report", "report.css"))
    return "\n".join(files(package).joinpath(name).read_text(encoding="utf-8") for package, name in parts)


def _opening(report: IndexReport, say: Speech) -> Iterator[str]:
    # Only this style may be used, and no script: markup that got past the escaping could still do nothing.
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    yield join(Html("<!DOCTYPE html>\n"), Html(f'<html lang="{say.language}"><head><meta charset="utf-8">'))
    yield element("meta", http_equiv="Content-Security-Policy", content=policy)
    yield element("meta", name="viewport", content="width=device-width, initial-scale=1")
    yield element("meta", name="referrer", content="no-referrer")
    yield element("title", say("title", index=report.stats.index))
    yield element("style", Html(_style()))
    yield join(Html("</head><body>"), element("a", say("skip"), class_="skip", href="#groups"), Html("<main>"))


def _moment(report: IndexReport) -> str:
    return f"{report.at[:16].replace('T', ' ')} UTC"


def _filter(report: IndexReport) -> str:
    queries = list(map(dict, report.filter))
    return json.dumps(queries[0] if len(queries) == 1 else queries, ensure_ascii=False, default=str)


def _section(key: str, title: str, *children: Child) -> Html:
    return element("section", element("h2", title, id=key), *children, aria_labelledby=key)


def _numbers(report: IndexReport, say: Speech) -> Html:
    stats = report.stats
    tiles = [
        ("documents", stats.documents, ""),
        ("duplicates", stats.duplicates, say.percent(stats.share)),
        ("groups", stats.groups.number, ""),
        ("largest", stats.largest, ""),
        ("without", stats.without_fingerprint, ""),
        ("ungrouped", stats.ungrouped, ""),
    ]
    shown = [
        element(
            "div",
            element("dt", say(key)),
            element("dd", f"{number:,}", element("small", f" {share}") if share else ""),
        )
        for key, number, share in tiles
    ]
    return join(
        element("p", _sentence(report, say), class_="sentence"),
        element("p", say("meaning"), class_="quiet"),
        element("dl", *shown, class_="facts"),
        _section("numbers", say("numbers"), element("div", *figures(stats, say), class_="figures")),
    )


def _sentence(report: IndexReport, say: Speech) -> str:
    stats = report.stats
    if not stats.documents:
        return say("sentence_empty")
    if lost := [each.values["documents"] for each in report.diagnosis.findings if each.kind == "lost_canonicals"]:
        return say("sentence_lost", share=say.percent(stats.share), documents=stats.documents, number=lost[0])
    if stats.duplicates:
        return say("sentence", share=say.percent(stats.share), documents=stats.documents)
    return say("sentence_ungrouped" if stats.ungrouped and stats.ungrouped == stats.fingerprinted else "sentence_none")


def _groups(report: IndexReport, say: Speech) -> Html:
    if not report.groups:
        return _section("groups", say("shown_groups"), element("p", say("no_groups")))
    legend = element(
        "p", element("del", say("legend_goes")), " · ", element("ins", say("legend_stays")), class_="legend"
    )
    note = ""
    if report.stats.groups.number > WIDEST_SEARCH:
        note = element("p", say("strange_note", number=WIDEST_SEARCH), class_="quiet")
    return _section("groups", say("shown_groups"), legend, note, *(_article(each, say) for each in report.groups))


def _presets(report: IndexReport, say: Speech) -> Html:
    if not report.presets:
        scheme = next(iter(PRESETS.values())).scheme
        return _section("presets", say("presets"), element("p", say("presets_none", scheme=scheme)))
    head = [say("preset"), say("limits"), say("removed"), say("removed_number"), say("precision")]
    rows = [_preset(each, report, say) for each in report.presets]
    return _section(
        "presets",
        say("presets"),
        element("p", say("presets_note", sampled=report.presets[0].sampled, seed=str(report.seed)), class_="quiet"),
        element("div", table(say("presets"), head, rows, class_="untitled"), class_="scroll", tabindex="0"),
    )


def _preset(each: PresetSample, report: IndexReport, say: Speech) -> list[Child]:
    low, high = (round(share * report.stats.fingerprinted) for share in (each.removed.low, each.removed.high))
    precision: Child = ""
    if each.precision is not None:
        pairs = element("small", " ", say("of_pairs", number=each.pairs))
        precision = join(_share(each.precision, say), pairs)
    return [
        say(f"preset_{each.preset}"),
        f"≤ {each.max_distance}, ≥ {say.percent(each.similarity, 0)}",
        _share(each.removed, say),
        f"{low:,} – {high:,}",
        precision,
    ]


def _share(estimate: Estimate, say: Speech) -> Html:
    return join(
        say.percent(estimate.share),
        element("small", f" ({say.percent(estimate.low)} – {say.percent(estimate.high)})"),
    )


def _health(report: IndexReport, say: Speech) -> Html:
    found = report.diagnosis
    children: list[Child] = [element("p", say("health_of_all"), class_="quiet")] if report.filter else []
    children += [element("p", say("incomplete", reason=each), class_="warn") for each in found.reasons]
    if report.stats.groups.several_canonicals:
        number = report.stats.groups.several_canonicals
        children.append(element("p", say("several_canonicals", number=number), class_="warn"))
    children.append(element("p", say("unhealthy" if found.findings else "healthy", sampled=found.sampled)))
    if found.findings:
        head = [say("severity"), say("found"), say("advice")]
        rows: list[list[Child]] = [
            [
                element("span", say(each.severity), class_=each.severity),
                say.html(f"found_{each.kind}", **each.values),
                say.html(f"advice_{each.kind}", **each.advice_values),
            ]
            for each in found.findings
        ]
        findings = table(say("health"), head, rows, names=3, class_="untitled")
        children.append(element("div", findings, class_="scroll", tabindex="0"))
    return _section("health", say("health"), *children)


def _measured(report: IndexReport, say: Speech) -> Html:
    stats = report.stats
    given = [part.field for part in (stats.time, stats.sources) if part is not None]
    groupings = [_grouping(each, say) for each in stats.grouping] or [say("never_grouped")]
    said = {
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
            presets=report.presets[0].sampled if report.presets else 0,
            health=report.diagnosis.sampled,
            seed=str(report.seed),
        ),
    }
    rows = [
        element("tr", element("th", say(name), scope="row"), element("td", user_text(text)))
        for name, text in said.items()
    ]
    return _section("measured", say("measured"), element("table", element("tbody", *rows), class_="said"))


def _texts(similarity: float | Mapping[str, Any] | None, say: Speech) -> str:
    """Return what a grouping asks of texts, as ``_meta`` records it."""
    if similarity is None:
        return say("rule_no_texts")
    if isinstance(similarity, Mapping):
        by = f"{similarity['measure']}, {similarity['unit']}"
        return say("rule_texts_by", share=say.percent(similarity["at_least"], 0), by=by)
    return say("rule_texts", share=say.percent(similarity, 0))


def _grouping(grouping: Mapping[str, Any], say: Speech) -> str:
    texts = _texts(grouping.get("similarity"), say)
    order = grouping.get("canonical") or []
    names = [order] if isinstance(order, str) else list(map(str, order))
    parts = [say("rule", rule=grouping.get("rule"), bits=grouping.get("max_distance")), texts]
    parts += [say("rule_order", order=say("and").join(names))] if names else []
    if grouping.get("per") is not None:
        parts.append(say("rule_per", field=grouping["per"]))
    if grouping.get("within") is not None:
        field, span = grouping["within"]
        parts.append(say("rule_within", field=field, span=span))
    return say("list_mark").join(parts)
