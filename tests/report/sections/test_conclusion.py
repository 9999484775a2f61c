from __future__ import annotations

import pytest

from dbdyno.judge.verdict import Word
from dbdyno.measurement.measurement import without_pilots
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import Arm, Comparison
from dbdyno.report.rows import attempts
from dbdyno.report.sections.conclusion import conclusion, meaning, tally
from support import making
from support.made_run import Run, of_workloads, run

B_AGAINST_A = Comparison(Arm(making.A, making.A), Arm(making.B, making.B))


SETTINGS = ("thread_pool off", "thread_pool on")
THREADS = (1, 2, 4, 8)
STEADY = (0.998, 1.002, 1.0, 1.001, 0.999)
"""What a block does to the second system."""
SHAKEN = (0.5, 2.0, 1.0, 0.6, 1.6)


def matrix(ratios: dict[str, float], blocks: tuple[float, ...] = STEADY) -> Run:
    """Workloads with these ratios in two settings, at four numbers of threads each."""
    plan = making.plan(
        workloads=tuple(ratios),
        threads=THREADS,
        settings=SettingsPlan(thread_pool=("off", "on")),
    )
    trials = [
        trial
        for workload, ratio in ratios.items()
        for setting in SETTINGS
        for threads in THREADS
        for trial in making.pairs(
            tuple(ratio * block for block in blocks),
            workload=workload,
            setting=setting,
            threads=threads,
            histograms=False,
        )
    ]
    return run(plan, trials)


def told(made: Run) -> list[str]:
    return list(tally(made.judgement.verdicts, B_AGAINST_A, made.judgement.summaries))


def test_workloads_in_each_setting_come_first_and_opposite_signs_have_no_mean() -> None:
    head, *workloads, cells = told(matrix({"oltp_read_only": 1.2, "oltp_write_only": 0.8}))
    assert head.startswith(f"Compared with {making.A}, {making.B} is 20 % faster")
    places = [f"{w}, {s}, 4 cells" for s in SETTINGS for w in ("oltp_read_only", "oltp_write_only")]
    assert [line.partition(": ")[0] for line in workloads] == places
    for line, words in zip(workloads, ["faster", "slower"] * 2, strict=True):
        assert f": {making.B} is {words} than {making.A}: TPS " in line
        assert line.endswith("], 5 blocks.")
    assert cells == f"{making.B} against {making.A} in 16 cells: faster in 8, slower in 8."


def test_workloads_of_the_same_sign_have_a_mean() -> None:
    lines = told(matrix({"oltp_read_only": 1.2, "oltp_write_only": 1.1}))
    assert len(lines) == 7
    assert lines[5].startswith(f"All 16 cells, workloads weighted equally: {making.B} is faster")


def test_an_undecided_workload_has_the_blocks_that_would_decide() -> None:
    _, first, *_ = told(matrix({"oltp_read_only": 1.02, "oltp_write_only": 1.01}, SHAKEN))
    assert first.startswith("oltp_read_only, thread_pool off, 4 cells: ")
    assert "not enough data for " in first
    assert "; a decision needs " in first


def test_a_single_workload_has_a_line_of_its_cells(made: Run) -> None:
    lines = told(made)
    assert lines[1].startswith(
        "oltp_read_write, 2 cells: mysql:8.0.15 is slower than mysql:5.7.22: TPS −12."
    )
    assert lines[2:] == [
        "mysql:8.0.15 against mysql:5.7.22 in 2 cells: slower in 1, the same in 1."
    ]


def test_of_workloads_of_one_cell_the_open_cells_have_a_line() -> None:
    small = (1.02, 1.021, 1.022)
    ratios = {"oltp_read_only": BETTER, "oltp_write_only": OPEN, "oltp_insert": small}
    _, *lines = told(of_workloads(ratios))
    lines = [line.partition(": ")[0] for line in lines if ", 8 threads" in line]
    assert lines == ["oltp_write_only, 8 threads", "oltp_insert, 8 threads"]


def test_a_workload_better_and_worse_depends_on_the_load() -> None:
    made = of_cells(BETTER, WORSE, WORSE)
    *_, last = told(made)
    assert last.startswith(
        "For oltp_read_write, the faster system depends on the load level: mysql:8.0.15 is ahead "
        "most at 1 thread (TPS +11"
    )
    assert ", behind most at " in last
    assert "(TPS −23" in last


def test_a_difference_of_a_workload_that_may_not_matter_says_so() -> None:
    small = (1.02, 1.021, 1.022)
    _, first, *_ = told(of_cells(small, small))
    assert first.endswith("to say whether the difference exceeds the margin of 2 %.")


def test_a_standstill_in_a_cell_leaves_its_workload_without_a_ratio() -> None:
    plan = making.plan(threads=(1, 8), blocks=3)
    trials = [t for threads in plan.load.threads for t in making.pairs(WORSE, threads=threads)]
    trials[1] = making.stood_still(making.B, 0, threads=1)
    _, first, *_ = told(run(plan, trials))
    assert first.endswith("has no verdict: a system stood still in one of these cells.")
    _, first, *_ = told(run(plan, [one for one in trials[2:] if one.trial.block]))
    assert first.endswith("has no verdict: no cell has 3 valid blocks.")


def test_one_cell_is_told_by_its_sentence_and_meaning_and_a_pilot_is_not_done() -> None:
    pilot = making.with_trial(making.measurement(block=-1), is_pilot=True)
    made = run(making.plan(), [*making.pairs((0.77, 0.76, 0.78)), pilot], complete=False)
    text = _concluded(made)
    assert text.startswith("Compared with mysql:5.7.22, mysql:8.0.15 reads and writes 23 % slower")
    assert "oltp_read_write, 8 threads: mysql:8.0.15 is slower than mysql:5.7.22" in text
    assert "The run is not complete: 6 of 20 trials are done." in text
    assert "1 warning (" in text


def test_nothing_measured_and_one_system_are_said_plainly(empty: Run) -> None:
    assert _concluded(empty).startswith("Nothing has been measured yet")
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    assert "no comparison" in _concluded(alone)
    assert tally([], B_AGAINST_A) == ["There is no verdict on mysql:8.0.15."]


def _concluded(made: Run) -> str:
    listed = attempts(without_pilots(made.measurements), made.judgement)
    return " ".join(conclusion(made.plan, made.judgement, made.facts, listed))


WORSE = (0.77, 0.76, 0.78)
BETTER = (1.10, 1.11, 1.12)
ALIKE = (1.0, 1.001, 0.999)
OPEN = (0.9, 1.1, 1.05)


def of_cells(*cells: tuple[float, ...]) -> Run:
    """One cell for each of these blocks' ratios, at 1, 2, 3… threads."""
    plan = making.plan(threads=tuple(range(1, len(cells) + 1)), blocks=3)
    trials = [
        trial
        for threads, ratios in enumerate(cells, start=1)
        for trial in making.pairs(ratios, threads=threads, histograms=False)
    ]
    return run(plan, trials)


@pytest.mark.parametrize(
    ("ratios", "cpu_share", "word", "says"),
    [
        (WORSE, 0.2, Word.WORSE, "mysql:8.0.15 is worse by enough to matter"),
        (BETTER, 0.2, Word.BETTER, "mysql:8.0.15 is better by enough to matter"),
        ((1.02, 1.021, 1.022), 0.2, Word.BETTER, "may lie within the margin of 2 %"),
        (ALIKE, 0.2, Word.EQUIVALENT, "other grounds"),
        ((1.005, 1.0051, 1.0049), 0.2, Word.EQUIVALENT, "A difference exists"),
        (OPEN, 0.2, Word.UNDECIDED, "does not mean that the systems are the same"),
        ((1.1, 1.1), 0.2, Word.NO_VERDICT, "Fewer than three blocks"),
        ((0.5, 0.5, 0.5), 0.99, Word.VOID, "has no result"),
    ],
)
def test_each_word_has_its_meaning(ratios, cpu_share: float, word: Word, says: str) -> None:
    made = run(making.plan(), making.pairs(ratios, cpu_share_max=cpu_share))
    (verdict,) = made.judgement.verdicts
    assert verdict.word is word
    assert says in meaning(verdict)
