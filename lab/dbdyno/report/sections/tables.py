"""A table for each workload: every number of each system, and its change.

Example of a row: "latency p95, ms · 9.61 · 10.2 · +6.1 % [+1.2, +11.3]". With several load levels a
row is a number at a level. The first screen has the main lines, the section "Numbers" has all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import Text, count, listed, name, phrase, say
from dbdyno.measurement.cost import COSTS, Cost, per_event, source_of
from dbdyno.measurement.measurement import Cell, Measurement, kinds_of
from dbdyno.measurement.metric import BY_NAME, NOPM, PRIMARY, TABLE, Metric, metrics_of_kinds
from dbdyno.plan.known import Fact
from dbdyno.plan.plan import CELLS_FEW, Plan, comparisons, latency_of
from dbdyno.plan.settings import DEFAULT, each_value, on_or_off
from dbdyno.plan.systems import Comparison
from dbdyno.report.numbers import (
    NONE,
    change_with_interval,
    decided,
    metric_value,
    number,
    too_few,
)
from dbdyno.report.parts import Column, Paragraph, Section, Table, numeric
from dbdyno.report.rows import (
    Attempt,
    Ladder,
    compared_settings,
    effective,
    ladders,
    level_of,
    sound,
    systems_of,
)
from dbdyno.report.sections.costs import cores
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.terms import Sentence, fitting, term

AGAINST: Final = (
    Sentence(
        phrase(
            "Changes are against {baseline}. A change with a verdict has the verdict's interval. "
            "Any other change has its own 95 % interval."
        ),
        Fact.HERE,
    ),
    Sentence(
        phrase("Changes are against {baseline}, each with its own 95 % interval."), Fact.ELSEWHERE
    ),
)
MERGED: Final = Sentence(
    phrase("Each value is computed from all valid trials together."), Fact.HERE
)
WITHOUT_INTERVAL: Final = "latency_ms_max"
"""One request of a trial makes it, so an interval over a few trials says nothing."""
MAIN: Final = tuple(
    BY_NAME[name]
    for name in ("transactions_per_s", "queries_per_s", "latency_ms_p95", "latency_ms_p99")
)
"""The metrics of the first screen."""
MAIN_COSTS: Final = {
    "server_cpu_us": say("CPU per transaction, µs"),
    "storage_read_kb": say("read per transaction, KB"),
    "written_kb": say("written per transaction, KB"),
    "syncs": say("syncs per transaction"),
}
"""The costs of the first screen, by their names in `COSTS`, and their headings."""
SETTINGS_MAX: Final = 4
"""Most compared settings that the first screen names."""


@dataclass(frozen=True)
class Line:
    """A row of a table, for every cell.

    Attributes:
        value: the number of a system in a cell.
        change: the change of a comparison in a cell.
        metric: the metric that it shows; None for other lines.
    """

    heading: Text
    value: Callable[[Cell, str], Text]
    change: Callable[[Cell, Comparison], Text] = lambda _, __: NONE
    metric: Metric | None = None


@dataclass(frozen=True)
class _Tabled:
    """A run as its tables read it."""

    plan: Plan
    attempts: Sequence[Attempt]
    judgement: Judgement

    @cached_property
    def measurements(self) -> list[Measurement]:
        return [attempt.measurement for attempt in self.attempts]

    @cached_property
    def systems(self) -> list[str]:
        return systems_of(self.plan, self.measurements)

    @cached_property
    def compared(self) -> list[Comparison]:
        """Comparisons of two systems; those of two settings have tables of their own."""
        return [one for one in comparisons(self.plan) if one.settings is None]

    @cached_property
    def ladders(self) -> list[Ladder]:
        seen = {value.cell for value in self.judgement.values}
        every = ladders(cells_of(self.plan, self.measurements))
        return [ladder for ladder in every if seen.intersection(ladder.cells)]


def main_tables(plan: Plan, attempts: Sequence[Attempt], judgement: Judgement) -> list[Table]:
    """The main numbers of each workload.

    With many cells these are throughput and latency only. Rates chosen by the pilot to find a limit
    are left out.
    """
    run = _Tabled(plan, attempts, judgement)
    fixed = [ladder for ladder in run.ladders if not plan.load.is_rung(ladder.cells[0].rate_per_s)]
    if sum(len(ladder.cells) for ladder in fixed) > CELLS_FEW:
        return [_table(run, ladder, _metrics(run, _main_of(run, ladder))) for ladder in fixed]
    return [
        _table(
            run,
            ladder,
            [
                *_settings(run),
                *_metrics(run, _main_of(run, ladder)),
                _errors(run),
                _cores(run),
                *(_cost(run, ladder, cost) for cost in COSTS if cost.name in MAIN_COSTS),
            ],
        )
        for ladder in fixed
    ]


def numbers(plan: Plan, attempts: Sequence[Attempt], judgement: Judgement) -> Section:
    """All numbers of each workload, then each system over its settings."""
    run, heading = _Tabled(plan, attempts, judgement), say("Numbers")
    if not run.ladders:
        nothing = say("No trial is valid, so there are no numbers.")
        return Section(heading, (Paragraph(nothing),))
    tables = [
        _table(run, ladder, [*_metrics(run, _all_of(run, ladder)), _errors(run)])
        for ladder in run.ladders
    ]
    head = [*MERGED.of(judgement.known)]
    if run.compared:
        baselines = dict.fromkeys(one.baseline.label for one in run.compared)
        head.append(fitting(AGAINST, judgement.known, baseline=listed(baselines, " / ")))
    introduced = [Paragraph(listed(head, " "))] if head else []
    return Section(heading, (*introduced, *tables, *_over_settings(run)))


# The lines of a table.


def _main_of(run: _Tabled, ladder: Ladder) -> list[Metric]:
    percentile = [latency_of(run.plan)] if ladder.is_open else []
    return list(dict.fromkeys((*MAIN, *percentile, NOPM)))


def _all_of(run: _Tabled, ladder: Ladder) -> list[Metric]:
    """Every metric, and those of each kind of event where a script tells several apart."""
    kinds = kinds_of(one for one in run.measurements if one.trial.cell in ladder.cells)
    of_kinds = metrics_of_kinds(kinds) if len(kinds) > 1 else []
    return list(dict.fromkeys((*TABLE, NOPM, *of_kinds)))


def _metrics(run: _Tabled, metrics: Iterable[Metric]) -> list[Line]:
    return [
        Line(
            _heading(metric),
            partial(_value, run.judgement, metric),
            partial(_change, run.judgement, metric),
            metric,
        )
        for metric in metrics
    ]


def _heading(metric: Metric) -> Text:
    label = metric_label(metric)
    if metric.kind and metric != NOPM:
        latency, rate = phrase("{event}, latency p95, ms"), phrase("{event}, 1/s")
        return say(latency if metric.quantile else rate, event=label)
    if metric.name.startswith("latency_ms"):
        return say("latency {quantile}, ms", quantile=label)
    is_rate = metric.unit.startswith("1/")
    return label if is_rate else say("{metric}, {unit}", metric=label, unit=metric.unit)


def _value(judgement: Judgement, metric: Metric, cell: Cell, system: str) -> Text:
    return metric_value(judgement, cell, system, metric)


def _change(judgement: Judgement, metric: Metric, cell: Cell, comparison: Comparison) -> Text:
    """The verdict's word and interval if it is on this metric, else the change by itself."""
    if verdict := _verdict(judgement, cell, comparison, metric):
        change = decided(verdict)
        word = term(verdict.word)
        return word if change == NONE else say("{word}: {change}", word=word, change=change)
    without = metric.name == WITHOUT_INTERVAL
    return NONE if without else change_of(judgement, cell, comparison, metric)


def _look(judgement: Judgement, line: Line, cell: Cell, comparison: Comparison) -> str:
    """The colour of a line's verdict."""
    verdict = line.metric and _verdict(judgement, cell, comparison, line.metric)
    return verdict.word.replace(" ", "-") if verdict else ""


def _verdict(
    judgement: Judgement, cell: Cell, comparison: Comparison, metric: Metric
) -> Verdict | None:
    wanted = (cell, metric.name, *comparison.labels)
    for verdict in judgement.verdicts:
        if (verdict.cell, verdict.metric, verdict.baseline, verdict.system) == wanted:
            return verdict
    return None


def change_of(judgement: Judgement, cell: Cell, comparison: Comparison, metric: Metric) -> Text:
    """The ratio with its interval, and on how many blocks it rests if the verdict has others."""
    estimate = judgement.estimate(cell, *comparison.labels, metric.name)
    text = change_with_interval(estimate)
    primary = judgement.estimate(cell, *comparison.labels, PRIMARY.name)
    if estimate is None or primary is None:
        return text
    if estimate.blocks == 0:
        return too_few(judgement.known) if metric.quantile is not None and primary.blocks else text
    if estimate.blocks == primary.blocks:
        return text
    return say("{change} ({blocks})", change=text, blocks=count(estimate.blocks, "block"))


def _errors(run: _Tabled) -> Line:
    """Events that ended with an error, and events begun again, over all valid trials."""

    def value(cell: Cell, system: str) -> Text:
        trials = sound(run.attempts, cell, system)
        errors = sum(sum(trial.errors.values()) for trial in trials)
        retries = sum(second.restarts for trial in trials for second in trial.measured)
        return name(f"{errors} / {retries}") if trials else NONE

    return Line(say("errors / retries"), value)


def _cores(run: _Tabled) -> Line:
    """The server's CPU, by which throughput is CPU used over CPU per transaction."""

    def busy(cell: Cell, system: str) -> float | None:
        return cores(sound(run.attempts, cell, system))

    return Line(
        say("server CPU, cores"),
        lambda cell, system: number(busy(cell, system)),
        lambda cell, one: _factor(*(busy(cell, label) for label in one.labels)),
    )


def _factor(baseline: float | None, system: float | None) -> Text:
    """A system's share of the baseline's value: "× 2.5"; a dash if either is 0 or unknown."""
    return say("× {factor}", factor=f"{system / baseline:.3g}") if baseline and system else NONE


def _cost(run: _Tabled, ladder: Ladder, cost: Cost) -> Line:
    """A cost by a counter common to all systems, and the factor between two; none if it is 0."""
    of_cells: dict[Cell, dict[str, float | None]] = {}
    for cell in ladder.cells:
        trials = {system: sound(run.attempts, cell, system) for system in run.systems}
        source = source_of(cost, [trial for of in trials.values() for trial in of])
        of_cells[cell] = {
            system: per_event(source, of) if source and of else None
            for system, of in trials.items()
        }

    def value(cell: Cell, system: str) -> Text:
        is_used = any(of_cells[cell].values())
        return number(of_cells[cell][system], cost.decimals) if is_used else NONE

    def change(cell: Cell, comparison: Comparison) -> Text:
        return _factor(*(of_cells[cell].get(label) for label in comparison.labels))

    return Line(MAIN_COSTS[cost.name], value, change)


def _settings(run: _Tabled) -> list[Line]:
    """The values of the compared settings."""
    keys = compared_settings(run.plan)[:SETTINGS_MAX]
    if not keys:
        return []
    planned = {system.label: system.settings for system in run.plan.systems}
    seen = {system: effective(run.measurements, system) for system in run.systems}

    def value(key: str, _: Cell, system: str) -> Text:
        if key in planned.get(system, {}):
            return listed(f"{on_or_off(one)}" for one in each_value(planned[system][key]))
        return seen[system].get(key.replace("-", "_"), say("default"))

    return [Line(name(key), partial(value, key)) for key in keys]


# From lines to a table.


def _table(run: _Tabled, ladder: Ladder, lines: Iterable[Line]) -> Table:
    """The lines with a value, each at every load level."""
    has_levels = len(ladder.cells) > 1
    columns = (
        Column(say("Measured")),
        *([numeric(ladder.load_title)] if has_levels else []),
        *(numeric(name(system)) for system in run.systems),
        *(_change_column(one, run.compared) for one in run.compared),
    )
    rows, looks = [], []
    for line in lines:
        values = {
            cell: [line.value(cell, system) for system in run.systems] for cell in ladder.cells
        }
        if all(value == NONE for of_cell in values.values() for value in of_cell):
            continue
        for cell, of_cell in values.items():
            level = [level_of(cell)] if has_levels else []
            changes = [line.change(cell, one) for one in run.compared]
            rows.append((line.heading, *level, *of_cell, *changes))
            plain = [""] * (len(columns) - len(changes))
            looks.append((*plain, *(_look(run.judgement, line, cell, one) for one in run.compared)))
    caption = ladder.title if has_levels else cell_title(ladder.cells[0])
    return Table(caption, columns, tuple(rows), looks_of_cells=tuple(looks))


def _change_column(comparison: Comparison, among: Sequence[Comparison]) -> Column:
    baseline, arm = comparison.labels
    if len(among) == 1:
        return numeric(say("Change [95 %]"))
    if len({one.baseline for one in among}) == 1:
        return numeric(say("{system} change [95 %]", system=arm))
    return numeric(say("{system} against {baseline} [95 %]", system=arm, baseline=baseline))


def _over_settings(run: _Tabled) -> list[Table]:
    """Throughput of each system and workload, a column for each of several settings."""
    workloads: dict[str, list[Ladder]] = {}
    for ladder in run.ladders:
        if not ladder.is_open:
            workloads.setdefault(ladder.workload, []).append(ladder)
    return [
        _settings_table(run, system, beside)
        for beside in workloads.values()
        if len(beside) > 1
        for system in run.systems
    ]


def _settings_table(run: _Tabled, system: str, beside: Sequence[Ladder]) -> Table:
    workload, judgement = beside[0].workload, run.judgement
    cells = {(cell.setting, cell.threads): cell for ladder in beside for cell in ladder.cells}
    compared = [  # two settings of the system, with no other axis varied
        one
        for one in comparisons(run.plan)
        if {one.baseline.system, one.arm.system} == {system}
        and set(one.settings or ()) == {DEFAULT}
    ]
    rows = tuple(
        (
            name(f"{threads}"),
            *(
                metric_value(judgement, cells[at], system, PRIMARY)
                if (at := (ladder.setting, threads)) in cells
                else NONE
                for ladder in beside
            ),
            *(
                change_of(judgement, Cell(workload=workload, threads=threads), one, PRIMARY)
                for one in compared
            ),
        )
        for threads in sorted({threads for _, threads in cells})
    )
    columns = (
        numeric(beside[0].load_title),
        *(numeric(name(ladder.setting)) for ladder in beside),
        *(_change_column(one, compared) for one in compared),
    )
    caption = say(
        "{metric}, {unit}: {system} under each setting, {workload}",
        metric=metric_label(PRIMARY),
        unit=PRIMARY.unit,
        system=system,
        workload=workload,
    )
    return Table(caption, columns, rows)
