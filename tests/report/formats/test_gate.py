from __future__ import annotations

import json
from pathlib import Path

from dbdyno.judge.finding import Level
from dbdyno.judge.uses.gate import Gate, gate
from dbdyno.report.formats.gate import DOUBTS_MAX, MARK, as_json, comment, doubts, ordered, plain
from support.made_run import Run

GOLDEN = Path(__file__).parents[2] / "golden"


def gate_of(made: Run, slower_max: float = 0.03) -> Gate:
    return gate(made.judgement.verdicts, slower_max)


def test_the_text_and_the_comment_are_the_golden_ones(made: Run) -> None:
    text = plain(gate_of(made), made.judgement, made.facts)
    assert text == (GOLDEN / "gate.txt").read_text(), "if it is meant, write the new text there"
    told = comment(gate_of(made), made.judgement, made.facts)
    assert told == (GOLDEN / "gate.md").read_text(), "if it is meant, write the new text there"


def test_the_gravest_comes_first(made: Run) -> None:
    outcomes = [passage.outcome.value for passage in ordered(gate_of(made))]
    assert outcomes == ["slower", "held"]


def test_a_job_finds_its_comment_again(made: Run, empty: Run) -> None:
    for run in (made, empty):
        assert comment(gate_of(run), run.judgement, run.facts).splitlines()[0] == MARK


def test_json_has_the_outcome_and_the_numbers(made: Run) -> None:
    read = json.loads(as_json(gate_of(made), made.judgement, made.facts))
    assert read["holds"] is False
    (slower,) = (p for p in read["gate"]["passages"] if p["outcome"] == "slower")
    assert slower["verdict"]["estimate"]["ratio"] == made.judgement.verdicts[1].estimate.ratio
    assert read["run"]["run_id"] == made.facts.run_id


def test_doubts_are_told_and_a_long_list_is_cut(made: Run, empty: Run) -> None:
    (void,) = doubts(made.judgement, made.facts)  # the failed trial was made good
    assert void.startswith("void: client-bound")
    assert "incomplete" in doubts(empty.judgement, empty.facts)[0]
    (first, *_) = made.judgement.findings
    many = [
        first.model_copy(update={"check": f"c{n}", "level": Level.DOUBTFUL})
        for n in range(DOUBTS_MAX + 3)
    ]
    told = doubts(made.judgement.model_copy(update={"findings": tuple(many)}), made.facts)
    assert len(told) == DOUBTS_MAX + 1
    assert told[-1] == "and 3 more doubts; see the report"
