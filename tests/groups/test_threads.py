"""Results of several threads in the order of one."""

from threading import Event

import pytest

from es_simhash.groups.all_pairs import in_order, usable_cores


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_results_come_in_the_order_of_the_tasks(threads):
    """Whichever task ends first, and however many results it has."""
    tasks = [lambda number=number: iter([(number, each) for each in range(number * 3 % 20)]) for number in range(30)]
    assert list(in_order(tasks, threads)) == [result for task in tasks for result in task()]


def test_tasks_run_at_the_same_time():
    """The first task waits for the second one."""
    reached = Event()

    def first():
        assert reached.wait(60)
        yield "first"

    def second():
        reached.set()
        yield "second"

    assert list(in_order([first, second], 2)) == ["first", "second"]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_is_raised_in_its_place(threads):
    """What came before it is there."""

    def fail():
        yield 1
        raise KeyError("gone")

    stream = in_order([fail, lambda: iter([2])], threads)
    assert next(stream) == 1
    with pytest.raises(KeyError, match="gone"):
        next(stream)


def test_tasks_end_when_the_caller_stops():
    """Also one that would never end."""
    closed = Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    stream = in_order([endless, endless], 2)
    assert next(stream) == 1
    stream.close()
    assert closed.wait(60)


def test_some_core_can_be_used():
    """At least the one that runs this test."""
    assert usable_cores() >= 1
