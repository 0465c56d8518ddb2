"""Steps that look up: each answer is complete and right, or says that it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import note, strategies as st
from hypothesis.stateful import rule

from tests.estates.base import Base
from tests.estates.model import Seen, distance, fingerprint, similarity
from tests.estates.values import IDS, REMOVED, clients, distances, looked_at, texts


class Lookups(Base):
    """Lookups of every kind, compared with all that a search shows."""

    @rule(
        who=clients,
        where=looked_at,
        kind=st.sampled_from(("text", "text", "fingerprint", "many", "of")),
        text=texts,
        max_distance=st.one_of(distances, distances, st.just(64)),
        options=st.fixed_dictionaries(
            {},
            optional={
                "n": st.integers(0, 3),
                "size": st.integers(1, 5),
                "exclude_ids": st.lists(st.sampled_from(IDS), max_size=3),
                "routing": st.sampled_from(("r1", "r2")),
                "verify": st.sampled_from((0, 0.5, 0.8)),
            },
        ),
    )
    def look_up(self, who, where, kind, text, max_distance, options) -> None:
        """An answer is complete and right, or says that it is not."""
        self.compare_lookup(who, where, kind, text, max_distance, dict(options))

    def compare_lookup(
        self, who: str, where: str, kind: str, text: str, max_distance: int, options: dict[str, Any]
    ) -> None:
        """Look up, and compare with what is near of all that a search shows."""
        known = set(self.schemes_of(where).values()) - {REMOVED}
        fits = self._condition(options)
        bits = fingerprint(text, min(known, default="shingles"))
        if kind == "fingerprint":
            options.pop("verify", None)
        bound = options.get("verify")
        if bound is not None:  # the nearest are then the nearest among the verified
            options.pop("size", None)
        # In a lookup by document, routing names the document and restricts nothing.
        seen = self.visible(where, None if kind == "of" else options.get("routing"))
        own = ""
        if kind == "of":
            holders = [each for each in seen if each.doc.fingerprint is not None]
            if not holders:
                return
            own = min(each.place.id for each in holders)
            every = [each.doc for each in meant_by(seen, own, options)]
            meant = [each for each in every if each.fingerprint is not None]
            if not meant:
                return
            bits = min(each.fingerprint for each in meant)
            text = min(each.source["body"] for each in meant)
            # Which text is meant is not known, also where one of the documents has no fingerprint.
            if len({str(each.source.get("body")) for each in every}) > 1:
                options.pop("verify", None)
                bound = None
        if bits is None and kind == "fingerprint":
            return
        method, args = {
            "text": ("find_near_dups", {"text": text}),
            "fingerprint": ("find_near_dups", {"fingerprint": bits}),
            "many": ("find_near_dups_many", {"texts": [text, text]}),
            "of": ("find_near_dups_of", {"id": own}),
        }[kind]
        # A text without features is near to nothing, wherever it is looked for.
        # Nor is the server asked for it; of an index that is gone the client may remember another scheme.
        has_features = bits is not None and all(fingerprint(text, each) for each in known or ("shingles", "keywords"))
        must_fail = has_features and (len(known) > 1 or not all(map(self.mappings, where.split(","))))
        may_fail = not self.is_healthy(where) or (kind == "of" and self._is_ambiguous(where, own, options))
        answer, error = self.ask(
            who, method, self.name(where), max_distance=max_distance, may_fail=may_fail, **args, **options
        )
        if error is not None:
            return
        around = [
            (each.place.index, each.place.id, distance(bits, each.doc.fingerprint), each.doc.source["body"])
            for each in seen
            if bits is not None and each.doc.fingerprint is not None and fits(each)
        ]
        around = [each for each in around if each[2] <= max_distance]
        near = [each[:3] for each in around if bound is None or similarity(text, each[3]) >= bound]
        size = options.get("size")
        for each in answer if kind == "many" else [answer]:
            if isinstance(each, Exception):
                assert may_fail or self.faults, repr(each)
                continue
            is_complete = getattr(each, "complete", True)
            assert is_complete or self.faults or may_fail, each.reasons
            assert not must_fail or not is_complete, f"an answer though the schemes are {known}"
            # A document whose text could not be compared is kept, and the answer names it.
            is_compared = is_complete and not getattr(each, "unverified", ())
            judge(
                each,
                near,
                allowed=near if is_compared else [found[:3] for found in around],
                is_complete=is_complete,
                size=size,
                without=own,
            )
            self.tally[f"lookups that found {'some' if near else 'none'}"] += 1

    def _is_ambiguous(self, where: str, id: str, options: dict[str, Any]) -> bool:
        """Return whether documents of that id differ: of all shards, unless one has the routing value that is given."""
        meant = meant_by(self.visible(where), id, options)
        return len({each.doc.fingerprint for each in meant} - {None}) > 1

    def _condition(self, options: dict[str, Any]) -> Callable[[Seen], bool]:
        """Put the filter into *options*, and return whether they let a document through."""
        n = options.pop("n", None)
        if n is not None:
            options["filter"] = {"term": {"n": n}}
        excluded = options.get("exclude_ids", ())

        def fits(each: Seen) -> bool:
            return each.place.id not in excluded and (n is None or each.doc.source.get("n") == n)

        return fits


def meant_by(seen: list[Seen], id: str, options: dict[str, Any]) -> list[Seen]:
    """Return the documents of that id with the routing value that is given, else all of them."""
    copies, routing = [each for each in seen if each.place.id == id], options.get("routing")
    return [each for each in copies if routing is not None and each.doc.routing == routing] or copies


def judge(
    answer: Any,
    near: list[tuple[str, str, int]],
    *,
    allowed: list[tuple[str, str, int]],
    is_complete: bool,
    size: int | None,
    without: str,
) -> None:
    """
    Compare an answer with (index, id, distance) of all that is near; *without* is the id asked about.

    Those *allowed* may be found: the same, and where texts were not read, all within the distance.
    """
    found = Counter((each.index, each.id, each.distance) for each in answer)
    everything = Counter(allowed)
    others = Counter(each for each in near if each[1] != without)
    note(f"  found {sorted(found.elements())}")
    assert found <= everything, f"found, and not near: {found - everything}"
    if is_complete and size is None:
        assert others <= found, f"near, and not found: {others - found}"
    elif is_complete:
        told = sorted(each[2] for each in found.elements())
        least = sorted(each[2] for each in others.elements())[:size]
        assert without or told == least, f"the nearest {size} are at {least}, not at {told}"
