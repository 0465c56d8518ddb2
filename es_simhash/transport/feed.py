"""
A bounded queue between the reader of the caller's documents and the operation that writes them.

The event loop of an async client fills it (``client/async_port.py``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import Condition
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")

# As much as one batch has by default: after a slow request, the next batch is there whole.
MOST_ITEMS = 500
MOST_CHARACTERS = 4_000_000


class Feed(Generic[_T]):
    """
    Items on their way from one producer to one consumer.
    The producer calls :meth:`offer`, and then :meth:`end`; the consumer calls :meth:`take`. Either side may call
    :meth:`close`, from any thread. *characters* is approximate. *on_room* is called when the consumer first wants an
    item, and when it took from a full queue.
    """

    def __init__(self, *, most: int = MOST_ITEMS, characters: int = MOST_CHARACTERS) -> None:
        self.on_room: Callable[[], object] = lambda: None
        self.is_closed = False
        self._most = most
        self._most_characters = characters
        self._condition = Condition()
        self._items: deque[_T] = deque()
        self._characters = 0
        self._is_wanted = False
        self._is_ended = False
        self._failure: BaseException | None = None

    def offer(self, item: _T) -> bool:
        """Add *item* without a wait; return whether there is room for another. ``on_room`` says when there is again."""
        with self._condition:
            if self.is_closed:
                return False
            self._items.append(as_given(item))
            self._characters += weigh(item)
            self._condition.notify()
            return not self._is_full()

    def end(self, failure: BaseException | None = None) -> None:
        """Say that no item follows; *failure* is raised where the consumer has taken all items."""
        with self._condition:
            self._is_ended = True
            self._failure = failure
            self._condition.notify()

    def take(self) -> list[_T] | None:
        """
        Return the items in the queue; wait for the first.
        ``None`` after the last one, and once the queue is closed. What the source raised is raised after its last item.
        """
        if not self._is_wanted:
            self._is_wanted = True
            self.on_room()
        with self._condition:
            while not (self._items or self._is_ended or self.is_closed):
                self._condition.wait()
            if self.is_closed:
                return None
            was_full = self._is_full()
            found, self._items, self._characters = list(self._items), deque(), 0
        if found:
            if was_full:
                self.on_room()
            return found
        if self._failure is not None:
            raise self._failure
        return None

    def close(self) -> None:
        """Drop what is in the queue, and let the producer know that no more is wanted."""
        with self._condition:
            if self.is_closed:
                return
            self.is_closed = True
            self._items.clear()
            self._condition.notify_all()

    def _is_full(self) -> bool:
        return len(self._items) >= self._most or self._characters >= self._most_characters


# Where an action of a bulk request has a document.
_BODIES = ("_source", "doc", "upsert")


def as_given(action: Any) -> Any:
    """Return *action* as it is now: its caller may put other values in and give it again while others are read."""
    if type(action) is not dict:
        return action
    kept = dict(action)
    for name in _BODIES:
        if type(body := kept.get(name)) is dict:
            kept[name] = dict(body)
    return kept


def weigh(value: Any) -> int:
    """Return roughly how many characters *value* takes in a request."""
    if isinstance(value, (str, bytes)):
        return len(value) + 2
    if isinstance(value, (dict, Mapping)):
        weight = 0
        for key, item in value.items():
            size = len(item) + 2 if type(item) is str else 8 if type(item) is int else weigh(item)
            weight += len(key if type(key) is str else str(key)) + 3 + size
        return weight
    if isinstance(value, (list, tuple)):
        return sum(map(weigh, value))
    return 8
