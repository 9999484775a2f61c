"""The charts of a report by name.

A specification in Vega-Lite with its data inside serves the interactive page, the SVG and the PNG
(`drawing.py`); theme and builders are in `vega.py`. To add a chart: a file with a function for a
`Figure` or None, a line here, its place in `story.py`.

    limits                       rates within a latency limit
    verdicts · ratios            what was concluded
    throughput · latency · latency-throughput   over load
    seconds-N · cpu-N · disk-N   every trial over time, a chart for each ladder
    costs-N                      of one transaction
    flames-N                     sampled stacks, a chart for each comparison in a cell
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dbdyno.judge.beside.functions import profile_of
from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan, comparisons
from dbdyno.report.charts import costs, curve, flames, levels, ratios, timelines, vega, verdicts
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Ladder, attempts, ladders, sound, systems_of


def figures(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement
) -> tuple[Figure, ...]:
    """All charts for which there is something to draw, in the order of the report."""
    cells = cells_of(plan, measurements)
    all_ladders = ladders(cells)
    closed = [ladder for ladder in all_ladders if not ladder.is_open]  # else throughput is the rate
    systems = systems_of(plan, measurements)
    drawn = [
        curve.limits(judgement.slo, systems),
        verdicts.matrix(cells, judgement.verdicts),
        ratios.ratios(
            judgement.verdicts, plan.design.margin, judgement.summaries, judgement.curves
        ),
        levels.throughput(closed, systems, judgement),
        levels.latency(all_ladders, systems, judgement),
        curve.latency_throughput(closed, systems, judgement),
        *_of_trials(all_ladders, systems, measurements, judgement),
        *_of_stacks(plan, measurements, judgement),
    ]
    return tuple(
        replace(figure, spec={**figure.spec, "config": vega.THEME})
        for figure in drawn
        if figure is not None
    )


def named(drawn: Iterable[Figure], *beginnings: str) -> tuple[Figure, ...]:
    """Charts with these beginnings of names, in the order of the beginnings."""
    every = list(drawn)
    return tuple(
        figure
        for beginning in beginnings
        for figure in every
        if figure.name == beginning or figure.name.startswith(f"{beginning}-")
    )


def _of_trials(
    all_ladders: Sequence[Ladder],
    systems: Sequence[str],
    measurements: Sequence[Measurement],
    judgement: Judgement,
) -> list[Figure | None]:
    every = attempts(measurements, judgement)
    drawn: list[Figure | None] = []
    for number, ladder in enumerate(all_ladders, start=1):
        drawn += [
            timelines.per_second(f"seconds-{number}", ladder, systems, every, judgement),
            costs.costs(f"costs-{number}", ladder, systems, every),
            *timelines.timelines(number, ladder, systems, every),
        ]
    return drawn


def _of_stacks(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement
) -> Iterator[Figure]:
    every = attempts(measurements, judgement)
    for number, compared in enumerate(judgement.functions, start=1):
        arms = next(
            comparison.places(compared.cell)
            for comparison in comparisons(plan)
            if comparison.labels == (compared.baseline, compared.system)
        )
        below, above = (
            [
                profile
                for trial in sound(every, arm.cell, arm.system)
                if (profile := profile_of(trial, compared.sampler)) is not None
            ]
            for arm in arms
        )
        yield flames.flames(f"flames-{number}", compared, below, above)
