"""The review of a plan file as HTML, text or numbers. The file is read twice; callers make text safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_input
from es_simhash.removal.plan_file import Plan, read_plan
from es_simhash.removal.review_summary import (
    BANDS,
    MOST_VALUES,
    Band,
    FieldPair,
    Portion,
    Summary,
    band_of,
    compare_fields,
    summarize,
)
from es_simhash.tables.notebook import Child, Html, bar, element, user_text
from es_simhash.texts.worddiff import Change, Segment

if TYPE_CHECKING:
    from es_simhash.arguments import FilePath
    from es_simhash.removal.records import PlannedRemoval


def band_name(band: Band) -> str:
    """Return what a band of similarity is called."""
    if band is None:
        return "Texts not compared"
    if band >= 1:
        return "Same words (100 %)"
    return f"{band * 100:.0f} to {(band + 1 / BANDS) * 100:.0f} % similar"


def percent_similar(similarity: float | None) -> str:
    """Return a similarity in percent, cut and not rounded, so that only texts with the same words show 100 %."""
    if band_of(similarity) is None:
        return "not compared"
    return f"{int((similarity or 0.0) * 1000 + 1e-6) / 10:g} %"


def relation(removal: PlannedRemoval) -> str:
    """Return what the document that stays is to the one that goes."""
    if removal.reason == "contained":
        return "contains it"
    return f"{removal.distance} bit{'' if removal.distance == 1 else 's'} apart"


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded to 0 or to 100 where it is neither."""
    if share is None:
        return ""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if 0.999 < share < 1 else f"{share:.1%}".replace("%", " %")


def facts(summary: Summary) -> Html:
    """Return the few numbers that matter most."""
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
    """Return all tables: by similarity, by index, by field, the largest groups, and what the plan says of itself."""
    most = max(summary.bands.values(), default=1)
    total = summary.total.removals
    bands = [
        ([band_name(band)], [f"{number:,}", percent(number / total)], number / most)
        for band, number in summary.bands.items()
    ]
    found = [_html_table("By similarity", ["similarity", "removals", "share"], bands)] if bands else []
    if summary.indices:
        found.append(_shares("By index", "index", summary.indices, total))
    found += [_shares(f"By {name}", name, shares, total) for name, shares in summary.fields.items() if shares]
    if summary.groups:
        largest = summary.groups[0][2]
        rows = [([id_, index], [f"{number:,}"], number / largest) for index, id_, number in summary.groups]
        found.append(_html_table("What stays for most removals", ["document that stays", "index", "removals"], rows))
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
    return _html_table(title + more, head, rows)


def _html_table(title: str, head: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[str], float]]) -> Html:
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


# The marks have the meaning of the colours of the page.
_MARKS = {Change.SAME: ("", ""), Change.REMOVED: ("[-", "-]"), Change.ADDED: ("{+", "+}")}


def summary_lines(summary: Summary, said: Mapping[str, str]) -> Iterator[str]:
    """Yield the numbers of a plan."""
    total = summary.total
    of = "" if total.documents is None else f" of {total.documents:,} ({percent(total.share)})"
    yield f"{total.removals:,}{of} documents would go; {summary.canonicals:,} stay for them"
    for name, text in said.items():
        yield f"  {name}: {text}"
    yield from _table("by similarity", [(band_name(band), f"{number:,}") for band, number in summary.bands.items()])
    yield from _table("by index", map(_row, summary.indices))
    for name, shares in summary.fields.items():
        yield from _table(f"by {name}", map(_row, shares))
    largest = [(f"{id_} in {index}", f"{number:,}") for index, id_, number in summary.groups]
    yield from _table("what stays for most removals", largest)


def _row(share: Portion) -> tuple[str, str]:
    of = "" if share.documents is None else f" of {share.documents:,} ({percent(share.share)})"
    return share.name if share.name is not None else "(none)", f"{share.removals:,}{of}"


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for place, (name, number) in enumerate(rows):
        if not place:
            yield title
        yield f"  {number:>12}  {name}"


def removal_lines(removal: PlannedRemoval) -> Iterator[str]:
    """Yield a removal beside what stays, with the words that differ marked ``[-goes-]`` and ``{+stays+}``."""
    goes, stays = removal.document, removal.canonical
    where = f"{goes.index}/{goes.id}"
    kept = stays.id if stays.index == goes.index else f"{stays.index}/{stays.id}"
    yield f"{percent_similar(removal.similarity)}  {where} would go, {kept} stays ({relation(removal)})"
    for pair in compare_fields(removal):
        yield from (f"    {line}" for line in _field_lines(pair))


def _field_lines(pair: FieldPair) -> Iterator[str]:
    if pair.diff is None:
        values = [value if value is not None else "(none)" for value in (pair.goes, pair.stays)]
        yield f"{pair.name}: {values[0]}" if pair.is_equal else f"{pair.name}: [-{values[0]}-] {{+{values[1]}+}}"
        return
    if not pair.diff.excerpts:
        yield f"{pair.name}: no words differ"
    for excerpt in pair.diff.excerpts:
        yield f"{pair.name}: {_excerpt(excerpt)}"
    if pair.diff.omitted:
        yield f"{pair.name}: and {pair.diff.omitted:,} more place{'' if pair.diff.omitted == 1 else 's'}"
    if pair.diff.is_cut or pair.is_cut:
        yield f"{pair.name}: the texts are long, and only their beginnings were compared here"


def _excerpt(excerpt: Iterable[Segment]) -> str:
    return "".join(f"{_MARKS[part.change][0]}{part.text}{_MARKS[part.change][1]}" for part in excerpt)


def review_html(path: FilePath) -> str:
    """
    Return the plan of removal in the file *path* as one HTML page, to judge it before it is applied.

    The page has every removal beside what stays, least similar first, and loads nothing from anywhere. For a plan of
    many thousand removals, write the pieces of ``Review.html`` to a file instead.

    Raises:
        InvalidInputError: If the file is no plan, or was cut short or changed.
    """
    return "".join(Review(check_input("path", path)).html())


class Review:
    """A plan, read and found whole when it is made; else InvalidInputError is raised."""

    def __init__(self, path: FilePath) -> None:
        self._plan = read_plan(path)
        self.summary: Summary = summarize(self._plan.removals(), self._plan.header.guards)

    def html(self) -> Iterator[str]:
        """Yield the page in pieces."""
        from es_simhash.removal.review_page import Page, write_page  # noqa: PLC0415 -- only for pages

        plan = self._plan
        yield from write_page(Page(plan.path.name, describe(plan), self.summary, plan.removals))

    def text(self, *, limit: int | None = None) -> Iterator[str]:
        """Yield the review as lines, least similar first; line breaks and controls of the documents are in them."""
        yield from summary_lines(self.summary, describe(self._plan))
        for removal in islice(self._plan.removals(), limit):
            yield ""
            yield from removal_lines(removal)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the plan as plain JSON values."""
        header = self._plan.header
        return {
            "plan": self._plan.sha256,
            "at": header.at,
            "indices": list(header.index_uuids),
            "grouping": dict(header.grouping),
            "max_share": header.guards.max_share,
            "protect": header.guards.protect,
            **self.summary.to_dict(),
        }


def describe(plan: Plan) -> dict[str, str]:
    """Return what *plan* says of itself, for people: a name and a text for each fact."""
    header = plan.header
    guards = header.guards
    limit = f"at most {guards.max_share * 100:g} % of the documents"
    return {
        "made": header.at or "at an unknown time",
        "indices": ", ".join(header.index_uuids),
        "grouping": _describe_grouping(header.grouping),
        "guard rail": limit + (f", and of each value of {guards.protect}" if guards.protect else ""),
        "SHA-256": plan.sha256,
    }


def _describe_grouping(grouping: Mapping[str, Any]) -> str:
    contained = grouping.get("contained")
    parts = _describe_rule(grouping) if contained is None else [f"at least {contained * 100:g} % stands in what stays"]
    if order := grouping.get("canonical"):
        parts.append(f"stays: {', then '.join(map(str, order)) if isinstance(order, list) else order}")
    if (per := grouping.get("per")) is not None:
        parts.append(f"only within one value of {per}")
    if isinstance(within := grouping.get("within"), list):
        parts.append(f"only within {' '.join(map(str, within))}")
    return "; ".join(parts)


def _describe_rule(grouping: Mapping[str, Any]) -> list[str]:
    similarity, distance = grouping.get("similarity"), grouping.get("max_distance")
    parts = [f"rule {grouping.get('rule')}", f"at most {distance} bits apart"]
    by = ""
    if isinstance(similarity, Mapping):
        by = f" ({similarity.get('measure')} of {similarity.get('unit')})"
        similarity = similarity.get("at_least")
    texts = f"at least {similarity * 100:g} % similar{by}" if isinstance(similarity, (int, float)) else "not compared"
    return [*parts, f"texts {texts}"]
