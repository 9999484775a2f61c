"""All verdicts at a glance: a heat map of workload × load.

Colour alone is lost on many readers, so each field has its sign and its change; the words are in
the legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import Text, say
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.settings import DEFAULT
from dbdyno.report.charts import vega
from dbdyno.report.charts.vega import Spec
from dbdyno.report.numbers import change, decided
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Ladder, ladders, level_of
from dbdyno.report.tell.measured import cell_title, metric_label

FIELD_WIDTH: Final = (74, 130)
"""Least and most; between them the fields share the width."""
LABELS_WIDTH: Final = 150
ROOM_FOR_INTERVAL: Final = 118
VERDICTS_MIN: Final = 2
"""One verdict is a sentence, no map."""


def matrix(cells: Sequence[Cell], verdicts: Sequence[Verdict]) -> Figure | None:
    """A map for each setting and comparison; None below two verdicts.

    Args:
        cells: the run's, in their order.
    """
    if len(verdicts) < VERDICTS_MIN:
        return None
    scale = vega.verdict_scale(vega.look_of(verdict).words for verdict in verdicts)
    panels = [
        _panel(part, of_arms, scale)
        for part in _parts(ladders([*cells, *(verdict.cell for verdict in verdicts)]))
        for of_arms in _by_arms(verdicts, part)
    ]
    title = say("Verdicts by workload and load")
    points = [
        say(
            "{system}, {cell}: {word}",
            system=verdict.system,
            cell=cell_title(verdict.cell),
            word=vega.look_of(verdict).words,
        )
        for verdict in verdicts
    ]
    note = say(
        "Each field is one comparison. The number is the change against the baseline. Not "
        "enough data does not mean that the systems are the same."
    )
    against = say("against {baseline}", baseline=verdicts[0].baseline)
    if len({verdict.baseline for verdict in verdicts}) > 1:
        against = say("against the baseline that each map names")
    return vega.figure("verdicts", title, against, points, vega.stacked(panels), note)


def _parts(every: Sequence[Ladder]) -> list[list[Ladder]]:
    """Closed loops, then open loops, by setting."""
    parts: dict[tuple[bool, str], list[Ladder]] = {}
    for ladder in sorted(every, key=lambda ladder: ladder.is_open):
        parts.setdefault((ladder.is_open, ladder.setting), []).append(ladder)
    return list(parts.values())


def _by_arms(verdicts: Sequence[Verdict], part: Sequence[Ladder]) -> list[list[Verdict]]:
    cells = {cell for ladder in part for cell in ladder.cells}
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.cell in cells:
            groups.setdefault((verdict.baseline, verdict.system), []).append(verdict)
    return list(groups.values())


def _levels(part: Sequence[Ladder]) -> list[Text]:
    """Every level of these ladders once, rising."""
    cells = sorted(
        (cell for ladder in part for cell in ladder.cells),
        key=lambda cell: (cell.rate_per_s or 0.0, cell.threads),
    )
    return list(dict.fromkeys(map(level_of, cells)))


def _against(verdict: Verdict) -> Text:
    return say(
        "{metric} of {system} against {baseline}",
        metric=metric_label(BY_NAME[verdict.metric]),
        system=verdict.system,
        baseline=verdict.baseline,
    )


def _panel(part: Sequence[Ladder], verdicts: Sequence[Verdict], scale: Spec) -> Spec:
    levels = _levels(part)
    workloads = [ladder.workload for ladder in part]
    least, most = FIELD_WIDTH
    width = min(most, max(least, (vega.WIDTH - LABELS_WIDTH) // len(levels)))
    x = vega.ordinal("level", levels, part[0].load_title, labelAngle=0)
    y = vega.ordinal("workload", workloads, None, labelLimit=240)
    subtitle = {} if part[0].setting == DEFAULT else {"subtitle": part[0].setting}
    return {
        "title": {"text": _against(verdicts[0]), **subtitle},
        "data": {"values": [_row(verdict) for verdict in verdicts]},
        "width": {"step": width},
        "height": {"step": 46},
        "encoding": {"x": x, "y": y},
        "layer": _layers(scale, width),
    }


def _row(verdict: Verdict) -> Spec:
    look, ratio, text = vega.look_of(verdict), verdict.estimate.ratio, decided(verdict)
    _, _, ends = text.partition(" [")
    return {
        "workload": verdict.cell.workload,
        "level": level_of(verdict.cell),
        "word": look.words,
        "sign": look.sign if ratio is None else f"{look.sign} {change(ratio)}",
        "interval": f"[{ends}" if ends else "",
        "told": text,
    }


def _layers(scale: Spec, width: int) -> list[Spec]:
    legend = {"symbolType": "square", "symbolSize": 160, "columns": 4}
    encoding = {
        "color": vega.nominal("word", title=None, scale=scale, legend=legend),
        "tooltip": vega.tooltip(
            ("workload", say("workload")),
            ("level", say("load")),
            ("word", say("verdict")),
            ("told", say("change with interval")),
        ),
    }
    fields = vega.layer("rect", encoding, stroke="#ffffff", strokeWidth=2, cornerRadius=3)
    if width < ROOM_FOR_INTERVAL:
        return [fields, _text("sign", 12, 0, "bold")]
    double, single = "datum.interval !== ''", "datum.interval === ''"
    return [
        fields,
        _text("sign", 12, -8, "bold", double),
        _text("interval", 11, 9, "normal", double),
        _text("sign", 12, 0, "bold", single),
    ]


def _text(field: str, size: int, dy: int, weight: str, where: str | None = None) -> Spec:
    look = {"color": vega.ON_VERDICT, "fontSize": size, "dy": dy, "fontWeight": weight}
    return vega.layer("text", {"text": vega.nominal(field)}, where=where, **look)
