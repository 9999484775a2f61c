"""Settings and versions that must be the same for all systems or all trials."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks.settings import changed_versions, unequal_settings
from dbdyno.judge.finding import Level
from dbdyno.measurement import measurement
from dbdyno.plan.plan import SystemPlan
from support import making
from support.making import A, B

PLAN = making.plan()


def two(of_a: dict[str, str], of_b: dict[str, str]) -> list[measurement.Measurement]:
    return [
        making.measurement(A, settings=of_a),
        making.measurement(B, settings=of_b, sequence=1, position=1),
    ]


@pytest.mark.parametrize(
    ("key", "of_a", "of_b", "what"),
    [
        ("innodb_flush_method", "", "O_DIRECT", "files"),
        ("performance_schema", "OFF", "ON", "instrumentation"),
    ],
)
def test_settings_that_differ_are_doubtful(key, of_a, of_b, what):
    (found,) = unequal_settings(two({key: of_a}, {key: of_b}), PLAN)
    assert (found.level, found.system, found.check) == (Level.DOUBTFUL, B, "unequal-settings")
    assert found.evidence.startswith(f"{key} ({what}): {A} {of_a or 'fsync'}, {B} ")


def test_spellings_of_one_value_are_equal():
    of_a = {"performance_schema": "on", "innodb_flush_method": ""}
    of_b = {"performance_schema": "TRUE", "innodb_flush_method": "fsync"}
    assert not list(unequal_settings(two(of_a, of_b), PLAN))


def test_difference_that_the_plan_asks_for_is_a_note():
    asked = SystemPlan(label=B, reference=B, settings={"innodb-flush-method": "fsync"})
    asking = PLAN.model_copy(update={"systems": (PLAN.systems[0], asked)})
    of_b = {"innodb_flush_method": "fsync", "performance_schema": "ON"}
    by_accident, on_purpose = unequal_settings(two({}, of_b), asking)
    assert (by_accident.level, on_purpose.level) == (Level.DOUBTFUL, Level.NOTE)
    assert by_accident.evidence.startswith("performance_schema")
    assert on_purpose.evidence.startswith("innodb_flush_method")


def test_one_version_per_system_is_right_and_two_are_doubtful():
    trials = making.pairs((1.0, 1.0))
    assert not list(changed_versions(trials, PLAN))
    upgraded = trials[3].server.model_copy(update={"version": "8.0.16"})
    trials[3] = trials[3].model_copy(update={"server": upgraded})
    (found,) = changed_versions(trials, PLAN)
    assert found.level is Level.DOUBTFUL
    assert f"{B} (default) had 2 versions within the run: 8.0.15, 8.0.16" in found.evidence
