"""Throughput second by second of every trial, as small multiples.

An average run hides what one run did: a stall, a drift, a warm-up that had not ended. So every
trial has its own line, those that do not count included, and the warm-up is drawn and shaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import altair as alt

from dbdyno.measurement import Cell, Phase
from dbdyno.report.chart_levels import PARTED, WIDTH
from dbdyno.report.parts import Figure
from dbdyno.report.trials import Attempt, State

INTERVAL_S_MIN: Final = 0.5
"""A shorter piece at the end of a window gives a rate by chance; it is not drawn."""
NOTE: Final = "A line is a trial; the shaded seconds are the warm-up, which does not count."
COUNTS: Final = "counts"
DOES_NOT: Final = "does not count"
PANEL_WIDTH_MIN: Final = 120
PANEL_GAP: Final = 30


def per_second(
    name: str,
    workload: str,
    cells: Sequence[Cell],
    systems: Sequence[str],
    attempts: Iterable[Attempt],
) -> Figure | None:
    """The chart of one workload: a row a cell, a column a system, a line a block; None if empty."""
    made = [attempt for attempt in attempts if attempt.cell.workload == workload]
    rows = [row for index, attempt in enumerate(made) for row in _rows(index, attempt)]
    if not rows:
        return None
    shown = [system for system in systems if any(row["system"] == system for row in rows)]
    present = [cell for cell in cells if any(attempt.cell == cell for attempt in made)]
    drawn = [cell for cell in present if any(row["cell"] == cell.key for row in rows)]
    title = f"Throughput of every trial, second by second: {workload}"
    description = (
        f"{title}. One line for each block, a row for each load level, a column for each system; "
        f"the warm-up is shaded. Trials drawn: {len({row['trial'] for row in rows})}."
    )
    return Figure(name, title, description, _spec(drawn, shown, rows), NOTE)


def _rows(index: int, attempt: Attempt) -> Iterator[dict[str, Any]]:
    for interval in attempt.measurement.intervals:
        length_s = interval.end_s - interval.start_s
        if interval.phase is Phase.DRAIN or length_s < INTERVAL_S_MIN:
            continue
        yield {
            "cell": attempt.cell.key,
            "system": attempt.system,
            "block": attempt.measurement.trial.block + 1,
            "trial": str(index),
            "state": COUNTS if attempt.state is State.SOUND else DOES_NOT,
            "phase": interval.phase.value,
            "start": round(interval.start_s, 2),
            "end": round(interval.end_s, 2),
            "tps": float(f"{interval.events / length_s:.4g}"),
        }


def _spec(
    cells: Sequence[Cell], systems: Sequence[str], rows: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Rows of panels: one throughput axis within a row, so that its systems can be compared."""
    panels = [
        _row(
            cell,
            systems,
            [row for row in rows if row["cell"] == cell.key],
            first=cell is cells[0],
            last=cell is cells[-1],
        )
        for cell in cells
    ]
    spec: dict[str, Any] = alt.vconcat(*panels, spacing=12).to_dict()
    return spec


def _row(
    cell: Cell, systems: Sequence[str], rows: list[dict[str, Any]], *, first: bool, last: bool
) -> alt.FacetChart:
    width = max(PANEL_WIDTH_MIN, (WIDTH - PANEL_GAP * (len(systems) - 1)) // len(systems))
    level = cell.title.removeprefix(f"{cell.workload}, ")
    panels: alt.FacetChart = (
        alt.layer(_shade(), _lines(level, last))
        .properties(width=width, height=120)
        .facet(
            column=alt.Column(
                "system:N", sort=list(systems), title=None, header=alt.Header(labels=first)
            ),
            data=alt.InlineData(values=rows),
            spacing=16,
        )
    )
    return panels


def _shade() -> alt.Chart:
    shade: alt.Chart = (
        alt.Chart()
        .transform_filter(f"datum.phase === '{Phase.WARMUP.value}'")
        .mark_rect(color="#000000", opacity=0.07)
        .encode(x=alt.X("min(start):Q"), x2="max(end):Q")
    )
    return shade


def _lines(level: str, last: bool) -> alt.Chart:
    seconds = "seconds since the load began" if last else None
    lines: alt.Chart = (
        alt.Chart()
        .mark_line(strokeWidth=1.2, opacity=0.85)
        .encode(
            x=alt.X("end:Q", title=seconds, scale=alt.Scale(nice=False, zero=True)),
            y=alt.Y(
                "tps:Q",
                title=["TPS", level],
                scale=alt.Scale(zero=True),
                axis=alt.Axis(labelExpr=PARTED, tickCount=4),
            ),
            detail="trial:N",
            color=alt.Color(
                "block:O",
                title="block",
                scale=alt.Scale(scheme=alt.SchemeParams(name="viridis", extent=[0, 0.88])),
            ),
            strokeDash=alt.StrokeDash(
                "state:N",
                title="trial",
                scale=alt.Scale(domain=[COUNTS, DOES_NOT], range=[[1, 0], [4, 3]]),
            ),
        )
    )
    return lines
