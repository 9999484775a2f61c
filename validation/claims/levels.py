"""Claims about a run's levels: cells, workloads, all cells together, with intervals of each level.

Every row is a grid of ties, a number of blocks or a run until decided, and a noise. The samples go
through the judge as those of a run do: `estimate.estimated` for the intervals of a level,
`grid.sample_of` for the block means of a workload or of all cells. A run until decided is looked at
after every block from the third, and misses where any look does.

For each grid and number of blocks there is a row with the noise that is worst for it (`WORST`), as
`python -m validation.method_validation --every` showed by all noises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from validation.claims.claim import SLACK, Claim, Limits, Seen, mean_of, share_of
from validation.claims.grid_noise import NOISES, Grid, GridNoise
from validation.claims.verdict import MARGIN
from validation.noise import Numbers

from dbdyno.judge.beside.grid import sample_of
from dbdyno.judge.estimate import Estimated, Sample, estimated
from dbdyno.judge.interval import FAR_MARGINS, LEVEL, interval, together
from dbdyno.judge.verdict import Word, word_of
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan

GRIDS: Final = {
    1: Grid.of(1, 1, 1),
    2: Grid.of(1, 1, 2),
    6: Grid.of(1, 2, 3),
    24: Grid.of(1, 3, 8),
    48: Grid.of(2, 3, 8),
}
BLOCKS: Final = (3, 4, 5, 8, 12)
DESIGNS: Final = (
    *(DesignPlan(blocks=blocks, margin=MARGIN) for blocks in BLOCKS),
    DesignPlan(blocks=12, stop="decided", margin=MARGIN),
)
EXPERIMENTS: Final = 2000
MISSED: Final = Limits(None, 0.06)
ALONE: Final = Limits(0.94, 0.965)
CALLED: Final = Limits(None, 0.055)
CELLS, WORKLOADS, ALL = "cells", "workloads", "all"
LEVELS: Final = (CELLS, WORKLOADS, ALL)
SHOWN_LOOK: Final = 4
"""Blocks at which the widths of a run until decided are shown."""
DECIDED: Final = (Word.BETTER, Word.WORSE, Word.EQUIVALENT)
DIFFERENT: Final = (Word.BETTER, Word.WORSE)


class Look(NamedTuple):
    """A level after some blocks: each interval's miss, alone and together, its width and word."""

    missed: tuple[bool, ...]
    missed_alone: tuple[bool, ...]
    widths: tuple[float, ...]
    words: tuple[Word, ...]


@dataclass
class Tally:
    """A level over the experiments of a row.

    Attributes:
        missed: any interval at any look.
        held_alone: share of the single intervals that hold at all looks.
        widths: by look, the half widths of each experiment.
    """

    missed: list[bool] = field(default_factory=list)
    held_alone: list[float] = field(default_factory=list)
    widths: dict[int, list[tuple[float, ...]]] = field(default_factory=dict)

    def add(self, looks: dict[int, Look]) -> None:
        """Counts an experiment."""
        self.missed.append(any(any(look.missed) for look in looks.values()))
        alone = np.any([look.missed_alone for look in looks.values()], axis=0)
        self.held_alone.append(1 - float(alone.mean()))
        for blocks, look in looks.items():
            self.widths.setdefault(blocks, []).append(look.widths)


@dataclass(frozen=True)
class RowSeen:
    """What the experiments of a row gave.

    Attributes:
        tallies: by level; without workloads where the grid has a single one or each has one cell.
        called: experiments in which a run ends with a tie called different, at the level at which
            it is to end.
        old: by look, half widths of Student's t of each cell's own blocks at 5 % / cells.
    """

    tallies: dict[str, Tally]
    called: list[bool]
    old: dict[int, Numbers]

    def missed(self, level: str) -> Seen:
        """How often any interval of a level missed."""
        return share_of(self.tallies[level].missed)

    def alone(self, level: str) -> Seen:
        """How often an interval by itself holds."""
        return mean_of(self.tallies[level].held_alone)

    def any_level(self) -> Seen:
        """How often any interval of any level missed."""
        by_level = zip(*(tally.missed for tally in self.tallies.values()), strict=True)
        return share_of([any(of_one) for of_one in by_level])

    def width(self, level: str, blocks: int) -> Seen:
        """Median half width of a level's intervals, as a share of the old cells' median."""
        new, old = np.array(self.tallies[level].widths[blocks]), self.old[blocks]
        parts = min(10, len(new))
        shares = [
            float(np.median(of_new) / np.median(of_old))
            for of_new, of_old in zip(
                np.array_split(new, parts), np.array_split(old, parts), strict=True
            )
        ]
        error = float(np.std(shares)) / math.sqrt(parts)
        return Seen(float(np.median(new) / np.median(old)), error, len(new))

    def promises(self) -> Iterator[tuple[str, Seen, Limits]]:
        """Every promise about these experiments."""
        for level in self.tallies:
            yield f"{level} missed", self.missed(level), MISSED
            yield f"{level} alone", self.alone(level), ALONE
        yield "ties called different", share_of(self.called), CALLED

    def broken(self, errors: float = SLACK) -> list[str]:
        """The promises that are missed by more than so many standard errors."""
        return [name for name, value, limits in self.promises() if not limits.hold(value, errors)]


@dataclass(frozen=True)
class Row:
    """Experiments of a grid under a design with a noise."""

    cells: int
    design: DesignPlan
    noise: GridNoise

    @property
    def columns(self) -> tuple[str, str, str]:
        """Cells, blocks and noise, as the table says them."""
        return str(self.cells), words_of(self.design), self.noise.words

    @property
    def words(self) -> str:
        """As `--only` finds it."""
        cells, blocks, noise = self.columns
        return f"{cells} cells; blocks: {blocks}; {noise}"

    @property
    def looks(self) -> range:
        """Numbers of blocks after which the run is looked at."""
        blocks = self.design.blocks
        return range(BLOCKS_MIN if self.design.stop == "decided" else blocks, blocks + 1)

    @property
    def shown_look(self) -> int:
        """Blocks at which widths are shown."""
        return self.looks[-1] if len(self.looks) == 1 else SHOWN_LOOK

    def seen(self, share: float) -> RowSeen:
        """Runs that share of `EXPERIMENTS`, 20 at least."""
        return self.run(max(20, round(EXPERIMENTS * share)))

    def run(self, experiments: int) -> RowSeen:
        """Runs so many experiments."""
        grid = GRIDS[self.cells]
        place = [25, self.cells, *self.design.stop.encode(), self.design.blocks]
        random = np.random.default_rng([*place, NOISES.index(self.noise)])
        made = self.noise.draw(random, grid, experiments, self.design.blocks)
        tallies: dict[str, Tally] = {}
        called = []
        asked = WORKLOADS if self.design.asks_for_workloads(self.cells) else CELLS
        for numbers in made:
            judged = {n: judged_levels(grid, numbers[:n], self.design) for n in self.looks}
            levels = {
                level: {n: looked(of_level[level]) for n, of_level in judged.items()}
                for level in judged[self.looks[-1]]
            }
            for level, looks in levels.items():
                tallies.setdefault(level, Tally()).add(looks)
            called.append(_ends_different(levels, asked))
        old = {n: self._old_widths(made[:, :n]) for n in self.looks}
        return RowSeen(tallies, called, old)

    def _old_widths(self, made: Numbers) -> Numbers:
        found = interval(np.swapaxes(made, 1, 2), self.design, LEVEL / self.cells)
        return np.asarray(found.half)


def words_of(design: DesignPlan) -> str:
    """The blocks of a design, as the tables say them."""
    if design.stop == "decided":
        return f"until decided, {design.blocks} at most"
    return str(design.blocks)


def judged_levels(
    grid: Grid, numbers: Numbers, design: DesignPlan
) -> dict[str, Sequence[Estimated]]:
    """The judge's intervals of each level, of ln ratios by block and cell."""
    samples = [
        Sample(cell, PRIMARY.name, "A", "B", dict(enumerate(of_cell.tolist())))
        for cell, of_cell in zip(grid.cells, numbers.T, strict=True)
    ]
    ladders: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        ladders.setdefault(sample.cell.ladder, []).append(sample)
    levels = {CELLS: estimated(samples, design)}
    if 1 < len(ladders) < len(samples):
        levels[WORKLOADS] = estimated([sample_of(of) for of in ladders.values()], design)
    if len(samples) > 1:
        levels[ALL] = estimated([sample_of(samples)], design)
    return levels


def looked(judged: Iterable[Estimated]) -> Look:
    """A level as it is shown, held against the truth, a tie."""
    held = [of.held for of in judged if of.held is not None]
    return Look(
        missed=tuple(not of.low <= 1 <= of.high for of in held),
        missed_alone=tuple(not of.alone_low <= 1 <= of.alone_high for of in held),
        widths=tuple(math.log(of.high / of.low) / 2 for of in held),
        words=tuple(word_of(of.low, of.high, MARGIN)[0] for of in held),
    )


def _ends_different(levels: dict[str, dict[int, Look]], asked: str) -> bool:
    """Whether a run calls a tie different when it ends, at the level at which it is to end."""
    words: tuple[Word, ...] = ()
    for look in levels[asked].values():
        words = look.words
        if all(word in DECIDED for word in words):
            break
    return any(word in DIFFERENT for word in words)


def fits(cells: int, noise: GridNoise) -> bool:
    """Whether a grid of so many cells can have that noise, and differs by it from another."""
    if cells == 1:
        return noise.words == NOISES[0].words or noise.kind in ("bad", "drift")
    return cells > 2 or (noise.cells != "workloads" and noise.kind != "workload")


EVERY: Final = tuple(
    Row(cells, design, noise)
    for cells in GRIDS
    for design in DESIGNS
    for noise in NOISES
    if fits(cells, noise)
)
"""Every grid, design and noise."""
EVEN, UNLIKE, ODD = "equal, starts 0 %", "d0 = 3, starts 0 %", "one cell ×5, starts 10 %"
LOUD, UNLIKE_STARTS = "workloads ×½, 1, 2, starts 10 %", "d0 = 3, starts 10 %"
WORST: Final[dict[int, tuple[str, ...]]] = {
    1: (EVEN,) * 6,
    2: (EVEN,) * 5 + (UNLIKE_STARTS,),
    6: (ODD, ODD, LOUD, LOUD, LOUD, ODD),
    24: (LOUD, UNLIKE, UNLIKE, UNLIKE, UNLIKE, ODD),
    48: (ODD, UNLIKE, UNLIKE, UNLIKE_STARTS, UNLIKE, UNLIKE),
}
"""For each grid and each of `DESIGNS` the noise with which a level's intervals miss most often."""
ROWS: Final = tuple(
    row for row in EVERY if row.noise.words == WORST[row.cells][DESIGNS.index(row.design)]
)
"""The rows of the table."""


def table(rows: Iterable[tuple[Row, RowSeen]]) -> Iterator[str]:
    """The table of these rows."""
    yield (
        "| cells | blocks | noise | missed: a cell | a workload | all together | any of these "
        "| alone holds: a cell | a workload | ties called different "
        "| half width: a cell | a workload | experiments | |"
    )
    yield "| ---: | --- | --- |" + " ---: |" * 10 + " --- |"
    for row, seen in rows:
        yield "| " + " | ".join([*row.columns, *_columns(row, seen)]) + " |"


def _columns(row: Row, seen: RowSeen) -> Iterator[str]:
    for level in LEVELS:
        yield _told(seen.missed(level)) if level in seen.tallies else ""
    yield _told(seen.any_level())
    for level in (CELLS, WORKLOADS):
        yield _told(seen.alone(level)) if level in seen.tallies else ""
    yield _told(share_of(seen.called))
    for level in (CELLS, WORKLOADS):
        there = level in seen.tallies
        yield f"{seen.width(level, row.shown_look).value:.2f}" if there else ""
    yield f"{len(seen.called):,}"
    yield f"**missed**: {', '.join(broken)}" if (broken := seen.broken()) else "kept"


def _told(seen: Seen) -> str:
    return f"{seen.value * 100:.1f} %"


def narrower(cells: int, design: DesignPlan, level: str, experiments: int) -> Seen:
    """A level's half width as a share of the old one, where variances are alike with d0 = 7."""
    alike = next(noise for noise in NOISES if noise.words == "d0 = 7, starts 0 %")
    row = Row(cells, design, alike)
    return row.run(experiments).width(level, row.shown_look)


def any_missed(truths: Sequence[float], design: DesignPlan, experiments: int) -> Seen:
    """How often, at any look, an interval of a few cells misses its true ln ratio."""
    random = np.random.default_rng([26, len(truths), *design.stop.encode()])
    made = random.normal(truths, 0.03, (experiments, design.blocks, len(truths)))
    looks = range(BLOCKS_MIN if design.stop == "decided" else design.blocks, design.blocks + 1)
    cells = ["workload"] * len(truths)

    def misses(blocks: Numbers) -> bool:
        held = together([dict(enumerate(of_cell)) for of_cell in blocks.T.tolist()], cells, design)
        return any(
            of is not None and not of.low <= math.exp(truth) <= of.high
            for of, truth in zip(held, truths, strict=True)
        )

    return share_of([any(misses(blocks[:n]) for n in looks) for blocks in made])


FAR: Final = math.log(0.5)
"""A true ratio beyond the bound of far cells, which need less of the level."""
CLAIMS: Final = (
    *(
        Claim(
            "an interval of two or three cells misses the true difference: "
            f"a tie {beside}, blocks: {words_of(design)}",
            *(None, 0.055, 40_000, partial(any_missed, truths, design)),
        )
        for beside, truths in (
            ("and a cell 50 % slower", (0.0, FAR)),
            ("and two cells 50 % slower", (0.0, FAR, FAR)),
            ("and a cell just far", (0.0, math.log1p(FAR_MARGINS * MARGIN))),
        )
        for design in (DesignPlan(margin=MARGIN), DESIGNS[-1])
    ),
    Claim(
        "half width of one of 48 cells, relative to Student's t of its own blocks: 5 blocks",
        *(None, 0.7, EXPERIMENTS, partial(narrower, 48, DesignPlan(), CELLS)),
    ),
    Claim(
        "half width of a workload's mean in 48 cells, relative to Student's t of a cell: 5 blocks",
        *(None, 0.35, EXPERIMENTS, partial(narrower, 48, DesignPlan(), WORKLOADS)),
    ),
    Claim(
        "half width of one of 6 cells, relative to Student's t: 4 blocks, until decided",
        *(None, 0.6, EXPERIMENTS, partial(narrower, 6, DESIGNS[-1], CELLS)),
    ),
)
"""Where variances are alike with d0 = 7; Student's t is at 5 % / cells."""
