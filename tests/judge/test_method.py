"""Every claim of the method in a small form: the judge on experiments with known truth.

A few hundred experiments from fixed seeds, and wide bounds: a right method stays within them with
any seed, and a wrong interval does not. The full form, `python -m validation.method_validation`,
prints the table of docs/how-it-works/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike
from validation.claims import verdict
from validation.claims.claim import Claim, Seen, share_of
from validation.method_validation import CLAIMS
from validation.noise import KINDS, levels, log_ratios, restarts, seconds

from dbdyno.judge import verdict as judge_verdict
from dbdyno.judge.interval import FIXED, ConfidenceInterval, interval
from dbdyno.plan.plan import DesignPlan
from support.source import ROOT

SLACK = 4.0
"""Standard errors by which chance may move what is seen here: of 30 000 right claims one fails."""


def experiments_of(claim: Claim) -> int:
    """So many that a claim takes a fraction of a second."""
    if "a ledger" in claim.words:  # each is of as many as 100 runs
        return 2 if "until decided" in claim.words else 6
    slow = ("warm-up and all", "any shown", "any look", "two runs", "the gate")
    return 20 if any(words in claim.words for words in slow) else min(claim.full // 10, 200)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.words)
def test_the_claim_holds(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    # No claim is about the blocks that a verdict still needs, which take most of its time.
    monkeypatch.setattr(judge_verdict, "blocks_needed", lambda *_: None)
    seen = claim.run(experiments_of(claim))
    assert claim.holds(seen, SLACK), f"{seen} is not {claim.target}"


def test_the_page_has_a_row_for_each_claim_and_no_other() -> None:
    page = (ROOT / "docs" / "how-it-works" / "method.md").read_text()
    table = page.partition("<!-- table: begin -->")[2].partition("<!-- table: end -->")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    shown = [(row[0].removeprefix("| "), row[2]) for row in rows]
    assert shown == [(claim.words, claim.target) for claim in CLAIMS]
    assert all(row[4].startswith(("kept", "**missed**")) for row in rows)


def widened(factor: float) -> Callable[[ArrayLike, DesignPlan], ConfidenceInterval]:
    def wrong(samples: ArrayLike, design: DesignPlan) -> ConfidenceInterval:
        found = interval(samples, design)
        return ConfidenceInterval(found.mean, found.sd, factor * found.half)

    return wrong


@pytest.mark.parametrize("factor", [0.7, 1.6])
def test_an_interval_that_is_too_narrow_or_too_wide_is_caught(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "interval", widened(factor))
    coverage = [
        claim
        for claim in CLAIMS
        if claim.words.startswith("95 % interval of 5 blocks holds") and "of 4 %" not in claim.words
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
