"""Steps in which our library writes: ingest and backfill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.estates.base import Base
from tests.estates.model import Doc, Place, Seen, Settings, distance, fingerprint, is_near, to_user
from tests.estates.values import (
    REMOVED,
    WRITTEN,
    Write,
    clients,
    groupings,
    looked_at,
    policies,
    ways,
    writes,
    written_to,
)


class Writes(Base):
    """Documents and fingerprints are written, and each report is believed."""

    @rule(
        who=clients,
        where=written_to,
        given=st.lists(writes, min_size=1, max_size=6),
        on_duplicate=policies,
        grouping=groupings,
        way=ways,
    )
    def ingest(self, who, where, given, on_duplicate, grouping, way=("server", 500)) -> None:
        """Write documents, and believe each report."""
        records = self.mappings(where)
        # What a search shows and is still so; the rest changes once ingest makes it visible.
        before = [each for each in self.visible(where) if self.versions.get(each.place) == each.version]
        prints: dict[str, set[int]] = {}  # that an id has had
        for place, states in self.model.states.items():
            prints.setdefault(place.id, set()).update(each.fingerprint for each in states if each and each.fingerprint)
        if on_duplicate is None or any("grouping" in each for each in records.values()):
            grouping = {}
        may_fail = not self.is_healthy(where) or not self.has_text_fields(where)
        actions = [each.action() for each in given]
        lookups, batch = way
        options = {"on_duplicate": on_duplicate, "lookups": lookups, "batch": batch}
        reports, error = self.ask(who, "ingest", self.name(where), actions, **options, may_fail=may_fail, **grouping)
        if not records:
            assert error is not None
            return
        reports = reports or []
        by_position = {each.position: each for each in reports}
        assert list(by_position) == sorted(by_position)
        assert len(by_position) == len(reports)
        assert error is not None or len(reports) == len(given)
        index = max(records)
        settings = self.settings_of(index)
        # A document skipped for one that the server then refused is written after the rest of its batch.
        is_written_late = on_duplicate == "skip" and any(each.action == "refused" for each in reports)
        for number, each in enumerate(given):
            self._believe(each, by_position.get(number), index, settings, is_written_late=is_written_late)
        if error is None and on_duplicate is not None and not self.faults:
            grouping = self.mappings(where)[index]["grouping"]
            self._judge_decisions(
                grouping, before, prints, zip(given, reports, strict=True), settings.size, on_duplicate
            )

    def _believe(self, write: Write, report: Any, index: str, settings: Settings, *, is_written_late: bool) -> None:
        """Let the model become what *report* says of *write*; without a report, anything may have happened."""
        bits = fingerprint(write.text, settings.size)

        def new(old: Doc | None) -> Doc | None:
            if write.kind == "update":
                # Elasticsearch gives a document without a routing value that of its update; OpenSearch gives none.
                renamed = write.routing if self.server.product == "elasticsearch" else None
                changed = old and replace(
                    old, user=to_user(old.source | write.source()), routing=old.routing or renamed
                )
                return changed and settings.give(changed)
            if old and write.kind == "create":
                return old
            return settings.give(Doc(to_user(write.source()), routing=write.routing))

        if report is not None and report.action == "skipped":
            return
        if report is not None and report.action == "unchanged":  # nothing was created, and nothing was missing
            same = [to_user(write.source()), bits]
            place = self.place(index, write.id, write.routing)
            states = self.model.states.get(place, [None])
            assert write.kind == "create", report
            if self.faults and None in states:  # it may be there because the wire sent this write twice
                self.model.change(place, new)
                states = self.model.states[place]
            assert same in [[each.user, each.fingerprint] for each in states if each], report
            return
        is_written = report is not None and report.action in WRITTEN
        if is_written:
            told = (report.id, report.index, report.fingerprinted)
            assert told == (write.id, index, bits is not None), report
        place = self.place(index, write.id, write.routing)
        exists = self.model.states.get(place, [None])
        if is_written and not self.faults:
            assert write.kind != "create" or None in exists, f"{report}, though it was there"
            assert write.kind != "update" or exists != [None], f"{report}, though it was not there"
        if report is not None and not is_written and not self.faults:
            refusable = {"create": exists != [None], "update": None in exists or is_written_late}
            assert report.action == "refused", report
            assert refusable.get(write.kind), report
            return
        self.model.change(place, new, is_sure=is_written)

    def _judge_decisions(
        self,
        grouping: dict[str, Any],
        before: list[Seen],
        prints: dict[str, set[int]],
        written: Iterable[tuple[Write, Any]],
        size: int,
        policy: str,
    ) -> None:
        """Judge what ingest took for duplicates: by what was visible before, and what each id has had, *prints*."""
        written = list(written)
        touched = {each.id for each, _ in written}
        canonicals = [
            each
            for each in before
            if each.doc.fingerprint is not None and "duplicate_of" not in each.ours and each.place.id not in touched
        ]
        # A group has the name of its canonical's id, with the index where that id stands twice.
        named = {
            each.ours["group"]: each.place.id
            for each in before
            if "group" in each.ours and "duplicate_of" not in each.ours
        }
        for write, report in written:
            own = fingerprint(write.text, size)
            if own is not None:
                prints.setdefault(report.id, set()).add(own)
        for write, report in written:
            own = fingerprint(write.text, size)
            if own is not None and report.action in ("tagged", "skipped"):
                canonical = named.get(report.canonical, report.canonical)
                bits = {distance(own, each) for each in prints.get(canonical, ())}
                assert report.distance in bits, f"{report}: {sorted(bits)}"
                assert report.canonical != report.id or len(self._places(report.id)) > 1, f"{report}: of itself"
                assert report.distance <= grouping["max_distance"], report
            if own is not None and report.action == "written":
                missed = [each for each in canonicals if is_near(own, write.text, each.doc, grouping)]
                assert not missed, f"{report} is near {missed}"

    def _places(self, id: str) -> list[Place]:
        return [place for place in self.model.states if place.id == id]

    def _give_fingerprints(self, where: str, *, is_sure: bool, remove: bool = False) -> None:
        """Let every document of *where* have our fields of its text, or none; all are visible."""
        settings = {name: self.settings_of(name) for name in self.mappings(where)}
        for each in self.visible(where):

            def new(old: Doc | None, own: Settings = settings[each.place.index]) -> Doc | None:
                return old and (replace(old, fingerprint=None, passages=()) if remove else own.give(old))

            self.model.change(each.place, new, is_sure=is_sure)

    @rule(who=clients, where=looked_at, dry_run=st.sampled_from((False, False, True)))
    def backfill(self, who, where, dry_run) -> None:
        """Every document gets the fingerprint of its present text."""
        self.look()
        known = set(self.sizes_of(where).values())
        may_fail = len(known) > 1 or REMOVED in known or not all(map(self.mappings, where.split(",")))
        options = {"text_field": "body", "dry_run": dry_run}
        reports, error = self.ask(who, "backfill", self.name(where), may_fail=may_fail, **options)
        if not dry_run:
            before = {place: list(states) for place, states in self.model.states.items()}
            self._give_fingerprints(where, is_sure=error is None)
            changed = sum(before[place] != states for place, states in self.model.states.items())
            assert error or self.faults or reports[-1].changed == changed, f"{reports[-1]}: {changed} had to change"
