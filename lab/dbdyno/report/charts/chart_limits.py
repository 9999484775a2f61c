"""Latency over the rate at which requests fell due, with the limit and where each system meets it.

One point is one trial; a faint one was not sustained, so its latency is a matter of how long the
window was. The axis of latency is logarithmic, as the limit is read between points by logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.rate_limit import RateSearch
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.charts.base import WIDTH, Spec, arranged, colour, in_words, panel, shape, shown
from dbdyno.report.charts.looks import INK, PARTED, SHADE
from dbdyno.report.numbers import NONE, number
from dbdyno.report.parts import Figure
from dbdyno.report.rates import title as title_of

SUSTAINED: Final = "datum.sustained"
DECADES: Final = tuple(step * 10**power for power in range(-2, 6) for step in (1, 2, 5))
"""Where the axis of latency has ticks, in ms, as far as they are in view."""


def limits(searches: Sequence[RateSearch], systems: Sequence[str]) -> Figure | None:
    """A panel for each search; None without a point."""
    drawn = [(search, list(_points(search))) for search in searches]
    drawn = [(search, rows) for search, rows in drawn if rows]
    if not drawn:
        return None
    width, height = (WIDTH, 320) if len(drawn) == 1 else (WIDTH // 2 - 40, 240)
    panels = [
        panel(
            title_of(search),
            [*rows, *_found(search)],
            _layers(search, systems),
            width,
            height,
        )
        for search, rows in drawn
    ]
    title = say("Latency over rate, and the limit")
    unit = say("highest sustained rate within the limit")
    told = [
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
        "A point is a trial; a faint one was not sustained. The dashed line is the limit; the "
        "upright line of a system is its highest rate within it, shaded by its 95 % interval."
    )
    return Figure("limits", title, in_words(title, unit, told), arranged(panels, 2), note)


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
    """Where each system meets the limit, and the limit itself."""
    for limit in search.limits:
        if limit.rate_per_s is not None:
            yield {
                "system": limit.system,
                "at": limit.rate_per_s,
                "low": limit.low,
                "high": limit.high,
            }
    yield {"limit": search.limit_ms}


def _layers(search: RateSearch, systems: Sequence[str]) -> list[Spec]:
    x: Spec = {
        "type": "quantitative",
        "title": say("events due per second"),
        "scale": {"zero": False, "padding": 12},
        "axis": {"labelExpr": PARTED, "tickCount": 5},
    }
    y: Spec = {
        "field": "latency",
        "type": "quantitative",
        "title": say("{metric} latency, ms", metric=BY_NAME[search.metric].label),
        "scale": {"type": "log", "padding": 12},
        "axis": {"labelExpr": PARTED, "values": list(DECADES)},
    }
    return [
        *_where_met({**x, "field": "at"}, colour(systems)),
        *_limit({**y, "field": "limit"}),
        _trials({**x, "field": "rate"}, y, systems, y["title"]),
    ]


def _where_met(x: Spec, colours: Spec) -> list[Spec]:
    return [
        {
            "mark": {"type": "rect", **SHADE},
            "transform": [{"filter": "isValid(datum.at) && isValid(datum.low)"}],
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colours},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "transform": [{"filter": "isValid(datum.at)"}],
            "encoding": {"x": x, "color": colours},
        },
    ]


def _limit(y: Spec) -> list[Spec]:
    rule = {"type": "rule", "strokeDash": [5, 4], "color": INK}
    only = [{"filter": "isValid(datum.limit)"}]
    return [{"mark": rule, "transform": only, "encoding": {"y": y}}]


def _trials(x: Spec, y: Spec, systems: Sequence[str], latency: Text) -> Spec:
    faint = {"condition": {"test": SUSTAINED, "value": 1}, "value": 0.3}
    return {
        "mark": {"type": "point", "filled": False, "size": 40, "strokeWidth": 1.5},
        "transform": [{"filter": "isValid(datum.rate)"}],
        "encoding": {
            "x": x,
            "y": y,
            "opacity": faint,
            "color": colour(systems),
            "shape": shape(systems),
            "tooltip": shown(
                ("system", say("system")),
                ("block", say("block")),
                ("rate", say("events due per second")),
                ("latency", latency),
            ),
        },
    }
