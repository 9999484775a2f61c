"""How a command ended: the engine's answer, or what it raised in the words of sysbench."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dbdyno.sysbench.failure import begin_lines, failure_of
from dbdyno.sysbench.options.refusal import Refusal
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.signals import Outcome

_SIGNALLED = 128


class Run(NamedTuple):
    """What is told of.

    Attributes:
        record: the engine's; empty when the load could not begin.
        failure: why it could not begin, or ended early; None for a run without failure.
        begun_at: when the load began, s since 1970; None if it never did.
    """

    record: Mapping[str, Any]
    failure: Mapping[str, Any] | None
    begun_at: float | None
    exit_status: int


def result(outcome: Outcome, request: Request, function: str) -> str:
    """The engine's answer; what it raised for a reason of the user's becomes a Refusal."""
    error = outcome.error
    if isinstance(error, RuntimeError | ValueError):
        where = request.address().described
        failure = failure_of(error)
        lines = begin_lines(failure, where, function, request.general.compat)
        if outcome.signal_number is not None and failure.get("code") is None:
            lines = [f"interrupted: {failure['message']}"]
        raise Refusal(
            *(f"FATAL: {line}" for line in lines), exit_status=status(outcome) or 1
        ) from error
    if error is not None:
        raise error
    assert outcome.result is not None
    return outcome.result


def status(outcome: Outcome) -> int:
    """0, or 128 + n when signal n ended it."""
    return 0 if outcome.signal_number is None else _SIGNALLED + outcome.signal_number
