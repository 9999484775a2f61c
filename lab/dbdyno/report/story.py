"""The report's table of contents: which sections there are and in which order. Pure.

The conclusion comes first, because a manager reads no further; then the verdicts at one look and in
sentences, the numbers and pictures they rest on, and all that an expert needs to repeat the run or
take it apart. To add a section: one function in a `sections_*` file, one line in `tell`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.judge.controls import apart
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import say
from dbdyno.measurement.facts import RunFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.report.charts import charts, sections_charts
from dbdyno.report.parts import Story
from dbdyno.report.rows import attempts, title_of
from dbdyno.report.sections import (
    cells,
    costs,
    method,
    results,
    sections_controls,
    sections_flushes,
    sections_outliers,
    sections_rates,
    sections_scalability,
    sections_settings,
    sections_tables,
    settings,
    shape,
)
from dbdyno.report.sections.conclusion import conclusion


def tell(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Story:
    """The whole report as values; sections with nothing to say say so or are left out."""
    compared, controls = apart(measurements)
    every = attempts([*compared, *controls], judgement)
    measurements, made = compared, attempts(compared, judgement)
    drawn = charts.figures(plan, measurements, judgement)
    sections = (
        sections_charts.with_charts(sections_rates.within_limit(judgement), drawn, "limits"),
        sections_charts.matrix(plan, measurements, judgement, drawn),
        cells.grid(judgement),
        results.verdicts(judgement),
        sections_tables.tables(plan, measurements, judgement),
        sections_charts.over_load(drawn),
        sections_scalability.scalability(judgement),
        sections_charts.over_time(drawn),
        shape.stability(judgement),
        sections_outliers.outliers(judgement),
        results.numbers(plan, measurements, judgement),
        sections_charts.with_charts(costs.costs(plan, made), drawn, "costs"),
        results.server_cpu(plan, made),
        sections_flushes.flushes(plan, made),
        sections_charts.with_charts(costs.machine(plan, made), drawn, "cpu", "disk"),
        method.how_measured(plan, measurements),
        sections_rates.pilot(plan),
        settings.published(plan, measurements, run),
        sections_settings.settings(plan, measurements),
        sections_settings.environment(run),
        method.trial_order(every),
        results.findings(judgement),
        sections_controls.trust(plan, judgement),
        method.limitations(plan, measurements, judgement, run),
        method.repeat(plan, run),
    )
    return Story(
        title=title_of(plan),
        byline=say(
            "Run {run_id}, begun {when}, dbdyno {version}, plan {plan}",
            run_id=run.run_id,
            when=run.created_at,
            version=run.dbdyno_version,
            plan=run.plan_hash[:12],
        ),
        conclusion=conclusion(plan, judgement, run, made),
        sections=tuple(section for section in sections if section.parts),
    )
