"""Metrics over the load levels: a line for each system, with the interval of its blocks.

A single level has bars with their values.

Throughput has a panel for each ladder; latency has a row of panels, by percentile, since p99 on the
same axis would flatten p50. A fitted scalability law is a dashed line in the shaded band of its
interval; the points stay, to show the quality of the fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from dbdyno.judge.beside.scalability import Scalability
from dbdyno.judge.estimate import SystemValue
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, name, phrase, say
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.plan.known import Fact
from dbdyno.report.charts import vega
from dbdyno.report.charts.vega import Spec
from dbdyno.report.numbers import number
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Ladder
from dbdyno.report.tell.measured import load_words, metric_label
from dbdyno.report.tell.terms import Sentence, fitting

PERCENTILES: Final = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
IS_FIT: Final = "datum.fit"
IS_POINT: Final = "!datum.fit"
HAS_INTERVAL: Final = f"isValid(datum.low) && isValid(datum.high) && {IS_POINT}"
BAR: Final[Spec] = {"opacity": 0.75, "width": {"band": 0.5}}
NOTES: Final = (
    Sentence(
        phrase(
            "A thin line is the 95 % interval of one system. Verdicts compare systems within each "
            "block (repetition), so lines may overlap although one system is faster."
        ),
        Fact.HERE,
    ),
    Sentence(phrase("A thin line is the 95 % interval of one system."), Fact.ELSEWHERE),
)
NOT_DRAWN: Final = (
    Sentence(
        phrase("A percentile is not drawn if fewer than 100 requests were slower."), Fact.HERE
    ),
    Sentence(phrase("A percentile that was not printed is not drawn."), Fact.ELSEWHERE),
)


def throughput(
    ladders: Sequence[Ladder],
    systems: Sequence[str],
    judgement: Judgement,
) -> Figure | None:
    """Transactions per second over load, a panel for each ladder; None without values."""
    drawn = [
        (ladder, rows) for ladder in ladders if (rows := _rows(ladder, systems, judgement, PRIMARY))
    ]
    if not drawn:
        return None
    unit = say("transactions per second")
    fits = {ladder: fit_rows(ladder, systems, judgement.scalability) for ladder, _ in drawn}
    law = _fit_layers(systems, unit)
    panels = [
        (
            ladder.title,
            [*rows, *fits[ladder]],
            [*(law if fits[ladder] else []), *_layers(ladder, systems, unit)],
        )
        for ladder, rows in drawn
    ]
    title = say("Throughput over load")
    points = _points([row for _, rows in drawn for row in rows])
    note: Text = fitting(NOTES, judgement.known)
    if any(fits.values()):
        fit = say(
            "Dashed lines are the fitted scalability curves, shaded bands their 95 % intervals."
        )
        note = say("{note} {fit}", note=note, fit=fit)
    return vega.figure("throughput", title, unit, points, vega.equal_panels(panels, 300), note)


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
    width = vega.WIDTH // len(metrics) - 50
    panels = [
        vega.panel(
            say("{ladder}: {metric}", ladder=ladder.title, metric=metric_label(metric))
            if len(rows_of) > 1
            else metric_label(metric),
            table[ladder, metric.name],
            _layers(ladder, systems, unit),
            width,
            200,
        )
        for ladder in rows_of
        for metric in metrics
    ]
    title = say("Latency percentiles over load")
    points = _points([row for ladder in rows_of for m in metrics for row in table[ladder, m.name]])
    note = fitting(NOT_DRAWN, judgement.known)
    spec = vega.side_by_side(panels, columns=len(metrics))
    return vega.figure("latency", title, unit, points, spec, note)


def _rows(
    ladder: Ladder, systems: Sequence[str], judgement: Judgement, metric: Metric
) -> list[Spec]:
    values = {(v.cell, v.system): v for v in judgement.values if v.metric == metric.name}
    return [
        _row(ladder, systems, value, metric)
        for system in systems
        for cell in ladder.cells
        if (value := values.get((cell, system))) is not None and value.value is not None
    ]


def _row(ladder: Ladder, systems: Sequence[str], value: SystemValue, metric: Metric) -> Spec:
    place = ladder.place(value.cell) or 0
    return {
        "place": round(place + vega.offset(systems, value.system), 3),
        "level": load_words(value.cell),
        "system": value.system,
        "metric": metric_label(metric),
        "ladder": ladder.title,
        "value": value.value,
        "low": value.low,
        "high": value.high,
        "words": number(value.value, metric.decimals),
        "top": value.value if value.high is None else value.high,
    }


def _layers(ladder: Ladder, systems: Sequence[str], unit: Text) -> list[Spec]:
    is_single = len(ladder.cells) == 1
    beside = vega.ordinal("system", systems, None, labels=False)
    same = {"x": beside if is_single else vega.load_axis(ladder), "color": vega.colour(systems)}
    value, low, high = (vega.from_zero(field, unit) for field in ("value", "low", "high"))
    ends = {"thickness": 1.5, "size": 9, "orient": "horizontal", "opacity": 1}
    lines = {**same, "color": {"value": vega.INK}} if is_single else same
    tooltip = vega.load_tooltip(
        ("value", unit), ("low", say("interval from")), ("high", say("interval to"))
    )
    intervals = [
        vega.layer("rule", {**lines, **vega.span("y", low)}, where=HAS_INTERVAL, strokeWidth=1.5),
        vega.layer("tick", {**lines, "y": low}, where=HAS_INTERVAL, **ends),
        vega.layer("tick", {**lines, "y": high}, where=HAS_INTERVAL, **ends),
    ]
    if is_single:
        words = {"x": beside, "y": vega.from_zero("top", unit), "text": vega.nominal("words")}
        return [
            vega.layer("bar", {**same, "y": value, "tooltip": tooltip}, **BAR),
            *intervals,
            vega.layer("text", words, dy=-8, fontSize=12, color=vega.INK),
        ]
    return [
        vega.layer("line", {**same, "y": value}, where=IS_POINT, **vega.LINE),
        *intervals,
        vega.layer(
            "point",
            {**same, "y": value, "shape": vega.shape(systems), "tooltip": tooltip},
            where=IS_POINT,
            **vega.POINT,
        ),
    ]


def _points(rows: Sequence[Spec]) -> list[Text]:
    several = len({row["metric"] for row in rows}) > 1
    return [
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


def fit_rows(ladder: Ladder, systems: Sequence[str], laws: Iterable[Scalability]) -> list[Spec]:
    """The points of the fits on this ladder, each at its place between the levels."""
    if ladder.is_open:
        return []
    return [
        row
        for law in laws
        if (law.workload, law.setting) == (ladder.workload, ladder.setting)
        and law.system in systems
        for row in _fit_rows(ladder, law)
    ]


def _fit_rows(ladder: Ladder, fitted: Scalability) -> Iterator[Spec]:
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


def _fit_layers(systems: Sequence[str], unit: Text) -> list[Spec]:
    """Band and line of the law, in the system's colour."""
    same = {"x": vega.quantitative("place"), "color": vega.colour(systems)}
    band = {**same, "y": vega.from_zero("low", unit), "y2": {"field": "high"}}
    line = {**same, "y": vega.from_zero("value", unit)}
    dashed = {"strokeWidth": 1, "strokeDash": [4, 3], "opacity": 0.8}
    return [
        vega.layer("area", band, where=IS_FIT, opacity=0.14),
        vega.layer("line", line, where=IS_FIT, **dashed),
    ]
