"""
Drives a flow by hand: answers what it yields from a script, and can throw a failure in at any step.
"""

from __future__ import annotations

from es_simhash.flows.protocol import Call, Compute, Emit


def drive(flow, answers, *, fail_at=None, failure=None):
    """
    Carry *flow* out and return ``(result, calls, emitted)``.

    Args:
        flow:
            The flow.
        answers:
            A function from a :class:`Call` to its answer; an exception it returns is thrown into the flow.
        fail_at:
            Number of the request, from 0, at which *failure* is thrown in place of its answer.
        failure:
            The exception to throw.
    """
    calls, emitted = [], []
    step, answer, error = 0, None, None
    while True:
        try:
            request = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as stop:
            return stop.value, calls, emitted
        answer = error = None
        if isinstance(request, Call):
            calls.append(request)
        if step == fail_at:
            error = failure
        elif isinstance(request, Emit):
            emitted.append(request.item)
        elif isinstance(request, Compute):
            answer = request.function(*request.arguments)
        elif isinstance(request, Call):
            answer = answers(request)
            if isinstance(answer, BaseException):
                answer, error = None, answer
        step += 1


class ServerError(Exception):
    """What a client raises for a response with an error status."""

    def __init__(self, status, text=""):
        super().__init__(text)
        self.status_code = status
