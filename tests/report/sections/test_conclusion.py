from __future__ import annotations

import pytest

from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Said
from dbdyno.measurement.measurement import without_pilots
from dbdyno.plan.systems import Arm, Comparison
from dbdyno.report.rows import attempts
from dbdyno.report.sections.conclusion import conclusion, decision, meaning, tally
from support import making
from support.made_run import Run, run

B_AGAINST_A = Comparison(Arm(making.A, making.A), Arm(making.B, making.B))


def test_many_cells_of_a_word_are_told_by_their_range() -> None:
    trials = []
    for threads in (1, 2, 4, 8, 16):
        base = 0.7 + threads / 100
        same = {"threads": threads, "histograms": False}
        trials += making.pairs((base, base + 0.001, base - 0.001), **same)
        trials += making.pairs((0.7, 1.5, 1.0), workload="oltp_delete", **same)
    plan = making.plan(workloads=("oltp_read_write", "oltp_delete"), threads=(1, 2, 4, 8, 16))
    lines = tally(run(plan, trials).judgement.verdicts, B_AGAINST_A)
    assert [line for line in lines if "decision" not in line] == [
        "mysql:8.0.15 against mysql:5.7.22 in 10 cells: worse in 5, undecided in 5.",
        "Open: 5 of 10 cells, whose intervals reach from −98.7 % to ×82.4.",
        "Worse: 5 cells: TPS −29.0 % to −14.0 % (beyond the margin of 2 %).",
        "Undecided, which is not equal: 5 cells.",
        "Intervals are as wide as it takes for all 10 cells to hold.",
    ]


def test_a_word_whose_size_is_open_in_some_cells_says_in_how_many_it_is_not() -> None:
    of_cells = verdicts((0.7, 0.701, 0.702), (0.98, 0.981, 0.979), *[ALIKE] * 3)
    lines = tally(of_cells, B_AGAINST_A)
    assert any(line.endswith("(beyond the margin of 2 % in 1 of 2).") for line in lines)


def test_all_cells_together_are_one_number(made: Run) -> None:
    (summary,) = made.judgement.summaries
    lines = tally(made.judgement.verdicts, B_AGAINST_A, [summary])
    assert lines[1].startswith("Over all 2 cells taken together, TPS differs by −12.2 % [")
    alone = summary.model_copy(update={"cells": 1})
    assert not any(
        "together" in line for line in tally(made.judgement.verdicts, B_AGAINST_A, [alone])
    )


def test_one_cell_is_told_by_its_sentence_and_meaning_and_a_pilot_is_not_done() -> None:
    pilot = making.with_trial(making.measurement(block=-1), is_pilot=True)
    made = run(making.plan(), [*making.pairs((0.77, 0.76, 0.78)), pilot], complete=False)
    text = _concluded(made)
    assert text.startswith("oltp_read_write, 8 threads: mysql:8.0.15 is worse than mysql:5.7.22")
    assert "The run is not complete: 6 of 20 trials are done." in text
    assert "doubtful finding" in text


def test_nothing_measured_and_one_system_are_said_plainly(empty: Run) -> None:
    assert _concluded(empty).startswith("Nothing has been measured yet")
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    assert "compares it with nothing" in _concluded(alone)
    assert tally([], B_AGAINST_A) == ["There is no verdict on mysql:8.0.15."]


def _concluded(made: Run) -> str:
    listed = attempts(without_pilots(made.measurements), made.judgement)
    return " ".join(conclusion(made.plan, made.judgement, made.facts, listed))


WORSE = (0.77, 0.76, 0.78)
BETTER = (1.10, 1.11, 1.12)
ALIKE = (1.0, 1.001, 0.999)
OPEN = (0.9, 1.1, 1.05)


def verdicts(*cells: tuple[float, ...]) -> tuple[Verdict, ...]:
    """One cell for each of these blocks' ratios, at 1, 2, 3… threads."""
    plan = making.plan(threads=tuple(range(1, len(cells) + 1)), blocks=3)
    trials = [
        trial
        for threads, ratios in enumerate(cells, start=1)
        for trial in making.pairs(ratios, threads=threads, histograms=False)
    ]
    return run(plan, trials).judgement.verdicts


def test_what_is_proven_speaks_for_or_against_with_its_interval() -> None:
    (said,) = decision(verdicts(WORSE, ALIKE))
    assert said == (
        "For a decision: what is proven speaks against mysql:8.0.15, by TPS −23.0 % [−28.0, −17.7] "
        "in oltp_read_write, 1 thread; nothing proven speaks against mysql:5.7.22."
    )
    assert isinstance(said, Said), "it can be translated into another language"
    (said,) = decision(verdicts(ALIKE, BETTER, BETTER))
    assert "speaks for mysql:8.0.15" in said
    assert "the largest of 2;" in said


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ((WORSE, BETTER), "it depends on the load. mysql:8.0.15 is better by TPS +11.0 %"),
        ((ALIKE, ALIKE), "less than the margin of 2 %; choose on other grounds"),
        ((OPEN, OPEN), "a reason for neither"),
        ((WORSE,), ""),
    ],
)
def test_gains_and_losses_equal_and_open_are_different_answers(cells, words: str) -> None:
    said = decision(verdicts(*cells))
    assert len(said) == bool(words)
    assert words in "".join(said)


def test_what_stays_open_is_told_with_its_reach() -> None:
    _, left = decision(verdicts(ALIKE, OPEN, OPEN))
    assert left.startswith("Open: 2 of 3 cells, whose intervals reach from −")
    _, left = decision(verdicts(ALIKE, (1.1, 1.1)))
    assert left == "Open: 1 of 2 cells."


@pytest.mark.parametrize(
    ("ratios", "cpu_share", "word", "says"),
    [
        (WORSE, 0.2, Word.WORSE, "a reason against mysql:8.0.15"),
        (BETTER, 0.2, Word.BETTER, "a reason for mysql:8.0.15"),
        ((1.02, 1.021, 1.022), 0.2, Word.BETTER, "as small as the margin of 2 % or smaller"),
        (ALIKE, 0.2, Word.EQUIVALENT, "other grounds"),
        ((1.005, 1.0051, 1.0049), 0.2, Word.EQUIVALENT, "A difference exists"),
        (OPEN, 0.2, Word.UNDECIDED, "Undecided is not equal"),
        ((1.1, 1.1), 0.2, Word.NO_VERDICT, "too few sound blocks"),
        ((0.5, 0.5, 0.5), 0.99, Word.VOID, "no decision"),
    ],
)
def test_each_word_has_its_meaning(ratios, cpu_share: float, word: Word, says: str) -> None:
    made = run(making.plan(), making.pairs(ratios, cpu_share_max=cpu_share))
    (verdict,) = made.judgement.verdicts
    assert verdict.word is word
    assert says in meaning(verdict)
