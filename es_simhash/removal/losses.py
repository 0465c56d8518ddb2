"""The classes of loss, and how people read them. ``classes`` finds the class of two documents."""

from __future__ import annotations

from typing import Literal

Loss = Literal["unread", "title", "same", "contained", "numbers", "few", "rewritten"]
"""What is lost if a document goes for another one; where several hold, the first."""

LOSSLESS: tuple[Loss, ...] = ("same", "contained")
"""What a plan removes without being asked to."""

TAKEN_IN: tuple[Loss, ...] = ("few", "numbers", "title", "rewritten")
"""What a plan can be asked to remove as well."""

RISKY_FIRST: tuple[Loss, ...] = ("unread", "title", "numbers", "rewritten", "few", "contained", "same")

SAID: dict[Loss, str] = {
    "unread": "a text could not be read",
    "title": "what goes has a title of its own",
    "same": "the same letters and numbers",
    "contained": "all that goes stands in what stays",
    "numbers": "only numbers differ",
    "few": "a few words of its own go",
    "rewritten": "more of its own goes",
}
"""Each class for people."""

LOST: dict[Loss, str] = {
    "title": "have a title of their own",
    "numbers": "differ in numbers",
    "few": "have a few words of their own",
    "rewritten": "say more of their own",
}
"""What documents of a class that may be taken in would lose, for people."""
