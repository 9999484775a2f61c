"""For every test: chance is drawn the same way each time, and a slow machine is no failure.

Tests send Ctrl-C to themselves and to what they start. Tests that run in the background (`make test
&`, nohup) would ignore it and hand that on, so it counts here again; SIGHUP stays ignored, since a
logout shall not end tests under nohup.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from dbdyno.experiment import certify
from dbdyno.store.store import Store

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())


def pytest_collection_finish() -> None:
    """What is imported by now stays: the collector need not walk through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def certificate_of_nobody() -> Iterator[None]:
    """A certificate that failed on this machine would void every verdict that a test asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certify, "FILE", "certificate-of-tests.json")
        yield


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The store of a new workspace."""
    with Store.open(tmp_path) as opened:
        yield opened
