"""A real server stands still while it is asked: by a lock, for want of a replica, frozen."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest
from tests.live.test_engine import prepare

from dbdyno.experiment.engine import spec
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.trial import run_trial
from dbdyno.judge.checks.standstill import stands_still
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import DatasetPlan
from dbdyno.report.tell.verdicts import sentence
from dbdyno.servers.base import Server
from dbdyno.servers.client import Client
from support import making
from support.real_server import started

pytestmark = pytest.mark.live
PLAN: Final = making.plan(
    systems=("free", "held"),
    workloads=("oltp_write_only",),
    threads=(8,),
    blocks=3,
    window_s=2,
    warmup_s=0,
    dataset=DatasetPlan(tables=3, rows=2000),
    design={"disturbance_max": 1.0},  # other tests run beside it
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with started("still", "mysql:8.0.33", {"log_bin": "on"}) as running:
        prepare(running)
        yield running


@pytest.fixture(autouse=True)
def _short_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "DRAIN_S", 1.0)


@contextmanager
def read_lock(server: Server) -> Iterator[None]:
    server.ask("FLUSH TABLES WITH READ LOCK")
    try:
        yield
    finally:
        server.ask("UNLOCK TABLES")


@contextmanager
def no_replica(server: Server) -> Iterator[None]:
    """Every commit waits for a replica's word, and there is none."""
    server.ask("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    server.ask("SET GLOBAL rpl_semi_sync_source_timeout = 600000")
    server.ask("SET GLOBAL rpl_semi_sync_source_enabled = 1")
    try:
        yield
    finally:
        server.ask("SET GLOBAL rpl_semi_sync_source_enabled = 0")


def trials(server: Server, system: str) -> list[Measurement]:
    wanted = [one for one in trials_of(PLAN, "r") if one.system == system]
    return [run_trial(PLAN, one, server, lambda interval: None) for one in wanted]


@pytest.fixture(scope="module")
def free(server: Server) -> list[Measurement]:
    """What the server does when nothing holds it."""
    return trials(server, "free")


@pytest.mark.parametrize(
    ("held", "statement", "counter"),
    [
        (read_lock, "UPDATE: Waiting for global read lock", "Threads_running"),
        (no_replica, "COMMIT: Waiting for semi-sync ACK", "Rpl_semi_sync_source_wait_sessions"),
    ],
)
def test_what_stands_still_in_every_block_is_worse_and_says_what_waited(
    server: Server,
    free: list[Measurement],
    held: Callable[[Server], Any],
    statement: str,
    counter: str,
) -> None:
    with held(server):
        still = trials(server, "held")
    assert [(one.failure, one.events) for one in still] == [(None, 0)] * 3
    (verdict,) = judge([*free, *still], PLAN).verdicts
    assert verdict.word is Word.WORSE, verdict
    assert "held stood still in 3 of 3 blocks" in str(sentence(verdict))
    values = stands_still(still[0], PLAN).values
    assert any(statement in waited for waited in values["statements"])
    assert counter in values["counters"]


def test_a_server_that_freezes_within_the_window_keeps_what_it_completed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "answer_s_max", 1)
    # In the middle of a second: a busy machine may tell of the one before late, and answer little.
    freezing = threading.Timer(0.5, os.kill, (server.pid, signal.SIGSTOP))

    def freeze(interval: Mapping[str, Any]) -> None:
        if interval["at_s"] == 2.0:
            freezing.start()

    plan = making.with_parts(PLAN, trial={"warmup_s": 1, "window_s": 4})
    try:
        frozen = run_trial(plan, trials_of(plan, "r")[0], server, freeze)
    finally:
        freezing.cancel()
        os.kill(server.pid, signal.SIGCONT)
    assert frozen.failure is None
    assert frozen.events > 0
    values = stands_still(frozen, plan).values
    assert (round(values["silent_s"], 1), round(values["window_s"], 1)) == (2.0, 4.0)
    assert values["is_mute"]
    checks = {f.check for f in judge([frozen], plan).findings if f.trial and f.level == "void"}
    assert checks == set()
