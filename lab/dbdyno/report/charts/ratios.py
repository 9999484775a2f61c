"""Forest plot: ratios against the baseline with their intervals, a line for each cell.

The shaded band is the margin: an interval inside it says equivalent, an interval beyond it says
better or worse by more than matters, an interval across its edge is undecided. Where the ratio is a
smooth curve over the threads, it is a dashed line down the cells, with its own band behind them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dbdyno.judge.beside.curve import Curve
from dbdyno.judge.beside.grid import GridSummary
from dbdyno.judge.verdict import Verdict, ladders_of
from dbdyno.language.words import Text, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.charts import vega
from dbdyno.report.charts.vega import Spec
from dbdyno.report.numbers import decided, interval
from dbdyno.report.parts import Figure
from dbdyno.report.tell.levels import level_title, levels_of
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.verdicts import change

PLOT_WIDTH: Final = 330
STEP: Final = 24
CURVE: Final = "#0072B2"
"""No verdict has this colour."""


@dataclass(frozen=True)
class Ratio:
    """A line of the plot.

    Attributes:
        low, high: the verdict's interval.
        inner: the interval of this line alone, drawn thicker; None if absent.
        words: ratio and interval in words, beside the line.
        overall: a summary of the others; drawn as a diamond, with bold words.
    """

    name: Text
    word: Text
    ratio: float
    low: float | None
    high: float | None
    inner: tuple[float, float] | None
    words: Text
    overall: bool = False


def ratios(
    verdicts: Sequence[Verdict],
    margin: float,
    summaries: Sequence[GridSummary] = (),
    curves: Sequence[Curve] = (),
) -> Figure | None:
    """A panel for each compared system and metric; None without a ratio.

    Args:
        summaries: of several cells; a workload's heads its cells, that of all cells comes last.
        curves: the ratio over the threads; drawn behind the cells.
    """
    by_place: dict[tuple[str, str, str], list[Verdict]] = {}
    for verdict in verdicts:
        place = (verdict.baseline, verdict.system, verdict.metric)
        by_place.setdefault(place, []).append(verdict)
    lines_of = {place: list(_lines(group, summaries)) for place, group in by_place.items()}
    groups = {place: lines for place, lines in lines_of.items() if lines}
    if not groups:
        return None
    lines = [line for group in groups.values() for line in group]
    ends = [end for line in lines for end in (line.low, line.high) if end is not None]
    view = view_of([line.ratio for line in lines], ends, margin)
    scale = vega.verdict_scale((line.word for line in lines), lines=True)
    colour = vega.nominal("word", title=None, scale=scale)
    panels = [
        _panel(
            system,
            metric_label(BY_NAME[metric]),
            baseline,
            group,
            [one for one in curves if (one.baseline, one.system) == (baseline, system)],
            view,
            margin,
            colour,
        )
        for (baseline, system, metric), group in groups.items()
    ]
    baselines = list(dict.fromkeys(baseline for baseline, _, _ in groups))
    title = say("Change against {baseline}, with intervals", baseline=baselines[0])
    if len(baselines) > 1:
        title = say("Changes, with intervals")
    points = [
        say("{system}, {cell}: {change}", system=system, cell=line.name, change=line.words)
        for (_, system, _), group in groups.items()
        for line in group
    ]
    shaded = say("the margin is {margin:.3g}\u00a0%", margin=margin * 100)
    note = say(
        "Thin lines are the verdicts' intervals. Thick lines are 95 % intervals of each cell by "
        "itself. Differences within the shaded band, the margin, are too small to matter."
    )
    if any(line.overall for line in lines):
        note = say("{note} {mean}", note=note, mean=say("A diamond is the mean of several cells."))
    if curves:
        smooth = say(
            "The dashed line is a smooth curve of the change over the number of threads. The blue "
            "band contains the whole curve with 95\u00a0% confidence."
        )
        note = say("{note} {smooth}", note=note, smooth=smooth)
    return vega.figure("ratios", title, shaded, points, vega.stacked(panels), note)


def of_verdict(verdict: Verdict) -> Ratio | None:
    """Line of a verdict; None without a ratio."""
    estimate = verdict.estimate
    if estimate.ratio is None or estimate.ratio <= 0:
        return None
    return Ratio(
        name=cell_title(verdict.cell),
        word=vega.look_of(verdict).words,
        ratio=estimate.ratio,
        low=verdict.low,
        high=verdict.high,
        inner=_own(verdict),
        words=decided(verdict),
    )


def _lines(verdicts: Sequence[Verdict], summaries: Sequence[GridSummary]) -> Iterator[Ratio]:
    """Lines of a comparison: each workload before its cells, then all cells."""
    levels = levels_of(verdicts, summaries)
    heads = {(one.workload, one.setting): one for one in levels.workloads}
    for place, ladder in ladders_of(verdicts).items():
        lines = [of_summary(heads[place])] if place in heads else []
        yield from (line for line in (*lines, *map(of_verdict, ladder)) if line)
    if levels.mean and (line := of_summary(levels.mean)):
        yield line


def of_summary(summary: GridSummary) -> Ratio | None:
    """Line of several cells together; None without a ratio."""
    if summary.ratio is None or summary.ratio <= 0:
        return None
    return Ratio(
        name=level_title(summary),
        word=vega.VERDICTS[summary.word, summary.material].words,
        ratio=summary.ratio,
        low=summary.low,
        high=summary.high,
        inner=None,
        words=interval(summary.ratio, summary.low, summary.high),
        overall=True,
    )


def _own(verdict: Verdict) -> tuple[float, float] | None:
    """The cell's own interval, if the verdict's is wider."""
    low, high = verdict.estimate.low, verdict.estimate.high
    if low is None or high is None or (low, high) == (verdict.low, verdict.high):
        return None
    return low, high


def _panel(
    system: str,
    metric: str,
    baseline: str,
    lines: Sequence[Ratio],
    curves: Sequence[Curve],
    view: View,
    margin: float,
    colour: Spec,
) -> Spec:
    names = [line.name for line in lines]
    ticks = view.ticks()
    x = vega.quantitative(
        "at",
        title=say("{metric}, change against {baseline}", metric=metric, baseline=baseline),
        scale={"domain": view.domain, "nice": False},
        axis={
            "values": [place for place, _ in ticks],
            "labelExpr": _labels(ticks),
            "labelOverlap": False,
        },
    )
    y = vega.nominal(
        "name",
        sort=names,
        scale={"domain": names},
        title=None,
        axis={"labelLimit": 420, "domain": False, "ticks": False, "grid": False},
    )
    return {
        "title": system,
        "data": {"values": [_row(line, view) for line in lines]},
        "width": PLOT_WIDTH,
        "height": {"step": STEP},
        "layer": [
            *_ground(view, margin),
            *_smooth(x, y, curves, view),
            *_intervals(x, y, colour),
            *_points(x, y, colour),
        ],
    }


def _labels(ticks: Sequence[tuple[float, str]]) -> str:
    """A Vega expression for the label of the tick at a value."""
    expression = "''"
    for place, words in reversed(ticks):
        expression = f"abs(datum.value - ({place:.9f})) < 1e-6 ? '{words}' : {expression}"
    return expression


def _row(line: Ratio, view: View) -> Spec:
    row: Spec = {
        "name": line.name,
        "word": line.word,
        "at": view.within(line.ratio),
        "told": line.words,
        "overall": line.overall,
    }
    if line.low is not None and line.high is not None:
        row |= {"low": view.within(line.low), "high": view.within(line.high)}
        row |= {"low_on": not view.holds(line.low), "high_on": not view.holds(line.high)}
    if line.inner is not None:
        row |= {"inner_low": view.within(line.inner[0]), "inner_high": view.within(line.inner[1])}
    return row


def _ground(view: View, margin: float) -> list[Spec]:
    """The margin's band and the line of no change."""
    ends = {"from": view.within(1 / (1 + margin)), "to": view.within(1 + margin), "none": 0}
    data = {"data": {"values": [ends]}}
    band = {"x": vega.quantitative("from"), "x2": {"field": "to"}}
    return [
        {**data, **vega.layer("rect", band, **vega.SHADE)},
        {
            **data,
            **vega.layer("rule", {"x": vega.quantitative("none")}, color=vega.INK, strokeWidth=1),
        },
    ]


def _smooth(x: Spec, y: Spec, curves: Sequence[Curve], view: View) -> list[Spec]:
    """The bands and lines of smooth curves, down the cells of their ladders."""
    rows = [
        {
            "cell": name,
            "ladder": f"{curve.workload}, {curve.setting}",
            "curve": view.within(point.ratio),
            "curve_low": view.within(point.low),
            "curve_high": view.within(point.high),
        }
        for curve in curves
        for point in curve.points
        if (name := cell_title(_cell(curve, point.threads))) in y["sort"]
    ]
    if not rows:
        return []
    same = {"y": {**y, "field": "cell"}, "detail": vega.nominal("ladder")}
    band = {**same, "x": {**x, "field": "curve_low"}, "x2": {"field": "curve_high"}}
    look = {"orient": "horizontal", "color": CURVE}
    dashed = {"strokeWidth": 1.5, "strokeDash": [4, 3], "opacity": 0.8}
    data = {"data": {"values": rows}}
    return [
        {**data, **vega.layer("area", band, opacity=0.18, **look)},
        {**data, **vega.layer("line", {**same, "x": {**x, "field": "curve"}}, **dashed, **look)},
    ]


def _cell(curve: Curve, threads: int) -> Cell:
    return Cell(workload=curve.workload, setting=curve.setting, threads=threads)


def _intervals(x: Spec, y: Spec, colour: Spec) -> list[Spec]:
    def bar(low: str, high: str, width: float) -> Spec:
        ends = {"x": {**x, "field": low}, "x2": {"field": high}}
        whole = {"y": y, **ends, "color": colour}
        return vega.layer("rule", whole, where=f"isValid(datum.{low})", strokeWidth=width)

    def arrow(side: str, angle: int) -> Spec:
        at = {"y": y, "x": {**x, "field": side}, "angle": {"value": angle}, "color": colour}
        look = {"shape": "triangle", "filled": True, "size": 50}
        return vega.layer("point", at, where=f"datum.{side}_on", **look)

    return [
        bar("low", "high", 1.5),
        bar("inner_low", "inner_high", 4),
        arrow("low", 270),
        arrow("high", 90),
    ]


def _points(x: Spec, y: Spec, colour: Spec) -> list[Spec]:
    def overall(then: object, otherwise: object) -> Spec:
        return {"condition": {"test": "datum.overall", "value": then}, "value": otherwise}

    tooltip = vega.tooltip(
        ("name", say("cell")), ("word", say("verdict")), ("told", say("change with interval"))
    )
    point = {
        "y": y,
        "x": x,
        "shape": overall("diamond", "circle"),
        "size": overall(150, 70),
        "color": colour,
        "tooltip": tooltip,
    }
    beside = {"y": y, "x": {"value": "width"}, "text": vega.nominal("told")}
    look = {"color": vega.INK, "fontSize": 12, "align": "left", "dx": 8}
    return [
        vega.layer("point", point, filled=True, opacity=1),
        vega.layer("text", beside, where="!datum.overall", **look),
        vega.layer("text", beside, where="datum.overall", fontWeight="bold", **look),
    ]


# The axis. Ratios are drawn by their logarithm, so that half and double are equally far from no
# change, and labelled as changes. An interval of three blocks may reach from a tenth to
# the tenfold, which would leave no room for the others: it ends at the edge with an arrow.

TICKS_APART: Final = 0.3
"""Least distance of two ticks, in reaches: room for their words."""
STEPS_PERCENT: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25)
LINEAR_MAX: Final = math.log(1.6)
"""Up to that ratio equal steps of the change look like equal steps."""
LOSSES_PERCENT: Final = (-10, -20, -30, -40, -50, -60, -70, -80, -90, -95, -99, -99.9)
GAINS_PERCENT: Final = (10, 20, 30, 50, 100, 200, 300, 500, 900, 1900, 4900, 9900, 99900)
MARGINS_SHOWN: Final = 2.5
"""The view reaches at least so far beyond none, in margins."""
ROOM: Final = 1.25
INTERVAL_ROOM: Final = 3.0
"""An interval is shown whole up to that multiple of the farthest ratio and the margins."""


@dataclass(frozen=True)
class View:
    """Visible part of the axis: from 1/ratio to ratio, as its logarithm."""

    reach: float

    @property
    def domain(self) -> list[float]:
        """Both ends, as logarithms."""
        return [-self.reach, self.reach]

    def within(self, ratio: float) -> float:
        """The ratio's place, at the edge if it lies outside."""
        return max(-self.reach, min(self.reach, math.log(ratio)))

    def holds(self, ratio: float) -> bool:
        """Test for a visible ratio."""
        return abs(math.log(ratio)) <= self.reach

    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels at round changes, without the middle."""
        ratios = self._linear() if self.reach <= LINEAR_MAX else self._uneven()
        return [(math.log(ratio), _label(ratio)) for ratio in ratios]

    def _linear(self) -> list[float]:
        for step in STEPS_PERCENT:
            below = int((1 - math.exp(-self.reach)) * 100 / step)
            above = int((math.exp(self.reach) - 1) * 100 / step)
            ratios = [1 + place * step / 100 for place in range(-below, above + 1)]
            if all(self._apart(before, after) for before, after in pairwise(ratios)):
                return ratios
        return self._uneven()

    def _uneven(self) -> list[float]:
        """Round changes outwards from 0 on either side, within the room."""
        below, above = (
            self._outwards([1 + percent / 100 for percent in side])
            for side in (LOSSES_PERCENT, GAINS_PERCENT)
        )
        return [*reversed(below), 1.0, *above]

    def _outwards(self, ratios: Iterable[float]) -> list[float]:
        kept = [1.0]
        for ratio in ratios:
            if self.holds(ratio) and self._apart(kept[-1], ratio):
                kept.append(ratio)
        return kept[1:]

    def _apart(self, first: float, other: float) -> bool:
        return abs(math.log(other / first)) >= TICKS_APART * self.reach


def view_of(ratios: Iterable[float], ends: Iterable[float], margin: float) -> View:
    """View of every ratio and the margin, and of near interval ends."""
    farthest = max((abs(math.log(ratio)) for ratio in ratios), default=0.0)
    needed = max(farthest, MARGINS_SHOWN * math.log1p(margin))
    widest = max((abs(math.log(end)) for end in ends), default=0.0)
    return View(max(needed, min(widest, INTERVAL_ROOM * needed)) * ROOM)


def _label(ratio: float) -> str:
    """A change in the judge's form, without a decimal of zero."""
    return "0" if ratio == 1 else change(ratio).replace(".0", "")
