"""Servers that are killed in the midst of commits: what they answered is there, or it is not.

A kill each. An honest MySQL and MariaDB keep every answered commit; one that writes its log once a
second loses those of the last moments, and the proof must find that.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from dbdyno.experiment.durability import prove
from dbdyno.judge.checks.durability import Proof, verdict_of
from dbdyno.measurement.parts import KilledServer
from dbdyno.report.tell.durability import proof_reasons
from dbdyno.servers.base import ServerSpec
from support.lab_process import processes_of
from support.real_server import small_redo

pytestmark = pytest.mark.live
LAZY = {"innodb_flush_log_at_trx_commit": "0"}
TRIES = 4
"""A kill may come right behind the second's write; the slower commits are, the more often."""


def killed(reference: str, settings: dict[str, str] | None = None, **more: float) -> KilledServer:
    spec = ServerSpec(reference, reference, {**small_redo(reference), **(settings or {})})
    with tempfile.TemporaryDirectory(prefix="dbdyno-kill-") as name:
        Path(name).chmod(0o755)
        options = {"kills": 1, "load_s": 0.8, **more}
        seen = prove(spec, Path(name) / "server", lambda text: None, **options)  # type: ignore[arg-type]
        assert processes_of(Path(name)) == []
    return seen


@pytest.mark.parametrize("reference", ["mysql:8.0.15", "mariadb:10.11.5"])
def test_a_server_that_waits_for_its_log_keeps_every_answered_commit(reference: str) -> None:
    seen = killed(reference)
    verdict = verdict_of(seen)
    assert verdict.acknowledged > 4
    assert verdict.missing == 0
    # On a disk without flushes (write through) nothing more can be shown.
    assert verdict.proof in (Proof.DURABLE, Proof.UNPROVEN)
    (kill,) = seen.kills
    assert kill.unanswered <= seen.connections


def test_a_server_that_writes_its_log_once_a_second_is_found_out() -> None:
    # From 8.0 on a thread of MySQL hands the log to the system at once: power alone takes it.
    for _ in range(TRIES):
        server = killed("mysql:5.7.22", LAZY, load_s=0.6)
        verdict = verdict_of(server)
        if verdict.missing:
            break
    assert verdict.proof is Proof.LOST
    assert 0 < verdict.missing <= verdict.acknowledged
    reason = proof_reasons(verdict, server)[0]
    assert reason.startswith("its settings do not promise durable commits")
