"""The machine in every trial: CPU and disk over time, as small multiples.

A rate that falls while the disk is busy has another cause than one that falls while other processes
take the CPU. A wandering server CPU at a steady rate says that background work moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.language.words import Text, name, phrase, say
from dbdyno.measurement.parts import WatchSample
from dbdyno.report.charts.timelines import Line, Words, multiples
from dbdyno.report.ladders import Ladder
from dbdyno.report.parts import Figure
from dbdyno.report.rows import Attempt


@dataclass(frozen=True)
class Timeline:
    """Two series of the machine that share an axis.

    Attributes:
        name: begins the chart's name.
        title: with a place for the ladder.
        solid, dashed: what each line is and how it is read off a sample.
    """

    name: str
    title: str
    unit: Text
    solid: tuple[Text, Callable[[WatchSample], float]]
    dashed: tuple[Text, Callable[[WatchSample], float]]
    note: Text


def _others(sample: WatchSample) -> float:
    busy = sample.host_cpu_user + sample.host_cpu_system
    return max(0.0, busy - sample.server_cpu)


TIMELINES: Final = (
    Timeline(
        "cpu",
        phrase("CPU in every trial: {ladder}"),
        say("cores"),
        (say("server"), lambda sample: sample.server_cpu),
        (say("all other processes"), _others),
        say(
            "All other processes are the load generator, the lab and whatever else ran; the shaded "
            "seconds are the warm-up."
        ),
    ),
    Timeline(
        "disk",
        phrase("Disk in every trial: {ladder}"),
        name("MB/s"),
        (say("written"), lambda sample: sample.disk_written_bytes_per_s / 1e6),
        (say("read"), lambda sample: sample.disk_read_bytes_per_s / 1e6),
        say("All disks of the machine together; the shaded seconds are the warm-up."),
    ),
)


def timelines(
    number: int, ladder: Ladder, systems: Sequence[str], attempts: Iterable[Attempt]
) -> list[Figure]:
    """CPU and disk of one ladder's trials; none where nobody watched.

    Args:
        number: ends the charts' names.
    """
    made = sorted(
        (a for a in attempts if ladder.place(a.cell) is not None and a.measurement.watch),
        key=lambda a: ladder.place(a.cell) or 0,
    )
    return [_figure(line, number, ladder, systems, made) for line in TIMELINES if made]


def _figure(
    timeline: Timeline,
    number: int,
    ladder: Ladder,
    systems: Sequence[str],
    attempts: Sequence[Attempt],
) -> Figure:
    both = (timeline.solid, timeline.dashed)
    lines = [
        Line(
            cell=attempt.cell,
            system=attempt.system,
            block=attempt.measurement.trial.block + 1,
            trial=f"{place}{index}",
            kind=kind,
            points=tuple((one.at_s, read(one)) for one in attempt.measurement.watch),
        )
        for index, attempt in enumerate(attempts)
        for place, (kind, read) in zip("ab", both, strict=True)
    ]
    words = Words(
        unit=timeline.unit, kinds=(timeline.solid[0], timeline.dashed[0]), of_kinds=say("line")
    )
    warmup_s = max(attempt.measurement.warmup_s for attempt in attempts)
    title = say(timeline.title, ladder=ladder.title)
    description = say(
        "{title}, {unit}; two lines for each trial: {solid}, {dashed}. A row for each load level, "
        "a column for each system. Trials drawn: {trials}.",
        title=title,
        unit=timeline.unit,
        solid=timeline.solid[0],
        dashed=timeline.dashed[0],
        trials=len(attempts),
    )
    spec = multiples(lines, [], systems, warmup_s, words)
    return Figure(f"{timeline.name}-{number}", title, description, spec, timeline.note)
