"""`dbdyno certify` as it is typed: what a person sees, what programs read, exit status."""

from __future__ import annotations

import json

import pytest
from tests.cli.test_app import run

from dbdyno.experiment import certify
from dbdyno.measurement.certificate import Certificate
from support.made_certificate import certificate


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What the generator sees of 10 ms."""
    seen = {"seen_ms": 10.2}
    monkeypatch.setattr(certify, "certify", lambda tell, sees: certificate(seen["seen_ms"]))
    return seen


def test_a_person_reads_the_answer_first(
    made: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run("certify", capsys=capsys)
    assert (status, err) == (0, "")
    digest = certificate().digest[:12]
    assert out.splitlines() == [
        f"passed: certificate {digest} of 2026-11-22T12:00:00+00:00",
        "",
        "On a server that answers at once",
        "Protocol    Connections  Queries/s  CPU µs per query",
        "MySQL                 1     20 000             12.50",
        "MySQL                64    200 000              3.21",
        "PostgreSQL           64    180 000              3.50",
        "",
        "Delay of sending at a fixed rate (p99 at most 5 ms)",
        "Requests/s asked for  Reached  Late by, p50 ms  p99 ms  Max ms",
        "               1 000    1 001            0.051   0.200   1.234",
        "",
        "Compared with a server of known throughput and latency",
        "Server and load                                Statistic    True   Seen   Error   Limit",
        "four workers of 10 ms, asked by 8 connections  throughput  400.0  399.0  -0.2 %   2.0 %",
        "exponential service of 10 ms, 8 connections    p99         10.00  10.20  +2.0 %  10.0 %",
        "",
        "Machine: computing varied by 2.1 %, a synced write takes 0.400 ms, the hypervisor took "
        "1.2 % of the CPU time.",
        "Smallest difference that four of five comparisons find, with a load that needs only CPU: "
        "4.2 % in 5 min, 1.1 % in 120 min.",
    ]


def test_what_is_tried_is_told_in_the_language_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(tell: certify.Tell, sees: certify.Sees) -> Certificate:
        tell("2/4 how late it sends at fixed rates")
        return certificate(10.2)

    monkeypatch.setattr(certify, "certify", told)
    assert (
        run("certify", "--lang", "zh", capsys=capsys)[2] == "2/4 how late it sends at fixed rates\n"
    )
    assert run("certify", capsys=capsys)[2] == "2/4 how late it sends at fixed rates\n"


def test_a_program_gets_every_number(
    made: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run("certify", "--output", "json", capsys=capsys)
    document = json.loads(out)
    assert status == 0
    assert document["passed"] is True
    assert document["answers"][1] == {
        "question": "exponential",
        "statistic": "p99",
        "truth": 10.0,
        "seen": 10.2,
    }


def test_a_generator_that_is_wrong_has_status_3(
    made: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    made["seen_ms"] = 12.0
    status, out, err = run("certify", capsys=capsys)
    assert status == 3
    assert out.startswith("NOT passed")
    assert "p99 off by +20.0 % (limit 10.0 %): exponential service of 10 ms" in err
