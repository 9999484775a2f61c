"""What the smaller parts of a plan take and refuse."""

import pytest
from pydantic import ValidationError

from dbdyno.plan.plan import DistributionPlan, NetworkPlan, PublishedPlan


def test_nothing_is_added_and_rows_are_touched_evenly_unless_said_otherwise():
    assert NetworkPlan() == NetworkPlan(client_ms=0, replica_ms=0)
    assert DistributionPlan().name == "uniform"


@pytest.mark.parametrize("delay_ms", [-0.1, 10_001, "soon"])
def test_a_delay_that_is_none_is_refused(delay_ms):
    with pytest.raises(ValidationError):
        NetworkPlan(client_ms=delay_ms)


def test_a_distribution_that_sysbench_has_not_is_refused():
    with pytest.raises(ValidationError, match="'zipfian'"):
        DistributionPlan.model_validate({"name": "zipf"})


def test_a_publication_has_a_source():
    whole = PublishedPlan(source="a paper", setup={"data": "much"}, differences=("all",))
    assert whole.differences == ("all",)
    with pytest.raises(ValidationError, match="source"):
        PublishedPlan.model_validate({"setup": {}})
