"""What a run cannot show, said before somebody else says it.

Each limit is a sentence with its condition; those that hold for this run are printed. An expert
looks here first, so a limit is stated as strongly as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge import Judgement, Level
from dbdyno.judge.checks_design import BLOCKS_FEW, WINDOW_S_MIN, lacks_control
from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.report.facts import RunFacts
from dbdyno.report.numbers import count, mebibytes, number
from dbdyno.report.trials import State, attempts, cells_of
from dbdyno.words import say

BYTES_PER_ROW: Final = 250
"""A sysbench row with its secondary index in InnoDB takes 190 to 300 bytes (method.md 1.h)."""


def limits(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Iterator[str]:
    """The limits that hold for this run, the gravest first."""
    yield from _of_record(plan, measurements, judgement, run)
    yield from _of_design(plan, measurements)
    yield from _of_place(plan, measurements)
    yield from _of_loops(plan)
    yield (
        "Generated rows and queries are not your application; a difference here need not be the "
        "difference there."
    )


def _of_loops(plan: Plan) -> Iterator[str]:
    if plan.load.threads:
        yield (
            "A closed loop hides stalls: requests that would have arrived during one are never "
            "sent. Its latencies are service times at saturation."
        )
    if plan.load.is_open:
        yield say(
            "Random arrivals over {connections} connections are independent users; real ones may"
            " come in larger bursts, or wait for each other.",
            connections=plan.load.connections,
        )
    else:
        yield "Latency at a given arrival rate needs an open loop, which this run did not use."


def _of_record(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Iterator[str]:
    made = attempts(measurements, judgement)
    if not run.complete:
        yield (
            f"The run is incomplete ({count(len(made), 'attempt')}, {run.trials_planned} trials "
            f"planned).{_cost_of_stopping(plan)}"
        )
    tried = {attempt.measurement.trial.key for attempt in made}
    sound = {a.measurement.trial.key for a in made if a.state is State.SOUND}
    if tried - sound:
        yield (
            f"{count(len(tried - sound), 'trial')} of {len(tried)} gave no usable measurement. "
            "If what spoiled them depends on the system, what is left is a selection."
        )
    if any(finding.level is Level.DOUBTFUL for finding in judgement.findings):
        yield "Some trials that count are doubtful; see Findings."


def _cost_of_stopping(plan: Plan) -> str:
    """Intervals of a run until decided allow for any end."""
    narrow = " Stopping when the numbers please makes intervals too narrow."
    return narrow if plan.design.stop == "blocks" else ""


def _blocks_run(plan: Plan, measurements: Sequence[Measurement]) -> int:
    """The plan's blocks, or those that a run until decided took."""
    if plan.design.stop == "blocks" or not measurements:
        return plan.design.blocks
    return len({measurement.trial.block for measurement in measurements})


def _of_design(plan: Plan, measurements: Sequence[Measurement]) -> Iterator[str]:
    blocks = _blocks_run(plan, measurements)
    if blocks < BLOCKS_FEW:
        yield (
            f"{count(blocks, 'block')} only: intervals are wide, "
            "and differences of a few percent cannot be settled."
        )
    if lacks_control(plan):
        yield (
            "There is no A/A control: no system ran twice under two labels, "
            "so the run does not measure how often it would err."
        )
    cells = len(cells_of(plan, measurements))
    comparisons = cells * (len(plan.systems) - 1)
    if comparisons > 1:
        yield say(
            "The verdicts on a system's {cells} cells hold together at 95 % (Holm); those on "
            "another system, and all intervals but those of verdicts and of selected cells, do not "
            "allow for one another.",
            cells=cells,
        )
    if plan.procedure.restart == "block" and cells > 1:
        yield (
            "Cells of one block ran on one server start, so what befell that start befell all of "
            "them; the cells are not independent evidence."
        )
    if plan.trial.window_s < WINDOW_S_MIN:
        yield (
            f"Windows of {plan.trial.window_s:g} s are too short to hold several checkpoints; "
            "a cost that comes in waves may be missed."
        )
    yield (
        f"{count(blocks, 'start')} of each system say little about rare bad starts: even if none "
        f"was seen, a share of up to {_rule_of_three(blocks)} % is not excluded."
    )


def _rule_of_three(starts: int) -> str:
    """The share that none seen in so many starts does not exclude at 95 %: 1 − 0.05^(1/n)."""
    return number((1 - 0.05 ** (1 / starts)) * 100, 0)


def _of_place(plan: Plan, measurements: Sequence[Measurement]) -> Iterator[str]:
    if any(measurement.server.pid is not None for measurement in measurements):
        yield (
            "Load generator and server shared one machine and talked over loopback: they take CPU "
            "from each other, and no network is in the latencies."
        )
    yield "One machine: other processors, disks and memory sizes may rank the systems differently."
    pools = {
        int(size)
        for measurement in measurements
        if (size := measurement.server.settings.get("innodb_buffer_pool_size", "")).isdigit()
    }
    if pools:
        data = plan.dataset.tables * plan.dataset.rows * BYTES_PER_ROW
        least = min(pools)
        if data < least:
            yield (
                f"The dataset (about {mebibytes(data)}) fits into the buffer pool "
                f"({mebibytes(least)}): reads from disk were not measured."
            )
        else:
            yield (
                f"The dataset (about {mebibytes(data)}) is larger than the buffer pool "
                f"({mebibytes(least)}), but the operating system's cache may have served it."
            )
