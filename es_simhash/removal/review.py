"""The review of a removal: its numbers, its lines field by field, as text. Callers make it safe for a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from es_simhash.arguments import check_input
from es_simhash.removal.decisions import in_words
from es_simhash.removal.guard_rails import in_english
from es_simhash.removal.losses import RISKY_FIRST, SAID, Loss
from es_simhash.removal.removal_file import Lines, RemovalFile
from es_simhash.tables.notebook import cut, percent
from es_simhash.tables.words import Words
from es_simhash.texts.worddiff import Change, WordDiff, word_diff

if TYPE_CHECKING:
    from es_simhash.arguments import FilePath
    from es_simhash.removal.guard_rails import Say
    from es_simhash.removal.plan_options import PlanHeader
    from es_simhash.removal.records import PlannedRemoval


def percent_similar(similarity: float) -> str:
    """Return a similarity in percent, cut and not rounded, so that only texts with the same words show 100 %."""
    return f"{cut(similarity) * 100:g} %"


def relation(removal: PlannedRemoval, header: PlanHeader) -> str:
    """Return what is lost if the one document goes for the other, and what to look at."""
    said = [f"{removal.distance} bit{'' if removal.distance == 1 else 's'} apart", SAID[removal.loss]]
    said += ["kept is shorter"] * removal.is_kept_shorter + ["what goes is newer"] * removal.is_newer(header.date)
    return ", ".join(said)


# The marks have the meaning of the colours of the page.
_MARKS = {Change.SAME: ("", ""), Change.REMOVED: ("[-", "-]"), Change.ADDED: ("{+", "+}")}


def summary_lines(summary: Summary, said: Mapping[str, str]) -> Iterator[str]:
    of = f" of {summary.documents:,} ({percent(summary.share)})" if summary.documents else ""
    yield f"{summary.removals:,}{of} documents would go; {summary.canonicals:,} stay for them"
    for name, text in said.items():
        yield f"  {name}: {text}"
    for name, number in summary.differing.items():
        yield f"  in {number:,} of {summary.removals:,} the field {name} differs from that of what stays"
    yield from _table("by what is lost", [(f"{loss}: {SAID[loss]}", number) for loss, number in summary.losses.items()])
    largest = [(f"{id_} in {index}", number) for index, id_, number in summary.groups]
    yield from _table(f"what stays for most removals ({len(largest):,} of {summary.canonicals:,})", largest)


def _table(title: str, rows: Iterable[tuple[str, int]]) -> Iterator[str]:
    for place, (name, number) in enumerate(rows):
        if not place:
            yield title
        yield f"  {number:>12,}  {name}"


def removal_lines(removal: PlannedRemoval, header: PlanHeader, *, goes_now: bool) -> Iterator[str]:
    """Yield a line beside what stays, with the words that differ marked ``[-goes-]`` and ``{+stays+}``."""
    goes, stays = removal.document, removal.canonical
    where = f"{goes.index}/{goes.id}"
    kept = stays.id if stays.index == goes.index else f"{stays.index}/{stays.id}"
    what = "would go" if goes_now else "is held back"
    yield f"{percent_similar(removal.similarity)}  {where} {what}, {kept} stays ({relation(removal, header)})"
    for pair in compare_fields(removal):
        yield from (f"    {line}" for line in _field_lines(pair))


def example_line(removal: PlannedRemoval) -> str:
    """Return a line that is held back in one line: where it differs first."""
    pairs = [pair for pair in compare_fields(removal, max_changes=1) if not pair.is_equal]
    # The text is behind the fields that people see first; a title is one of these.
    pair = next(iter(pairs if removal.loss == "title" else reversed(pairs)), None)
    differs = "" if pair is None else f": {next(_field_lines(pair))}"
    return f"{removal.document.id}, for which {removal.canonical.id} would stay{differs}"


def _field_lines(pair: FieldPair) -> Iterator[str]:
    if pair.diff is None:
        values = [value if value is not None else "(none)" for value in (pair.goes, pair.stays)]
        yield f"{pair.name}: {values[0]}" if pair.is_equal else f"{pair.name}: [-{values[0]}-] {{+{values[1]}+}}"
        return
    if not pair.diff.excerpts:
        yield f"{pair.name}: no words differ"
    for excerpt in pair.diff.excerpts:
        text = [f"{_MARKS[part.change][0]}{part.text}{_MARKS[part.change][1]}" for part in excerpt]
        yield f"{pair.name}: {''.join(text)}"
    if pair.diff.omitted:
        yield f"{pair.name}: and {pair.diff.omitted:,} more place{'' if pair.diff.omitted == 1 else 's'}"
    if pair.diff.is_cut or pair.is_cut:
        yield f"{pair.name}: the texts are long, and only their beginnings were compared here"


def review_html(path: FilePath, *, language: str = "en") -> str:
    """
    Return the plan of removal in the file *path* as one HTML page, to judge it before it is applied.

    The page has every removal beside what stays: what loses most first, and of that the least similar. It loads nothing
    from anywhere. For a plan of many thousand removals, write the pieces of ``Review.html`` to a file instead.

    Args:
        path:
            File of a removal.
        language:
            ``"en"`` or ``"zh"``.

    Raises:
        InvalidInputError: If the file is no removal, or was cut short or changed.
    """
    with Review(check_input("path", path)) as review:
        return "".join(review.html(language=language))


def removal_summary(path: FilePath) -> dict[str, Any]:
    """
    Return the numbers of the removal in the file *path*, what was asked for and what was decided, as plain JSON values.

    Args:
        path:
            File of a removal.

    Raises:
        InvalidInputError: If the file is no removal, or was cut short or changed.
    """
    with Review(check_input("path", path)) as review:
        return review.to_dict()


class Review:
    """The review of a removal, which is read and found whole when it is made; else InvalidInputError is raised."""

    def __init__(self, path: FilePath) -> None:
        with ExitStack() as stack:
            self._removal = stack.enter_context(RemovalFile(path))
            self.sha256 = self._removal.sha256
            self.summary: Summary = summarize(self._removal, self._removal.header)
            stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._removal.close()

    def html(self, *, language: str = "en") -> Iterator[str]:
        from es_simhash.removal.review_page import CATALOGUE, write_page  # noqa: PLC0415 -- only for pages

        say = Words(language, CATALOGUE)
        yield from write_page(self._removal, self.summary, self.facts(say, is_page=True), say)

    def text(self, *, limit: int | None = None) -> Iterator[str]:
        """Yield the review as lines, what loses most first; line breaks and controls of the documents are in them."""
        header = self._removal.header
        yield from summary_lines(self.summary, self.facts())
        if self.summary.losses and limit != 0:
            yield ""
            yield "[-words-] are only in the document that would go, {+words+} only in what stays"
        for removal in islice(self.removals(), limit):
            yield ""
            yield from removal_lines(removal, header, goes_now=removal.loss in header.allowed)

    def facts(self, say: Say = in_english, *, is_page: bool = False) -> dict[str, str]:
        """
        Return what the plan says of itself, for people: a name and a text for each fact.
        *is_page*: for who approves, so neither how texts were compared nor what allows more.
        """
        removal, header, summary = self._removal, self._removal.header, self.summary
        facts = {"made": header.at or say("at an unknown time"), "indices": ", ".join(header.index_uuids)}
        if not is_page:
            facts["grouping"] = header.rule
        facts["guard rail"] = say("at most {share} % of the documents", share=f"{header.guards.max_share * 100:g}")
        if held := summary.held:
            facts["held back"] = say("{number} stay, because something would be lost", number=held)
        if shorter := removal.count_kept_shorter():
            longest = say("{number} of these have all that stays for them: --canonical longest", number=shorter)
            facts["kept is shorter"] = longest
        if header.date and summary.newer:
            counts = {"newer": summary.newer, "number": summary.removals}
            facts["who stays"] = say(
                "in {newer} of {number} the newer one by {date} goes; --canonical {latest}: the latest stays",
                **counts, date=header.date, latest=f"-{header.date}",
            )  # fmt: skip
        if header.decided:
            facts["decided before"] = say("{number} stay by earlier decisions", number=header.decided)
        if removal.approved:
            counts = {"kept": len(removal.kept), "removed": len(removal.decided)}
            by = in_words(removal.approved)
            facts["decided"] = say("{kept} stay and {removed} go after all, by {by}", **counts, by=by)
        found = [refusal for refusal in removal.find_refusals(header.guards) if refusal is not None]
        if refused := [refusal.said(say) if is_page else refusal.refusal() for refusal in found]:
            facts["will be refused"] = "; ".join(refused)
        return {**facts, "SHA-256": removal.sha256}

    def removals(self) -> Iterator[PlannedRemoval]:
        """Yield the lines by class, what loses most first, and the least similar of a class."""
        for loss in RISKY_FIRST:
            yield from self._removal.removals(loss)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the plan as plain JSON values."""
        header = self._removal.header
        excess, large_group = self._removal.find_refusals(header.guards)
        return {
            "plan": self.sha256,
            "at": header.at,
            "indices": list(header.index_uuids),
            "grouping": dict(header.grouping),
            "asked": dict(header.asked),
            "shown": dict(header.shown),
            "also": list(header.also),
            "max_share": header.guards.max_share,
            "excess": excess and excess.to_dict(),
            "large_group": large_group and large_group.to_dict(),
            "decisions": [decision.to_dict() for decision in self._removal.log],
            "kept": len(self._removal.kept),
            **self.summary.to_dict(),
        }


LONGEST_VALUE = 120
"""Characters of a value that is shown in one cell; a longer one is a text."""


@dataclass(frozen=True, slots=True)
class FieldPair:
    """
    A field of both documents: its value in the one that goes, and in the one that stays (``None``: it has none).
    *is_cut*: the plan has only the beginning of a value. *diff*: the words that differ, where white space counts as one
    space; ``None`` for short values.
    """

    name: str
    goes: str | None
    stays: str | None
    is_cut: bool = False
    diff: WordDiff | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both values are the same."""
        return self.goes == self.stays


def field_text(value: Any) -> str | None:
    """Return the value of a field as text; ``None`` where there is none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def is_short(value: str | None) -> bool:
    return value is None or (len(value) <= LONGEST_VALUE and "\n" not in value)


def compare_fields(removal: PlannedRemoval, *, max_changes: int = 6) -> list[FieldPair]:
    """Return the fields of both documents, in the order of the one that goes; *max_changes* differences for each."""
    goes, stays = removal.document, removal.canonical
    cut = {*goes.cut, *stays.cut}
    pairs = []
    for name in dict.fromkeys([*goes.fields, *stays.fields]):
        one, other = field_text(goes.fields.get(name)), field_text(stays.fields.get(name))
        diff = None
        if not (is_short(one) and is_short(other)):
            diff = word_diff(_on_one_line(one), _on_one_line(other), max_changes=max_changes)
        pairs.append(FieldPair(name, one, other, name in cut, diff))
    return pairs


def _on_one_line(text: str | None) -> str:
    # White space is no part of a shingle: a line that was wrapped elsewhere is no difference.
    return " ".join((text or "").split())


MOST_GROUPS = 10


@dataclass(frozen=True, slots=True)
class Summary:
    """
    The numbers of a plan: of how many *documents* how many go (*removals*), and for how many that stay (*canonicals*).
    *losses*: all lines by class, also those that are held back; what loses most first. *groups*: index and id of the
    documents that stand for most removals, with the number, most first. *lowest*: the smallest similarity of those that
    go; 1 if none go. *newer*: in how many the newer one goes. *differing*: for each field with short values how many
    documents have another one than what stays.
    """

    removals: int
    documents: int
    losses: Mapping[Loss, int]
    groups: tuple[tuple[str, str, int], ...]
    canonicals: int
    lowest: float
    newer: int
    differing: Mapping[str, int]

    @property
    def held(self) -> int:
        """How many are held back."""
        return sum(self.losses.values()) - self.removals

    @property
    def share(self) -> float:
        """The part of the documents that would go, 0 to 1."""
        return self.removals / max(1, self.documents)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain JSON values."""
        return {
            "total": {"removals": self.removals, "documents": self.documents, "share": round(self.share, 4)},
            "losses": dict(self.losses),
            "groups": [{"index": index, "id": id_, "removals": number} for index, id_, number in self.groups],
            "canonicals": self.canonicals,
            "lowest": self.lowest,
            "differing": dict(self.differing),
        }


def summarize(lines: Lines, header: PlanHeader) -> Summary:
    """Return the numbers of the *lines* of a plan."""
    groups: Counter[tuple[str, str]] = Counter()
    lowest, newer = 1.0, 0
    differing: Counter[str] = Counter()
    long: set[str] = set()
    for line in lines.removals("going"):
        goes, stays = line.document.fields, line.canonical.fields
        for name in dict.fromkeys([*goes, *stays]):
            if not all(is_short(field_text(fields.get(name))) for fields in (goes, stays)):
                long.add(name)
            else:
                differing[name] += line.differs(name)
        groups[line.canonical.index, line.canonical.id] += 1
        lowest = min(lowest, line.similarity)
        newer += line.is_newer(header.date)
    return Summary(
        groups.total(),
        header.guards.documents,
        lines.count_losses(),
        tuple((index, id_, number) for (index, id_), number in groups.most_common(MOST_GROUPS) if number > 1),
        len(groups),
        lowest,
        newer,
        {name: number for name, number in differing.items() if number and name not in long},
    )
