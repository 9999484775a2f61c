"""The validation on servers of known truth: tiny, and its sums on outcomes that are made."""

from __future__ import annotations

import pytest
from validation import known_servers


def test_a_server_that_is_slower_by_half_is_found_by_the_whole_lab() -> None:
    true_ratio = pytest.approx(1 / 1.5, rel=0.15)
    for seed in (1, 2, 3):  # three blocks beside other tests may be too uneven to decide
        outcome = known_servers.experiment(seed=seed, planted=0.5, blocks=3, window_s=1)
        assert outcome["word"] != "better"
        if outcome["word"] == "worse" and outcome["ratio"] == true_ratio:
            break
    assert (outcome["word"], outcome["blocks"]) == ("worse", 3)
    assert outcome["ratio"] == true_ratio


def test_outcomes_are_held_against_the_truth() -> None:
    def outcome(planted: float, word: str, low: float, high: float) -> dict[str, object]:
        return {"planted": planted, "word": word, "low": low, "high": high}

    told = known_servers.summary(
        [
            outcome(0.02, "worse", 0.97, 0.99),
            outcome(0.02, "better", 1.01, 1.03),
            outcome(0.0, "undecided", 0.98, 1.01),
            outcome(0.0, "undecided", 0.98, 1.02),
        ]
    )
    assert "| interval holds the truth, planted | 50.0% ± 35.4% | 93 to 97 % | 2 |" in told
    assert "| better, though it is slower | 50.0% ± 35.4% | at most 1 % | 2 |" in told
    assert "| equal ones differ | 0.0% ± 0.0% | 3 to 7 % | 2 |" in told
