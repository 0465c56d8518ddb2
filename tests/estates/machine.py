"""
An estate of indices under random, readable steps: each step is made on a real server and on the model, then compared.

To add a step: decorate a method of one of the classes below with ``@rule``, make the step with ``self.ask`` (our
library) or with ``self.server.request`` (another program), and tell ``self.model`` what must have become of the
documents. The invariants here look after the rest.
"""

from __future__ import annotations

from hypothesis.stateful import invariant

from tests.estates.lookups import Lookups
from tests.estates.removals import Removals
from tests.estates.states import States


class Estate(States, Removals, Lookups):
    """All steps, and what holds after each of them."""

    @invariant()
    def nothing_is_lost(self) -> None:
        """Read each known document by its id, which shows what searches do not show yet."""
        known = {place: [each for each in states if each] for place, states in self.model.states.items()}
        known = {place: states for place, states in known.items() if states}
        docs = [{"_index": place.index, "_id": place.id, "routing": known[place][0].routing} for place in known]
        if docs:
            answer = self.server.request("POST", "/_mget", {"docs": docs})["docs"]
            seen = [self._see(each) for each in answer if each.get("found")]
            self.model.check(seen, is_all=False)
            self.versions = {each.place: each.version for each in seen}

    @invariant()
    def lookups_are_right(self) -> None:
        """Look up something that is there, another way after each step."""
        self.number_of_steps += 1
        place = self.pick(self.number_of_steps)
        if place and (doc := self.model.states[place][0]):
            where = ("a", "log", "both", "stream", "*")[self.number_of_steps % 5]
            kind = ("text", "many", "fingerprint", "of")[self.number_of_steps % 4]
            self.compare_lookup("two", where, kind, doc.source["body"], self.number_of_steps % 13, {})
