"""Which plans have controls, in which cell, on which data directory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.measurement.measurement import Cell
from dbdyno.plan.controls import (
    PERIOD_S_MAX,
    WhyNone,
    control_cells,
    control_system,
    directory_of,
    standstill_period_s,
    why_none,
)
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import LABEL_PATTERN, SystemPlan
from support import making


def plan(threads: tuple[int, ...] = (32, 1, 8), blocks: int = 5, controls: bool = True) -> Plan:
    return making.plan(
        workloads=("oltp_read_write", "oltp_read_only"),
        threads=threads,
        blocks=blocks,
        controls=controls,
    )


def test_every_closed_loop_of_the_first_setting_can_be_the_controls_cell() -> None:
    able = control_cells(plan((32, 1)))
    assert {(cell.workload, cell.threads) for cell in able} == {
        (workload, threads)
        for workload in ("oltp_read_write", "oltp_read_only")
        for threads in (1, 32)
    }


def test_a_plan_without_controls_says_why() -> None:
    chosen = plan()
    assert why_none(chosen) is None
    assert why_none(plan(controls=False)) is WhyNone.DECLINED
    assert why_none(plan(blocks=4)) is WhyNone.FEW_BLOCKS
    alone = chosen.model_copy(update={"systems": chosen.systems[:1]})
    assert why_none(alone) is WhyNone.NOTHING
    theirs = SystemPlan(label="theirs", reference="mysql://u@h:3306/sbtest")
    of_others = chosen.model_copy(update={"systems": (theirs, *chosen.systems)})
    assert why_none(of_others) is WhyNone.ENDPOINT
    kept = chosen.procedure.model_copy(update={"fresh_data": "once"})
    assert why_none(chosen.model_copy(update={"procedure": kept})) is WhyNone.DATA_KEPT
    for without in (alone, of_others, plan(blocks=4), plan(controls=False)):
        assert control_cells(without) == []


def test_cells_of_an_open_loop_are_no_place_for_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_rate = [Cell(workload="oltp_read_write", threads=8, rate_per_s=100.0)]
    monkeypatch.setattr("dbdyno.plan.controls.cells", lambda plan: at_a_rate)
    assert why_none(plan()) is WhyNone.OPEN_LOOP
    assert control_cells(plan()) == []


def test_a_workload_that_rests_between_events_is_no_place_for_controls() -> None:
    chosen = plan()
    resting = chosen.workloads[0].model_copy(update={"script": "function thread_run() end"})
    some = chosen.model_copy(update={"workloads": (resting, chosen.workloads[1])})
    assert {cell.workload for cell in control_cells(some)} == {"oltp_read_only"}
    alone = chosen.model_copy(update={"workloads": (resting,)})
    assert why_none(alone) is WhyNone.OPEN_LOOP


def test_the_second_directory_has_a_label_that_no_system_can_be_given() -> None:
    system = control_system(plan())
    assert (system.label, system.reference) == (f"{making.A} (control)", making.A)
    assert directory_of(making.A, "planted") == system.label
    assert directory_of(making.A, "") == making.A
    with pytest.raises(ValueError, match=LABEL_PATTERN[1:12].replace("[", r"\[")):
        SystemPlan(label=system.label, reference=making.A)


@given(st.floats(1, 100_000))
def test_a_window_is_a_whole_number_of_periods(window_s: float) -> None:
    periods = window_s / standstill_period_s(window_s)
    assert periods == pytest.approx(round(periods))
    assert standstill_period_s(window_s) <= PERIOD_S_MAX + 1e-9
    assert standstill_period_s(window_s) >= min(window_s, PERIOD_S_MAX / 2) - 1e-9


def test_a_system_that_is_compared_over_its_settings_has_controls() -> None:
    asked = making.plan(
        systems=(making.A,), controls=True, settings=SettingsPlan(durability=("double-1", "0/2"))
    )
    assert why_none(asked) is None
    assert {cell.setting for cell in control_cells(asked)} == {"durability double-1"}
