"""Steps about groups: reconcile, and what holds of groups after each step."""

from __future__ import annotations

from typing import Any

from hypothesis.stateful import rule

from tests.estates.base import Base
from tests.estates.model import Seen, expected_groups, names_of, told_groups, wrong_groups
from tests.estates.values import clients, groupings, looked_at

GROUPS = ("group", "duplicate_of")


class Groups(Base):
    """Groups become what the rule says."""

    def grouping_of(self, where: str) -> list[dict[str, Any]]:
        """Return the different groupings that the indices of *where* record."""
        found: list[dict[str, Any]] = []
        for record in self.mappings(where).values():
            if "grouping" in record and record["grouping"] not in found:
                found.append(record["grouping"])
        return found

    @rule(who=clients, where=looked_at, grouping=groupings)
    def reconcile(self, who, where, grouping) -> None:
        """Groups become what the rule says of all documents, and a second run finds nothing to do."""
        seen = self.seen_in(where)
        recorded = self.grouping_of(where)
        asked = {} if recorded else grouping
        may_fail = not self.is_healthy(where) or len(recorded) > 1
        report, error = self.ask(who, "reconcile", self.name(where), may_fail=may_fail, **asked)
        if error is None and report.is_settled:
            told, expected = told_groups(self.seen_in(where)), expected_groups(seen, self.grouping_of(where)[0])
            assert told in expected, f"{told} must be {expected[0]}"
            again, _ = self.ask("one", "reconcile", self.name(where))
            assert again is None or again.changed == 0, again
        assert error or report.is_settled or self.faults, report

    def judge_survivors(self, before: list[Seen], after: list[Seen], grouping: dict[str, Any] | None) -> None:
        """Documents were removed, or put back: no other has a wrong group by that, or names one that is gone."""
        there = names_of(after)
        gone = names_of(before) - there
        versions = {each.place: each.version for each in before}
        for each in after:
            named = {each.ours[name] for name in GROUPS if name in each.ours}
            if each.doc.fingerprint is None:
                named.discard(each.place.id)  # a group by itself, which has no name of others
            assert not (lost := named & gone), f"{each.place} names {lost}, which is gone: {each.ours}"
            if versions.get(each.place, each.version) != each.version:
                assert not (lost := named - there), f"{each.place} was changed to name {lost}, which is elsewhere"
        if grouping is not None:
            # Duplicates of documents that are elsewhere stay as they are, and the others are grouped without them.
            one, two = ([each for each in some if self.is_inside(each, some)] for some in (before, after))
            wrong = wrong_groups(two, grouping) - wrong_groups(one, grouping) - wrong_groups(before, grouping)
            # Of two indices two canonicals may have had one name before: nothing that was done tells them apart.
            wrong -= {
                each.place
                for each in after
                if versions.get(each.place) == each.version and each.ours.get("group") == each.place.id
            }
            told = {each.place: each.ours for each in after if each.place in wrong}
            assert not wrong, f"wrong now, and right before: {told}; must be {expected_groups(two, grouping)[0]}"

    @staticmethod
    def is_inside(each: Seen, seen: list[Seen]) -> bool:
        """Return whether the canonical that a document names is among those that are *seen*."""
        return each.ours.get("duplicate_of") in {None, *names_of(seen)}
