"""One metric over the load levels: a line for each system, with the interval of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from dbdyno.judge import Judgement
from dbdyno.measurement import Cell
from dbdyno.metric import PRIMARY, Metric
from dbdyno.report.parts import Figure

WIDTH: Final = 640
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
ASIDE: Final = 0.07
ASIDE_ALL_MAX: Final = 0.5
"""Distance of two systems, and of all of them, in distances of load levels."""
PARTED: Final = "replace(format(datum.value, ',.6~r'), /,/g, '\u202f')"
"""Axis labels with the thousands parted as in the tables."""
NOTE: Final = (
    "Bars are 95 % intervals of one system over its blocks. The verdict compares within blocks, "
    "so bars that overlap do not contradict it."
)
HAS_INTERVAL: Final = "datum.low !== null"


def over_threads(
    name: str,
    words: str,
    metric: Metric,
    cells: Sequence[Cell],
    systems: Sequence[str],
    judgement: Judgement,
) -> Figure | None:
    """The chart of one metric, a panel for each workload and setting; None without values."""
    levels = sorted({cell.threads for cell in cells if cell.rate_per_s is None})
    rows = [
        {
            "group": _group(value.cell),
            "threads": value.cell.threads,
            "place": levels.index(value.cell.threads) + _aside(systems, value.system),
            "system": value.system,
            "value": value.value,
            "low": value.low,
            "high": value.high,
        }
        for value in judgement.values
        if value.metric == metric.name and value.value is not None and value.cell.rate_per_s is None
    ]
    if not rows:
        return None
    unit = "transactions per second" if metric is PRIMARY else f"{words}, {metric.unit}"
    title = f"{words} over threads"
    layers = _layers(levels, systems, unit)
    spec = _panels(layers, list(dict.fromkeys(_group(cell) for cell in cells)), rows)
    return Figure(name, title, _describe(title, unit, rows), spec, NOTE)


def _layers(
    levels: Sequence[int], systems: Sequence[str], unit: str
) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart().encode(x=_places(levels), color=_colour(systems))
    known = base.transform_filter(HAS_INTERVAL)
    ends = known.mark_tick(thickness=1.5, size=9, orient="horizontal", opacity=1)
    return alt.layer(
        base.mark_line(strokeWidth=1.5, opacity=0.55).encode(y=_height("value", unit)),
        known.mark_rule(strokeWidth=1.5).encode(y=_height("low", unit), y2="high:Q"),
        ends.encode(y=_height("low", unit)),
        ends.encode(y=_height("high", unit)),
        base.mark_point(size=60, filled=True, opacity=1).encode(
            y=_height("value", unit), shape=_shape(systems)
        ),
    )


def _panels(
    layers: alt.LayerChart | alt.FacetChart, groups: Sequence[str], rows: list[dict[str, Any]]
) -> dict[str, Any]:
    data = alt.InlineData(values=rows)
    if len(groups) == 1:
        whole: dict[str, Any] = layers.properties(width=WIDTH, height=300, data=data).to_dict()
        return whole
    panels = layers.properties(width=WIDTH // 2 - 40, height=220).facet(
        facet=alt.Facet("group:N", sort=list(groups), title=None), columns=2, data=data
    )
    parted: dict[str, Any] = (
        panels.resolve_scale(y="independent").resolve_axis(x="independent").to_dict()
    )
    return parted


def _aside(systems: Sequence[str], system: str) -> float:
    """Systems stand side by side, so that intervals do not hide each other."""
    middle = (len(systems) - 1) / 2
    return (systems.index(system) - middle) * min(ASIDE, ASIDE_ALL_MAX / len(systems))


def _places(levels: Sequence[int]) -> alt.X:
    """Load levels at equal distances, since they are usually powers of two."""
    return alt.X(
        "place:Q",
        title="threads (connections)",
        scale=alt.Scale(domain=[-0.4, len(levels) - 0.6], nice=False),
        axis=alt.Axis(
            values=list(range(len(levels))),
            labelExpr=f"{[str(level) for level in levels]}[datum.value]",
            grid=False,
        ),
    )


def _height(field: str, unit: str) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        title=unit,
        scale=alt.Scale(zero=True),
        axis=alt.Axis(labelExpr=PARTED, tickCount=6),
    )


def _group(cell: Cell) -> str:
    return cell.workload if cell.setting == "default" else f"{cell.workload}, {cell.setting}"


def _colour(systems: Sequence[str]) -> alt.Color:
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(systems))]
    return alt.Color("system:N", title=None, scale=alt.Scale(domain=list(systems), range=colours))


def _shape(systems: Sequence[str]) -> alt.Shape:
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(systems))]
    return alt.Shape("system:N", title=None, scale=alt.Scale(domain=list(systems), range=shapes))


def _describe(title: str, unit: str, rows: Sequence[dict[str, Any]]) -> str:
    values = "; ".join(
        f"{row['group']}, {row['threads']} threads, {row['system']}: {row['value']:.4g}"
        for row in rows
    )
    return f"{title}, {unit}; bars are 95 % intervals over blocks. {values}."
