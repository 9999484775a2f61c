"""How long slices are, how many there are, and which loads they are asked for."""

from __future__ import annotations

import pytest

from dbdyno.experiment.order import highest_loads, seconds_of_turns, slice_s, turns
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.settings import SettingsPlan
from support import making


@pytest.mark.parametrize(
    ("window_s", "seconds", "rounds"),
    [(20, 2.5, 2), (24, 3.0, 2), (36, 3.0, 3), (60, 3.0, 4), (600, 3.0, 4)],
)
def test_slices_last_a_window_in_all_at_most_and_no_more_than_enough(window_s, seconds, rounds):
    plan = making.plan(window_s=window_s)
    assert slice_s(plan) == seconds
    assert turns(plan) == (1, 2, 2, 1) * rounds
    assert sum(seconds for _ in turns(plan)) <= window_s


def test_each_pair_has_both_kinds_and_a_steady_drift_cancels():
    order = turns(making.plan(window_s=60))
    pairs = list(zip(order[::2], order[1::2], strict=True))
    assert all(sorted(pair) == [1, 2] for pair in pairs)
    places = {times: [n for n, one in enumerate(order) if one == times] for times in (1, 2)}
    assert sum(places[1]) == sum(places[2])


def test_each_workload_is_asked_for_at_its_most_connections():
    plan = making.plan(
        workloads=("oltp_read_only", "oltp_read_write"), threads=(8, 64, 1), window_s=20
    )
    asked = highest_loads(plan)
    assert [(cell.workload, cell.threads) for cell in asked] == [
        ("oltp_read_only", 64),
        ("oltp_read_write", 64),
    ]
    refused = [asked[0].key]
    assert [cell.threads for cell in highest_loads(plan, "default", refused)] == [8, 64]


def test_one_workload_is_asked_for_once_whatever_the_settings():
    varied = making.plan(window_s=20).model_copy(
        update={"settings": SettingsPlan(durability=("double-1", "0/2"))}
    )
    assert len(highest_loads(varied)) == 1
    (cell,) = highest_loads(varied, "durability 0/2")
    assert "0/2" in cell.setting


@pytest.mark.parametrize(
    "plan",
    [
        making.plan(threads=(1,), window_s=20),
        making.plan(window_s=19),
        making.plan(window_s=20).model_copy(update={"load": LoadPlan(rates=("100",))}),
    ],
    ids=["one connection", "too short a window", "open loop"],
)
def test_nothing_is_asked_of_loads_that_cannot_tell(plan):
    assert highest_loads(plan) == []
    assert seconds_of_turns(plan) == 0.0
