from __future__ import annotations

import pytest

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import ArmTrials, Judgement
from dbdyno.measurement.measurement import Cell
from dbdyno.report.formats.summary import doubts
from dbdyno.report.parts import Paragraph
from dbdyno.report.rows import attempts
from dbdyno.report.sections import results
from dbdyno.report.sections.conclusion import conclusion
from dbdyno.report.tell import findings
from dbdyno.report.tell.findings import Telling
from support import making
from support.made_run import Run, run


def test_findings_come_gravest_first_and_alike_ones_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = Telling((Level.VOID, Level.NOTE), rule="", evidence="seen {times}", advice="act")
    monkeypatch.setattr(findings, "FINDINGS", {"check": row})
    levels = [Level.NOTE] * 9 + [Level.VOID]
    made = [
        Finding(check="check", level=level, values={"times": times})
        for times, level in enumerate(levels)
    ]
    judgement = Judgement(findings=tuple(made), values=(), estimates=(), verdicts=())
    head, entries = results.findings(judgement).parts
    assert head.text.startswith("10 findings: 1 void (the trial does not count), 0 doubtful (")
    void, note = entries.entries
    assert (void.mark, void.heading) == ("void", "check")
    assert (note.mark, note.lines) == ("note", ("check: seen 0 (and 8 more). Advice: act.",))


def shaken(*blocks: int, systems: tuple[str, ...] = (making.A, making.B)) -> Run:
    """A run of five blocks; in these of them the same share of the CPU was stolen."""
    trials = [
        making.measurement(
            one.trial.system, one.trial.block, position=one.trial.position, steal=0.1
        )
        if one.trial.block in blocks and one.trial.system in systems
        else one
        for one in making.pairs((1.0,) * 5)
    ]
    return run(making.plan(blocks=5), trials)


@pytest.mark.parametrize(
    ("made", "place"),
    [
        (shaken(*range(5)), "oltp_read_write, 8 threads, in every trial"),
        (shaken(2), "oltp_read_write, 8 threads, block 3, in every trial"),
        (shaken(0, 3), "oltp_read_write, 8 threads, in 4 of 10 trials"),
        (
            shaken(*range(5), systems=(making.B,)),
            f"{making.B}, oltp_read_write, 8 threads, in every",
        ),
        (shaken(2, systems=(making.B,)), f"{making.B}, oltp_read_write, 8 threads, block 3: "),
    ],
)
def test_findings_with_the_same_words_are_a_line_with_their_place(made: Run, place: str) -> None:
    _, entries = results.findings(made.judgement).parts
    (machine,) = (entry for entry in entries.entries if entry.heading.startswith("machine"))
    assert machine.heading == "machine"
    (line,) = machine.lines
    assert line.startswith(place)
    shown = [line for line in doubts(made.judgement) if "machine" in line]
    assert [line.startswith(f"doubtful: machine, {place}") for line in shown] == [True]


def test_findings_with_other_values_are_lines_under_the_place_of_all() -> None:
    """The share of the CPU grows from block to block."""
    trials = [
        making.measurement(making.A, block, sequence=block, steal=0.1 + block / 100)
        for block in range(4)
    ]
    made = run(making.plan(systems=(making.A,)), [*trials, making.measurement(making.A, 4)])
    _, entries = results.findings(made.judgement).parts
    (machine,) = (entry for entry in entries.entries if entry.heading.startswith("machine"))
    place = f"{making.A}, oltp_read_write, 8 threads"
    assert machine.heading == f"machine, {place}, in 4 of 5 trials"
    assert machine.lines[2].startswith(f"{place}, block 3: ")
    (line,) = (line for line in doubts(made.judgement) if "machine" in line)
    assert line.startswith(f"doubtful: machine, {place}, in 4 of 5 trials: ")
    assert "(and 3 more)" in line


def test_a_finding_of_several_cells_is_told_with_their_share() -> None:
    finding = Finding(check="split-block", level=Level.NOTE, values={"case": "paused"})
    cells = [Cell(workload="oltp_read_write", threads=threads) for threads in (1, 2, 3)]
    arms = [ArmTrials(system=system, cell=cell, trials=5) for system in "ab" for cell in cells]
    of_cells = [finding.model_copy(update={"cell": cell}) for cell in cells]
    assert findings.place_of_all(of_cells[:2], arms) == "in 2 of 3 cells"
    assert findings.place_of_all(of_cells, arms) == "in every cell"
    of_systems = [finding.model_copy(update={"system": system}) for system in "ab"]
    assert findings.place_of_all(of_systems, arms) == "a, b"


def test_no_finding_is_said() -> None:
    nothing = Judgement(findings=(), values=(), estimates=(), verdicts=())
    assert results.findings(nothing).parts == (Paragraph("No check found a problem."),)


@pytest.mark.parametrize(
    ("ratios", "word", "accounts"),
    [
        ((0.75, 0.76, 0.77), "slower", 1),
        ((0.7, 1.5, 1.0), "not enough data", 0),
        ((0.76,), "no verdict", 0),
    ],
)
def test_only_a_difference_that_is_there_is_put_down_to_cpu(
    ratios: tuple[float, ...], word: str, accounts: int
) -> None:
    trials = [
        making.changed(one, server=one.server.model_copy(update={"cpu_s": cpu_s}))
        for one in making.pairs(ratios)
        for cpu_s in [10.0 if one.trial.system == making.A else 8.0]
    ]
    made = run(making.plan(blocks=len(ratios)), trials)
    assert len(made.judgement.accountings) == 1
    entries, *_ = results.verdicts(made.judgement).parts
    (entry,) = entries.entries
    assert entry.mark == word
    assert sum("CPU" in line for line in entry.lines) == accounts
    told = conclusion(made.plan, made.judgement, made.facts, attempts(trials, made.judgement))
    whys = ("Why: ", "Server CPU per transaction ×")
    assert sum(line.startswith(whys) for line in told) == accounts
