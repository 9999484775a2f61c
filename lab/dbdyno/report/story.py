"""The report's table of contents: its sections and their order. Pure.

The conclusion comes first, because a manager reads no further; then the verdicts at a glance and in
sentences, the numbers and pictures they rest on, and everything an expert needs to repeat the run
or take it apart. To add a section: one function in a file of `sections`, one line in `story_of`; a
chart finds its section below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.measurement import Measurement, without_pilots
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.known import Fact, Known
from dbdyno.plan.plan import Plan
from dbdyno.report.charts.charts import figures, named
from dbdyno.report.parts import Figure, Paragraph, Section, Story
from dbdyno.report.rows import attempts, title_of
from dbdyno.report.sections import (
    cells,
    costs,
    glance,
    method,
    results,
    settings,
    shape,
    tables,
    why,
)
from dbdyno.report.sections.conclusion import conclusion
from dbdyno.report.sections.published import published

NEEDS: Final[Mapping[Callable[..., Section], tuple[Fact, ...]]] = {
    costs.costs: (Fact.HERE,),
    costs.flushes: (Fact.SETTINGS,),
    costs.machine: (Fact.MACHINE,),
    method.how_measured: (Fact.HERE,),
    method.how_imported: (Fact.ELSEWHERE,),
    cells.pilot: (Fact.HERE,),
    published: (Fact.HERE,),
    settings.settings: (Fact.SETTINGS,),
    settings.environment: (Fact.HERE,),
    method.limitations: (Fact.HERE,),
    method.repeat: (Fact.HERE,),
}
"""Facts without which a section is left out."""


def story_of(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Story:
    """The whole report as values; sections without content say so or are left out."""
    every = attempts(measurements, judgement)
    measurements = without_pilots(measurements)
    tried = attempts(measurements, judgement)
    drawn = figures(plan, measurements, judgement)
    few = len(judgement.verdicts) <= glance.ROWS_OPEN_MAX
    first, second = ("ratios", "verdicts") if few else ("verdicts", "ratios")
    open_at_once = tuple(one for one in drawn if one.name in (first, "throughput", "latency"))
    numbers = (
        with_charts(tables.numbers(plan, tried, judgement), drawn, "latency-throughput"),
        shape.scalability(judgement),
    )
    course = (over_time(drawn), *shape.from_run_to_run(judgement))
    telling = partial(_told, judgement.known)
    limits = telling(method.limitations, plan, measurements, judgement)
    work = (
        with_charts(telling(costs.costs, plan, tried), drawn, "costs"),
        telling(costs.flushes, plan, tried),
        with_charts(telling(costs.machine, plan, tried), drawn, "cpu", "disk"),
    )
    procedure = (
        telling(method.how_measured, plan, measurements),
        telling(method.how_imported, measurements, run),
        telling(cells.pilot, plan),
        telling(published, plan, measurements, run, judgement.claims),
        telling(settings.settings, plan, measurements),
        telling(settings.environment, plan, measurements, run),
        method.trial_order(every, judgement.known),
    )
    sections = (
        glance.glance(plan, tried, judgement, run, open_at_once),
        folded(with_charts(cells.within_limit(judgement), drawn, "limits")),
        folded(results.findings(judgement)),
        group(
            say("Verdicts in detail"),
            Section(say("As a map"), named(drawn, second)),
            results.verdicts(judgement),
            cells.grid(judgement),
        ),
        folded(why.why(plan, measurements, judgement)),
        folded(costs.functions(judgement, named(drawn, "flames"))),
        group(say("Numbers of every load level"), *numbers),
        group(say("From second to second, from trial to trial"), *course),
        group(say("Costs and machine"), *work),
        group(say("Method, settings, trials"), *procedure),
        group(say("Trust and limitations"), limits),
        folded(telling(method.repeat, plan, run)),
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
        conclusion=conclusion(plan, judgement, run, tried),
        sections=tuple(section for section in sections if section.parts),
    )


def _told(known: Known, section: Callable[..., Section], *of: object) -> Section:
    """A section of the run; without parts where it lacks facts."""
    return section(*of) if known.has(*NEEDS.get(section, ())) else Section(name(""), ())


def folded(section: Section) -> Section:
    """The section with only its heading to be seen."""
    return replace(section, folded=True)


def group(heading: Text, *sections: Section) -> Section:
    """Sections with content, folded under one heading."""
    return Section(heading, tuple(one for one in sections if one.parts), folded=True)


def over_time(drawn: Sequence[Figure]) -> Section:
    """Every trial second by second."""
    return Section(say("Every trial over time"), named(drawn, "seconds"))


def with_charts(section: Section, drawn: Sequence[Figure], *beginnings: str) -> Section:
    """The section with its charts behind its first paragraph, or before all else."""
    pictures = named(drawn, *beginnings)
    head = tuple(part for part in section.parts[:1] if isinstance(part, Paragraph))
    return replace(section, parts=(*head, *pictures, *section.parts[len(head) :]))
