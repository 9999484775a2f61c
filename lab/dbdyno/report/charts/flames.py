"""Sampled stacks of two systems as a differential flame graph.

A frame is a function on its caller. Its width is its cost including its callees, the mean of both
systems, so functions of a single system are seen too. Its colour is the difference of its own code
over all callers, as in the table of functions: versions of a server call a function by different
paths, which cost no more for that. Reasons are in docs/how-it-works/decisions.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from dbdyno.judge.beside.functions import Functions, costs_us
from dbdyno.judge.verdict import Word
from dbdyno.language.words import Text, say
from dbdyno.language.words import name as label
from dbdyno.measurement.parts import StackProfile
from dbdyno.report.charts import vega
from dbdyno.report.charts.vega import Spec
from dbdyno.report.numbers import number, signed
from dbdyno.report.parts import Figure
from dbdyno.report.tell.causes import SAMPLED_UNIT
from dbdyno.report.tell.measured import cell_title

Stack = tuple[tuple[str, ...], float, float]
"""Functions from the outermost to the innermost; cost on the baseline and on the system, in µs."""
DEPTH_MAX: Final = 66
"""Functions further in are drawn as part of their caller."""
FRAME_HEIGHT: Final = 16
NAME_LENGTH_MAX: Final = 200
LABEL_SIZE: Final = 10
UNNAMED: Final = "["
"""So begin `[program]` and the like, which stand for many functions."""
ROOM: Final = "scale('x', datum.end) - scale('x', datum.begin) - 6"
"""Width for a label in its frame, at any size and magnification of the chart."""
ROOM_MIN: Final = 22
SAME: Final = "#E6E6E6"


def flames(
    name: str,
    compared: Functions,
    baseline: Sequence[StackProfile],
    system: Sequence[StackProfile],
) -> Figure:
    """The graph of two systems in a cell; its words name the functions with a sure difference."""
    below, above = costs_us(baseline), costs_us(system)
    stacks: list[Stack] = [
        (tuple(stack.split(";")[:DEPTH_MAX]), below.get(stack, 0.0), above.get(stack, 0.0))
        for stack in below.keys() | above.keys()
    ]
    whole = math.fsum((before + after) / 2 for _, before, after in stacks) or 1.0
    own: defaultdict[str, float] = defaultdict(float)
    for functions, before, after in stacks:
        own[functions[-1]] += after - before
    frames = list(_frames(stacks, own, 0, 0.0, whole))
    unit = SAMPLED_UNIT[compared.sampler]
    drawn = vega.panel(
        cell_title(compared.cell),
        frames,
        _layers(compared, frames, whole, unit),
        vega.WIDTH,
        FRAME_HEIGHT * round(max((frame["top"] for frame in frames), default=1)),
    )
    points = [
        say(
            "{function}: {difference} µs",
            function=_printable(one.name),
            difference=signed(one.difference_us),
        )
        for one in compared.functions
    ]
    title = say(
        "Stacks of {system} against {baseline}", system=compared.system, baseline=compared.baseline
    )
    note = say(
        "A frame is a function; it stands on its caller. Its width is its cost with all that it "
        "calls, the mean of both systems. Orange: its own code costs more on {system} than on "
        "{baseline}; green: less. Drag to move, turn the wheel with the shift key held to "
        "magnify, double-click to see all.",
        system=compared.system,
        baseline=compared.baseline,
    )
    points = points or [say("no function surely differs")]
    return vega.figure(name, title, unit, points, drawn, note)


def _frames(
    stacks: Sequence[Stack], own: Mapping[str, float], depth: int, begin: float, whole: float
) -> Iterator[Spec]:
    """Frames at this depth and above, from left to right; without those narrower than a pixel.

    Args:
        own: difference of each function's own code, over all stacks.
    """
    deep = sorted((one for one in stacks if len(one[0]) > depth), key=lambda one: one[0][depth])
    for function, group in groupby(deep, key=lambda one: one[0][depth]):
        inside = list(group)
        before = math.fsum(of_baseline for _, of_baseline, _ in inside)
        after = math.fsum(of_system for _, _, of_system in inside)
        width = (before + after) / 2
        if width * vega.WIDTH >= whole:
            ending = [one for one in inside if len(one[0]) == depth + 1]
            of_own = own[function] if ending else 0.0
            if function.startswith(UNNAMED):
                of_own = math.fsum(of_system - of_baseline for _, of_baseline, of_system in ending)
            shown = _printable(function)
            yield {
                "name": shown,
                "begin": round(begin, 4),
                "end": round(begin + width, 4),
                "bottom": depth,
                "middle": depth + 0.5,
                "top": depth + 1,
                "own": round(of_own, 4),
                "before": number(before),
                "after": number(after),
                "change": signed(after - before),
                "own_change": signed(of_own),
            }
            yield from _frames(inside, own, depth + 1, begin, whole)
        begin += width


def _printable(function: str) -> str:
    """The beginning of the name, without control characters, which break SVG."""
    return "".join(sign if sign.isprintable() else " " for sign in function[:NAME_LENGTH_MAX])


def _layers(compared: Functions, frames: Sequence[Spec], whole: float, unit: Text) -> list[Spec]:
    rows = max((frame["top"] for frame in frames), default=1)
    most = max((abs(frame["own"]) for frame in frames), default=0) or 1
    axis = {"grid": False, "labelExpr": vega.PARTED}
    x = vega.quantitative(
        "begin", title=unit, scale={"domain": [0, whole], "nice": False}, axis=axis
    )
    y = vega.quantitative("bottom", axis=None, scale={"domain": [0, rows], "nice": False})
    less, more = (vega.VERDICTS[word, True].background for word in (Word.BETTER, Word.WORSE))
    colour = vega.quantitative(
        "own",
        title=say("difference in own code, µs"),
        scale={"domain": [-most, 0, most], "range": [less, SAME, more]},
    )
    tooltip = vega.tooltip(
        ("name", say("function")),
        ("before", label(compared.baseline)),
        ("after", label(compared.system)),
        ("change", say("difference")),
        ("own_change", say("difference in own code")),
    )
    ends = {"x": x, "x2": {"field": "end"}, "y": y, "y2": {"field": "top"}}
    zoom = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"}
    boxes = vega.layer(
        "rect",
        {**ends, "color": colour, "tooltip": tooltip},
        clip=True,
        stroke="white",
        strokeWidth=0.5,
    )
    names = vega.layer(
        "text",
        {
            "x": x,
            "y": {**y, "field": "middle"},
            "text": {"value": {"expr": f"{ROOM} < {ROOM_MIN} ? '' : datum.name"}},
        },
        clip=True,
        limit={"expr": f"max({ROOM}, 1)"},
        align="left",
        dx=3,
        fontSize=LABEL_SIZE,
        color=vega.ON_VERDICT,
    )
    return [{**boxes, "params": [{"name": "part", "select": zoom, "bind": "scales"}]}, names]
