from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.judge.test_rate_limit import plan_of
from tests.judge.test_rate_limit import run as trials_of

from dbdyno.judge.judgement import JudgedRun
from dbdyno.report.formats.replay import answer, difference, replay
from dbdyno.report.formats.stdout import Output, render
from support import making
from support.made_run import Run, run

GOLDEN = Path(__file__).parents[2] / "golden"


def side(run: Run, run_id: str = "20261121-060000-made", **environment: str) -> JudgedRun:
    facts = run.facts.model_copy(
        update={"run_id": run_id, "environment": {**run.facts.environment, **environment}}
    )
    return JudgedRun(run.plan, run.measurements, run.judgement, facts)


def other(made: Run) -> JudgedRun:
    """The same with a little noise, on another machine, with a newer server."""
    changed = []
    for number, one in enumerate(made.measurements):
        version = "8.0.16" if one.trial.system == making.B else one.server.version
        settings = {**one.server.settings, "sync_binlog": "0", "datadir": "/elsewhere"}
        server = one.server.model_copy(update={"version": version, "settings": settings})
        window_s = one.window_s * (1 + 0.001 * (number % 3))
        changed.append(making.changed(one, server=server, window_s=window_s))
    return side(run(made.plan, changed), "20261122-080000-next", kernel="6.2")


def test_the_text_is_the_golden_one(made: Run) -> None:
    compared = replay(side(made), other(made))
    assert render(compared, Output.PLAIN) == (GOLDEN / "replay.txt").read_text()
    assert render(compared, Output.MARKDOWN) == (GOLDEN / "replay.md").read_text()


def test_what_differed_is_listed_and_what_always_differs_is_not(made: Run) -> None:
    differences = replay(side(made), other(made)).differences
    assert differences == (
        ("kernel", "6.1", "6.2"),
        ("mysql:5.7.22: sync_binlog", "1", "0"),
        ("mysql:8.0.15: version", "8.0.15", "8.0.16"),
        ("mysql:8.0.15: sync_binlog", "1", "0"),
    )


def test_two_missing_verdicts_are_no_agreement() -> None:
    short = [run(making.plan(blocks=2), making.pairs(two)) for two in ((1.5, 1.6), (0.8, 0.9))]
    told = answer(replay(*map(side, short)))
    assert told[0] == "no comparison has a verdict in both runs"
    plan = making.plan(threads=(1, 8), blocks=3)
    one = making.pairs((0.7, 0.71, 0.72), threads=1)
    half = run(plan, [*one, *making.pairs((0.7,), threads=8)])
    told = answer(replay(side(half), side(half)))
    assert told[0].startswith("the same verdict in 1 of 1 comparisons")
    assert told[1] == "without a verdict in one of the two runs: 1 cell"


def test_rates_within_a_latency_limit_are_held_against_each_other() -> None:
    limits = {making.A: [1000.0] * 3, making.B: [1100.0] * 3}
    limited = run(plan_of(3), trials_of(limits))
    told = answer(replay(side(limited), side(limited, "other")))
    assert told[0].startswith("the same verdict in 1 of 1 comparisons")


def test_a_generator_of_one_thread_is_said_in_the_singular(made: Run) -> None:
    doubled = [
        making.changed(one, engine=one.engine.model_copy(update={"threads": 2}))
        for one in made.measurements
    ]
    more = replace(side(made), measurements=tuple(doubled))
    (generator,) = replay(side(made), more).differences
    assert generator[1].endswith(", 1 thread")
    assert generator[2].endswith(", 2 threads")


def test_many_differences_are_cut_on_a_terminal_and_nowhere_else(made: Run) -> None:
    many = {f"fact {number}": str(number) for number in range(60)}
    compared = replay(side(made), side(made, "other", kernel="6.2", **many))
    assert compared.differences[0] == ("kernel", "6.1", "6.2")  # what both have comes first
    assert "and 21 more; all of them: --output json" in render(compared, Output.PLAIN)
    assert "fact 59" not in render(compared, Output.PLAIN)
    assert "fact 59" in render(compared, Output.MARKDOWN)
    assert len(json.loads(render(compared, Output.JSON))["differences"]) == 61


def test_the_same_run_is_no_repetition(made: Run) -> None:
    compared = replay(side(made), side(made))
    assert compared.differences == ()
    sentences = answer(compared)
    assert sentences[0].startswith("the same verdict in 2 of 2 comparisons")
    assert sentences[-1] == "both are the same run: nothing was repeated"
    assert "alike" in render(compared, Output.PLAIN)


def test_another_plan_is_said(made: Run, empty: Run) -> None:
    elsewhere = making.plan(threads=(4,))
    blocks = [(0.9, 0.91, 0.92)]
    sentences = answer(
        replay(side(made), side(run(elsewhere, making.pairs(*blocks, threads=4)), "x"))
    )
    assert sentences == ["the runs have no comparison in common"]
    assert answer(replay(side(made), side(empty, "y")))[-1] == (
        "the plans differ: this is no repetition of the same experiment"
    )


def test_json_has_the_numbers_and_a_difference_without_an_interval_is_said_without(
    made: Run,
) -> None:
    compared = replay(side(made), other(made))
    first = compared.agreements[0]
    assert difference(first.model_copy(update={"low": None})).count("%") == 1
    assert difference(first.model_copy(update={"ratio": None})) == first.word.value
    read = json.loads(render(compared, Output.JSON))
    assert read["agreements"][0]["ratio"] == compared.agreements[0].ratio
    assert read["differences"][0] == {"what": "kernel", "first": "6.1", "second": "6.2"}
    assert read["second"]["run_id"] == "20261122-080000-next"
