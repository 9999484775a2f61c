from __future__ import annotations

import json
import math

import pytest

from dbdyno.judge.judgement import Judgement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import Plan
from dbdyno.report import document as report_document
from support import making
from support.made_run import Run, run


@pytest.fixture(scope="module")
def read(made: Run) -> dict:
    document = report_document.document(made.plan, made.measurements, made.judgement, made.facts)
    return json.loads(report_document.text(document))


def test_all_that_was_judged_is_there(made: Run, read: dict) -> None:
    names = set(Judgement.model_fields)
    assert names <= set(read)
    assert Judgement.model_validate({name: read[name] for name in names}) == made.judgement


def test_plan_and_run_come_back(made: Run, read: dict) -> None:
    assert Plan.model_validate(read["plan"]).hash() == made.plan.hash()
    assert RunFacts.model_validate(read["run"]) == made.facts


def test_every_attempt_is_there_with_its_state_and_values(made: Run, read: dict) -> None:
    assert len(read["trials"]) == 21
    failed = [trial for trial in read["trials"] if trial["state"] == "failed"]
    assert [trial["why"] for trial in failed] == ["the server went away | <died>"]
    assert read["trials"][0]["values"]["transactions_per_s"] == 300.0
    assert read["settings_differing"] == ["sql_mode"]
    assert read["settings_partial"] == ["query_cache_type"]
    assert read["settings"][making.A]["sync_binlog"] == "1"


def test_a_trial_names_its_machine_of_a_fleet_and_cpu_that_nobody_could_read_is_null() -> None:
    there = making.changed(making.measurement(), machine="4f1c")
    made = run(making.plan(), [there, making.unseen(making.measurement(making.B))])
    document = report_document.document(made.plan, made.measurements, made.judgement, made.facts)
    assert [trial["machine"] for trial in document["trials"]] == ["4f1c", ""]
    assert [trial["server_cpu_s"] for trial in document["trials"]] == [8.0, None]


def test_what_json_cannot_hold_is_null() -> None:
    mixed = {"a": math.inf, "b": [math.nan, 1.5, 2], "c": ("x", None, True)}
    assert report_document.finite(mixed) == {"a": None, "b": [None, 1.5, 2], "c": ["x", None, True]}


def test_histograms_and_passwords_stay_out() -> None:
    secret = [making.measurement(settings={"report_password": "hunter2"})]
    made = run(making.plan(systems=(making.A,)), secret)
    text = report_document.text(
        report_document.document(made.plan, secret, made.judgement, made.facts)
    )
    assert "hunter2" not in text
    assert "histograms" not in text
