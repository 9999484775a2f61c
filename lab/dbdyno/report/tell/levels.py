"""Several cells together, told from the top: each workload in each setting, then all cells.

A workload's ratio is the headline of its cells. The mean over all cells is told only where
workloads agree in sign: a gain in reads and a loss in writes have no common ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbdyno.judge.beside.grid import GridSummary, of_all_cells, of_workloads
from dbdyno.judge.verdict import Verdict, Word, ladders_of
from dbdyno.language.words import Said, clauses, count, listed, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.plan import BLOCKS_MIN
from dbdyno.report.rows import workload_name
from dbdyno.report.tell.measured import metric_label
from dbdyno.report.tell.verdicts import (
    blocks_in_words,
    filled_in,
    interval_text,
    more_blocks,
    size_undecided,
)

Answer = Verdict | GridSummary
"""A verdict on a cell, or on several together."""


@dataclass(frozen=True)
class Levels:
    """Summaries of one comparison.

    Attributes:
        workloads: each workload in each setting; empty where every workload has a single cell.
        whole: all cells of several workloads; None for a single workload.
        is_mixed: workloads point in opposite directions, and at least one is decided.
    """

    workloads: tuple[GridSummary, ...] = ()
    whole: GridSummary | None = None
    is_mixed: bool = False

    @property
    def mean(self) -> GridSummary | None:
        """The summary of all cells, where workloads are not of opposite sign."""
        return None if self.is_mixed else self.whole

    @property
    def every(self) -> tuple[GridSummary, ...]:
        """All cells, then the workloads."""
        return (*([self.whole] if self.whole else []), *self.workloads)


def levels_of(verdicts: Sequence[Verdict], summaries: Sequence[GridSummary]) -> Levels:
    """The levels of a comparison; none for a single cell.

    Args:
        verdicts: of one comparison.
    """
    closed = [verdict for verdict in verdicts if verdict.cell.rate_per_s is None]
    if len(closed) < 2:
        return Levels()
    workloads = tuple(of_workloads(closed, summaries))
    if len(ladders_of(closed)) == 1:
        place = dict(zip(("workload", "setting"), closed[0].cell.ladder, strict=True))
        return Levels(tuple(one.model_copy(update=place) for one in workloads))
    whole = of_all_cells(closed, summaries)
    return Levels(workloads, whole, _is_mixed(workloads or closed))


def _is_mixed(answers: Sequence[Answer]) -> bool:
    """True if a decided difference stands beside one that points the other way."""
    words = {one.word for one in answers}
    ratios = [ratio for one in answers if (ratio := ratio_of(one)) is not None]
    margin = max((1 + one.margin for one in answers), default=1.0)
    is_up, is_down = max(ratios, default=1.0) > margin, min(ratios, default=1.0) < 1 / margin
    return (Word.BETTER in words and is_down) or (Word.WORSE in words and is_up)


def ratio_of(answer: Answer) -> float | None:
    """The ratio of a cell or of several; None without one."""
    return answer.ratio if isinstance(answer, GridSummary) else answer.estimate.ratio


def level_title(summary: GridSummary) -> Said:
    """Cells of a summary: "oltp_read_only, durability=strict, 8 cells"."""
    cells = count(summary.cells + summary.cells_left_out, "cell")
    if not summary.workload:
        return say("All {cells}, workloads weighted equally", cells=cells)
    return clauses([workload_name(summary.workload, summary.setting), cells])


def level_sentence(summary: GridSummary) -> Said:
    """A summary in the words of a cell's verdict, with its cells before them.

    >>> "oltp_read_only, 8 cells: B is faster than A: TPS +22.1 % [+17.0, +27.3], 5 blocks"
    """
    words = filled_in(
        summary,
        _numbers(summary),
        more_blocks(summary.blocks_needed, summary.blocks, summary.seconds_needed),
    )
    if summary.word in (Word.BETTER, Word.WORSE) and not summary.material:
        words = listed([words, size_undecided(summary.margin)], "; ")
    return say("{cells}: {verdict}", cells=level_title(summary), verdict=words)


def _numbers(summary: GridSummary) -> Iterator[Said]:
    change = interval_text(summary.ratio, summary.low, summary.high)
    if change is None:
        silent = summary.counts[Word.VOID] + summary.counts[Word.NO_VERDICT]
        stood_still = silent < sum(summary.counts.values())
        yield (
            say("a system stood still in one of these cells")
            if stood_still
            else say("no cell has {least} valid blocks", least=BLOCKS_MIN)
        )
        return
    yield say("{metric} {change}", metric=metric_label(BY_NAME[summary.metric]), change=change)
    yield blocks_in_words(summary.blocks)
