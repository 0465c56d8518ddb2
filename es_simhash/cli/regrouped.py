"""
What removals and restores say about the groups that they made right at their end. No command is here.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from es_simhash.cli.output import count, error, failures_as_json, print_line

if TYPE_CHECKING:
    from es_simhash.groups.reconcile_flow import Reconciled


class Regrouped:
    """Collects what was done to groups."""

    def __init__(self) -> None:
        self._done: list[tuple[tuple[str, ...], Reconciled]] = []

    def add(self, names: tuple[str, ...], done: Reconciled) -> None:
        """Take what is said of the indices *names*."""
        self._done.append((names, done))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return it as plain JSON values."""
        return [
            {"indices": list(names), **asdict(done), "failures": failures_as_json(done.failures)}
            for names, done in self._done
        ]

    def print(self) -> None:
        """Print a line for each."""
        for names, done in self._done:
            print_line(f"groups of {', '.join(names)}: {count(done.changed, 'document')} rewritten")

    def complain(self) -> bool:
        """Print an error for each that is not right yet, and return whether there is any."""
        unsettled = [names for names, done in self._done if done.failures or not done.is_settled]
        for names in unsettled:
            said = f"the groups of {', '.join(names)} are not right yet: run es-simhash reconcile {','.join(names)}"
            error(said, kind="unsettled", indices=list(names))
        return bool(unsettled)
