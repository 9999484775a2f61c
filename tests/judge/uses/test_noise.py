"""Noise learned from earlier runs, beside runs of known noise."""

import numpy as np
import pytest

from dbdyno.judge.uses.noise import assumed, is_like, learned
from dbdyno.judge.uses.power import log_sd
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.systems import SystemPlan
from support import making

THREADS = (1, 8, 64, 128)
WORKLOADS = ("oltp_read_write", "oltp_read_only")


def run_of(in_step: float, own: float, blocks: int = 10, window_s: int = 2):
    """A run whose ln ratios have these standard deviations of a start and of each cell."""
    random = np.random.default_rng(3)
    plan = making.plan(
        workloads=WORKLOADS, threads=THREADS, blocks=blocks, window_s=window_s, warmup_s=1
    )
    made = []
    for workload in WORKLOADS:
        drawn = random.normal(size=(blocks, 5))
        drawn /= drawn.std(axis=0, ddof=1)
        logs = in_step * drawn[:, :1] + own * drawn[:, 1:]
        for (block, place), log in np.ndenumerate(logs):
            for system, tps in ((making.A, 5e4), (making.B, 5e4 * np.exp(log))):
                named = {"workload": workload, "window_s": window_s, "warmup_s": 1}
                one = making.measurement(
                    system, block, THREADS[place], round(tps), histograms=False, **named
                )
                made.append(one)
    return plan, made


@pytest.mark.parametrize(("in_step", "own"), [(0.0, 0.06), (0.06, 0.0), (0.04, 0.04)])
def test_noise_of_cells_and_its_part_in_step_are_found(in_step, own):
    plan, made = run_of(in_step, own)
    noise = learned([(plan, made)], plan)
    assert (noise.cells, noise.runs) == (8, 1)
    assert noise.sd() == pytest.approx(np.hypot(in_step, own) / np.sqrt(2), rel=0.25)
    mean_of_four = np.hypot(in_step, own / 2) / np.sqrt(2)
    assert noise.sd(4) == pytest.approx(mean_of_four, rel=0.35)


def test_a_few_wild_cells_move_the_noise_little():
    plan, made = run_of(0.02, 0.02)
    usual = learned([(plan, made)], plan)
    wild = [
        making.measurement(making.B, block, 8, 1000 * 3**block, workload=WORKLOADS[0])
        for block in range(10)
    ]
    kept = [m for m in made if m.trial.cell != wild[0].trial.cell or m.trial.system == making.A]
    assert learned([(plan, [*kept, *wild])], plan).sd() == pytest.approx(usual.sd(), rel=0.3)


def test_a_longer_window_keeps_the_noise_of_starts():
    plan, made = run_of(0.1, 0.0)
    longer = learned([(plan, made)], making.with_parts(plan, trial={"window_s": 60}))
    seconds = 0.06**2 / 2 - 0.06**2 / 60
    assert longer.cell == pytest.approx(learned([(plan, made)], plan).cell - seconds)


def test_too_few_blocks_and_other_workloads_tell_no_noise():
    plan, made = run_of(0.02, 0.02, blocks=3)
    other = making.plan(workloads=("oltp_point_select",))
    assert learned([(plan, made)], other) is None
    alone = [m for m in made if m.trial.cell in (made[0].trial.cell, made[2].trial.cell)]
    assert learned([(plan, alone)], plan) is None
    assert learned([(plan, made)], plan).cells == 8
    assert learned([], plan) is None


def test_cells_without_a_block_in_common_say_nothing_of_their_part_in_step():
    plan, made = run_of(0.02, 0.02, blocks=9)
    apart = [m for m in made if m.trial.block // 3 == THREADS.index(m.trial.cell.threads)]
    noise = learned([(plan, apart)], plan)
    assert (noise.cells, noise.shared / noise.cell) == (6, pytest.approx(0.5))


def test_only_closed_loops_of_own_servers_with_a_workload_in_common_are_alike():
    plan = making.plan()
    assert is_like(making.plan(workloads=WORKLOADS, threads=(64,)), plan)
    elsewhere = SystemPlan(label="cluster", reference="mysql://me@127.0.0.1:4000/db")
    others = plan.model_copy(update={"systems": (*plan.systems[:1], elsewhere)})
    options = making.plan(options={"point_selects": 1})
    at_rates = making.plan(load=LoadPlan(rates=("500",)))
    alone = making.plan(systems=(making.A,))
    for unlike in (making.plan(workloads=("oltp_read_only",)), others, options, at_rates, alone):
        assert not is_like(unlike, plan)
    assert not is_like(plan, at_rates)


def test_assumed_noise_is_that_of_the_forecast():
    # the cells of a workload share their start, and have seconds of their own
    for cells in (1, 8):
        assert assumed(0.04, 60).sd(cells) * np.sqrt(2) == pytest.approx(log_sd(0.04, 60, cells))
