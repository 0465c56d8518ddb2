"""
The groups of a report: the canonical, and beside it the words that differ in some of its duplicates.
"""

from __future__ import annotations

from es_simhash.quality.report.data import Member, ShownGroup, WhyShown
from es_simhash.quality.report.words import Speech
from es_simhash.removal.review_page import excerpt
from es_simhash.tables.markup import Child, Html, element, join, user_text
from es_simhash.texts.worddiff import word_diff

_LONGEST_TEXT = 400
_CHANGES = 4
_DAY = 86_400_000


def group_article(group: ShownGroup, say: Speech) -> Html:
    """
    Return one group.
    """
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
    return say(f"why_{why.reason}", number=number) if why.reason != "largest" else say("why_largest")


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
