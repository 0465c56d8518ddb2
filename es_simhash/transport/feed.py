"""
A bounded queue between the reader of the caller's documents and the operation that writes them.

A source that pauses does not hold back what was read before. A thread fills the queue, or the event loop of an async
client (``client/async_port.py``).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator as AnyGenerator, Iterable, Mapping
from contextvars import copy_context
from threading import Condition, Thread, current_thread
from typing import Any, Generic, TypeVar

logger = logging.getLogger("es_simhash")

_T = TypeVar("_T")

# As much as one batch has by default: after a slow request, the next batch is there whole.
MOST_ITEMS = 500
MOST_CHARACTERS = 4_000_000
# How long to wait for a thread that was told to stop. One that its source holds up for longer ends when that returns.
JOIN_SECONDS = 0.1


class Feed(Generic[_T]):
    """
    Items on their way from one producer to one consumer, each with the moment at which it came.
    The producer calls :meth:`put` or :meth:`offer`, and then :meth:`end`; the consumer calls :meth:`take`. Either side
    may call :meth:`close`, from any thread. *characters* is approximate. *clock* returns seconds that only grow.
    *on_room* is called when the consumer first wants an item, and when it took from a full queue; *on_close* once.
    """

    def __init__(
        self, *, most: int = MOST_ITEMS, characters: int = MOST_CHARACTERS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.on_room: Callable[[], object] = lambda: None
        self.on_close: Callable[[], object] = lambda: None
        self.is_closed = False
        self._most = most
        self._most_characters = characters
        self._clock = clock
        self._condition = Condition()
        self._items: deque[tuple[float, _T]] = deque()
        self._characters = 0
        self._is_wanted = False
        self._is_ended = False
        self._failure: BaseException | None = None

    def put(self, item: _T) -> bool:
        """Add *item*, after a wait while the queue is full; return whether the consumer wants more."""
        with self._condition:
            while self._is_full() and not self.is_closed:
                self._condition.wait()
            return self._add(item)

    def offer(self, item: _T) -> bool:
        """Add *item* without a wait; return whether there is room for another. ``on_room`` says when there is again."""
        with self._condition:
            return self._add(item) and not self._is_full()

    def end(self, failure: BaseException | None = None) -> None:
        """Say that no item follows; *failure* is raised where the consumer has taken all items."""
        with self._condition:
            self._is_ended = True
            self._failure = failure
            self._condition.notify()

    def take(self, due: float | None = None) -> list[tuple[float, _T]] | None:
        """
        Return the items in the queue with the moments at which they came; wait for the first until *due*.
        Empty if none came until *due*; ``None`` after the last one, and once the queue is closed. What the source
        raised is raised after its last item.
        """
        if not self._is_wanted:
            self._is_wanted = True
            self.on_room()
        with self._condition:
            while not (self._items or self._is_ended or self.is_closed):
                seconds = None if due is None else due - self._clock()
                if seconds is not None and seconds <= 0:
                    return []
                self._condition.wait(seconds)
            if self.is_closed:
                return None
            was_full = self._is_full()
            found, self._items, self._characters = list(self._items), deque(), 0
            self._condition.notify()
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
        self.on_close()

    def _is_full(self) -> bool:
        return len(self._items) >= self._most or self._characters >= self._most_characters

    def _add(self, item: _T) -> bool:
        if self.is_closed:
            return False
        self._items.append((self._clock(), as_given(item)))
        self._characters += weigh(item)
        self._condition.notify()
        return True


def read_in_background(documents: Iterable[_T], feed: Feed[_T]) -> Feed[_T]:
    """
    Return *feed*, which a thread fills from *documents*; the thread never keeps the process from ending.
    Closing the feed ends the thread, and closes a generator in it, once *documents* gives the item that it waits for.
    """
    thread = Thread(target=copy_context().run, args=(_fill, feed, documents), name="es_simhash_source", daemon=True)

    def stop() -> None:
        if thread is not current_thread():
            thread.join(JOIN_SECONDS)

    feed.on_close = stop
    thread.start()
    return feed


def _fill(feed: Feed[_T], documents: Iterable[_T]) -> None:
    try:
        for item in documents:
            if not feed.put(item):
                break
    except BaseException as error:  # noqa: BLE001 -- raised where the items are taken, after those before it
        feed.end(error)
    else:
        feed.end()
    if isinstance(documents, AnyGenerator):
        try:
            documents.close()
        except Exception as error:  # noqa: BLE001 -- nobody waits for it any more
            logger.warning("the source of documents could not be closed: %r", error)


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
        for key, each in value.items():
            size = len(each) + 2 if type(each) is str else 8 if type(each) is int else weigh(each)
            weight += len(key if type(key) is str else str(key)) + 3 + size
        return weight
    if isinstance(value, (list, tuple)):
        return sum(map(weigh, value))
    return 8
