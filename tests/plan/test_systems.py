"""Which arms an entry of `compare` means, and what it must not be."""

from __future__ import annotations

import pytest

from dbdyno.measurement.measurement import Cell
from dbdyno.plan.plan import Plan, cells, comparisons, system_pairs


def plan(
    systems: tuple[str, ...] = ("A", "B"),
    compare: tuple[str, ...] = (),
    **settings: tuple[str, ...],
) -> Plan:
    return Plan.model_validate(
        {
            "systems": [{"label": label, "reference": "mysql:8.0.15"} for label in systems],
            "workloads": ["oltp_read_write"],
            "load": {"threads": [8]},
            "settings": settings,
            "compare": compare,
        }
    )


def labels(asked: Plan) -> list[tuple[str, str]]:
    return [one.labels for one in comparisons(asked)]


def test_without_an_entry_all_systems_are_compared_with_the_first() -> None:
    asked = plan(("A", "B", "C"), buffer_pool=("48G", "96G"))
    assert labels(asked) == [("A", "B"), ("A", "C")]
    one = comparisons(asked)[0]
    assert one.cells(cells(asked)) == cells(asked)
    assert {place.cell for place in one.places(cells(asked)[1])} == {cells(asked)[1]}


def test_settings_of_one_system_are_compared_with_the_first_of_their_axis() -> None:
    asked = plan(("A",), buffer_pool=("48G", "96G"), durability=("double-1", "0/2"))
    assert labels(asked) == [
        ("durability double-1", "durability 0/2"),
        ("buffer_pool 48G", "buffer_pool 96G"),
    ]
    assert labels(plan(("A",), buffer_pool=("48G",))) == []


def test_any_two_systems_can_be_compared() -> None:
    asked = plan(("GreatSQL", "GreatSQL-pool", "MySQL"), ("GreatSQL against MySQL",))
    assert labels(asked) == [("MySQL", "GreatSQL")]
    assert system_pairs(asked) == [("MySQL", "GreatSQL")]


def test_settings_are_compared_on_each_system_with_all_else_alike() -> None:
    asked = plan(
        compare=("thread_pool on against thread_pool off",),
        thread_pool=("off", "on"),
        buffer_pool=("48G", "96G"),
    )
    assert labels(asked) == [
        ("A, thread_pool off", "A, thread_pool on"),
        ("B, thread_pool off", "B, thread_pool on"),
    ]
    assert system_pairs(asked) == []
    of_b = comparisons(asked)[1]
    compared = of_b.cells(cells(asked))
    assert [cell.setting for cell in compared] == ["buffer_pool 48G", "buffer_pool 96G"]
    below, above = of_b.places(compared[1])
    assert (below.system, above.system) == ("B", "B")
    assert below.cell.setting == "buffer_pool 96G, thread_pool off"
    assert above.cell.setting == "buffer_pool 96G, thread_pool on"


def test_a_system_with_a_setting_is_compared_with_another_without() -> None:
    asked = plan(
        compare=("B, thread_pool on against A, thread_pool off",), thread_pool=("off", "on")
    )
    assert labels(asked) == [("A, thread_pool off", "B, thread_pool on")]
    (only,) = comparisons(asked)
    (cell,) = only.cells(cells(asked))
    assert cell == Cell(workload="oltp_read_write", threads=8)
    assert [place.system for place in only.places(cell)] == ["A", "B"]


def test_a_rate_that_only_one_setting_was_asked_for_is_not_compared() -> None:
    asked = plan(("A",), durability=("double-1", "0/2"))
    (only,) = comparisons(asked)
    measured = [
        Cell(workload="w", threads=8, setting="durability double-1", rate_per_s=100),
        Cell(workload="w", threads=8, setting="durability 0/2", rate_per_s=90),
    ]
    assert only.cells(measured) == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("B", "compare[0]: must be two arms such as `B against A`, found 'B'"),
        ("C against A", "no arm is called 'C'; there are A, B, thread_pool off|on"),
        ("thread_pool maybe against thread_pool on", "no arm is called 'thread_pool maybe'"),
        ("B, thread_pool on against A", "both arms must say the same things"),
        ("A against A", "'A against A' is compared with itself"),
    ],
)
def test_an_entry_that_names_no_two_arms_is_refused(entry: str, message: str) -> None:
    with pytest.raises(ValueError, match="compare") as error:
        plan(compare=(entry,), thread_pool=("off", "on"))
    assert message in str(error.value)


def test_a_pair_stands_once() -> None:
    with pytest.raises(ValueError, match=r"compare\[1\]: 'A against B' stands twice"):
        plan(compare=("B against A", "A against B"))
