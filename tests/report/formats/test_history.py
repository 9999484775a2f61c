from __future__ import annotations

import json
from pathlib import Path

from dbdyno.judge.judgement import judge
from dbdyno.plan.plan import Plan
from dbdyno.report.formats.history import History, RunVerdicts, entries
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


def test_json_has_the_numbers_newest_run_first_and_an_unknown_label_gives_nothing() -> None:
    assert entries(course(), "mysql:9.9") == ()
    assert render(History(()), Output.PLAIN) == ""
    listed = entries(course())
    assert [entry.run_id[6:8] for entry in listed] == ["03", "02", "01"]
    read = json.loads(render(History(listed), Output.JSON))
    ratios = [entry["verdict"]["estimate"]["ratio"] for entry in read["verdicts"]]
    assert ratios == [entry.verdict.estimate.ratio for entry in listed]
