"""Noise of many cells with known truth: ln ratios of ties, for each block and cell of a grid.

A grid is settings × workloads × threads. The cells of a setting share a start of the servers in
each block. A cell's ln ratio in a block is the sum of noise of its own, of 20 % unless the name
says otherwise, and of a part that its start has. Every noise is symmetrical, so the truth is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from validation.noise import Numbers, drift

from dbdyno.measurement.measurement import Cell

CELL_SD: Final = 0.2
"""Of a cell's ln ratio from block to block, without its start."""
QUIET_SD: Final = 0.05
BAD: Final = math.log(0.7)
BAD_SHARE: Final = 0.05
"""One start in twenty is 30 % slower, on either side."""
DRIFT: Final = 5.0
"""Times the drift of `noise`: 5 % slower from one arm to the next, give or take 5 %."""

Shape = tuple[int, int]
Kind = Literal["even", "bad", "drift", "workload", "opposite"]


class Grid(NamedTuple):
    """Cells, with the place of each one's start and of its workload in that start."""

    cells: tuple[Cell, ...]
    starts: NDArray[np.intp]
    ladders: NDArray[np.intp]

    @classmethod
    def of(cls, settings: int, workloads: int, levels: int) -> Grid:
        """A full grid."""
        places = np.arange(settings * workloads * levels)
        ladders = places // levels
        starts = ladders // workloads
        cells = tuple(
            Cell(
                setting=f"setting {start}",
                workload=f"workload {ladder % workloads}",
                threads=2 ** int(place % levels),
            )
            for place, start, ladder in zip(places, starts, ladders, strict=True)
        )
        return cls(cells, starts, ladders)

    @property
    def starts_number(self) -> int:
        """Starts of the servers in a block."""
        return int(self.starts[-1]) + 1

    @property
    def ladders_number(self) -> int:
        """Workloads, each in each setting."""
        return int(self.ladders[-1]) + 1


@dataclass(frozen=True)
class GridNoise:
    """Noise of a grid's ln ratios.

    Attributes:
        words: its name in the table.
        cells: standard deviation of each cell's own noise, or how it differs between cells: degrees
            of freedom by which variances are alike, factors of the workloads, or a single cell.
        start_sd: standard deviation of the part that a start's cells share.
        kind: a part beside it that starts have.
        cell_sd: standard deviation of a typical cell's own noise.
    """

    words: str
    cells: Literal["equal", "workloads", "one"] | int = "equal"
    start_sd: float = 0.0
    kind: Kind = "even"
    cell_sd: float = CELL_SD

    def draw(
        self, random: np.random.Generator, grid: Grid, experiments: int, blocks: int
    ) -> Numbers:
        """Numbers of (experiment, block, cell)."""
        shape = (experiments, blocks)
        own = random.standard_normal((*shape, len(grid.cells)))
        shared = self.start_sd * random.standard_normal((*shape, grid.starts_number))
        if self.kind == "bad":
            is_bad = random.random((2, *shape, grid.starts_number)) < BAD_SHARE
            shared += BAD * (is_bad[1] * 1.0 - is_bad[0])
        elif self.kind == "drift":
            for start in range(grid.starts_number):
                of_both = DRIFT * drift(random, *shape)
                shared[..., start] += of_both[..., 1] - of_both[..., 0]
        scales = self._cell_sds(random, grid, experiments)[:, None, :]
        return np.asarray(
            own * scales + shared[..., grid.starts] + self._uneven(random, grid, shape)
        )

    def _cell_sds(self, random: np.random.Generator, grid: Grid, experiments: int) -> Numbers:
        cells = len(grid.cells)
        sds = np.full((experiments, cells), self.cell_sd)
        if self.cells == "workloads":
            sds *= np.array([0.5, 1, 2])[grid.ladders % 3]
        elif self.cells == "one":
            sds[np.arange(experiments), random.integers(cells, size=experiments)] *= 5
        elif self.cells != "equal":
            sds *= np.sqrt(self.cells / random.chisquare(self.cells, sds.shape))
        return np.asarray(sds)

    def _uneven(self, random: np.random.Generator, grid: Grid, shape: Shape) -> Numbers:
        """A start's part that is not the same in all of its cells."""
        if self.kind == "workload":
            by_ladder = CELL_SD * random.standard_normal((*shape, grid.ladders_number))
            return np.asarray(by_ladder[..., grid.ladders])
        if self.kind == "opposite":
            turns = grid.ladders if grid.ladders_number > 1 else np.arange(len(grid.cells))
            by_start = CELL_SD * random.standard_normal((*shape, grid.starts_number))
            return np.asarray(by_start[..., grid.starts] * np.where(turns % 2, -1, 1))
        return np.zeros((*shape, len(grid.cells)))


def _with_starts(words: str, cells: Literal["equal", "workloads", "one"] | int) -> list[GridNoise]:
    return [
        GridNoise(f"{words}, starts {start:g} %", cells, start / 100, cell_sd=sd)
        for start in (0, 5, 10)
        for sd in [CELL_SD / 2 if cells == "one" else CELL_SD]
    ]


NOISES: Final = (
    *_with_starts("equal", "equal"),
    *_with_starts("d0 = 7", 7),
    *_with_starts("d0 = 3", 3),
    *_with_starts("workloads ×½, 1, 2", "workloads"),
    *_with_starts("one cell ×5", "one"),
    GridNoise("a bad start in 20", kind="bad"),
    GridNoise("a bad start in 20, cells 5 %", kind="bad", cell_sd=QUIET_SD),
    GridNoise("drift, cells 5 %", kind="drift", cell_sd=QUIET_SD),
    GridNoise("starts by workload, 20 %", kind="workload"),
    GridNoise("starts of opposite sign, 20 %", kind="opposite"),
)
"""Every noise of a grid; d0 is by how many degrees of freedom cells' variances are alike."""
