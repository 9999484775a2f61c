"""Metrics over the load levels: a line for each system, with the interval of its blocks.

Throughput has one panel for each ladder; latency has a row of them, one for each percentile, since
p50 and p99 on one axis would leave a flat line of the first. A scalability fit is drawn as the band
in which it holds (`fitted_band`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from dbdyno.judge.beside.scalability import Scalability
from dbdyno.judge.estimate import SystemValue
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.report.charts.base import (
    WIDTH,
    Spec,
    arranged,
    aside,
    colour,
    from_zero,
    in_words,
    panel,
    places,
    shape,
    shown,
    where,
)
from dbdyno.report.numbers import number
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Ladder, level_words

PERCENTILES: Final = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
HAS_INTERVAL: Final = "isValid(datum.low) && isValid(datum.high)"


def throughput(
    ladders: Sequence[Ladder],
    systems: Sequence[str],
    judgement: Judgement,
) -> Figure | None:
    """Transactions per second over load, a panel for each ladder; None without values."""
    drawn = [(ladder, _rows(ladder, systems, judgement, PRIMARY)) for ladder in ladders]
    drawn = [(ladder, rows) for ladder, rows in drawn if rows]
    if not drawn:
        return None
    unit = say("transactions per second")
    width, height = (WIDTH, 300) if len(drawn) == 1 else (WIDTH // 2 - 40, 220)
    fits = {ladder: points(ladder, systems, judgement.scalability) for ladder, _ in drawn}
    law = layers(systems, unit)
    panels = [
        panel(
            ladder.title,
            [*rows, *fits[ladder]],
            [*(law if fits[ladder] else []), *_layers(ladder, systems, unit)],
            width,
            height,
        )
        for ladder, rows in drawn
    ]
    title = say("Throughput over load")
    told = [row for _, rows in drawn for row in rows]
    fitted = any(fits.values())
    note = say("{note} {fit}", note=_note(), fit=_fit_note()) if fitted else _note()
    return Figure(
        "throughput", title, _describe(title, unit, told), arranged(panels, columns=2), note
    )


def latency(
    ladders: Sequence[Ladder], systems: Sequence[str], judgement: Judgement
) -> Figure | None:
    """Percentiles of latency over load: a row for each ladder, a panel for each percentile."""
    metrics = [BY_NAME[name] for name in PERCENTILES]
    table = {
        (ladder, metric.name): _rows(ladder, systems, judgement, metric)
        for ladder in ladders
        for metric in metrics
    }
    metrics = [m for m in metrics if any(table[ladder, m.name] for ladder in ladders)]
    rows_of = [ladder for ladder in ladders if any(table[ladder, m.name] for m in metrics)]
    if not rows_of:
        return None
    unit = say("milliseconds")
    width = WIDTH // len(metrics) - 50
    panels = [
        panel(
            say("{ladder}: {metric}", ladder=ladder.title, metric=metric.label)
            if len(rows_of) > 1
            else name(metric.label),
            table[ladder, metric.name],
            _layers(ladder, systems, unit),
            width,
            200,
        )
        for ladder in rows_of
        for metric in metrics
    ]
    title = say("Latency percentiles over load")
    told = [row for ladder in rows_of for m in metrics for row in table[ladder, m.name]]
    return Figure(
        "latency",
        title,
        _describe(title, unit, told),
        arranged(panels, columns=len(metrics)),
        say("{note} {missing}", note=_note(), missing=_missing_note()),
    )


def _rows(
    ladder: Ladder, systems: Sequence[str], judgement: Judgement, metric: Metric
) -> list[Spec]:
    found = {(v.cell, v.system): v for v in judgement.values if v.metric == metric.name}
    return [
        _row(ladder, systems, value, metric)
        for system in systems
        for cell in ladder.cells
        if (value := found.get((cell, system))) is not None and value.value is not None
    ]


def _row(ladder: Ladder, systems: Sequence[str], value: SystemValue, metric: Metric) -> Spec:
    place = ladder.place(value.cell) or 0
    return {
        "place": round(place + aside(systems, value.system), 3),
        "level": level_words(value.cell),
        "system": value.system,
        "metric": metric.label,
        "ladder": ladder.title,
        "value": value.value,
        "low": value.low,
        "high": value.high,
    }


def _layers(ladder: Ladder, systems: Sequence[str], unit: Text) -> list[Spec]:
    x, colours = places(ladder), colour(systems)
    known = [{"filter": f"{HAS_INTERVAL} && {IS_POINT}"}]
    ends = {"type": "tick", "thickness": 1.5, "size": 9, "orient": "horizontal", "opacity": 1}
    points = [{"filter": IS_POINT}]

    def layer(mark: Spec, transform: list[Spec], **encoding: object) -> Spec:
        return {
            "mark": mark,
            "transform": transform,
            "encoding": {"x": x, "color": colours, **encoding},
        }

    high = {"field": "high"}
    return [
        layer(
            {"type": "line", "strokeWidth": 1.5, "opacity": 0.55},
            points,
            y=from_zero("value", unit),
        ),
        layer({"type": "rule", "strokeWidth": 1.5}, known, y=from_zero("low", unit), y2=high),
        layer(ends, known, y=from_zero("low", unit)),
        layer(ends, known, y=from_zero("high", unit)),
        layer(
            {"type": "point", "size": 60, "filled": True, "opacity": 1},
            points,
            y=from_zero("value", unit),
            shape=shape(systems),
            tooltip=shown(
                *where(),
                ("value", unit),
                ("low", say("interval from")),
                ("high", say("interval to")),
            ),
        ),
    ]


def _describe(title: Text, unit: Text, rows: Sequence[Spec]) -> Text:
    several = len({row["metric"] for row in rows}) > 1
    points = [
        say(
            "{ladder}, {level}, {system}: {metric}{value}",
            ladder=row["ladder"],
            level=row["level"],
            system=row["system"],
            metric=say("{metric} ", metric=row["metric"]) if several else name(""),
            value=number(row["value"]),
        )
        for row in rows
    ]
    return in_words(title, unit, points)


def _note() -> Text:
    return say(
        "Bars are 95 % intervals of one system over its blocks. The verdict compares within "
        "blocks, so bars that overlap do not contradict it."
    )


def _fit_note() -> Text:
    return say("Dashed lines are the fitted scalability law, shaded bands their 95 % intervals.")


def _missing_note() -> Text:
    return say("A percentile with fewer than 100 requests beyond it is not drawn.")


# The fitted scalability law as layers of a throughput chart: a dashed line in its shaded band.
#
# The points stay, so that everybody sees how well the law fits them. Where the judge refuses a fit
# there is none to draw, and the report says why.


IS_FIT = "datum.fit"
IS_POINT = "!datum.fit"


def points(ladder: Ladder, systems: Sequence[str], laws: Iterable[Scalability]) -> list[Spec]:
    """The points of the fits on this ladder, each at its place between the levels."""
    if ladder.is_open:
        return []
    return [
        row
        for law in laws
        if (law.workload, law.setting) == (ladder.workload, ladder.setting)
        and law.system in systems
        for row in _points(ladder, law)
    ]


def _points(ladder: Ladder, fitted: Scalability) -> Iterator[Spec]:
    if fitted.law is None:
        return
    levels = np.log([cell.threads for cell in ladder.cells])
    for point in fitted.law.curve:
        if ladder.cells[0].threads <= point.threads <= ladder.cells[-1].threads:
            place = float(np.interp(np.log(point.threads), levels, np.arange(len(levels))))
            yield {
                "place": round(place, 3),
                "system": fitted.system,
                "fit": True,
                "value": point.per_s,
                "low": point.low,
                "high": point.high,
            }


def layers(systems: Sequence[str], unit: Text) -> list[Spec]:
    """What is drawn of the points: band and line, in the system's colour."""
    same = {"x": {"field": "place", "type": "quantitative"}, "color": colour(systems)}
    fit = [{"filter": IS_FIT}]
    return [
        {
            "mark": {"type": "area", "opacity": 0.14},
            "transform": fit,
            "encoding": {**same, "y": from_zero("low", unit), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "strokeWidth": 1, "strokeDash": [4, 3], "opacity": 0.8},
            "transform": fit,
            "encoding": {**same, "y": from_zero("value", unit)},
        },
    ]
