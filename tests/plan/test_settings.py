"""The settings axis: names, order, and what a plan without one is."""

from __future__ import annotations

from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import Plan, cells
from dbdyno.plan.settings import SettingsPlan, axes, combinations, setting_names
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan

BOTH = SettingsPlan(
    buffer_pool=("25%", "1G"),
    durability=("double-1", "0/2"),
    own={"flushing": {"lazy": {"innodb_io_capacity": 200}}},
)


def test_nothing_varied_is_one_setting() -> None:
    assert combinations(SettingsPlan()) == {"default": {}}
    assert axes(SettingsPlan()) == {}


def test_each_value_meets_each_other() -> None:
    assert list(axes(BOTH)) == ["durability", "buffer_pool", "flushing"]
    assert setting_names(BOTH) == [
        "durability double-1, buffer_pool 25%",
        "durability double-1, buffer_pool 1G",
        "durability 0/2, buffer_pool 25%",
        "durability 0/2, buffer_pool 1G",
    ]
    last = combinations(BOTH)["durability 0/2, buffer_pool 1G"]
    assert last == {"durability": "0/2", "buffer_pool": "1G", "flushing": "lazy"}


def test_one_value_for_all_cells_names_none_of_them() -> None:
    same = SettingsPlan(durability=("0/2",), binlog=("on",))
    assert combinations(same) == {"default": {"durability": "0/2", "binlog": "on"}}


def test_cells_carry_their_setting() -> None:
    plan = Plan(
        systems=(SystemPlan(label="a", reference="mysql:8.0.15"),),
        workloads=(WorkloadPlan(name="oltp_read_only"),),
        load=LoadPlan(threads=(8, 1)),
        settings=SettingsPlan(binlog=("off", "on")),
    )
    assert [(cell.threads, cell.setting) for cell in cells(plan)] == [
        (1, "binlog off"),
        (8, "binlog off"),
        (1, "binlog on"),
        (8, "binlog on"),
    ]
