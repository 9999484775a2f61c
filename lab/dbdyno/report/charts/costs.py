"""Costs of a transaction as bars: a panel for each cost, a bar for each system and load.

The bars stand on zero, so their lengths may be compared; the thin line at an end is the lowest and
the highest trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dbdyno.language.words import name as label
from dbdyno.language.words import say
from dbdyno.measurement.cost import COSTS, Cost, per_event, sources_of
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.report.charts import vega
from dbdyno.report.charts.vega import Spec
from dbdyno.report.numbers import number
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Attempt, Ladder, level_of, sound
from dbdyno.report.tell.measured import cost_label, cost_unit, load_words

COLUMNS: Final = 3
Trials = dict[tuple[Cell, str], list[Measurement]]


def costs(
    name: str, ladder: Ladder, systems: Sequence[str], attempts: Iterable[Attempt]
) -> Figure | None:
    """Bars of a ladder; None without counts."""
    all_attempts = list(attempts)
    trials = {(c, s): sound(all_attempts, c, s) for c in ladder.cells for s in systems}
    drawn = [(cost, rows) for cost in COSTS if (rows := _rows(cost, ladder, systems, trials))]
    if not drawn:
        return None
    width = (vega.WIDTH - 60) // COLUMNS - 40
    panels = [
        vega.panel(label(cost_label(cost)), rows, _layers(ladder, systems, cost), width, 130)
        for cost, rows in drawn
    ]
    title = say("Costs of one transaction: {ladder}", ladder=ladder.title)
    points = [
        say(
            "{cost}, {level}, {system}: {value} {unit}",
            cost=cost_label(cost),
            level=row["level"],
            system=row["system"],
            value=number(row["value"], cost.decimals),
            unit=cost_unit(cost),
        )
        for cost, rows in drawn
        for row in rows
    ]
    per = say("per transaction")
    note = say(
        "A bar is the cost of one transaction in all valid trials together. A thin line reaches "
        "from the lowest to the highest trial. Costs that are zero on every system are left out."
    )
    return vega.figure(name, title, per, points, vega.side_by_side(panels, COLUMNS), note)


def _rows(cost: Cost, ladder: Ladder, systems: Sequence[str], trials: Trials) -> list[Spec]:
    """Cost of each cell and system, by the same counter within a cell if all systems have it."""
    rows = []
    for cell in ladder.cells:
        groups = [trials[cell, system] for system in systems]
        for system, group, source in zip(systems, groups, sources_of(cost, groups), strict=True):
            value = per_event(source, group) if source else None
            if source is None or value is None:
                continue
            single = [part for one in group if (part := per_event(source, [one])) is not None]
            rows.append(
                {
                    "load": level_of(cell),
                    "level": load_words(cell),
                    "system": system,
                    "value": value,
                    "low": min(single, default=value),
                    "high": max(single, default=value),
                }
            )
    return rows if any(row["value"] for row in rows) else []


def _layers(ladder: Ladder, systems: Sequence[str], cost: Cost) -> list[Spec]:
    x = {
        "field": "load",
        "type": "ordinal",
        "sort": ladder.levels,
        "title": ladder.load_title,
        "scale": {"paddingInner": 0.25},
        "axis": {"labelAngle": 0, "grid": False, "titleFontSize": 11},
    }
    unit = label(cost_unit(cost))
    side = vega.nominal("system", sort=list(systems), scale={"domain": list(systems)})
    same = {"x": x, "xOffset": side}
    tooltip = vega.load_tooltip(
        ("value", unit), ("low", say("lowest trial")), ("high", say("highest trial"))
    )
    value, low = (vega.from_zero(field, unit, ticks=4) for field in ("value", "low"))
    return [
        vega.layer("bar", {**same, "y": value, "color": vega.colour(systems), "tooltip": tooltip}),
        vega.layer(
            "rule",
            {**same, **vega.span("y", low)},
            where="datum.high > datum.low",
            color=vega.INK,
            strokeWidth=1,
        ),
    ]
