"""What an outcome of a control says about the instrument."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.measurement.outcome import ControlOutcome, RunFacts
from support import making
from support.made_controls import outcome
from support.made_run import facts


@pytest.mark.parametrize(
    ("word", "different"),
    [("better", True), ("worse", True), ("equivalent", False), ("undecided", False)],
)
def test_different_is_what_a_verdict_calls_so(word: str, different: bool) -> None:
    assert outcome(word=word).different is different


def test_slower_is_seen_by_the_interval_whatever_the_margin() -> None:
    assert outcome(0.975, 0.985, kind="planted", word="equivalent").seen_slower
    assert not outcome(0.975, 1.001, kind="planted").seen_slower


def test_without_an_interval_nothing_is_said() -> None:
    few = outcome().model_copy(update={"low": None, "high": None, "held": None})
    assert not few.counts
    assert not few.seen_slower
    assert outcome().counts


def test_it_comes_back_from_json_as_it_was() -> None:
    made = outcome(0.975, 0.985, kind="planted")
    assert ControlOutcome.model_validate_json(made.model_dump_json()) == made


def test_facts_survive_json_and_cannot_be_changed() -> None:
    made = facts(making.plan())
    assert RunFacts.model_validate_json(made.model_dump_json()) == made
    with pytest.raises(ValidationError):
        made.complete = False  # type: ignore[misc]
