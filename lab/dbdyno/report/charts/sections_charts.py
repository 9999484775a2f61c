"""Sections that are pictures, and pictures that stand in sections of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.report.charts import verdicts
from dbdyno.report.charts.charts import named
from dbdyno.report.ladders import ladders
from dbdyno.report.parts import Figure, Paragraph, Section
from dbdyno.report.rows import cells_of


def matrix(
    plan: Plan,
    measurements: Sequence[Measurement],
    judgement: Judgement,
    drawn: Sequence[Figure],
) -> Section:
    """All verdicts at one look, as pictures and in words; empty below two verdicts."""
    tables = verdicts.table(ladders(cells_of(plan, measurements)), judgement.verdicts)
    pictures = named(drawn, "verdicts", "ratios")
    return Section(say("Verdicts at a glance"), (*pictures, *tables) if tables else ())


def over_load(drawn: Sequence[Figure]) -> Section:
    """Throughput, latency and one over the other."""
    nothing = (Paragraph(say("There is nothing to draw: no trial has been measured.")),)
    pictures = named(drawn, "throughput", "latency")
    return Section(say("Charts"), pictures if drawn else nothing)


def over_time(drawn: Sequence[Figure]) -> Section:
    """Every trial second by second."""
    return Section(say("Every trial over time"), named(drawn, "seconds"))


def with_charts(section: Section, drawn: Sequence[Figure], *beginnings: str) -> Section:
    """The section with its charts behind its first paragraph, or before all else."""
    pictures = named(drawn, *beginnings)
    head = tuple(part for part in section.parts[:1] if isinstance(part, Paragraph))
    return replace(section, parts=(*head, *pictures, *section.parts[len(head) :]))
