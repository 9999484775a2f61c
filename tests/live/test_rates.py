"""Rates and limits against a server of known speed, and a run from its pilot to its report."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.experiment.engine.record import intervals_of
from dbdyno.measurement.measurement import merge_histograms
from dbdyno.measurement.parts import Phase
from dbdyno.stats.open_loop import Point, RateSide, growth, rate_at_limit
from support.lab_process import finished, workspace
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live
CONNECTIONS = 8
SERVICE_MS = 10.0
QUANTILE = 0.9
LIMIT_MS = 20.0
TRIES = 8


@contextmanager
def reference() -> Iterator[dict[str, Any]]:
    """A server whose sessions take SERVICE_MS for each statement; it ends with the block."""
    server = _engine.Reference("fixed", SERVICE_MS / 1e3)
    user, password, database = server.login
    yield {
        "endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": user,
        "password": password,
        "database": database,
    }


def measured(login: Mapping[str, Any], rate: float, window_s: float) -> Point:
    """One run at a rate, read as the judge reads it; at rate 0, a closed loop, its median."""
    spec = {
        **login,
        "connections": CONNECTIONS,
        "warmup_s": 0.5,
        "window_s": window_s,
        "interval_s": 0.25,
        "seed": 3,
        "rate_per_s": rate,
        "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 100}},
    }
    record = _engine.run(spec, None, _engine.Stop())
    window = [one for one in intervals_of(record) if one.phase is Phase.MEASURED]
    latency = merge_histograms(one.histograms["event"] for one in window)
    if rate == 0:
        return Point(0.0, latency.quantile(0.5) / 1e6, sustained=True)
    grown = growth([one.end_s for one in window], [one.backlog for one in window], rate)
    assert grown is not None
    return Point(rate, latency.quantile(QUANTILE) / 1e6, grown.sustained)


def true_latency_ms(rate: float, service_s: float) -> float:
    """First come, first served by as many servers as there are connections: who comes as the n-th
    begins when the one CONNECTIONS places before has ended."""
    chance, now_s = random.Random(1), 0.0
    ends, latencies = [0.0] * CONNECTIONS, []
    for place in range(30_000):
        now_s += chance.expovariate(rate)
        ends.append(max(now_s, ends[place]) + service_s)
        latencies.append(ends[-1] - now_s)
    return sorted(latencies)[int(QUANTILE * len(latencies))] * 1e3


def true_rate(service_s: float) -> float:
    """The rate at which that latency is LIMIT_MS, by halving."""
    low, high = 0.0, CONNECTIONS / service_s
    for _ in range(9):
        middle = (low + high) / 2
        broke = true_latency_ms(middle, service_s) > LIMIT_MS
        low, high = (low, middle) if broke else (middle, high)
    return low


@pytest.mark.alone
def test_the_rate_within_a_limit_is_that_of_a_server_of_known_speed() -> None:
    with reference() as login:
        for _ in range(TRIES):
            before_ms = served_ms(login)
            truth = true_rate(before_ms / 1e3)
            offered = [truth * off for off in (0.88, 1.12, 2)]
            points = [measured(login, rate, window_s=2) for rate in offered]
            met = rate_at_limit(points, LIMIT_MS)
            found = (points[0].sustained, points[-1].sustained, met.side, met.rate_per_s)
            expected = (True, False, RateSide.BETWEEN, pytest.approx(truth, rel=0.12))
            is_as_fast = served_ms(login) == pytest.approx(before_ms, rel=0.03)
            if is_as_fast and found == expected:
                break  # nothing else held up the machine meanwhile
    assert found == expected


def served_ms(login: Mapping[str, Any]) -> float:
    """How long a statement really takes: a sleeping thread wakes up a bit late."""
    latency_ms = measured(login, 0, window_s=1).latency_ms
    assert latency_ms is not None
    assert latency_ms >= SERVICE_MS
    return latency_ms


# Of point selects this server answers so many that the generator is near its own limit (void).
PLAN = f"""
systems:
  - {{label: "mysql:8.0.15", reference: "mysql:8.0.15", settings: {SMALL_REDO}}}
workloads: oltp_read_only
dataset: {{tables: 1, rows: 1000}}
load: {{rates: [50%, 70%], slo: p50=50ms, connections: 8}}
trial: {{warmup_s: 0.3, window_s: 1}}
design: {{blocks: 1, disturbance_max: 100%}}
"""


def test_a_run_with_a_limit_goes_from_its_pilot_to_its_report() -> None:
    with workspace() as folder:
        asked = folder.parent / "plan.yaml"
        asked.write_text(PLAN)
        ended = finished(folder, "run", str(asked), "--output", "json")
        assert ended.returncode == 0, ended.stderr
        assert "mysql:8.0.15 (pilot)" in ended.stderr
        (page,) = folder.glob("*/report.md")
        document = json.loads(Path(page).with_suffix(".json").read_text())
        assert "## How the rates were chosen" in page.read_text()
    (found,) = document["plan"]["load"]["pilot"]
    slower = min(found["sustained_per_s"].values())
    assert found["rates_per_s"] == [float(f"{share * slower:.3g}") for share in (0.5, 0.7)]
    (search,) = document["slo"]
    (limit,) = search["limits"]
    (block,) = limit["by_block"]
    assert [point["rate_per_s"] for point in block["points"]] == found["rates_per_s"]
    at_rates = [one for one in document["trials"] if one["trial"]["block"] == 0]
    assert len(at_rates) == 2
    for one in at_rates:
        due = one["trial"]["cell"]["rate_per_s"] * one["window_s"]
        assert abs(one["arrivals"] - due) < 5 * due**0.5, "a Poisson count"
