"""For every test: chance is drawn the same way each time, and a slow machine is no failure.

`--hypothesis-profile=random` draws anew in every run, and far more (CONTRIBUTING.md).

Tests send Ctrl-C to themselves and to what they start. Tests that run in the background (`make test
&`, nohup) would ignore it and hand that on, so it counts here again; SIGHUP stays ignored, since a
logout shall not end tests under nohup.
"""

from __future__ import annotations

import gc
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from dbdyno.experiment import certify
from dbdyno.store.store import Store
from support.source import ROOT

settings.register_profile("steady", max_examples=50, derandomize=True, deadline=None)
settings.register_profile("random", max_examples=10_000, deadline=None)
settings.load_profile("steady")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ending in (signal.SIGQUIT, signal.SIGHUP):  # the latter under nohup
    if signal.getsignal(ending) is signal.SIG_IGN:
        signal.signal(ending, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())


READ_SOURCE: Final = tuple(
    f"tests/test_{name}.py" for name in ("tidy", "prose", "catalogue", "interpreter")
)
"""Parse every file of the project, once if it is one worker that does so."""
SERVER_PARAMETER: Final = re.compile(r"\[((?:mysql|postgres):[0-9.]+)")
"""The `server` of a test's id, which is its first parameter."""
LONGEST_FIRST: Final = (
    "browser/test_report_page",
    "experiment/test_faults",
    "sysbench/test_script",
    "sysbench/test_script_sessions",
    "tests/test_tidy",
    "cli/test_flow",
    "kept/test_kept",
    "judge/test_method",
    "servers/test_rogue",
    "cli/test_interrupts",
    "experiment/test_simulated_runs",
    "experiment/test_known_servers",
    "live/test_fleet",
    "live/test_topology",
    "live/test_main_job",
    "live/test_benchmarks",
    "live/test_catalog",
    "live/test_postgres",
    "live/test_sysbench",
    "live/test_scripts",
    "live/test_unattended",
    "live/test_kept",
    "live/test_transport",
    "live/test_postgres_load",
    "live/test_standstill",
    "live/test_loads",
    "live/test_servers",
    "live/test_procedure",
    "live/test_sources",
    "live/test_durability",
    "live/test_arms",
    "live/test_compared_scripts",
    "live/test_prepare",
    "live/test_engine",
    "live/test_endpoint",
    "live/test_bundle",
    "browser/test_live_run",
)
"""The files that begin first, in this order: those that take longest.

Workers take whole groups of tests (`worker_group`). A long one that began last would keep one
worker busy while the others had nothing left to do.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(f"{item.path.parent.name}/{item.path.stem}", len(rank)))


class GroupScheduling(LoadFileScheduling):
    """Gives a group of tests to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return worker_group(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    return GroupScheduling(config, log)


def worker_group(nodeid: str) -> str:
    """The file of a test, or the server or the source that it shares with tests of other files.

    Files that run the sysbench persona and those that call the engine have a server each, or one
    worker would have most of the work. Not xdist's own groups: it notes them in an attribute that
    pytest 9 does not read any more.
    """
    file = nodeid.partition("::")[0]
    if file in READ_SOURCE:
        return "source"
    server = SERVER_PARAMETER.search(nodeid)
    text = source(file) if server else ""
    if server is None or "shared_servers" not in text:
        return file
    return f"{server[1]} {'persona' if 'SYSBENCH' in text else 'engine'}"


@cache
def source(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


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
