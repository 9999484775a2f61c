"""Latency over throughput, and latency over the rate at which requests fell due.

Two systems at the same number of connections have different throughput, so their latencies alone
cannot be compared; `latency_throughput` shows both, a point for each load level, joined by rising
load. Below and to the right is better. `limits` shows an open loop: a point for each trial, the
latency limit, and each system's rate at the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.rate_limit import RateSearch
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.report.charts import vega
from dbdyno.report.charts.vega import Spec
from dbdyno.report.numbers import NONE, number
from dbdyno.report.numbers import title as title_of
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Ladder
from dbdyno.report.tell.measured import load_words, metric_label

LEVELS_MIN: Final = 2
"""One point is no curve."""
CANDIDATES: Final = ("latency_ms_p99", "latency_ms_p95", "latency_ms_p50")
SYSTEMS_LABELLED_MAX: Final = 2
"""With more systems only the baseline's points get their load written beside them."""


def latency_throughput(
    ladders: Sequence[Ladder], systems: Sequence[str], judgement: Judgement
) -> Figure | None:
    """Highest percentile of all points over throughput; None without a ladder."""
    metric = _common(ladders, judgement)
    if metric is None:
        return None
    panels = [(ladder, _rows(ladder, systems, judgement, metric)) for ladder in ladders]
    drawn = [(ladder, rows) for ladder, rows in panels if len({r["step"] for r in rows}) > 1]
    if not drawn:
        return None
    across = say("transactions per second")
    up = say("{metric} latency, ms", metric=metric_label(metric))
    layers = _curve_layers(systems, across, up)
    spec = vega.equal_panels([(ladder.title, rows, layers) for ladder, rows in drawn], 320)
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
        "A line joins the load levels of a system. The number beside a point is the load level. "
        "Points farther right have more throughput, lower points have less latency."
    )
    return vega.figure("latency-throughput", title, up, points, spec, note)


def _common(ladders: Sequence[Ladder], judgement: Judgement) -> Metric | None:
    """Highest percentile of every cell with a throughput on these ladders."""
    cells = {cell for ladder in ladders if len(ladder.cells) >= LEVELS_MIN for cell in ladder.cells}
    measured = {
        (v.cell, v.system)
        for v in judgement.values
        if v.metric == PRIMARY.name and v.value is not None and v.cell in cells
    }
    for percentile in CANDIDATES:
        known = {(v.cell, v.system) for v in judgement.values if v.metric == percentile and v.value}
        if measured and measured <= known:
            return BY_NAME[percentile]
    return None


def _rows(
    ladder: Ladder, systems: Sequence[str], judgement: Judgement, metric: Metric
) -> list[Spec]:
    values = {
        (v.cell, v.system, v.metric): v.value
        for v in judgement.values
        if v.metric in (PRIMARY.name, metric.name)
    }
    return [
        {
            "system": system,
            "step": step,
            "load": ladder.levels[step],
            "level": load_words(cell),
            "tps": tps,
            "latency": latency,
        }
        for system in systems
        for step, cell in enumerate(ladder.cells)
        if (tps := values.get((cell, system, PRIMARY.name))) is not None
        and (latency := values.get((cell, system, metric.name))) is not None
    ]


def _curve_layers(systems: Sequence[str], across: Text, up: Text) -> list[Spec]:
    same = {
        "x": vega.from_zero("tps", across, ticks=4),
        "y": vega.from_zero("latency", up),
        "color": vega.colour(systems),
    }
    labelled = systems if len(systems) <= SYSTEMS_LABELLED_MAX else systems[:1]
    tooltip = vega.load_tooltip(("tps", across), ("latency", up))
    return [
        vega.layer("line", {**same, "order": vega.quantitative("step")}, **vega.LINE),
        vega.layer(
            "point", {**same, "shape": vega.shape(systems), "tooltip": tooltip}, **vega.POINT
        ),
        *(_labels(same, system, above=place == 0) for place, system in enumerate(labelled)),
    ]


def _labels(same: Spec, system: str, *, above: bool) -> Spec:
    """The load beside the points of a system; of two systems, one's above and the other's below."""
    return vega.layer(
        "text",
        {**same, "text": vega.nominal("load")},
        where={"field": "system", "equal": system},
        dx=6,
        dy=-8 if above else 11,
        align="left",
        fontSize=11,
    )


# Latency over rate. The latency of a rate that was not sustained grows with the window, so its
# point is faint. Latency is logarithmic, as is the reading of the limit between two points.

DECADES: Final = tuple(step * 10**power for power in range(-2, 6) for step in (1, 2, 5))
"""Where the axis of latency has ticks, in ms, as far as they are in view."""


def limits(searches: Sequence[RateSearch], systems: Sequence[str]) -> Figure | None:
    """A panel for each search; None without points."""
    drawn = [(search, rows) for search in searches if (rows := list(_points(search)))]
    if not drawn:
        return None
    panels = [
        (title_of(search), [*rows, *_found(search)], _limit_layers(search, systems))
        for search, rows in drawn
    ]
    title = say("Latency over rate, and the limit")
    unit = say("highest sustained rate within the limit")
    points = [
        say(
            "{place}, {system}: {rate}",
            place=title_of(search),
            system=limit.system,
            rate=NONE if limit.rate_per_s is None else name(f"{number(limit.rate_per_s)}/s"),
        )
        for search, _ in drawn
        for limit in search.limits
    ]
    note = say(
        "Each point is a trial. A faint point is a trial in which the server did not keep up with "
        "the rate. The dashed line is the latency limit. Each vertical line is the highest rate at "
        "which a system stayed within the limit, with its 95 % interval shaded."
    )
    return vega.figure("limits", title, unit, points, vega.equal_panels(panels, 320), note)


def _points(search: RateSearch) -> Iterator[Spec]:
    for limit in search.limits:
        for block in limit.by_block:
            for point in block.points:
                if point.latency_ms is not None and point.latency_ms > 0:
                    yield {
                        "system": limit.system,
                        "block": block.block + 1,
                        "rate": point.rate_per_s,
                        "latency": point.latency_ms,
                        "sustained": point.sustained,
                    }


def _found(search: RateSearch) -> Iterator[Spec]:
    """Each system's rate at the limit, and the limit itself."""
    for limit in search.limits:
        if limit.rate_per_s is not None:
            yield {
                "system": limit.system,
                "at": limit.rate_per_s,
                "low": limit.low,
                "high": limit.high,
            }
    yield {"limit": search.limit_ms}


def _limit_layers(search: RateSearch, systems: Sequence[str]) -> list[Spec]:
    due = say("transactions due per second")
    up = say("{metric} latency, ms", metric=metric_label(BY_NAME[search.metric]))

    def x(field: str) -> Spec:
        axis = {"labelExpr": vega.PARTED, "tickCount": 5}
        return vega.quantitative(field, title=due, scale={"zero": False, "padding": 12}, axis=axis)

    def y(field: str) -> Spec:
        axis = {"labelExpr": vega.PARTED, "values": list(DECADES)}
        return vega.quantitative(field, title=up, scale={"type": "log", "padding": 12}, axis=axis)

    colours = vega.colour(systems)
    tooltip = vega.tooltip(
        ("system", say("system")), ("block", say("block")), ("rate", due), ("latency", up)
    )
    trial = {
        "x": x("rate"),
        "y": y("latency"),
        "opacity": {"condition": {"test": "datum.sustained", "value": 1}, "value": 0.3},
        "color": colours,
        "shape": vega.shape(systems),
        "tooltip": tooltip,
    }
    hollow = {"filled": False, "size": 40, "strokeWidth": 1.5}
    return [
        vega.layer(
            "rect",
            {**vega.span("x", x("low")), "color": colours},
            where="isValid(datum.at) && isValid(datum.low)",
            **vega.SHADE,
        ),
        vega.layer(
            "rule", {"x": x("at"), "color": colours}, where="isValid(datum.at)", strokeWidth=1.5
        ),
        vega.layer(
            "rule",
            {"y": y("limit")},
            where="isValid(datum.limit)",
            strokeDash=[5, 4],
            color=vega.INK,
        ),
        vega.layer("point", trial, where="isValid(datum.rate)", **hollow),
    ]
