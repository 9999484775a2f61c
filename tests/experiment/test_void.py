"""A trial that was never begun is a measurement with its reason and nothing else."""

from dbdyno.errors import CellError
from dbdyno.experiment.arm import never_begun, reason
from dbdyno.experiment.order import trials_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Step
from support import making

PLAN = making.plan()
TRIAL = trials_of(PLAN, "r")[0]


def test_it_has_its_reason_its_steps_and_no_second_of_load():
    step = Step(name="restore", seconds=1.5)
    made = never_begun(PLAN, TRIAL, "no thread pool", impossible=True, steps=[step])
    assert (made.failure, made.impossible, made.procedure) == ("no thread pool", True, (step,))
    assert (made.trial, made.window_s, made.events, made.server.version) == (TRIAL, 0.0, 0, "")
    assert Measurement.model_validate_json(made.model_dump_json()) == made


def test_a_reason_is_one_sentence_with_all_that_the_error_says():
    error = CellError("too many", wanted="9 connections", found="8", hint="fewer threads")
    assert reason(error) == "too many; wanted 9 connections; found 8; try fewer threads"
    assert reason(CellError("too many.")) == "too many"
