"""Every claim of the method in a small form: the judge on experiments with known truth.

A few hundred experiments from fixed seeds, and wide bounds: a right method stays within them with
any seed, and a wrong interval does not. The full form, `python -m validation.method_validation`,
writes the tables of validation/measured/claims.md and docs/how-it-works/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike
from validation.claims import levels as of_levels
from validation.claims import verdict
from validation.claims.claim import Claim, Seen, mean_of, share_of
from validation.claims.grid_noise import NOISES, GridNoise
from validation.claims.levels import (
    ALL,
    ALONE,
    CELLS,
    DESIGNS,
    EVERY,
    GRIDS,
    MISSED,
    ROWS,
    WORKLOADS,
    Row,
)
from validation.method_validation import CASES, CLAIMS, PAGE, worst_cases
from validation.noise import KINDS, levels, log_ratios, restarts, seconds

from dbdyno.judge import verdict as judge_verdict
from dbdyno.judge.estimate import Estimated, Sample, estimated
from dbdyno.judge.interval import FIXED, ConfidenceInterval, Held, interval
from dbdyno.plan.plan import DesignPlan
from support.source import ROOT

SLACK = 4.0
"""Standard errors by which chance may move what is seen here: of 30 000 right claims one fails."""


EXPERIMENTS_OF_CELLS = {1: 60, 2: 30, 6: 12, 24: 4, 48: 3}
"""Experiments of each row of a grid, all of them in a few seconds."""


def experiments_of(claim: Claim) -> int:
    """So many that a claim takes a fraction of a second."""
    if "half width" in claim.words:
        return 10
    slow = ("two runs", "the gate")
    return 20 if any(words in claim.words for words in slow) else min(claim.full // 10, 200)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.words)
def test_the_claim_holds(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    # No claim is about the blocks that a verdict still needs, which take most of its time.
    monkeypatch.setattr(judge_verdict, "blocks_needed", lambda *_: None)
    seen = claim.run(experiments_of(claim))
    assert claim.holds(seen, SLACK), f"{seen} is not {claim.target}"


@pytest.mark.parametrize("cells", GRIDS)
def test_the_intervals_of_each_level_hold(cells: int) -> None:
    experiments = EXPERIMENTS_OF_CELLS[cells]
    seen = [row.run(experiments) for row in ROWS if row.cells == cells]
    assert len(seen) == len(DESIGNS)
    for level in seen[0].tallies:
        missed = share_of([any_of for of in seen for any_of in of.tallies[level].missed])
        assert MISSED.hold(missed, SLACK), level
        alone = mean_of([share for of in seen for share in of.tallies[level].held_alone])
        assert ALONE.hold(alone, SLACK), level


def row_of(cells: int, blocks: int, words: str) -> Row:
    return next(row for row in EVERY if row.columns == (str(cells), str(blocks), words))


@pytest.mark.parametrize(
    ("factor", "broken"), [(0.6, "cells missed"), (0.5, "cells alone"), (0.4, "workloads missed")]
)
def test_intervals_of_a_level_that_are_too_narrow_are_caught(
    factor: float, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(samples: Sequence[Sample], design: DesignPlan) -> list[Estimated]:
        return [
            Estimated(of.estimate, replace(of.held, **scaled(of.held, factor)))
            for of in estimated(samples, design)
            if of.held is not None
        ]

    monkeypatch.setattr(of_levels, "estimated", wrong)
    seen = row_of(6, 5, "equal, starts 5 %").run(120)
    assert broken in seen.broken(SLACK)


def scaled(held: Held, factor: float) -> dict[str, float]:
    together = math.sqrt(held.low * held.high)
    ends = asdict(held)
    return {
        name: together * (ends[name] / together) ** factor
        for name in ("low", "high", "alone_low", "alone_high")
    }


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.stop} {design.blocks}")
def test_a_single_cell_has_the_interval_of_the_claims_on_one_comparison(
    design: DesignPlan,
) -> None:
    logs = np.random.default_rng(16).normal(0, 0.1, (design.blocks, 1))
    (judged,) = of_levels.judged_levels(GRIDS[1], logs, design)[CELLS]
    alone = interval(logs[:, 0], design)
    assert judged.held is not None
    assert math.log(judged.held.high) == pytest.approx(float(alone.mean + alone.half))
    assert math.log(judged.held.low) == pytest.approx(float(alone.mean - alone.half))


def test_a_run_has_the_levels_that_a_report_shows() -> None:
    shown = {cells: list(row_of(cells, 3, NOISES[0].words).run(2).tallies) for cells in GRIDS}
    both = [CELLS, WORKLOADS, ALL]
    assert shown == {1: [CELLS], 2: [CELLS, ALL], 6: both, 24: both, 48: both}


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.words)
def test_the_noise_of_a_grid_makes_ties(noise: GridNoise) -> None:
    made = noise.draw(np.random.default_rng(14), GRIDS[48], 1000, 6)
    of_grids = made.mean(axis=(1, 2))
    assert abs(of_grids.mean()) < 4 * of_grids.std() / math.sqrt(1000)


def test_cells_of_a_start_move_together_and_no_others() -> None:
    alike = next(noise for noise in NOISES if noise.words == "equal, starts 10 %")
    made = alike.draw(np.random.default_rng(15), GRIDS[48], 4000, 2)
    seen = np.corrcoef(made.reshape(-1, 48).T)
    assert seen[0, 23] == pytest.approx(0.1**2 / (0.1**2 + 0.2**2), abs=0.05)
    assert seen[0, 24] == pytest.approx(0, abs=0.05)


def test_the_measured_cases_are_those_of_the_claims() -> None:
    rows = rows_of(CASES, "table")
    for row in (*rows, *rows_of(CASES, "levels")):
        assert row[-1].startswith("kept") or "missed" in row[-1]
    assert [(row[0], row[2]) for row in rows] == [(claim.words, claim.target) for claim in CLAIMS]
    assert [tuple(row[:3]) for row in rows_of(CASES, "levels")] == [row.columns for row in ROWS]


def test_the_page_has_theworst_cases_case_of_each_claim() -> None:
    measured = {row[0]: seen_of(row) for row in rows_of(CASES, "table")}
    worst = worst_cases([(claim, measured[claim.words]) for claim in CLAIMS])
    shown = [columns_of(line) for line in list(worst)[2:]]
    assert rows_of(PAGE, "table") == shown


def test_the_page_has_the_worst_result_of_all_levels() -> None:
    columns = [*zip(*rows_of(CASES, "levels"), strict=True)]
    *missed, alone, alone_workload, called = (
        [float(text.removesuffix(" %")) for text in column if text] for column in columns[3:10]
    )
    single = [*alone, *alone_workload]
    worst = [f"{max(shares):.1f} %" for shares in (*missed, called)]
    worst.insert(-1, f"{min(single):.1f} to {max(single):.1f} %")
    table = (ROOT / PAGE).read_text().partition("| simulated result |")[2].partition("\n\n")[0]
    assert [columns_of(line)[1] for line in table.splitlines()[2:]] == worst


def seen_of(row: list[str]) -> Seen:
    value, error = (float(text.strip(" %")) / 100 for text in row[1].split("±"))
    return Seen(value, error, int(row[3].replace(",", "")))


def rows_of(page: Path, name: str) -> list[list[str]]:
    text = (ROOT / page).read_text()
    table = text.partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0]
    return [columns_of(line) for line in table.splitlines() if line.startswith("| ")][2:]


def columns_of(line: str) -> list[str]:
    return [column.strip() for column in line.strip("|").split("|")]


def widened(factor: float) -> Callable[[ArrayLike, DesignPlan], ConfidenceInterval]:
    def wrong(samples: ArrayLike, design: DesignPlan) -> ConfidenceInterval:
        found = interval(samples, design)
        return ConfidenceInterval(found.mean, found.sd, factor * found.half)

    return wrong


OF_FIVE = "a 95 % interval contains the true difference: 5 blocks, starts "


@pytest.mark.parametrize("factor", [0.7, 1.6])
def test_an_interval_that_is_too_narrow_or_too_wide_is_caught(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "interval", widened(factor))
    coverage = [
        claim for claim in CLAIMS if claim.words.startswith(OF_FIVE) and "of 4 %" not in claim.words
    ]
    assert len(coverage) == len(KINDS)
    assert not any(claim.holds(claim.run(4000), SLACK) for claim in coverage)


def test_seconds_instead_of_blocks_would_be_wrong_about_ties() -> None:
    # why the block is the unit: two runs of 60 s each, taken as 60 pairs, name a winner in a tie
    random = np.random.default_rng(7)
    both = restarts(random, (2000, 2), "normal", 0)[..., None] + seconds(random, (2000, 2, 60))
    found = interval(both[:, 1] - both[:, 0], FIXED)
    assert (np.abs(found.mean) > found.half).mean() > 0.4


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_has_the_truth_that_it_states(kind: str) -> None:
    random = np.random.default_rng(11)
    made, truth = levels(random, 50_000, 4, kind, 0.03)
    off = (made[..., 1] - made[..., 0]).mean() - truth
    assert abs(off) < 4 * 0.03 / math.sqrt(200_000)
    ratios, same = log_ratios(random, 2000, 4, kind, 0.03)
    assert same == truth
    assert 0.008 < ratios.std() < 0.04


def test_seconds_resemble_the_one_before() -> None:
    made = seconds(np.random.default_rng(12), (4000, 60), 0.6)
    assert made.std() == pytest.approx(0.03, rel=0.02)
    assert np.corrcoef(made[:, 3], made[:, 4])[0, 1] == pytest.approx(0.6, abs=0.05)
    assert made[:, 0].std() == pytest.approx(0.03, rel=0.05)


def test_a_claim_allows_for_chance_and_no_more() -> None:
    claim = Claim("x", 0.94, 0.97, 1000, lambda count: share_of([True] * count))
    assert claim.holds(Seen(0.935, 0.0026, 1000))
    assert not claim.holds(Seen(0.935, 0.0024, 1000))
    assert not claim.holds(Seen(0.98, 0.001, 1000))
    assert claim.seen(0.0).count == 20
    assert share_of([True, True, True, False]).error == pytest.approx(math.sqrt(0.75 * 0.25 / 4))
    assert share_of([True] * 100).error > 0
