"""A plan is one value: checked as a whole, hashed by what it asks for, laid out in cells."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.plan.plan import Plan, cells
from support import making


def test_cells_go_by_workload_then_by_rising_load() -> None:
    plan = making.plan(workloads=("oltp_read_only", "oltp_read_write"), threads=(8, 1))
    assert [cell.key for cell in cells(plan)] == [
        "oltp_read_only/threads=1/default",
        "oltp_read_only/threads=8/default",
        "oltp_read_write/threads=1/default",
        "oltp_read_write/threads=8/default",
    ]


def test_the_hash_names_what_is_asked_for_and_survives_the_store() -> None:
    plan = making.plan(blocks=3)
    assert Plan.model_validate_json(plan.model_dump_json()).hash() == plan.hash()
    assert making.plan(blocks=3).hash() == plan.hash()
    assert making.plan(blocks=4).hash() != plan.hash()
    assert len(plan.hash()) == 64


def test_a_workload_is_labelled_by_its_name_unless_told_otherwise() -> None:
    asked = making.plan().model_dump()
    asked["workloads"] = ["oltp_read_only", {"name": "oltp_read_only", "label": "again"}]
    plan = Plan.model_validate(asked)
    assert [workload.label for workload in plan.workloads] == ["oltp_read_only", "again"]
    assert plan.workload("again").name == "oltp_read_only"
    assert plan.system(making.B).reference == making.B


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"systems": []}, "at least 1 item"),
        ({"workloads": ["a", "a"]}, "label used twice: a"),
        ({"load": {"threads": [8, 8]}}, "each level once"),
        ({"load": {"threads": [0]}}, "greater than or equal to 1"),
        ({"design": {"margin": 0}}, "greater than 0"),
        ({"designs": {}}, "Extra inputs are not permitted"),
    ],
)
def test_nonsense_is_no_plan(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Plan.model_validate({**making.plan().model_dump(), **changed})


SYSTEMS = {"systems": [{"label": "a", "reference": "mysql:8.0.15"}]}


def test_a_workload_runs_on_tables_of_its_layout() -> None:
    legacy = {"workloads": ["legacy_oltp"], "dataset": {"layout": "legacy"}}
    assert Plan.model_validate({**SYSTEMS, **legacy}).dataset.layout == "legacy"
    with pytest.raises(ValidationError, match="layout standard does not suit old"):
        Plan.model_validate({**SYSTEMS, "workloads": [{"name": "legacy_oltp", "label": "old"}]})
    with pytest.raises(ValidationError, match="layout legacy_one does not suit oltp_insert"):
        Plan.model_validate(
            {**SYSTEMS, "workloads": ["oltp_insert"], "dataset": {"layout": "legacy_one"}}
        )
