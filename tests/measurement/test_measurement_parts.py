"""The parts of a measurement: what they say of themselves, and that a store gives them back."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Step, WarmUp
from support import making


def test_a_warm_up_is_steady_if_it_says_since_when() -> None:
    assert WarmUp(seconds=120, cut_s=0, why="at once").steady
    assert not WarmUp(seconds=120, cut_s=None, why="never").steady


def test_a_measurement_with_all_its_parts_comes_back_from_json() -> None:
    steps = (Step(name="settle", seconds=2.5, done=False, detail="cap"),)
    warmed = WarmUp(seconds=2, cut_s=None, why="too few", rates_per_s=(1.0, 2.0))
    update = {"procedure": steps, "until_steady": warmed, "dataset": "ab", "impossible": True}
    made = making.measurement(histograms=False).model_copy(update=update)
    assert Measurement.model_validate_json(made.model_dump_json()) == made


def test_a_measurement_of_an_older_dbdyno_has_none_of_them() -> None:
    made = making.measurement(histograms=False)
    older = made.model_dump(mode="json", exclude={"procedure", "until_steady", "dataset"})
    read = Measurement.model_validate(older)
    assert (read.procedure, read.until_steady, read.dataset) == ((), None, "")
    assert not read.impossible


def test_a_step_is_frozen_and_knows_its_fields() -> None:
    step = Step(name="restore", seconds=1)
    assert step.done
    with pytest.raises(ValidationError):
        Step(name="restore", seconds=1, cost=2)  # type: ignore[call-arg]
