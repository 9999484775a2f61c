"""Runs on many machines: a real Ray cluster of three nodes, of which processes are killed."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from subprocess import Popen, run
from types import ModuleType
from typing import Any

import psutil
import pytest

from dbdyno import _engine
from dbdyno.errors import LoadError, LostError
from dbdyno.experiment import runner
from dbdyno.experiment.context import Makers
from dbdyno.experiment.engine.child import FINAL
from dbdyno.experiment.engine.process import Engine, EngineProcess
from dbdyno.judge.judgement import judge
from dbdyno.measurement.disturbance import current
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Phase
from dbdyno.servers.base import Server
from dbdyno.servers.programs.places import cache_folder
from dbdyno.store.store import Store
from support import fleet_plans, making, ray_cluster, real_server
from support.fakes import Progress
from support.lab_process import (
    DBDYNO,
    GONE_S,
    finished,
    name_of,
    processes_of,
    started,
    stored,
    under_load,
    until,
)
from support.ray_cluster import Nodes, load_of

pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore")]  # Ray's
CHILD = "dbdyno.experiment.engine.child"
SERVICE_S = 0.05
TRIES = 8
"""What disturbs only makes slower: the least of several is what a quiet machine would show."""
SYSTEMS = len(fleet_plans.LABELS)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that others run, as far as a plan knows."""
    with (
        real_server.started("three", "mysql:5.7.22", {"max_connections": "500"}) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(fleet_plans.SECRET, running.credentials.password)
        yield running


def measured(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in record["intervals"] if one["phase"] == Phase.MEASURED]


def test_a_rate_is_dealt_out_so_that_the_union_is_what_one_draws(remote: ModuleType) -> None:
    generators, arrivals = remote.Generators(2, "load"), []
    shape = {"rate_per_s": 600, "arrival": "poisson", "window_s": 1.0, "interval_s": 0.5}
    try:
        for make in (EngineProcess, generators.engine):
            answering = _engine.Reference("fixed", 0.001)
            with make("run", load_of(answering, **shape)) as engine:
                arrivals.append([one["arrivals"] for one in measured(engine.answer())])
    finally:
        generators.close()
    assert arrivals[0] == arrivals[1]
    assert sum(arrivals[0]) > 400


def mean_ms(record: dict[str, Any]) -> float:
    counted = measured(record)
    total_ns = sum(one["latency_ns_sum"] for one in counted)
    return total_ns / sum(one["events"] for one in counted) / 1e6


def histogram(record: dict[str, Any]) -> _engine.Histogram:
    counts = _engine.Histogram()
    for one in record["intervals"]:
        counts.add(_engine.Histogram.decode(base64.b64decode(one["histograms"]["event"])))
    return counts


def least(seen: list[tuple[float, float]]) -> tuple[float, float]:
    return min(mean for mean, _ in seen), min(p95 for _, p95 in seen)


@pytest.mark.alone
def test_three_machines_merged_are_one_generator(remote: ModuleType) -> None:
    generators = remote.Generators(3)
    alone: list[tuple[float, float]] = []
    together: list[tuple[float, float]] = []
    try:
        for _ in range(TRIES):
            for make, seen in ((EngineProcess, alone), (generators.engine, together)):
                answering = _engine.Reference("fixed", SERVICE_S)
                with make("run", load_of(answering, warmup_s=0.25, window_s=1.5)) as engine:
                    record = engine.answer()
                asked = answering.truth()[0].count()
                assert sum(one["events"] for one in record["intervals"]) == asked
                assert histogram(record).count() == asked
                seen.append((mean_ms(record), histogram(record).quantile(0.95) / 1e9))
            single, merged = least(alone), least(together)
            # A closed loop's throughput is its connections by its mean latency; a count would be
            # off by the last event of each connection, which is one in thirty here.
            equal = pytest.approx(single[0], rel=0.05), pytest.approx(single[1], rel=0.05)
            true_ms = pytest.approx(SERVICE_S * 1000, rel=0.05)
            if merged == equal and merged[0] == true_ms:
                break
    finally:
        generators.close()
    assert merged == equal, (alone, together)
    assert merged[0] == true_ms
    assert [one["connections"] for one in record["apart"]] == [3, 3, 2]
    assert all(one["clock_ms"] < 5 for one in record["apart"])


@pytest.mark.alone
def test_three_hosts_run_nearly_three_times_the_blocks(remote: ModuleType, tmp_path: Path) -> None:
    from dbdyno.fleet.hosts import Hosts
    from support.simulated_host import TRIAL_S, SimulatedHost

    plan, trials = making.plan(blocks=9), 18
    for _ in range(TRIES):
        hosts = Hosts("", 3, SimulatedHost)
        with Store.open(tmp_path) as store:
            stored_run = store.create_run(plan, "dbdyno run", {}, trials)
            began = time.monotonic()
            runner.run(store, stored_run, tmp_path, Progress(), Makers(hosts=hosts))
            took_s = time.monotonic() - began
            assert len(store.done(stored_run.run_id)) == trials
            machines = {one.machine for one in store.measurements(stored_run.run_id)}
        hosts.close()
        assert len(machines) == 3
        assert took_s >= trials * TRIAL_S / 3
        if trials * TRIAL_S / took_s >= 0.75 * 3:
            break
    assert trials * TRIAL_S / took_s >= 0.75 * 3, took_s


def listen(engine: Engine) -> None:
    """Takes messages until one says that the load has ended."""
    while (message := engine.message()) is None or message.kind not in FINAL:
        pass


def begun(engine: Engine) -> None:
    """Takes messages until the window has begun."""
    while (message := engine.message()) is None or message.value["phase"] == "warmup":
        pass


def load_at_once(answering: _engine.Reference, window_s: float = 60.0) -> dict[str, Any]:
    """A load that tells soon that it has begun."""
    return load_of(answering, window_s=window_s, warmup_s=0.0, interval_s=0.25)


def test_a_lost_generator_voids_the_trial_and_the_next_has_another(
    nodes: Nodes, remote: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(self: Any, answer: Any, *kinds: type, timeout_s: float = 3.0) -> Any:
        return remote.cluster.answer(answer, self.name, *kinds, timeout_s=timeout_s)

    generators, answering = remote.Generators(2, "load"), _engine.Reference("fixed", SERVICE_S)
    try:
        for what, wrong in (
            (CHILD, "kill"),
            ("ray::Generator", "kill"),
            ("ray::Generator", "suspend"),
        ):
            if wrong == "suspend":
                monkeypatch.setattr(remote.Remote, "_asked", asked)
            with generators.engine("run", load_at_once(answering)) as engine:
                begun(engine)
                victim = nodes.processes(what)[0]
                getattr(victim, wrong)()
                with pytest.raises(LostError, match="a machine of the fleet was lost") as error:
                    listen(engine)
                with suppress(psutil.NoSuchProcess):
                    victim.kill()
            until(lambda: not nodes.processes(CHILD), "no child is left", GONE_S)
        assert "did not answer for 3 s" in (error.value.found or "")
        monkeypatch.undo()
        with generators.engine("run", load_at_once(answering, 0.5)) as engine:
            assert engine.message(-0.1) is None, "a moment that has passed is not waited for"
            assert engine.answer()["generators"] == 2
    finally:
        generators.close()


def test_nodes_that_are_too_few_or_unlike_are_refused_before_anything_begins(
    remote: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PLACE_S", 0.5)
    too_many = remote.Generators(3, "load")
    with pytest.raises(LoadError) as error:
        too_many.there()
    assert "wanted: 3 nodes with the label dbdyno=load" in str(error.value)
    assert "127.0.0.2 (db), 127.0.0.2 (load), 127.0.0.2 (load)" in str(error.value)
    too_many.close()
    here, there = {"path:/opt/mysql": "a" * 64}, {"path:/opt/mysql": "b" * 64}
    remote.cluster.check_programs("machine 1", here, here)
    with pytest.raises(LoadError, match="machine 2 has other programs") as error:
        remote.cluster.check_programs("machine 2", here, there)
    assert error.value.wanted == f"path:/opt/mysql with SHA-256 {'a' * 16}"
    assert error.value.found == "b" * 16
    other = remote.cluster.installed()._replace(engine="of another build")
    monkeypatch.setattr(remote.cluster, "installed", lambda: other)
    generators = remote.Generators(2, "load")
    with pytest.raises(LoadError, match="generator 1 of 2 has another installation") as error:
        generators.there()
    assert error.value.wanted == "engine of another build"
    generators.close()


def test_clocks_that_disagree_void_the_trial(remote: ModuleType) -> None:
    for before, after, load_s, words in (
        ((0, 0.3), (4.9, 0.3), 10, None),
        ((0, 0.3), (9.0, 0.3), 10, "the clock of generator 1 of 1 changed by 9.0 ms"),
        ((0, 0.3), (9.0, 0.3), 100, None),
        ((0, 0.3), (11.0, 0.3), 100, "changed by 11.0 ms during the trial (limit 10.0 ms)"),
        ((0, 25.0), (0, 0.3), 10, "its clock is known to ±25.0 ms only"),
    ):
        first, last = (remote.Clock(*(round(ms * 1e6) for ms in one)) for one in (before, after))
        found = remote.fault_of([first]) or remote.change_of([first], [last], load_s)
        assert (words in found.value["message"]) if words else found is None


def test_the_published_experiment_on_three_endpoints_has_a_generator_for_each(
    nodes: Nodes, remote: ModuleType, server: Server, workspace: Path
) -> None:
    from dbdyno.fleet.hosts import makers_of

    plan, generators = fleet_plans.published(server), remote.Generators(3)
    plan = plan.model_copy(update={"workloads": plan.workloads[::2]})  # of four
    with Store.open(workspace) as store:
        asked = store.create_run(plan, "dbdyno run", {}, 4)
        runner.run(store, asked, workspace, Progress(), makers_of(generators))
        measurements = store.measurements(asked.run_id)
    generators.close()
    assert [one.failure for one in measurements] == [None] * 4
    for one in measurements:
        assert [part.connections for part in one.engine.apart] == [50, 50, 50]
        assert all(0 < part.cpu_share_max <= 1.1 for part in one.engine.apart)
        assert one.events > 0
        assert one.evidence.ceiling_per_s
    found = judge(measurements, plan).findings
    assert not {one.check for one in found} & {"statements-of-event", "little-law"}
    secret = server.credentials.password.encode()
    logs = [path for path in nodes.session.rglob("*") if path.is_file()]
    assert len(logs) > 10
    assert not any(secret in path.read_bytes() for path in logs)


# Whole runs, each with another process or node killed.


def begun_run(plan: str, workspace: Path, nodes: Nodes) -> AbstractContextManager[Popen[str]]:
    return started(workspace, "run", plan, "--fleet", nodes.address)


def servers_of_hosts() -> list[psutil.Process]:
    """The servers that hosts started, which are in their folders of the cache."""
    return [one for one in processes_of(cache_folder() / "fleet") if "mysqld" in name_of(one)]


def listening(server: psutil.Process) -> list[Any]:
    return [one for one in server.net_connections("tcp") if one.status == psutil.CONN_LISTEN]


def complete(workspace: Path, blocks: int) -> list[Measurement]:
    """All measurements of the only run, none of whose trials is missing or there twice."""
    with Store.open(workspace) as store:
        (run_id,) = store.run_ids()
        assert store.run(run_id).finished_at is not None
        every = store.measurements(run_id)
    sound = [one for one in current(every) if one.failure is None]
    assert len({one.trial.place for one in sound}) == len(sound) == SYSTEMS * blocks
    return every


def test_a_host_that_is_killed_has_its_block_measured_again(nodes: Nodes, workspace: Path) -> None:
    blocks, fleet = 3, {"spread": "blocks", "place": {"primary": "load"}}
    plan = fleet_plans.written(workspace, fleet, blocks=blocks, window="1s")
    with begun_run(plan, workspace, nodes) as lab:
        until(lambda: servers_of_hosts() and stored(workspace), "a trial is stored")
        nodes.processes("ray::Host")[0].kill()
        output, errors = lab.communicate(timeout=200)
    assert lab.returncode == 0, errors
    assert "was lost" in errors
    measurements = complete(workspace, blocks)
    machines: dict[int, set[str]] = {}
    for one in current(measurements):
        machines.setdefault(one.trial.block, set()).add(one.machine)
    assert all(len(names) == 1 for names in machines.values()), "a block is of one machine"
    looked = {one.trial.block for one in current(measurements) if one.evidence.rows_after}
    assert looked == {blocks - 1}, "rows are counted at the run's end, and not at a block's"
    assert len(set.union(*machines.values())) >= 2
    assert "report:" in output
    until(lambda: not servers_of_hosts(), "no server is left", GONE_S)


def test_a_host_that_dies_or_hangs_behind_its_block_leaves_what_was_disturbed_to_another(
    nodes: Nodes, remote: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbdyno.fleet import hosts as room
    from support.simulated_host import DyingHost

    monkeypatch.setattr(room, "SILENT_S", 5.0)
    plan, hosts, progress = making.plan(blocks=2), room.Hosts("", 2, DyingHost), Progress()
    try:
        with Store.open(tmp_path) as store:
            new = store.create_run(plan, "dbdyno run", {}, 4)
            runner.run(store, new, tmp_path, progress, Makers(hosts=hosts))
            every = store.measurements(new.run_id)
    finally:
        hosts.close()
        for stopped in nodes.processes("ray::DyingHost"):
            with suppress(psutil.NoSuchProcess):
                stopped.kill()
    assert len(every) == 4 + 2 * SYSTEMS
    assert sorted((one.trial.block, one.trial.repeat) for one in current(every)) == [
        *[(0, 1)] * SYSTEMS,
        *[(1, 1)] * SYSTEMS,
    ]
    gone = [line for line in progress.stages if "was lost" in line]
    assert len(gone) == 2
    assert "it said nothing for 5 s" in gone[1]


def test_a_head_that_is_killed_loses_nothing_and_leaves_nobody(
    nodes: Nodes, workspace: Path
) -> None:
    fleet = {"place": {"primary": "db", "generators": "load"}, "generators": 2}
    plan = fleet_plans.written(workspace, fleet, blocks=1, window="3s")
    with begun_run(plan, workspace, nodes) as lab:
        until(lambda: stored(workspace), "a trial is stored")
        until(lambda: nodes.processes(CHILD), "a load runs")
        (running,) = servers_of_hosts()
        assert {one.laddr.ip for one in listening(running)} == {ray_cluster.ADDRESS}
        lab.kill()
    kept = [row["trial_key"] for row in stored(workspace)]
    for what in ("ray::Host", "ray::Generator", CHILD):
        until(lambda what=what: not nodes.processes(what), f"no {what} is left", GONE_S)
    until(lambda: not servers_of_hosts(), "no server is left", GONE_S)
    resumed = finished(workspace, "resume", "latest", "--fleet", nodes.address)
    assert resumed.returncode == 0, resumed.stderr
    every = complete(workspace, 1)
    assert [one.trial.key for one in every][: len(kept)] == kept
    assert {one.engine.generators for one in every} == {2}
    assert all(len(one.engine.apart) == 2 and one.machine for one in every)


def test_a_node_that_is_lost_ends_the_run_which_goes_on_with_another(
    nodes: Nodes, server: Server, workspace: Path
) -> None:
    fleet = {"generators": 2, "place": {"generators": "load"}}
    plan = fleet_plans.written(workspace, fleet, blocks=1, window="4s", server=server)
    with begun_run(plan, workspace, nodes) as lab:
        until(under_load(workspace), "a load runs")
        nodes.kill(2)
        _, errors = lab.communicate(timeout=200)
    assert lab.returncode == 1
    assert "the cluster has too few nodes for the generators" in errors
    assert "to go on: dbdyno resume" in errors
    lost = [row for row in stored(workspace) if row["failure"]]
    assert lost, errors
    assert "a machine of the fleet was lost" in lost[0]["failure"]
    nodes.add("load")
    resumed = finished(workspace, "resume", "latest", "--fleet", nodes.address)
    assert resumed.returncode == 0, resumed.stderr
    complete(workspace, 1)
    with Store.open(workspace) as store:
        (stored_run,) = store.runs()
    assert {"generator 1", "generator 2"} <= stored_run.environment.keys()


def test_the_check_shows_every_node(nodes: Nodes) -> None:
    command = [DBDYNO, "fleet", "check", nodes.address, "--output", "json"]
    seen = json.loads(run(command, capture_output=True, text=True, check=True).stdout)
    assert [one["label"] for one in seen["nodes"]] == ["db", "load", "load"]
    assert all("generator" in one["runs"] and one["within_ms"] < 20 for one in seen["nodes"])
