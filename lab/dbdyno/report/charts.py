"""The charts of a report: which there are, and the looks they share.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; systems differ in
shape too, so that a print in grey still works. Axes begin at zero: a cut axis makes 2 % look like
half. Specifications carry their data; drawing them is `drawing.py`'s work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from dbdyno.judge import Judgement
from dbdyno.measurement import Measurement
from dbdyno.metric import BY_NAME, PRIMARY
from dbdyno.plan import Plan
from dbdyno.report.chart_levels import over_threads
from dbdyno.report.chart_seconds import per_second
from dbdyno.report.parts import Figure
from dbdyno.report.trials import attempts, cells_of, systems_of

GREY: Final = "#888888"
INK: Final = "#222222"
TEXT: Final = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
LOOKS: Final[dict[str, Any]] = {
    "font": "Helvetica, Arial, sans-serif",
    "background": "white",
    "padding": 8,
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        **TEXT,
        "gridColor": "#e4e4e4",
        "domainColor": GREY,
        "tickColor": GREY,
        "labelColor": INK,
        "titleColor": INK,
    },
    "legend": {
        **TEXT,
        "orient": "bottom",
        "labelLimit": 400,
        "columns": 6,
        "columnPadding": 24,
        "symbolOpacity": 1,
    },
    "header": {"labelFontSize": 12, "labelLimit": 400, "labelFontWeight": "bold"},
}
"""Vega-Lite configuration of every chart; fonts are the reader's own."""


def figures(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement
) -> tuple[Figure, ...]:
    """All charts for which there is something to draw, throughput first."""
    cells = cells_of(plan, measurements)
    systems = systems_of(plan, measurements)
    made = [
        over_threads("tps-by-threads", "Throughput", PRIMARY, cells, systems, judgement),
        over_threads(
            "p95-by-threads",
            "95th percentile latency",
            BY_NAME["latency_ms_p95"],
            cells,
            systems,
            judgement,
        ),
    ]
    every = attempts(measurements, judgement)
    for number, workload in enumerate(dict.fromkeys(cell.workload for cell in cells), start=1):
        made.append(per_second(f"tps-per-second-{number}", workload, cells, systems, every))
    return tuple(_with_looks(figure) for figure in made if figure is not None)


def _with_looks(figure: Figure) -> Figure:
    spec = {**figure.spec, "config": LOOKS}
    return replace(figure, spec=spec)
