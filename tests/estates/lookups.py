"""Steps that look up: each answer is complete and right, or says that it is not."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import note, strategies as st
from hypothesis.stateful import rule

from tests.estates.base import Base
from tests.estates.model import Seen, distance, fingerprint, similarity
from tests.estates.values import REMOVED, clients, distances, looked_at, texts


class Lookups(Base):
    """Lookups of every kind, compared with all that a search shows."""

    @rule(
        who=clients,
        where=looked_at,
        kind=st.sampled_from(("text", "text", "fingerprint", "many", "of")),
        text=texts,
        max_distance=st.one_of(distances, distances, st.just(64)),
        options=st.fixed_dictionaries(
            {}, optional={"routing": st.sampled_from(("r1", "r2")), "verify": st.sampled_from((0, 0.5, 0.8))}
        ),
    )
    def look_up(self, who, where, kind, text, max_distance, options) -> None:
        """An answer is complete and right, or says that it is not."""
        self.compare_lookup(who, where, kind, text, max_distance, dict(options))

    def compare_lookup(
        self, who: str, where: str, kind: str, text: str, max_distance: int, options: dict[str, Any]
    ) -> None:
        """Look up, and compare with what is near of all that a search shows."""
        known = set(self.sizes_of(where).values()) - {REMOVED}
        bits = fingerprint(text, min(known, default=4))
        if kind == "fingerprint":
            options.pop("verify", None)
        # In a lookup by document, routing names the document and restricts nothing.
        seen = self.visible(where, None if kind == "of" else options.get("routing"))
        own, is_ambiguous = "", False
        if kind == "of":
            own = min((each.place.id for each in seen if each.doc.fingerprint is not None), default="")
            every = [each.doc for each in meant_by(seen, own, options)]
            meant = {each.fingerprint for each in every} - {None}
            if not meant:
                return
            bits, is_ambiguous = min(meant), len(meant) > 1
            text = min(each.source["body"] for each in every if each.fingerprint is not None)
            # Which text is meant is not known, also where one of the documents has no fingerprint.
            if len({str(each.source.get("body")) for each in every}) > 1:
                options.pop("verify", None)
        if bits is None and kind == "fingerprint":
            return
        method, args = {
            "text": ("find_near_dups", {"text": text}),
            "fingerprint": ("find_near_dups", {"fingerprint": bits}),
            "many": ("find_near_dups_many", {"texts": [text, text]}),
            "of": ("find_near_dups_of", {"id": own}),
        }[kind]
        # A text without features is near to nothing, wherever it is looked for; nor is the server asked for it.
        must_fail = bits is not None and (len(known) > 1 or not all(map(self.mappings, where.split(","))))
        may_fail = not self.is_healthy(where) or is_ambiguous
        answer, error = self.ask(
            who, method, self.name(where), max_distance=max_distance, may_fail=may_fail, **args, **options
        )
        if error is not None:
            return
        around = [
            (each.place.index, each.place.id, distance(bits, each.doc.fingerprint), each.doc.source["body"])
            for each in seen
            if bits is not None and each.doc.fingerprint is not None
        ]
        around = [each for each in around if each[2] <= max_distance]
        bound = options.get("verify")
        near = [each[:3] for each in around if bound is None or similarity(text, each[3]) >= bound]
        for each in answer if kind == "many" else [answer]:
            if isinstance(each, Exception):
                assert may_fail or self.faults, repr(each)
                continue
            is_complete = getattr(each, "complete", True)
            assert is_complete or self.faults or may_fail, each.reasons
            assert not must_fail or not is_complete, f"an answer though the schemes are {known}"
            # A document whose text could not be compared is kept, and the answer names it.
            is_compared = is_complete and not getattr(each, "unverified", ())
            allowed = Counter(near if is_compared else [found[:3] for found in around])
            found = Counter((one.index, one.id, one.distance) for one in each)
            note(f"  found {sorted(found.elements())}")
            assert found <= allowed, f"found, and not near: {found - allowed}"
            others = Counter(one for one in near if one[1] != own)
            assert not is_complete or others <= found, f"near, and not found: {others - found}"
            self.tally[f"lookups that found {'some' if near else 'none'}"] += 1


def meant_by(seen: list[Seen], id: str, options: dict[str, Any]) -> list[Seen]:
    """Return the documents of that id with the routing value that is given, else all of them."""
    copies, routing = [each for each in seen if each.place.id == id], options.get("routing")
    return [each for each in copies if routing is not None and each.doc.routing == routing] or copies
