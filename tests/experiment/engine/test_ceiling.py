"""What the generator reaches where no server holds it back."""

from __future__ import annotations

import json
import time

import pytest

from dbdyno.experiment.engine import ceiling
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.plan.template import lua, read
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import MYSQL, PGSQL
from support import making
from support.fake_engine import command


@pytest.mark.parametrize("driver", [MYSQL, PGSQL])
def test_the_generator_has_a_ceiling_that_is_found_quickly(driver):
    plan = making.plan(threads=(1, 8))
    began_s = time.monotonic()
    reached = ceiling.measure(plan, trials_of(plan, "r")[0], driver)
    assert reached is not None
    assert reached > 100  # events of 20 statements
    assert time.monotonic() - began_s < 30


def test_the_same_generator_is_asked_once(tmp_path):
    log = tmp_path / "log"
    for plan in (making.plan(threads=(1,)), making.plan(threads=(8,))):
        ceiling.measure(plan, trials_of(plan, "r")[0], MYSQL, command(log=log))
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize("driver", [MYSQL, PGSQL])
def test_a_template_has_one_without_its_rests_and_a_script_has_none(driver):
    events = {"look": {"statements": ["SELECT 1"], "think_time": "100ms"}}
    text = lua(read(json.dumps({"events": events}), "made.yaml"), "made.yaml")
    plans = [
        making.plan().model_copy(update={"workloads": (WorkloadPlan(name=name, script=script),)})
        for name, script in (("made.yaml", text), ("own.lua", "function event() end"))
    ]
    of_template, of_script = (
        ceiling.measure(plan, trials_of(plan, "r")[0], driver) for plan in plans
    )
    assert of_template is not None
    assert of_template > ceiling.THREADS / 0.1 * 2
    assert of_script is None


def test_a_generator_that_cannot_begin_has_none():
    plan = making.plan()
    refused = {"run": {"kind": "refused", "code": 1045, "message": "no"}}
    assert ceiling.measure(plan, trials_of(plan, "r")[0], MYSQL, command(fail=refused)) is None


def test_what_is_asked_is_short_and_closed(tmp_path):
    plan, log = making.plan(), tmp_path / "log"
    ceiling.measure(plan, trials_of(plan, "r")[0], MYSQL, command(log=log))
    asked = log.read_text()
    assert '"window_s": 0.4' in asked
    assert "rate_per_s" not in asked


def test_on_another_machine_it_has_that_machines_threads_and_not_the_plans_cores(tmp_path):
    plan, log = making.plan(procedure={"pin": (4711,)}), tmp_path / "log"
    first = trials_of(plan, "r")[0]
    ceiling.measure(plan, first, MYSQL, command(log=log))
    assert not log.exists(), "here there is no such core"
    ceiling.measure(plan, first, MYSQL, command(log=log), threads=3, cores=())
    assert '"threads": 3' in log.read_text()
