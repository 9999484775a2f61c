"""The report's table of contents: which sections there are and in which order. Pure.

The conclusion comes first, because a manager reads no further; then the verdicts at one look and in
sentences, the numbers and pictures they rest on, and all that an expert needs to repeat the run or
take it apart. To add a section: one function in a `sections_*` file, one line in `tell`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.judge import Judgement
from dbdyno.judge.controls import apart
from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.report import (
    charts,
    sections_charts,
    sections_controls,
    sections_costs,
    sections_flushes,
    sections_grid,
    sections_method,
    sections_outliers,
    sections_published,
    sections_rates,
    sections_results,
    sections_scalability,
    sections_settings,
    sections_stability,
    sections_tables,
)
from dbdyno.report.conclusion import conclusion
from dbdyno.report.facts import RunFacts
from dbdyno.report.parts import Story
from dbdyno.report.trials import attempts, title_of
from dbdyno.words import say


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
        sections_grid.grid(judgement),
        sections_results.verdicts(judgement),
        sections_tables.tables(plan, measurements, judgement),
        sections_charts.over_load(drawn),
        sections_scalability.scalability(judgement),
        sections_charts.over_time(drawn),
        sections_stability.stability(judgement),
        sections_outliers.outliers(judgement),
        sections_results.numbers(plan, measurements, judgement),
        sections_charts.with_charts(sections_costs.costs(plan, made), drawn, "costs"),
        sections_results.server_cpu(plan, made),
        sections_flushes.flushes(plan, made),
        sections_charts.with_charts(sections_costs.machine(plan, made), drawn, "cpu", "disk"),
        sections_method.how_measured(plan, measurements),
        sections_rates.pilot(plan),
        sections_published.published(plan, measurements, run),
        sections_settings.settings(plan, measurements),
        sections_settings.environment(run),
        sections_method.trial_order(every),
        sections_results.findings(judgement),
        sections_controls.trust(plan, judgement),
        sections_method.limitations(plan, measurements, judgement, run),
        sections_method.repeat(plan, run),
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
