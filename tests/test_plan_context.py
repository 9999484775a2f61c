"""What surrounds a plan's servers is checked as the plan itself is."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.plan_context import NetworkPlan, PublishedPlan


def test_a_network_adds_nothing_unless_told() -> None:
    assert NetworkPlan() == NetworkPlan(client_ms=0, replica_ms=0)


@pytest.mark.parametrize("wrong", [{"client_ms": -1}, {"replica_ms": 10_001}, {"delay": 1}])
def test_a_delay_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        NetworkPlan.model_validate(wrong)


def test_what_a_plan_follows_has_a_source() -> None:
    assert PublishedPlan(source="a paper").setup == {}
    with pytest.raises(ValidationError):
        PublishedPlan(source="")
