from __future__ import annotations

import json
from pathlib import Path

from dbdyno.judge.judgement import judge
from dbdyno.plan.plan import ChosenDesign, DesignPlan, Plan, TrialPlan
from dbdyno.plan.timed import with_chosen
from dbdyno.report.formats.history import History, RunVerdicts, entries, experiment
from dbdyno.report.formats.stdout import Output, render
from support import making

GOLDEN = Path(__file__).parents[2] / "golden"
STEADY = (0.9, 0.905, 0.895, 0.9, 0.902)


def run_of(
    day: int, ratios: tuple[float, ...], plan: Plan | None = None, **more: object
) -> RunVerdicts:
    asked = plan or making.plan()
    judgement = judge(making.pairs(ratios), asked)
    return RunVerdicts(
        run_id=f"202611{day:02d}-060000-made",
        created_at=f"2026-11-{day:02d}T06:00:00+00:00",
        plan=asked,
        complete=bool(more.get("complete", True)),
        versions={making.B: f"8.0.{day}"},
        verdicts=judgement.verdicts,
    )


def course() -> list[RunVerdicts]:
    slower = tuple(ratio * 0.9 for ratio in STEADY)
    return [run_of(3, slower), run_of(2, STEADY[::-1], complete=False), run_of(1, STEADY)]


def test_the_text_is_the_golden_one() -> None:
    listed = History(entries(course(), making.B))
    assert render(listed, Output.PLAIN) == (GOLDEN / "history.txt").read_text()
    assert render(listed, Output.MARKDOWN) == (GOLDEN / "history.md").read_text()


def test_a_step_is_told_from_chance() -> None:
    newest, middle, oldest = entries(course())
    assert [e.run_id[6:8] for e in (newest, middle, oldest)] == ["03", "02", "01"]
    assert newest.since is not None
    assert newest.since.word.value == "differ"
    assert middle.since is not None
    assert middle.since.word.value == "agree"
    assert oldest.since is None


def test_only_the_same_experiment_is_compared() -> None:
    other = making.plan(threads=(8,), window_s=30)
    newest, _ = entries([run_of(2, STEADY, other), run_of(1, STEADY)])
    assert newest.since is None
    more_blocks = making.plan(blocks=9).model_copy(update={"seed": 7, "title": "again"})
    assert experiment(more_blocks) == experiment(making.plan())
    assert experiment(other) != experiment(making.plan())


def test_runs_with_a_time_ask_the_same_whatever_windows_were_chosen() -> None:
    usual = {"design": DesignPlan(time_s=600), "trial": TrialPlan()}
    asked = making.plan().model_copy(update=usual)
    first, second = (
        ChosenDesign(
            warmup_s=2,
            window_s=window_s,
            blocks=9,
            start_noise=0.01,
            second_noise=0.05,
            block_s=60,
        )
        for window_s in (20, 30)
    )
    assert experiment(with_chosen(asked, first)) == experiment(with_chosen(asked, second))


def test_a_label_that_no_run_has_gives_nothing() -> None:
    assert entries(course(), "mysql:9.9") == ()
    assert render(History(()), Output.PLAIN) == ""


def test_json_has_the_numbers() -> None:
    listed = entries(course())
    read = json.loads(render(History(listed), Output.JSON))
    ratios = [entry["verdict"]["estimate"]["ratio"] for entry in read["verdicts"]]
    assert ratios == [entry.verdict.estimate.ratio for entry in listed]
