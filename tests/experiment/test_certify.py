"""The certificate of this machine, made in a few seconds: its shape, not how good it is here.

How good it is depends on how quiet the machine is; `tests/live/test_certify.py` asks for that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.experiment import certify
from dbdyno.judge.uses.power import difference_seen_in_time
from dbdyno.measurement.certificate import CertificateFacts, KnownAnswer
from dbdyno.report.tell.measured import QUESTIONS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path))
    return tmp_path


def test_a_certificate_is_made_stored_and_found_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    for name, few in {"RATES_PER_S": (1000,), "CONNECTIONS": (1, 8), "STARTS": 2}.items():
        monkeypatch.setattr(certify, name, few)
    made = certify.certify(heard.append, difference_seen_in_time, window_s=0.3, probes=2)
    assert [text[:3] for text in heard] == ["1/4", "2/4", "3/4", "4/4"]
    asked = [(driver, count) for driver in ("mysql", "pgsql") for count in certify.CONNECTIONS]
    assert [(one.driver, one.connections) for one in made.reached] == asked
    assert all(one.queries_per_s > 0 and one.cpu_us_per_query > 0 for one in made.reached)
    assert {one.question for one in made.answers} == set(QUESTIONS)
    assert all(one.truth > 0 and one.seen > 0 for one in made.answers)
    assert all(0 < one.ratio < 10 for one in made.differences)

    assert certify.known() == made.facts(certify.machine())
    monkeypatch.setattr(certify, "machine", lambda: {**made.machine, "kernel": "another"})
    assert certify.known().changed == ("kernel",)


@pytest.mark.parametrize("text", [None, "", "{", '{"made_at": "then"}'])
def test_without_a_whole_certificate_nothing_is_known(cache: Path, text: str | None) -> None:
    if text is not None:
        (cache / certify.FILE).write_text(text)
    assert certify.known() == CertificateFacts()


def test_what_misses_a_limit_is_measured_again_and_counted(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_ms = iter([15.0, 10.1, 20.0, 20.0, 20.0])

    def asked(window_s: float) -> list[KnownAnswer]:
        return [KnownAnswer(question="rate", statistic="p99", truth=10.0, seen=next(seen_ms))]

    monkeypatch.setattr(certify, "ASKED", (asked, asked))
    for name in ("RATES_PER_S", "CONNECTIONS"):
        monkeypatch.setattr(certify, name, ())
    monkeypatch.setattr(certify, "STARTS", 1)
    made = certify.certify(lambda text: None, difference_seen_in_time, window_s=0.3, probes=2)
    assert [one.seen for one in made.answers] == [10.1, 20.0]
    assert (made.repeated, made.passed) == (3, False)
