"""Stalls and dips of two systems are counted over the blocks that both have."""

from __future__ import annotations

from dbdyno.judge.audit import audit
from dbdyno.judge.beside.stability import DIPS, STALLS, counts, stability
from support import making
from support.made_seconds import trial
from support.making import A, B


def evenness(made):
    return stability(audit(made, making.plan(window_s=60, blocks=8)).sound)


def test_stalls_of_all_blocks_are_counted_beside_the_baselines():
    flat = (1000.0,) * 20
    made = [trial(flat, A, block) for block in range(8)]
    made += [trial(flat, B, block, {5: 0.4, 9: 0.3}) for block in range(8)]
    found = {one.what: one for one in counts(evenness(made), A, [B])}
    stalls = found[STALLS]
    assert (stalls.baseline_total, stalls.system_total, stalls.blocks) == (0, 16, 8)
    assert (found[DIPS].baseline_total, found[DIPS].system_total) == (0, 0)


def test_blocks_of_one_system_only_are_not_counted():
    flat = (1000.0,) * 20
    made = [trial(flat, A, block, {3: 0.5}) for block in range(3)]
    made += [trial(flat, B, block) for block in (1, 2, 3)]
    stalls = counts(evenness(made), A, [B])[0]
    assert (stalls.what, stalls.blocks, stalls.baseline_total) == (STALLS, 2, 2)


def test_unheard_stalls_are_not_compared():
    made = [making.measurement(s, b, histograms=False) for s in (A, B) for b in range(3)]
    assert [one.what for one in counts(evenness(made), A, [B])] == [DIPS]
