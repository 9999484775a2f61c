"""What a report says of servers that others run, beside those that the lab starts."""

from __future__ import annotations

from dbdyno.plan.systems import SystemPlan
from dbdyno.report.formats import markdown
from dbdyno.report.story import story_of
from support import making
from support.made_run import run

PROCEDURE = {"drop_caches": True, "purge_binlogs": True, "settle_cap_s": 60}


def report(*references: str) -> list[str]:
    """The lines of the report of a run in which nothing lies apart, with two load levels."""
    systems = tuple(
        SystemPlan(label=label, reference=reference)
        for label, reference in zip("AB", references, strict=True)
    )
    plan = making.plan(threads=(1, 8), procedure=PROCEDURE, systems=("A", "B"))
    plan = plan.model_copy(update={"systems": systems})
    trials = [
        trial
        for threads in (1, 8)
        for trial in making.pairs((1.0,) * 5, systems=("A", "B"), threads=threads)
    ]
    made = run(plan, trials)
    story = story_of(plan, trials, made.judgement, made.facts)
    return markdown.render(story).splitlines()


def test_beside_servers_of_the_lab_those_of_others_are_told_apart() -> None:
    lines = report("mysql:8.0.15", "mysql://u@b:3306/sbtest")
    assert any(line.startswith("- 5 starts of A say little about rare") for line in lines)
    procedures = [line for line in lines if line.startswith("| procedure | ")]
    assert any("server restarted for each system" in line for line in procedures)
    others = "servers of B are run by others: dbdyno does not restart"
    assert any(others in line for line in procedures)
