"""What time shows of a fleet: its merged latencies are those of one generator, hosts add up."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from types import ModuleType

import pytest

from dbdyno import _engine
from dbdyno.experiment import runner
from dbdyno.experiment.context import Makers
from dbdyno.experiment.engine.process import EngineProcess
from dbdyno.measurement.parts import Phase
from dbdyno.store.store import Store
from support import making
from support.fakes import Progress
from support.ray_cluster import load_of

pytestmark = [pytest.mark.live, pytest.mark.alone, pytest.mark.filterwarnings("ignore")]  # Ray's
SERVICE_S = 0.05


def measured(record):
    return [one for one in record["intervals"] if one["phase"] == Phase.MEASURED]


def mean_ms(record):
    counted = measured(record)
    total_ns = sum(one["latency_ns_sum"] for one in counted)
    return total_ns / sum(one["events"] for one in counted) / 1e6


def histogram(record):
    counts = _engine.Histogram()
    for one in record["intervals"]:
        counts.add(_engine.Histogram.decode(base64.b64decode(one["histograms"]["event"])))
    return counts


def test_three_machines_merged_are_one_generator(remote: ModuleType) -> None:
    generators = remote.Generators(3)
    try:
        means, p95 = [], []
        for make in (EngineProcess, generators.engine) * 3:
            server = _engine.Reference("fixed", SERVICE_S)
            with make("run", load_of(server)) as engine:
                record = engine.answer()
            asked = server.truth()[0].count()
            assert sum(one["events"] for one in record["intervals"]) == asked
            assert histogram(record).count() == asked
            means.append(mean_ms(record))
            p95.append(histogram(record).quantile(0.95) / 1e9)
    finally:
        generators.close()
    # A closed loop's throughput is its connections by its mean latency; a count would be off by the
    # last event of each connection, which is one in forty here.
    single, merged = min(means[::2]), min(means[1::2])  # what disturbs only makes slower
    assert merged == pytest.approx(single, rel=0.01)
    assert merged == pytest.approx(SERVICE_S * 1000, rel=0.02)
    assert min(p95[1::2]) == pytest.approx(min(p95[::2]), rel=0.02)
    assert [one["connections"] for one in record["apart"]] == [3, 3, 2]
    assert all(one["clock_ms"] < 5 for one in record["apart"])


def test_three_hosts_run_nearly_three_times_the_blocks(remote: ModuleType, tmp_path: Path) -> None:
    from dbdyno.fleet.hosts import Hosts
    from support.simulated_host import TRIAL_S, SimulatedHost

    took_s, plan = {}, making.plan(blocks=6)
    for count in (1, 3):
        hosts = Hosts("", count, SimulatedHost)
        with Store.open(tmp_path) as store:
            stored_run = store.create_run(plan, "dbdyno run", {}, 12)
            began = time.monotonic()
            makers = Makers(hosts=hosts)
            runner.run(plan, store, stored_run, tmp_path, Progress(), makers)
            took_s[count] = time.monotonic() - began
            assert len(store.done(stored_run.run_id)) == 12
            machines = {one.machine for one in store.measurements(stored_run.run_id)}
        hosts.close()
        assert len(machines) == count
    assert took_s[1] >= 12 * TRIAL_S
    assert took_s[1] / took_s[3] >= 0.8 * 3, took_s
