"""
The numbers of the review page as tables, with bars that only repeat what the cells say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from es_simhash.removal.review_summary import BANDS, MOST_VALUES, Band, Portion, Summary, band_of
from es_simhash.tables.markup import Child, Html, bar, element, user_text

if TYPE_CHECKING:
    from es_simhash.removal.records import PlannedRemoval


def band_name(band: Band) -> str:
    """
    Return what a band of similarity is called.
    """
    if band is None:
        return "Texts not compared"
    if band >= 1:
        return "Same words (100 %)"
    return f"{band * 100:.0f} to {(band + 1 / BANDS) * 100:.0f} % similar"


def percent_similar(similarity: float | None) -> str:
    """
    Return a similarity in percent, cut and not rounded, so that only texts with the same words show 100 %.
    """
    if band_of(similarity) is None:
        return "not compared"
    return f"{int((similarity or 0.0) * 1000 + 1e-6) / 10:g} %"


def relation(removal: PlannedRemoval) -> str:
    """
    Return what the document that stays is to the one that goes.
    """
    if removal.reason == "contained":
        return "contains it"
    return f"{removal.distance} bit{'' if removal.distance == 1 else 's'} apart"


def percent(share: float | None) -> str:
    """
    Return a share in percent, never rounded to 0 or to 100 where it is neither.
    """
    if share is None:
        return ""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if 0.999 < share < 1 else f"{share:.1%}".replace("%", " %")


def facts(summary: Summary) -> Html:
    """
    Return the few numbers that matter most.
    """
    total = summary.total
    same = sum(number for band, number in summary.bands.items() if band is not None and band >= 1)
    unread = summary.bands.get(None, 0)
    of = "" if total.documents is None else f" of {total.documents:,} ({percent(total.share)})"
    shown = [
        ("documents would go", f"{total.removals:,}", of),
        ("documents stay for them", f"{summary.canonicals:,}", ""),
        ("have the same words", f"{same:,}", ""),
    ]
    if summary.lowest is not None:
        shown.append(("the least similar", percent_similar(summary.lowest), ""))
    if unread:
        shown.append(("texts were not compared", f"{unread:,}", ""))
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", number, element("small", rest)))
            for name, number, rest in shown
        ),
        class_="facts",
    )


def tables(summary: Summary, said: Mapping[str, str]) -> Html:
    """
    Return all tables: by similarity, by index, by field, the largest groups, and what the plan says of itself.
    """
    most = max(summary.bands.values(), default=1)
    total = summary.total.removals
    bands = [
        ([band_name(band)], [f"{number:,}", percent(number / total)], number / most)
        for band, number in summary.bands.items()
    ]
    found = [_table("By similarity", ["similarity", "removals", "share"], bands)] if bands else []
    if summary.indices:
        found.append(_shares("By index", "index", summary.indices, total))
    found += [_shares(f"By {name}", name, shares, total) for name, shares in summary.fields.items() if shares]
    if summary.groups:
        largest = summary.groups[0][2]
        rows = [([id_, index], [f"{number:,}"], number / largest) for index, id_, number in summary.groups]
        found.append(_table("What stays for most removals", ["document that stays", "index", "removals"], rows))
    if said:
        rows_said = [
            element("tr", element("th", name, scope="row"), element("td", user_text(text)))
            for name, text in said.items()
        ]
        found.append(element("table", element("caption", "The plan"), element("tbody", *rows_said), class_="said"))
    return element(
        "section",
        element("h2", "In numbers", id="numbers"),
        element("div", *(element("div", each) for each in found), class_="tables"),
        aria_labelledby="numbers",
    )


def _shares(title: str, name: str, shares: Sequence[Portion], total: int) -> Html:
    is_known = any(each.documents is not None for each in shares)
    rows = []
    for each in shares:
        numbers = [f"{each.removals:,}"]
        if is_known:
            numbers += ["" if each.documents is None else f"{each.documents:,}", percent(each.share)]
        share = each.share if is_known and each.share is not None else each.removals / total
        rows.append(([each.name if each.name is not None else "(none)"], numbers, share))
    head = [name, "would go", "of", "share"] if is_known else [name, "would go"]
    more = f" (the {MOST_VALUES} with most removals)" if len(shares) == MOST_VALUES else ""
    return _table(title + more, head, rows)


def _table(title: str, head: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[str], float]]) -> Html:
    names = len(rows[0][0])
    cells: list[Child] = [
        element("th", user_text(each), scope="col", class_="number" if place >= names else None)
        for place, each in enumerate(head)
    ]
    body = [
        element(
            "tr",
            *(element("th", user_text(each), scope="row") for each in words[:1]),
            *(element("td", user_text(each)) for each in words[1:]),
            *(element("td", each, class_="number") for each in numbers),
            element("td", bar(share), class_="bar"),
        )
        for words, numbers, share in rows
    ]
    return element(
        "table",
        element("caption", user_text(title)),
        element("thead", element("tr", *cells, element("td"))),
        element("tbody", *body),
    )
