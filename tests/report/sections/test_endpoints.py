"""What a report says of servers that others run, beside those that the lab starts."""

from __future__ import annotations

import re

import pytest

from dbdyno.plan.systems import SystemPlan
from dbdyno.report.formats import markdown
from dbdyno.report.story import story_of
from support import making
from support.made_run import run

PROCEDURE = {"drop_caches": True, "purge_binlogs": True, "settle_cap_s": 60}
DONE_BY_THE_LAB = re.compile(
    "freshly started|dataset restored|bad restarts|restarts were bad|rare bad starts"
    "|[Cc]aches (are )?dropped|[Bb]inary logs (are )?purged|old row versions are purged"
    "|one server start|server restarted"
)


def report(*references: str, blocks: int = 5) -> list[str]:
    """The lines of the report of a run in which nothing lies apart, with two load levels."""
    systems = tuple(
        SystemPlan(label=label, reference=reference)
        for label, reference in zip("AB", references, strict=True)
    )
    plan = making.plan(threads=(1, 8), blocks=blocks, procedure=PROCEDURE, systems=("A", "B"))
    plan = plan.model_copy(update={"systems": systems})
    trials = [
        trial
        for threads in (1, 8)
        for trial in making.pairs((1.0,) * blocks, systems=("A", "B"), threads=threads)
    ]
    made = run(plan, trials)
    story = story_of(plan, trials, made.judgement, made.facts)
    return markdown.render(story).splitlines()


@pytest.mark.parametrize("blocks", [3, 5])
def test_nobody_restarts_or_restores_what_others_run(blocks: int) -> None:
    lines = report("mysql://u@a:3306/sbtest", "mysql://u@b:3306/sbtest", blocks=blocks)
    assert [line for line in lines if DONE_BY_THE_LAB.search(line)] == []
    assert (
        "| procedure | servers of A, B are run by others: neither restarted nor restored, and "
        "nothing is cleared there between trials |"
    ) in lines
    assert "- No run is named." in lines


def test_beside_servers_of_the_lab_those_of_others_are_told_apart() -> None:
    lines = report("mysql:8.0.15", "mysql://u@b:3306/sbtest")
    assert any(line.startswith("- 5 starts of A say little about rare") for line in lines)
    procedures = [line for line in lines if line.startswith("| procedure | ")]
    assert any("a freshly started server" in line for line in procedures)
    assert any("servers of B are run by others: neither restarted" in line for line in procedures)
