"""What a plan wants of a cluster is checked with the rest of it, and changes no other plan."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.cli.plan import described, with_generators
from dbdyno.errors import PlanError, UsageError
from dbdyno.plan.file import read_text
from dbdyno.plan.plan import Plan

ASKED = {
    "systems": ["mysql:5.7.22", "mysql:8.0.15"],
    "workloads": ["oltp_read_only"],
    "load": {"threads": [8]},
}


def plan(**parts) -> Plan:
    return Plan.model_validate({**ASKED, **parts})


def test_a_fleet_is_a_part_of_the_question():
    assert plan(fleet={}).hash() == plan().hash()
    assert plan(fleet={"generators": 2}).hash() != plan().hash()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"fleet": {"generators": 9}}, "9 generators, but a level of 8"),
        ({"fleet": {"generators": 2}, "network": {"client_ms": 1}}, "delays of the network"),
        (
            {"fleet": {"generators": 2}, "load": {"threads": [8], "generators": 3}},
            "leave the latter",
        ),
        ({"fleet": {"place": {"primary": "a b"}}}, "should match pattern"),
        ({"fleet": {"spread": "trials"}}, "'blocks'"),
    ],
)
def test_mistakes_are_told(parts, words):
    with pytest.raises(ValidationError, match=words):
        plan(**parts)


def test_a_label_that_is_none_is_told_in_a_plan_file():
    asked = "systems: [mysql:5.7.22, mysql:8.0.15]\nworkloads: [oltp_read_only]\n"
    with pytest.raises(PlanError) as caught:
        read_text(
            f"{asked}fleet: {{place: {{primary: a b}}}}\n",
            "plan.yaml",
            lambda reference: None,
        )
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "line 3: fleet.place.primary: must be up to 63 letters, digits and . _ -, found 'a b'"
    ]


def test_a_cluster_takes_the_generators_of_a_plan_without_a_fleet():
    several = plan(load={"threads": [8], "generators": 3})
    assert with_generators(several, "") is several
    assert with_generators(several, "auto").fleet.generators == 3
    assert with_generators(plan(), "auto").fleet.generators == 1
    wanted = plan(fleet={"spread": "blocks"})
    assert with_generators(wanted, "auto") is wanted
    with pytest.raises(UsageError, match="--fleet auto does not suit the plan") as caught:
        with_generators(plan(network={"client_ms": 1}), "auto")
    assert "delays of the network" in str(caught.value.found)


def test_plan_show_tells_machines_and_node_hours():
    shown = described(
        plan(fleet={"generators": 3, "place": {"primary": "db", "generators": "load"}})
    )
    assert "3 machines for the load, labelled load" in shown
    assert "one machine for servers, labelled db" in shown
    assert "node hours" in shown
    assert "node hours" not in described(plan())
    spread = {"spread": "blocks"}
    assert "in an m-th of the time" in described(plan(fleet=spread))
    timed = described(plan(fleet=spread, design={"time_s": 600}))
    assert "m machines run m times the blocks in the same time" in timed
