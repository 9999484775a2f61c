"""Runs that begin with a pilot, over fake servers that do 100 events a second and no more."""

import pytest

from dbdyno.errors import CellError, LoadError
from dbdyno.experiment.runner import run
from dbdyno.experiment.schedule.forecast import outlook_of
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.schedule.pilot import foreseen
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.measurement.measurement import NO_BLOCK
from dbdyno.plan.load import LoadPlan, SloPlan
from dbdyno.stats.open_loop import RateSide
from dbdyno.store.evidence import completion
from dbdyno.store.resolved import resolved_run
from support import making
from support.fakes import Progress
from support.world import World

TRUTH = 80.0
"""Events a second at which 10 ms become 50."""
LIMIT = LoadPlan(slo=SloPlan(metric="p50", limit_ms=50), connections=8)
SHARES = LoadPlan(rates=("50%", "80%"), connections=8)


def asked(load):
    return making.plan(blocks=1, window_s=3, warmup_s=0, load=load)


def begun(store, plan):
    return store.create_run(plan, "dbdyno compare", {}, len(trials_of(foreseen(plan), "")))


def go(store, stored, world, progress=None):
    with world.lab():
        try:
            run(store, stored, store.path.parent, progress or Progress(), world.makers)
        finally:
            assert world.running() == []
    return resolved_run(store, store.run(stored.run_id))


def test_a_latency_limit_is_found_and_measured_around(store):
    world = World()
    ended = go(store, begun(store, asked(LIMIT)), world)
    (found,) = ended.plan.load.pilot
    assert found.sustained_per_s == {making.A: 100.0, making.B: 100.0}
    assert list(found.limits_per_s.values()) == [pytest.approx(TRUTH, rel=0.05)] * 2
    measured = store.measurements(ended.run_id)
    blocks = [one for one in measured if one.trial.block != NO_BLOCK]
    assert [one.trial for one in blocks] == trials_of(ended.plan, ended.run_id)
    assert len(measured) - len(blocks) == 10

    rated = [spec for spec in world.requests if spec.get("rate_per_s")]
    assert len(rated) == 8 + 10
    assert {spec["arrival"] for spec in rated} == {"poisson"}
    seeds = {(spec["rate_per_s"], spec["seed"]) for spec in rated[8:]}
    assert len(seeds) == 5, "both systems get the same moments"

    judged = judge(measured, ended.plan)
    assert [found for found in judged.findings if found.level is Level.VOID] == []
    (search,) = judged.slo
    for limit in search.limits:
        (block,) = limit.by_block
        assert block.side is RateSide.BETWEEN
        assert block.rate_per_s == pytest.approx(TRUTH, rel=0.01)


def test_shares_become_rates_and_every_server_is_started_once_for_the_pilot(store):
    world = World()
    progress = Progress()
    ended = go(store, begun(store, asked(SHARES)), world, progress)
    assert progress.left[0] == max(progress.left)
    assert progress.left[0] > 4 * 3, "the blocks after the pilot are counted"
    assert progress.left[-1] == 0.0
    assert ended.plan.load.pilot[0].rates_per_s == (50.0, 80.0)
    starts = [label for what, label in world.calls if what == "start"]
    assert len(starts) == 2 + 2 + 2, "datasets, pilot, one block"
    judged = judge(store.measurements(ended.run_id), ended.plan)
    assert {verdict.cell.rate_per_s for verdict in judged.verdicts} == {50.0, 80.0}
    assert {verdict.metric for verdict in judged.verdicts} == {"latency_ms_p99"}


def test_rows_are_counted_after_the_blocks_and_never_in_the_pilot(store):
    ended = go(store, begun(store, asked(SHARES)), World())
    measured = store.measurements(ended.run_id)
    assert [m.trial.block for m in measured if m.evidence.rows_after] == [0, 0]


def test_an_interrupted_pilot_goes_on_where_it_was(store):
    def stop_in_the_third(trial, interval):
        if len(progress.begun) == 3:
            raise KeyboardInterrupt

    progress = Progress(stop_in_the_third)
    stored = begun(store, asked(LIMIT))
    with pytest.raises(KeyboardInterrupt):
        go(store, stored, World(), progress)
    assert completion(store, stored.run_id).done == 0
    before = store.pilots(stored.run_id)
    assert [one.failure is None for one in before] == [True, True, False]
    assert store.run(stored.run_id).plan == stored.plan
    ended = go(store, store.run(stored.run_id), World())
    complete = [one.trial.key for one in store.pilots(ended.run_id) if one.failure is None]
    assert len(complete) == len(set(complete)) == 10


def test_what_is_stored_is_counted_with_the_rates_that_were_found(store):
    def stop_in_the_fourth(trial, interval):
        if len(progress.begun) == 4:
            raise KeyboardInterrupt

    progress, stored = Progress(stop_in_the_fourth), begun(store, asked(SHARES))
    with pytest.raises(KeyboardInterrupt):
        go(store, stored, World(), progress)
    assert completion(store, stored.run_id) == (1, 4, False)


def test_a_pilot_that_fails_ends_the_run_and_is_resumed(store):
    stored, world = begun(store, asked(SHARES)), World(kills={0})
    with pytest.raises(LoadError) as caught:
        go(store, stored, world)
    assert "the pilot failed" in str(caught.value)
    assert "the server died" in str(caught.value)
    assert go(store, stored, world).plan.load.pilot


def test_a_load_that_no_system_bears_is_said_as_such(store):
    world = World(connections_max={making.A: 4, making.B: 4})
    stored = begun(store, asked(SHARES))
    with pytest.raises(CellError, match="no cell of the plan can be run"):
        go(store, stored, world)


def test_the_forecast_counts_the_pilot():
    plan = asked(SHARES)
    assert outlook_of(plan).seconds > outlook_of(foreseen(plan)).seconds + 2 * plan.trial.window_s
