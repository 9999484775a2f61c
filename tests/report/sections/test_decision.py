from __future__ import annotations

from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import Said
from dbdyno.report.sections.conclusion import decision
from support import making
from support.made_run import run

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
        "For a decision: what is proven speaks against mysql:8.0.15, by TPS −23.0 % [−26.5, −19.3] "
        "in oltp_read_write, 1 thread; nothing proven speaks against mysql:5.7.22."
    )
    assert isinstance(said, Said), "it can be told in another language"
    (said,) = decision(verdicts(ALIKE, BETTER, BETTER))
    assert "speaks for mysql:8.0.15" in said
    assert "the largest of 2;" in said


def test_gains_and_losses_depend_on_the_load() -> None:
    (said,) = decision(verdicts(WORSE, BETTER))
    assert "it depends on the load" in said
    assert said.index("+11.0 %") < said.index("−23.0 %")


def test_equal_and_open_are_two_things() -> None:
    (said,) = decision(verdicts(ALIKE, ALIKE))
    assert "less than the margin of 2 %; choose on other grounds" in said
    (said,) = decision(verdicts(OPEN, OPEN))
    assert "a reason for neither" in said


def test_what_stays_open_is_told_with_its_reach() -> None:
    _, left = decision(verdicts(ALIKE, OPEN, OPEN))
    assert left.startswith("Open: 2 of 3 cells, whose intervals reach from −")
    _, left = decision(verdicts(ALIKE, (1.1, 1.1)))
    assert left == "Open: 1 of 2 cells."


def test_one_verdict_needs_no_sum() -> None:
    assert decision(verdicts(WORSE)) == []
