"""Steps of a removal: plan, apply, restore."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from es_simhash import GuardRailError
from es_simhash.removal.losses import LOSSLESS, TAKEN_IN
from tests.estates.base import size_of
from tests.estates.groups import Groups
from tests.estates.model import Doc, Place, Seen, canonicals, see, similarity
from tests.estates.values import FEW, GROUPING, REMOVED, clients, groupings, planned
from tests.servers.removals import lines_of

backwards = st.sampled_from((0, 0, 0, 1, 2, 3))  # the latest plan first
SIMILARITY = 0.5


@dataclass
class Planned:
    """A plan, and what the model knew when it was made."""

    where: str
    path: Path
    uuids: dict[str, str]
    sizes: dict[str, int]
    lines: list[tuple[Place, Place]]  # the document that goes, the one that stays
    seen: dict[Place, Seen]  # all of them, as they were compared
    removed: dict[Place, Seen] = field(default_factory=dict)  # as they were when they were deleted


# In the order in which they are applied and reported: the least alike first.
LINES = "SELECT line FROM lines ORDER BY similarity, distance DESC, number"


def _rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


class Removals(Groups):
    """What is deleted was compared and is archived; what was archived comes back; the rest stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Planned] = []

    # What a plan must be

    @rule(
        who=clients,
        where=planned,
        also=st.sampled_from(((), TAKEN_IN)),
        grouping=groupings,
        further=st.integers(0, 2),
    )
    def plan(self, who, where, also, grouping, further) -> None:
        """A plan has the duplicates that the model has."""
        seen = self.seen_in(where)
        applied = {**GROUPING, **grouping, "similarity": SIMILARITY}
        options = {key: applied[key] for key in ("max_distance", "canonical")}
        options |= {"verify": SIMILARITY, "also": also, "max_share": 1.0}
        path = Path(tempfile.mkdtemp(dir=self.folder.name)) / "removal.db"
        report, error = self.ask(who, "plan_removal", self.name(where), path, **options, may_fail=True)
        cannot = not self.is_healthy(where) or len(self.grouping_of(where)) > 1 or not self.has_text_fields(where)
        if error is not None:
            assert cannot or self.faults, error
            return
        [header], *rest = _rows(path, "SELECT header FROM removal"), _rows(path, LINES)
        header, lines = json.loads(header[0]), [json.loads(line) for (line,) in rest[0]]
        pairs = [(self._place_of(line), self._place_of(line["canonical"])) for line in lines]
        going = [pair for pair, line in zip(pairs, lines, strict=True) if line["loss"] in (*LOSSLESS, *also)]
        docs = {each.place: each for each in seen}
        planned = Planned(where, path, header["index_uuids"], self.sizes_of(where), going, docs)
        assert (len(going), len(lines)) == (report.count, report.count + report.held)
        answers = self._duplicates(seen, applied)
        # What could not be read through a faulty wire is left out.
        assert any(
            dict(pairs).items() <= each.items() and (self.faults or len(pairs) == len(each)) for each in answers
        ), f"planned {pairs} of {answers[0]}"
        self.plans.append(planned)
        self.tally[f"plans of {'some' if going else 'no'} removals"] += 1
        if further > 0:
            self.apply(who, 0, None)
        if further > 1:
            self.restore(who, 0)

    def _place_of(self, line: dict[str, Any]) -> Place:
        return self.place(*map(line.get, ("index", "id", "routing")))

    def _duplicates(self, seen: list[Seen], grouping: dict[str, Any]) -> list[dict[Place, Place]]:
        """Return the duplicates that a plan may have, each with its canonical."""
        texts = {each.place: each.doc.source["body"] for each in seen}
        return [
            {
                place: canonical.place
                for place, canonical in answer.items()
                if canonical.place != place and similarity(texts[place], texts[canonical.place]) >= SIMILARITY
            }
            for answer in canonicals(seen, grouping)
        ]

    # What an apply must do

    @rule(who=clients, number=backwards, stop=st.sampled_from((None, None, 2, 5, 8, 12)))
    def apply(self, who, number, stop) -> None:
        """What fits the plan is deleted, no more; a run that was stopped is finished by another."""
        if not self.plans:
            return
        plan = self.plans[-1 - number % len(self.plans)]
        before = self.look()
        expected = self._expected(plan, before)
        left = sum(each == "deleted" and place in {s.place for s in before} for (place, _), each in expected)
        same = sum(self._is_same(plan, place, before) for place, _ in plan.lines)
        is_excess = same > sum(self._shows(plan, each) for each in before)
        is_other = any(self._stands(plan, name) and not self._is_as_planned(plan, name) for name in plan.uuids)
        self.tally[f"lines to delete: {'some' if left else 'none'}"] += 1
        if stop is not None:
            self.wire.left = stop
            _, error = self.ask("wired", "apply_removal", plan.path, may_fail=is_excess or is_other)
            self.wire.left = None
            if error is not None:
                for (place, _), action in expected:
                    if action != "kept":
                        self.model.change(place, self._outcome(plan, place, action, before), is_sure=False)
                self._note_removed(plan, before, self.look())
        records, error = self.ask(who, "apply_removal", plan.path, may_fail=True)
        assert error is None or self.faults or is_other or (is_excess and isinstance(error, GuardRailError)), error
        is_certain = not self.faults
        for number, ((place, canonical), action) in enumerate(expected):
            record = records[number] if number < len(records or ()) else None
            told = record and record.action
            if record is not None:
                assert (record.index, record.id, record.canonical) == (place.index, place.id, canonical.id), record
                assert told in ({action} if is_certain else {action, "kept", "restored"}), f"{record}, and not {action}"
            if action != "kept":
                is_sure = told == action and is_certain
                self.model.change(place, self._outcome(plan, place, action, before), is_sure=is_sure)
        after = self.look()
        self._note_removed(plan, before, after)
        self._judge_unseen(plan, before, after)
        if error is None and not self.faults:
            self._judge_groups(plan, before, after)

    def _uuids(self, plan: Planned) -> dict[str, str]:
        path = f"/{','.join(plan.uuids)}/_settings/index.uuid?ignore_unavailable=true"
        found = self.server.request("GET", path, missing_ok=True) or {}
        return {name: each["settings"]["index"]["uuid"] for name, each in found.items()}

    def _is_same(self, plan: Planned, place: Place, now: Iterable[Seen]) -> bool:
        """Return whether what decided about a document is what was compared for the plan."""
        [found] = [each for each in now if each.place == place] or [None]
        if found is None or not self._stands(plan, place.index):
            return False
        then = plan.seen[place]
        if found.version == then.version:
            return True
        decided = [(each.doc.routing, each.doc.source["body"]) for each in (found, then)]
        return decided[0] == decided[1]

    def _fits(self, plan: Planned, place: Place, now: Iterable[Seen]) -> bool:
        """Return whether a document is as planned, and where it was written, still what the plan is about."""
        if not self._is_same(plan, place, now):
            return False
        [found] = [each for each in now if each.place == place]
        return found.version == plan.seen[place].version or self._shows(plan, found)

    def _stands(self, plan: Planned, index: str) -> bool:
        return self._uuids(plan).get(index) == plan.uuids[index]

    def _shows(self, plan: Planned, each: Seen, *, by_name: bool = False) -> bool:
        """Return whether a document is among those that the plan is about; of a restore *by_name* alone."""
        is_shown = plan.where != "few" or each.doc.source["n"] <= FEW
        return is_shown and each.place.index in plan.uuids and (by_name or self._stands(plan, each.place.index))

    def _expected(self, plan: Planned, now: list[Seen]) -> list[tuple[tuple[Place, Place], str]]:
        """Return what must become of each line of a plan, by docs/proofs.md."""
        there = {each.place for each in now}
        standing = {name for name in plan.uuids if self._stands(plan, name)}
        expected = []
        for place, canonical in plan.lines:
            action = "kept"
            if {place.index, canonical.index} <= standing:
                if place not in there and place in plan.removed:
                    action = "deleted" if canonical in there else "restored"
                elif self._fits(plan, place, now) and self._fits(plan, canonical, now):
                    action = "deleted"
            expected.append(((place, canonical), action))
        return expected

    def _outcome(self, plan: Planned, place: Place, action: str, before: list[Seen]) -> Any:
        [doc] = [each.doc for each in before if each.place == place] or [
            plan.removed.get(place) and plan.removed[place].doc
        ]
        return (lambda _: None) if action == "deleted" else (lambda _: doc)

    def _last(self, plan: Planned) -> dict[tuple[str, str, str | None], dict[str, Any]]:
        """Return the last text of each document that was archived, in their order, read by nothing of ours."""
        lines = lines_of(plan.path)
        last = {(line["_index"], line["_id"], line["_routing"]): number for number, line in enumerate(lines)}
        return {key: lines[number] for key, number in sorted(last.items(), key=lambda item: item[1])}

    def _note_removed(self, plan: Planned, before: list[Seen], after: list[Seen]) -> None:
        """Note what is gone now, after a look into the file."""
        there = {each.place for each in after}
        kept = self._last(plan)
        for each in before:
            if each.place not in there:
                line = kept[each.place.index, each.place.id, each.doc.routing]
                assert json.dumps(line["_source"]) == each.raw, f"{each} was archived as {line}"
                assert self._is_same(plan, each.place, before), f"{each} was compared as {plan.seen[each.place]}"
                plan.removed[each.place] = each

    def _judge_unseen(self, plan: Planned, before: list[Seen], after: list[Seen], *, by_name: bool = False) -> None:
        """What the name of the plan does not show is as it was."""
        now = {each.place: each for each in after}
        for each in before:
            if not self._shows(plan, each, by_name=by_name):
                assert now.get(each.place) == each, f"{each} is now {now.get(each.place)}, and {plan.where} hides it"

    def _judge_groups(self, plan: Planned, before: list[Seen], after: list[Seen], *, by_name: bool = False) -> None:
        """What the plan is about has no wrong group by what was done, and names nothing that is gone."""
        one, two = ([each for each in some if self._shows(plan, each, by_name=by_name)] for some in (before, after))
        names = [name for name in plan.uuids if by_name or self._stands(plan, name)]
        recorded = [self._records(f"/{name}").get(name, {}) for name in names]
        found = [each.get("grouping") for each in recorded]
        is_judged = bool(found) and None not in found and all(each == found[0] for each in found)
        is_judged &= len({size_of(each) for each in recorded}) == 1 if is_judged else False
        self.judge_survivors(one, two, found[0] if is_judged else None)

    # What a restore must do

    @rule(who=clients, number=backwards)
    def restore(self, who, number) -> None:
        """What was archived is there again, exactly, where it is missing; nothing else changes but groups."""
        plans = [each for each in self.plans if lines_of(each.path)]
        if not plans:
            return
        plan = plans[-1 - number % len(plans)]
        lines = list(self._last(plan).values())
        before = self.look()
        there = {each.place: each for each in before}
        is_restorable = all(self._is_as_planned(plan, name) for name in plan.uuids)
        records, error = self.ask(who, "restore", plan.path, may_fail=not is_restorable)
        for number, line in enumerate(lines):
            record = records[number] if number < len(records or ()) else None
            self._believe_restored(plan, line, record, there)
        assert error or len(records) == len(lines)
        after = self.look()
        self._judge_unseen(plan, before, after, by_name=True)
        if error is None and not self.faults:
            self._judge_groups(plan, before, after, by_name=True)

    def _is_as_planned(self, plan: Planned, index: str) -> bool:
        """Return whether an index is the one that was planned, and has the scheme that it had."""
        record = self._records(f"/{index}").get(index)
        return self._stands(plan, index) and (size_of(record) if record else REMOVED) == plan.sizes.get(index)

    def _believe_restored(self, plan: Planned, line: dict[str, Any], record: Any, there: dict[Place, Seen]) -> None:
        """Let the model have what *record* says of a *line* of the file, after judging that."""
        [mapped] = [self._records(f"/{line['_index']}").get(line["_index"])]
        if mapped is None:
            assert record is None or record.action == "refused", record
            return
        place = self.place(line["_index"], line["_id"], line["_routing"])
        doc: Doc = see({**line}, 0).doc
        present = there.get(place)
        if record is not None and not self.faults:
            same = present is not None and present.doc.user == doc.user
            wanted = ("exists" if same else "differs") if present else "restored"
            is_own = self._is_as_planned(plan, line["_index"])
            may_differ = not is_own and (present is None or record.action == "refused")
            assert record.action == wanted or may_differ, f"{record}, and not {wanted}"
        if record is None or record.action == "restored" or self.faults:
            is_sure = record is not None and record.action == "restored"
            if present is None or is_sure:
                self.model.change(place, lambda _: doc, is_sure=is_sure)
