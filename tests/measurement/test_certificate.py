"""What a certificate allows, when it still holds, and what a run keeps of it."""

from __future__ import annotations

import pytest

from dbdyno.measurement.certificate import (
    FEATURES,
    Certificate,
    CertificateFacts,
    KnownAnswer,
    Punctuality,
)
from dbdyno.report.tell.measured import certificate_faults
from support.made_certificate import MACHINE, certificate


@pytest.mark.parametrize(
    ("statistic", "truth", "seen", "holds"),
    [
        ("throughput", 400.0, 407.9, True),
        ("throughput", 400.0, 408.1, False),
        ("throughput", 400.0, 391.9, False),
        # 5 % and half a millisecond: 1 ms of 10 ms
        ("p99", 10.0, 10.99, True),
        ("p99", 10.0, 11.01, False),
        ("mean", 100.0, 105.4, True),
        ("mean", 100.0, 105.6, False),
    ],
)
def test_an_answer_is_held_against_its_limit(
    statistic: str, truth: float, seen: float, holds: bool
) -> None:
    answer = KnownAnswer(question="rate", statistic=statistic, truth=truth, seen=seen)
    assert answer.holds == holds


@pytest.mark.parametrize(
    ("reached", "lag_ms", "holds"),
    [(990.0, 4.9, True), (990.0, 5.1, False), (970.0, 0.1, False), (1030.0, 0.1, False)],
)
def test_a_generator_is_punctual_if_it_reaches_its_rate_in_time(
    reached: float, lag_ms: float, holds: bool
) -> None:
    seen = Punctuality(
        rate_per_s=1000, reached_per_s=reached, lag_ms_p50=0.01, lag_ms_p99=lag_ms, lag_ms_max=9.0
    )
    assert seen.holds == holds


def test_a_run_keeps_what_it_rests_on() -> None:
    made = certificate()
    assert made.passed
    facts = made.facts(MACHINE)
    assert (facts.digest, facts.changed, facts.failed) == (made.digest, (), False)
    assert (facts.queries_per_s, facts.pgsql_queries_per_s) == (200_000, 180_000)
    assert CertificateFacts.model_validate_json(facts.model_dump_json()) == facts


def faults(made):
    facts = made.facts(MACHINE).model_dump()
    return list(certificate_faults(facts["wrong"], facts["late"]))


def test_a_failed_one_holds_for_its_own_machine_only() -> None:
    made = certificate(seen_ms=20.0)
    assert not made.passed
    assert made.facts(MACHINE).failed
    assert faults(made) == [
        "p99 off by +100.0 % (limit 10.0 %): exponential service of 10 ms, 8 connections"
    ]
    other = made.facts({**MACHINE, "kernel": "Linux 7"})
    assert (other.changed, other.failed) == (("kernel",), False)


def test_its_digest_is_that_of_its_contents() -> None:
    made = certificate()
    again = Certificate.model_validate_json(made.model_dump_json())
    assert again.digest == made.digest != certificate(seen_ms=10.1).digest
    assert set(made.machine) == set(FEATURES)
