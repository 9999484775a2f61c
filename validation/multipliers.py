"""Makes the table of `judge/multiplier_table.py` again: nominal levels of repeated intervals.

The path of Student's t over the first 3, 4 … blocks depends on neither mean nor spread of normal
data, so how often it leaves a boundary can be simulated once and for all (Jennison & Turnbull
1991). The boundary is a two-sided t test at level A·n/N at look n of N; A is the quantile of
N·min(p_n/n) over paths. One long path serves every N at once.

    .venv/bin/python -m validation.multipliers                      # the shipped table, minutes
    .venv/bin/python -m validation.multipliers --paths 200000 --horizons 12,20 --show
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

FIRST_LOOK: Final = 3
HORIZONS: Final = (*range(3, 31), 35, 40, 50, 60, 80, 100)
LEVELS: Final = (0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 0.0005)
PATHS: Final = 3_000_000
CHUNK: Final = 50_000
SEED: Final = 20261121
TABLE: Final = Path(__file__).parent.parent / "lab" / "dbdyno" / "judge" / "multiplier_table.py"
HEAD: Final = '''"""Nominal levels of repeated intervals at their last look. Generated, not written.

`python -m validation.multipliers` makes this file by simulation ({paths:,} paths, seed {seed});
`interval` says what the numbers mean. A row is a horizon (the most blocks that may be run), its
columns are the levels at which all intervals of a run are to hold together.
"""

from __future__ import annotations

from typing import Final

LEVELS: Final = {levels}
FINAL_LEVELS: Final[dict[int, tuple[float, ...]]] = {{
{rows}
}}
'''


def main() -> int:
    """Writes the table, or shows the multipliers of a few horizons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=PATHS)
    parser.add_argument("--horizons", default=",".join(map(str, HORIZONS)))
    parser.add_argument("--show", action="store_true", help="print multipliers, write nothing")
    options = parser.parse_args()
    horizons = [int(horizon) for horizon in options.horizons.split(",")]
    table = final_levels(horizons, LEVELS, options.paths)
    if options.show:
        for horizon, levels in table.items():
            print(f"{horizon}: " + " ".join(f"{c:.2f}" for c in multipliers(horizon, levels[0])))
        return 0
    rows = "\n".join(
        f"    {n}: ({', '.join(f'{a:.4g}' for a in row)})," for n, row in table.items()
    )
    TABLE.write_text(HEAD.format(paths=options.paths, seed=SEED, levels=LEVELS, rows=rows))
    return 0


def final_levels(
    horizons: Sequence[int], levels: Sequence[float], paths: int, seed: int = SEED
) -> dict[int, tuple[float, ...]]:
    """For each horizon the nominal level at its last look, one for each joint level."""
    random = np.random.default_rng(seed)
    most = max(levels)
    kept: dict[int, list[NDArray[np.float32]]] = {horizon: [] for horizon in horizons}
    for begin in range(0, paths, CHUNK):
        least = _least(random, min(CHUNK, paths - begin), max(horizons))
        for horizon in horizons:
            # The quantile sought is below the joint level, so larger values never matter.
            scaled = horizon * least[:, horizon - FIRST_LOOK]
            kept[horizon].append(scaled[scaled < most].astype(np.float32))
    return {
        horizon: tuple(_quantile(np.sort(np.concatenate(parts)), level, paths) for level in levels)
        if horizon > FIRST_LOOK
        else tuple(levels)  # a single look
        for horizon, parts in kept.items()
    }


def multipliers(horizon: int, final_level: float) -> list[float]:
    """Half widths over s/√n at looks 3 … horizon."""
    looks = np.arange(FIRST_LOOK, horizon + 1)
    found = special.stdtrit(looks - 1, 1 - final_level * looks / horizon / 2)
    return [float(value) for value in found]


def _least(random: np.random.Generator, paths: int, looks: int) -> NDArray[np.float64]:
    """The least p/n up to each look from the third on, of so many paths."""
    draws = random.standard_normal((paths, looks))
    n = np.arange(1, looks + 1)
    sums, squares = np.cumsum(draws, axis=1), np.cumsum(draws**2, axis=1)
    n, sums, squares = (part[..., FIRST_LOOK - 1 :] for part in (n, sums, squares))
    spread = np.sqrt((squares - sums**2 / n) / (n - 1))
    p = 2 * special.stdtr(n - 1, -np.abs(sums) / np.sqrt(n) / spread)
    least: NDArray[np.float64] = np.minimum.accumulate(p / n, axis=1)
    return least


def _quantile(ordered: NDArray[np.float32], level: float, paths: int) -> float:
    """The value below which `level` of all paths lie; `ordered` holds the lowest of them."""
    return float(ordered[max(0, round(level * paths) - 1)])


if __name__ == "__main__":
    sys.exit(main())
