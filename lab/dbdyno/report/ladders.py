"""Cells as ladders: one workload under one setting, its load levels rising.

Tables and charts over load show one ladder at a time. The levels of a closed loop are connections,
those of an open loop are rates, so the two never stand on one ladder even if the workload is the
same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dbdyno.language.words import PARTED, Text, name, say
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.settings import DEFAULT


@dataclass(frozen=True)
class Ladder:
    """The cells of one workload, setting and kind of loop, by rising load."""

    workload: str
    setting: str
    cells: tuple[Cell, ...]

    @property
    def is_open(self) -> bool:
        """Whether its levels are rates at which events fall due."""
        return self.cells[0].rate_per_s is not None

    @property
    def title(self) -> Text:
        """The words of a heading, without the load."""
        named = {"workload": self.workload, "setting": self.setting}
        match self.setting == DEFAULT, self.is_open:
            case True, False:
                return name(self.workload)
            case True, True:
                return say("{workload}, open loop", workload=self.workload)
            case False, True:
                return say("{workload}, {setting}, open loop", **named)
            case _:
                return say("{workload}, {setting}", **named)

    @property
    def load_title(self) -> Text:
        """What its levels are."""
        return say("events due per second") if self.is_open else say("threads (connections)")

    @property
    def levels(self) -> list[Text]:
        """The levels as they stand on an axis, one for each cell."""
        return [level_of(cell) for cell in self.cells]

    @cached_property
    def _places(self) -> dict[Cell, int]:
        return {cell: place for place, cell in enumerate(self.cells)}

    def place(self, cell: Cell) -> int | None:
        """Where the cell stands on the ladder, from 0; None if it is of another one."""
        return self._places.get(cell)


def ladders(cells: Iterable[Cell]) -> list[Ladder]:
    """The ladders of these cells, in the order in which they first appear."""
    groups: dict[tuple[str, str, bool], list[Cell]] = {}
    for cell in cells:
        key = (cell.workload, cell.setting, cell.rate_per_s is not None)
        groups.setdefault(key, []).append(cell)
    return [
        Ladder(workload, setting, tuple(sorted(dict.fromkeys(group), key=_load)))
        for (workload, setting, _), group in groups.items()
    ]


def level_of(cell: Cell) -> Text:
    """The load as it stands on an axis: connections, or events due per second."""
    return name(str(cell.threads) if cell.rate_per_s is None else _rate(cell.rate_per_s))


def level_words(cell: Cell) -> Text:
    """The load in words: "8 threads", "500/s over 8 threads"."""
    if cell.rate_per_s is not None:
        rate = _rate(cell.rate_per_s)
        return say("{rate}/s over {threads} threads", rate=rate, threads=cell.threads)
    if cell.threads == 1:
        return say("1 thread")
    return say("{threads} threads", threads=cell.threads)


def _rate(rate_per_s: float) -> str:
    return f"{rate_per_s:,.6g}".replace(",", PARTED)


def _load(cell: Cell) -> tuple[float, int]:
    return (cell.rate_per_s or 0.0, cell.threads)
