"""What latency a system pays for its throughput: one point a load level, joined by rising load.

Two systems at one number of connections have different throughput, so their latencies alone cannot
be compared; this curve puts both on one picture. Below and to the right is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, say
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.report.charts.base import (
    WIDTH,
    Spec,
    arranged,
    colour,
    from_zero,
    in_words,
    panel,
    shape,
    shown,
    where,
)
from dbdyno.report.ladders import Ladder, level_words
from dbdyno.report.numbers import number
from dbdyno.report.parts import Figure

LEVELS_MIN: Final = 2
"""One point is no curve."""
CANDIDATES: Final = ("latency_ms_p99", "latency_ms_p95", "latency_ms_p50")
SYSTEMS_LABELLED_MAX: Final = 2
"""With more systems only the baseline's points get their load written beside them."""


def latency_throughput(
    ladders: Sequence[Ladder], systems: Sequence[str], judgement: Judgement
) -> Figure | None:
    """The highest percentile that all points have, over throughput; None without a ladder."""
    metric = _common(ladders, judgement)
    if metric is None:
        return None
    drawn = [(ladder, _rows(ladder, systems, judgement, metric)) for ladder in ladders]
    drawn = [(ladder, rows) for ladder, rows in drawn if len({r["step"] for r in rows}) > 1]
    if not drawn:
        return None
    width, height = (WIDTH, 320) if len(drawn) == 1 else (WIDTH // 2 - 40, 240)
    across = say("transactions per second")
    up = say("{metric} latency, ms", metric=metric.label)
    panels = [
        panel(ladder.title, rows, _layers(systems, across, up), width, height)
        for ladder, rows in drawn
    ]
    title = say("Latency over throughput")
    points = [
        say(
            "{ladder}, {level}, {system}: {tps}/s at {latency} ms",
            ladder=ladder.title,
            level=row["level"],
            system=row["system"],
            tps=number(row["tps"]),
            latency=number(row["latency"]),
        )
        for ladder, rows in drawn
        for row in rows
    ]
    note = say(
        "A line joins a system's load levels by rising load; numbers beside points are the load. "
        "To the right is more throughput, below is less latency."
    )
    return Figure(
        "latency-throughput", title, in_words(title, up, points), arranged(panels, 2), note
    )


def _common(ladders: Sequence[Ladder], judgement: Judgement) -> Metric | None:
    """The highest percentile that every cell with a throughput has on these ladders."""
    cells = {cell for ladder in ladders if len(ladder.cells) >= LEVELS_MIN for cell in ladder.cells}
    measured = {
        (v.cell, v.system)
        for v in judgement.values
        if v.metric == PRIMARY.name and v.value is not None and v.cell in cells
    }
    for name in CANDIDATES:
        known = {(v.cell, v.system) for v in judgement.values if v.metric == name and v.value}
        if measured and measured <= known:
            return BY_NAME[name]
    return None


def _rows(
    ladder: Ladder, systems: Sequence[str], judgement: Judgement, metric: Metric
) -> list[Spec]:
    values = {
        (v.cell, v.system, v.metric): v.value
        for v in judgement.values
        if v.metric in (PRIMARY.name, metric.name)
    }
    rows: list[Spec] = []
    for system in systems:
        made = [
            {
                "system": system,
                "step": step,
                "load": ladder.levels[step],
                "level": level_words(cell),
                "tps": tps,
                "latency": latency,
            }
            for step, cell in enumerate(ladder.cells)
            if (tps := values.get((cell, system, PRIMARY.name))) is not None
            and (latency := values.get((cell, system, metric.name))) is not None
        ]
        rows += made
    return rows


def _layers(systems: Sequence[str], across: Text, up: Text) -> list[Spec]:
    same = {
        "x": from_zero("tps", across, ticks=4),
        "y": from_zero("latency", up),
        "color": colour(systems),
    }
    labelled = systems if len(systems) <= SYSTEMS_LABELLED_MAX else systems[:1]
    return [
        {
            "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.55},
            "encoding": {**same, "order": {"field": "step", "type": "quantitative"}},
        },
        {
            "mark": {"type": "point", "size": 60, "filled": True, "opacity": 1},
            "encoding": {
                **same,
                "shape": shape(systems),
                "tooltip": shown(*where(), ("tps", across), ("latency", up)),
            },
        },
        *(_labels(same, system, above=place == 0) for place, system in enumerate(labelled)),
    ]


def _labels(same: Spec, system: str, *, above: bool) -> Spec:
    """The load beside the points of a system; of two systems, one's above and the other's below."""
    return {
        "mark": {
            "type": "text",
            "dx": 6,
            "dy": -8 if above else 11,
            "align": "left",
            "fontSize": 11,
        },
        "transform": [{"filter": {"field": "system", "equal": system}}],
        "encoding": {**same, "text": {"field": "load", "type": "nominal"}},
    }
