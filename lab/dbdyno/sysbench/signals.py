"""Lets SIGINT and SIGTERM end the engine's work in good order: the report of what was seen follows.

Python runs signal handlers only in its main thread and only between two of its own steps, so the
engine works in a second thread while the main one waits. The first signal asks for the end, a
second one kills: events in flight are waited for as long as the server takes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dbdyno._engine import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Outcome(NamedTuple):
    """What the work returned or raised, and the signal that ended it."""

    result: str | None
    error: BaseException | None
    signal_number: int | None


class _Asked:
    """The signal that asked for the end; None until there is one."""

    def __init__(self) -> None:
        self.signal_number: int | None = None


def stoppable(work: Callable[[Stop], str], stop: Stop) -> Outcome:
    """Does the work in a second thread; a signal sets `stop`, and the work's end is waited for."""
    results: list[str] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, name="engine")
    with _signals_set(stop) as asked:
        thread.start()
        thread.join()
    result = results[0] if results else None
    return Outcome(result, errors[0] if errors else None, asked.signal_number)


@contextmanager
def _signals_set(stop: Stop) -> Iterator[_Asked]:
    asked = _Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.signal_number = number
        stop.set()
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_DFL)

    before = {one: signal.signal(one, ask) for one in _SIGNALS}
    try:
        yield asked
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
