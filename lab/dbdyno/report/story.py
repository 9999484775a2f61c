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
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import Plan
from dbdyno.report.charts import charts
from dbdyno.report.charts.charts import matrix, over_load, over_time, with_charts
from dbdyno.report.parts import Story
from dbdyno.report.rows import attempts, title_of
from dbdyno.report.sections import cells, costs, limits, method, results, shape
from dbdyno.report.sections import settings as settings_module
from dbdyno.report.sections.cells import pilot
from dbdyno.report.sections.conclusion import conclusion
from dbdyno.report.sections.settings import environment
from dbdyno.report.sections.shape import outliers


def tell(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Story:
    """The whole report as values; sections with nothing to say say so or are left out."""
    compared, controls = apart(measurements)
    every = attempts([*compared, *controls], judgement)
    measurements, made = compared, attempts(compared, judgement)
    drawn = charts.figures(plan, measurements, judgement)
    sections = (
        with_charts(cells.within_limit(judgement), drawn, "limits"),
        matrix(plan, measurements, judgement, drawn),
        cells.grid(judgement),
        results.verdicts(judgement),
        results.tables(plan, measurements, judgement),
        over_load(drawn),
        shape.scalability(judgement),
        over_time(drawn),
        shape.stability(judgement),
        outliers(judgement),
        results.numbers(plan, measurements, judgement),
        with_charts(costs.costs(plan, made), drawn, "costs"),
        results.server_cpu(plan, made),
        costs.flushes(plan, made),
        with_charts(costs.machine(plan, made), drawn, "cpu", "disk"),
        method.how_measured(plan, measurements),
        pilot(plan),
        settings_module.published(plan, measurements, run),
        settings_module.settings(plan, measurements),
        environment(run),
        method.trial_order(every),
        results.findings(judgement),
        limits.trust(plan, judgement),
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
