"""Steps about groups: reconcile, and what holds of groups after each step."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.estates.base import Base
from tests.estates.model import Seen, expected_groups, names_of, told_groups, wrong_groups
from tests.estates.values import clients, groupings, looked_at

GROUPS = ("group", "duplicate_of")
LONG_AGO = "2020-01-01T00:00:00Z"  # before every document that was ever grouped


class Groups(Base):
    """Groups become what the rule says."""

    def grouping_of(self, where: str) -> list[dict[str, Any]]:
        """Return the different groupings that the indices of *where* record."""
        found: list[dict[str, Any]] = []
        for record in self.mappings(where).values():
            if "grouping" in record and record["grouping"] not in found:
                found.append(record["grouping"])
        return found

    def may_be_refused(self, where: str, grouping: dict[str, Any]) -> bool:
        """Return whether documents of *where* may be impossible to group by *grouping*, or by what is recorded."""
        recorded = self.grouping_of(where)
        if not self.is_healthy(where) or len(recorded) > 1:
            return True
        orders = [each["canonical"] for each in (*recorded, grouping) if "canonical" in each]
        return not self.has_text_fields(where) and any("longest" in order for order in orders)

    @rule(
        who=clients,
        where=looked_at,
        grouping=groupings,
        dry_run=st.sampled_from((False, False, True)),
        since=st.sampled_from((None, None, LONG_AGO)),
    )
    def reconcile(self, who, where, grouping, dry_run, since) -> None:
        """Groups become what the rule says of all documents, and a second run finds nothing to do."""
        seen = self.seen_in(where)
        recorded = self.grouping_of(where)
        may_fail = self.may_be_refused(where, grouping)
        report, error = self.ask(
            who,
            "reconcile",
            self.name(where),
            dry_run=dry_run,
            since=since,
            may_fail=may_fail,
            **({} if recorded else grouping),
        )
        if error is None and not dry_run and report.is_settled:
            now = self.seen_in(where)
            expected = expected_groups(seen, self.grouping_of(where)[0])
            told, before = told_groups(now), told_groups(seen) if since else {}
            # With a moment, what no change can have touched since then is left as it was.
            assert any(
                all(own in (before.get(place), answer[place]) for place, own in told.items()) for answer in expected
            ), f"{told} must be {expected[0]}"
            again, _ = self.ask("one", "reconcile", self.name(where), since=since)
            assert again is None or again.changed == 0, again
        assert error or dry_run or report.is_settled or self.faults, report

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
