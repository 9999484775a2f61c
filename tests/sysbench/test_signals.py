"""Signals while the engine works: asked to end, waited for, and everything put back."""

import os
import signal
import threading
import time

import pytest

from dbdyno.sysbench.ending import stoppable


class Flag:
    def __init__(self):
        self.event = threading.Event()

    def set(self):
        self.event.set()


def test_what_the_work_returns_comes_back():
    outcome = stoppable(lambda stop: "done", Flag())
    assert outcome == ("done", None, None)


def test_what_the_work_raises_comes_back_too():
    error = ValueError("why")

    def work(stop):
        raise error

    assert stoppable(work, Flag()) == (None, error, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_flag_and_the_work_ends_by_itself(number):
    before = signal.getsignal(number)
    handlers = []

    def work(stop):
        os.kill(os.getpid(), number)
        assert stop.event.wait(20)
        time.sleep(0.05)
        handlers.append(signal.getsignal(number))
        return "ended in good order"

    assert stoppable(work, Flag()) == ("ended in good order", None, number)
    assert handlers == [signal.SIG_DFL], "a second signal must kill"
    assert signal.getsignal(number) == before


def test_outside_the_main_thread_no_handler_is_touched():
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(stoppable(lambda s: "x", Flag())))
    thread.start()
    thread.join()
    assert outcomes == [("x", None, None)]
