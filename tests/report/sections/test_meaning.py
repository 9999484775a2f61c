from __future__ import annotations

import pytest

from dbdyno.judge.verdict import Word
from dbdyno.report.sections.conclusion import meaning
from support import making
from support.made_run import Run, run

RATIOS = {
    (0.77, 0.76, 0.78): (Word.WORSE, "a reason against mysql:8.0.15"),
    (1.10, 1.11, 1.12): (Word.BETTER, "a reason for mysql:8.0.15"),
    (1.02, 1.021, 1.022): (Word.BETTER, "as small as the margin of 2 % or smaller"),
    (1.0, 1.001, 0.999): (Word.EQUIVALENT, "other grounds"),
    (1.005, 1.0051, 1.0049): (Word.EQUIVALENT, "A difference exists"),
    (0.9, 1.1, 1.05): (Word.UNDECIDED, "Undecided is not equal"),
    (1.1, 1.1): (Word.NO_VERDICT, "too few sound blocks"),
}


@pytest.mark.parametrize("ratios", RATIOS, ids=str)
def test_each_word_has_its_meaning(ratios: tuple[float, ...]) -> None:
    made = run(making.plan(), making.pairs(ratios))
    (verdict,) = made.judgement.verdicts
    word, says = RATIOS[ratios]
    assert verdict.word is word
    assert says in meaning(verdict)


def test_void_trials_allow_no_decision() -> None:
    made = run(making.plan(), making.pairs((0.5, 0.5, 0.5), cpu_share_max=0.99))
    (verdict,) = made.judgement.verdicts
    assert verdict.word is Word.VOID
    assert "no decision" in meaning(verdict)


def test_several_cells_hold_together(made: Run) -> None:
    _, worse = made.judgement.verdicts
    assert "With 95 % confidence in all 2 cells together, TPS" in meaning(worse)
    assert "by −24.1 % to −21.4 %" in meaning(worse)
