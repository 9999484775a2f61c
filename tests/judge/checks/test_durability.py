"""One word for what a kill proved, and no more than it proved."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks.durability import Proof, verdict_of
from dbdyno.measurement.parts import Kill, KilledServer
from support.making import SETTINGS


def killed(
    kept=1000, server=400.0, disk=420.0, flush="1", kills=2, unanswered=3, settings=None
) -> KilledServer:
    """Two kills of four connections with 1000 acknowledged commits each."""
    one = Kill(
        acknowledged=1000,
        kept=kept,
        unanswered=unanswered,
        load_s=1.5,
        recovery_s=0.8,
        counted=800,
        server_flushes=server,
        disk_flushes=disk,
    )
    asked = {**SETTINGS, "innodb_flush_log_at_trx_commit": flush}
    return KilledServer(
        system="mysql:8.0.15",
        version="8.0.15",
        settings=asked if settings is None else settings,
        connections=4,
        kills=(one,) * kills,
    )


@pytest.mark.parametrize(
    ("seen", "proof"),
    [
        (killed(), Proof.DURABLE),
        (killed(disk=None), Proof.DURABLE),
        (killed(server=None), Proof.DURABLE),
        (killed(server=181.0, disk=181.0), Proof.DURABLE),
        (killed(server=179.0), Proof.UNFLUSHED),
        (killed(flush="2"), Proof.UNFLUSHED),
        (killed(flush="2", server=None), Proof.UNFLUSHED),
        (killed(disk=0.0), Proof.UNPROVEN),
        (killed(server=None, disk=None), Proof.UNPROVEN),
        (killed(kept=999), Proof.LOST),
        (killed(kept=999, flush="0", server=None), Proof.LOST),
        (killed(settings={}), Proof.DURABLE),
    ],
)
def test_the_word(seen, proof):
    assert verdict_of(seen).proof is proof


def test_a_loss_is_counted_over_all_kills():
    verdict = verdict_of(killed(kept=990))
    assert (verdict.acknowledged, verdict.missing) == (2000, 20)
    assert verdict.sentence == "mysql:8.0.15 lost 20 of 2000 acknowledged commits by 2 kills -9"
    assert "they are not durable commits" in verdict.reasons[-1]


def test_what_a_kill_does_not_prove_is_said():
    verdict = verdict_of(killed())
    assert verdict.sentence == (
        "mysql:8.0.15 kept all 2000 acknowledged commits through 2 kills -9"
    )
    assert verdict.reasons[0].startswith("its settings promise durable commits")
    assert verdict.reasons[1] == (
        "flushes per commit: 0.500 of the log by the server's count, 0.525 by the disks'; "
        "4 connections that wait for their answers need 0.25 at least"
    )
    assert "no power was cut" in verdict.reasons[-1]
    unflushed = verdict_of(killed(flush="2")).reasons
    assert unflushed[0].startswith("its settings do not promise durable commits")
    assert "a loss of power" in unflushed[-1]


def test_unknown_counts_are_said_to_be_unknown():
    verdict = verdict_of(killed(server=None, disk=None, settings={}))
    assert verdict.reasons[0] == "what its settings promise is not known"
    assert "unknown of the log by the server's count, unknown by the disks'" in verdict.reasons[1]


def test_rows_that_nobody_can_have_asked_for_are_told():
    assert not any("never answered" in r for r in verdict_of(killed(unanswered=4)).reasons)
    assert any("5 rows are there" in r for r in verdict_of(killed(unanswered=5)).reasons)


def test_a_verdict_comes_back_from_json():
    verdict = verdict_of(killed())
    assert type(verdict).model_validate_json(verdict.model_dump_json()) == verdict
