"""Runs on many machines: a real Ray cluster of three nodes, of which processes are killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
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
from dbdyno.measurement import replication
from dbdyno.measurement.disturbance import current
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.parts import Phase
from dbdyno.plan.file import read
from dbdyno.plan.fleet import FleetPlan, PlacePlan
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from dbdyno.plan.workload import WorkloadPlan, known_workloads
from dbdyno.servers.base import Server, ServerSpec
from dbdyno.servers.programs.places import cache_folder
from dbdyno.store.store import Store
from support import lab_process, making, ray_cluster, real_server
from support.fakes import Progress
from support.lab_process import (
    DBDYNO,
    GONE_S,
    finished,
    processes_of,
    started,
    stored,
    under_load,
    until,
)
from support.ray_cluster import Nodes, load_of
from support.real_server import SMALL_REDO
from support.source import ROOT

pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore")]  # Ray's
CHILD = "dbdyno.experiment.engine.child"
SERVICE_S = 0.05


@pytest.fixture
def workspace() -> Iterator[Path]:
    with lab_process.workspace() as folder:
        yield folder


def test_a_rate_is_dealt_out_so_that_the_union_is_what_one_draws(remote: ModuleType) -> None:
    generators, arrivals = remote.Generators(2, "load"), []
    try:
        for make in (EngineProcess, generators.engine):
            server = _engine.Reference("fixed", 0.001)
            asked = load_of(server, rate_per_s=300, arrival="poisson", window_s=2.0)
            with make("run", asked) as engine:
                arrivals.append(
                    [
                        one["arrivals"]
                        for one in engine.answer()["intervals"]
                        if one["phase"] == Phase.MEASURED
                    ]
                )
    finally:
        generators.close()
    assert arrivals[0] == arrivals[1]
    assert sum(arrivals[0]) > 400


def of_cluster(nodes: Nodes, kind: str) -> list[psutil.Process]:
    """Processes of the cluster's nodes that run something of that name."""
    every = psutil.Process(nodes.pid).children(recursive=True)
    return [one for one in every if kind in " ".join(lab_process.words_of(one))]


def listen(engine: Engine) -> None:
    """Takes messages until one says that the load has ended."""
    while (message := engine.message()) is None or message.kind not in FINAL:
        pass


def begun(engine: Engine) -> None:
    """Takes messages until the window has begun."""
    while (message := engine.message()) is None or message.value["phase"] == "warmup":
        pass


def test_a_lost_generator_voids_the_trial_and_the_next_has_another(
    nodes: Nodes, remote: ModuleType
) -> None:
    generators, server = remote.Generators(2, "load"), _engine.Reference("fixed", SERVICE_S)
    try:
        for what in (CHILD, "ray::Generator"):
            with generators.engine("run", load_of(server, window_s=60.0)) as engine:
                begun(engine)
                of_cluster(nodes, what)[0].kill()
                with pytest.raises(LostError, match="a machine of the fleet was lost"):
                    listen(engine)
            until(lambda: not of_cluster(nodes, CHILD), "no child is left", GONE_S)
        with generators.engine("run", load_of(server, window_s=0.5)) as engine:
            assert engine.answer()["generators"] == 2
    finally:
        generators.close()


def test_a_generator_that_says_nothing_is_lost(nodes: Nodes, remote: ModuleType) -> None:
    generators, server = remote.Generators(2, "load"), _engine.Reference("fixed", SERVICE_S)
    try:
        with generators.engine("run", load_of(server, window_s=60.0)) as engine:
            begun(engine)
            stopped = of_cluster(nodes, "ray::Generator")[0]
            stopped.suspend()
            with pytest.raises(LostError, match="was lost") as error:
                listen(engine)
            stopped.kill()
        assert "did not answer for 10 s" in (error.value.found or "")
    finally:
        generators.close()


def test_more_generators_than_nodes_are_refused_in_words(
    remote: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PLACE_S", 2.0)
    too_many = remote.Generators(3, "load")
    with pytest.raises(LoadError) as error:
        too_many.there()
    assert "wanted: 3 nodes with the label dbdyno=load" in str(error.value)
    assert "127.0.0.2 (db), 127.0.0.2 (load), 127.0.0.2 (load)" in str(error.value)
    too_many.close()


@pytest.mark.parametrize(
    ("before", "after", "load_s", "words"),
    [
        ((0, 0.3), (4.9, 0.3), 10, None),
        ((0, 0.3), (9.0, 0.3), 10, "the clock of generator 1 of 1 changed by 9.0 ms"),
        ((0, 0.3), (9.0, 0.3), 100, None),
        ((0, 0.3), (11.0, 0.3), 100, "changed by 11.0 ms during the trial (limit 10.0 ms)"),
        ((0, 25.0), (0, 0.3), 10, "its clock is known to ±25.0 ms only"),
    ],
)
def test_clocks_that_disagree_void_the_trial(
    remote: ModuleType,
    before: tuple[float, float],
    after: tuple[float, float],
    load_s: float,
    words: str | None,
) -> None:
    first, last = (remote.Clock(*(round(ms * 1e6) for ms in one)) for one in (before, after))
    found = remote.fault_of([first]) or remote.change_of([first], [last], load_s)
    assert (words in found.value["message"]) if words else found is None


def test_the_published_experiment_on_three_endpoints_has_a_generator_for_each(
    nodes: Nodes, remote: ModuleType, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbdyno.fleet.hosts import makers_of

    settings = {**SMALL_REDO, "max_connections": "500"}
    with real_server.started("three", "mysql:8.0.15", settings) as server:
        monkeypatch.setenv("FLEET_SECRET", server.credentials.password)
        plan = published(server)
        generators = remote.Generators(3)
        with Store.open(workspace) as store:
            asked = store.create_run(plan, "dbdyno run", {}, 8)
            runner.run(plan, store, asked, workspace, Progress(), makers_of(generators))
            measurements = store.measurements(asked.run_id)
        generators.close()
    assert [one.failure for one in measurements] == [None] * 8
    for one in measurements:
        assert [part.connections for part in one.engine.apart] == [50, 50, 50]
        assert one.events > 0
    found = judge(measurements, plan).findings
    assert not {one.check for one in found} & {"statements-of-event", "little-law"}
    secret = server.credentials.password.encode()
    logs = [path for path in nodes.session.rglob("*") if path.is_file()]
    assert len(logs) > 10
    assert not any(secret in path.read_bytes() for path in logs)


def published(server: Server) -> Plan:
    """The plan's four workloads at its least load, on small tables and for a second each."""
    plan = read(ROOT / "plans" / "tidb-v3-vs-v2.yaml", known_workloads(), lambda reference: None)
    places = ",".join([f"127.0.0.1:{server.endpoint.port}"] * 3)
    systems = [
        SystemPlan(
            label=label,
            reference=f"mysql://{server.credentials.user}@{places}/{label}",
            password_env="FLEET_SECRET",
        )
        for label in ("older", "newer")
    ]
    assert len(plan.systems) == len(systems)
    assert plan.load.generators == 3
    parts = {
        "systems": tuple(systems),
        "published": None,
        "dataset": DatasetPlan(tables=2, rows=1000),
        "load": plan.load.model_copy(update={"threads": (min(plan.load.threads),)}),
        "trial": TrialPlan(warmup_s=0, window_s=1),
        "design": DesignPlan(blocks=1, controls=False, disturbance_max=1.0),
        "fleet": FleetPlan(generators=3),
    }
    return plan.model_copy(update=parts)


def test_a_replica_on_another_node_has_the_rows_and_its_loss_voids_the_trial(
    nodes: Nodes, remote: ModuleType, workspace: Path
) -> None:
    from dbdyno.fleet import replicas
    from dbdyno.fleet.hosts import makers_of

    plan, progress, makers = replicated(), Progress(), makers_of(None, "load")
    assert set(replicas.environment(plan, [])) == {"replica 1"}
    made: list[Any] = []
    secrets: list[bytes] = []

    def opened(*asked: Any) -> Any:
        made.append(makers.open_instance(*asked))
        return made[-1]

    def look(trial: Trial, interval: Any) -> None:
        if trial.block == 0 and not secrets:
            server = made[-1]._server
            (replica,) = server.replicas
            server.ask("CREATE TABLE sbtest.proof (id INT PRIMARY KEY)")
            server.ask("INSERT INTO sbtest.proof VALUES (4711)")
            assert server.catch_up(30) < 30
            assert replica.ask("SELECT id FROM sbtest.proof") == [("4711",)]
            assert server.endpoint.host == replica.endpoint.host == ray_cluster.ADDRESS
            (actor,) = of_cluster(nodes, "ray::Replica")
            assert "mysqld" in [one.name() for one in actor.children()]
            assert replica.pid == 0
            secrets.extend(one.credentials.password.encode() for one in (server, replica))
        elif trial.block == 1 and trial.repeat == 0:
            for actor in of_cluster(nodes, "ray::Replica"):
                actor.kill()

    progress.at_interval = look
    with Store.open(workspace) as store:
        asked = store.create_run(plan, "dbdyno run", {}, 2)
        around = replace(makers, open_instance=opened)
        runner.run(plan, store, asked, workspace, progress, around)
        first, lost, again = store.measurements(asked.run_id)
    assert (first.failure, again.failure, again.trial.repeat) == (None, None, 1)
    assert "a machine of the fleet was lost: both replica 1 on 127.0.0.2" in (lost.failure or "")
    assert lost.lost
    seen = first.server.replication
    assert seen[replication.COMMITS_ACKNOWLEDGED] > 0
    assert seen[replication.REPLICAS_APART_CPU_S] > 0
    assert replication.REPLICAS_CPU_S not in seen
    carried = [line for line in progress.stages if "carrying its primary's data" in line]
    assert len(carried) == 1, "it stays on that node"
    until(lambda: not of_cluster(nodes, "ray::Replica"), "no actor is left", GONE_S)
    until(lambda: not processes_of(cache_folder() / "replicas"), "no server is left", GONE_S)
    logs = [path.read_bytes() for path in nodes.session.rglob("*") if path.is_file()]
    assert len(secrets) == 2
    assert not any(secret in log for secret in secrets for log in logs)


def replicated() -> Plan:
    """A primary where the test runs, with a replica on another node, for two blocks of one load."""
    topology = TopologyPlan(replicas=1, replication="semisync", timeout_s=2)
    settings = {"innodb_redo_log_capacity": "48M"}
    system = SystemPlan(
        label="both", reference="mysql:8.0.33", settings=settings, topology=topology
    )
    return Plan(
        systems=(system,),
        workloads=(WorkloadPlan(name="oltp_write_only"),),
        dataset=DatasetPlan(tables=1, rows=1000, loads=1),
        load=LoadPlan(threads=(4,)),
        trial=TrialPlan(warmup_s=1, window_s=4),
        design=DesignPlan(blocks=2, controls=False, disturbance_max=1.0),
        fleet=FleetPlan(place=PlacePlan(replicas="load")),
    )


def test_replicas_are_dealt_out_to_other_nodes_than_their_primarys(
    remote: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbdyno.fleet.replicas import Replicas

    dealt, one, other = Replicas("db"), Path("one"), Path("other")
    own, *others = [remote.Node(name, "10.0.0.1", "db", 1.0) for name in (dealt._near, *"xyz")]
    there = [own]
    monkeypatch.setattr(remote.cluster, "with_role", lambda role: there)
    spec = ServerSpec("both replica 1", "mysql:8.0.33")
    assert dealt.member(spec, 1, one, print) is None
    there += others
    assert dealt.member(spec, 1, one, print) is not None
    names = [dealt._node(copy, n).node_id for copy in (one, other) for n in (1, 2, 3, 4)]
    assert names == [*"xyzx"] * 2
    there.remove(others[0])
    assert [dealt._node(one, n).node_id for n in (1, 4)] == ["y", "z"]
    there.clear()
    with pytest.raises(LoadError, match="no node is left for a replica"):
        dealt._node(one, 1)


def test_another_installation_on_a_node_is_refused_before_anything_begins(
    remote: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = remote.cluster.installed()._replace(engine="of another build")
    monkeypatch.setattr(remote.cluster, "installed", lambda: other)
    generators = remote.Generators(2, "load")
    with pytest.raises(LoadError, match="generator 1 of 2 has another installation") as error:
        generators.there()
    assert error.value.wanted == "engine of another build"
    generators.close()


# Whole runs, each with another process or node killed.

PLAN = f"""
systems:
  - {{label: a, reference: "mysql:5.7.22", settings: {SMALL_REDO}}}
  - {{label: b, reference: "mysql:5.7.22", settings: {SMALL_REDO}}}
workloads: [oltp_point_select]
dataset: {{tables: 1, rows: 1000}}
load: {{threads: [4]}}
design: {{controls: false, disturbance_max: 100%, blocks: """
SYSTEMS = 2
BLOCKS_SPREAD = 4


def plan_of(workspace: Path, fleet: str, blocks: int, window: str = "2s") -> str:
    file = workspace.parent / "plan.yaml"
    file.write_text(f"{PLAN}{blocks}}}\ntrial: {{warmup: 0, window: {window}}}\nfleet: {fleet}\n")
    return str(file)


def begun_run(plan: str, workspace: Path, nodes: Nodes) -> AbstractContextManager[Popen[str]]:
    return started(workspace, "run", plan, "--fleet", nodes.address)


def servers_of_hosts() -> list[psutil.Process]:
    """The servers that hosts started, which are in their folders of the cache."""
    return [one for one in processes_of(cache_folder() / "fleet") if "mysqld" in one.name()]


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
    plan = plan_of(workspace, "{spread: blocks}", BLOCKS_SPREAD)
    with begun_run(plan, workspace, nodes) as lab:
        until(lambda: servers_of_hosts() and stored(workspace), "a trial is stored")
        of_cluster(nodes, "ray::Host")[0].kill()
        output, errors = lab.communicate(timeout=200)
    assert lab.returncode == 0, errors
    assert "was lost" in errors
    measurements = complete(workspace, BLOCKS_SPREAD)
    machines: dict[int, set[str]] = {}
    for one in current(measurements):
        machines.setdefault(one.trial.block, set()).add(one.machine)
    assert all(len(names) == 1 for names in machines.values()), "a block is of one machine"
    looked = {one.trial.block for one in current(measurements) if one.evidence.rows_after}
    assert looked == {BLOCKS_SPREAD - 1}, "rows are counted at the run's end, and not at a block's"
    assert len(set.union(*machines.values())) >= 2
    assert "report:" in output
    until(lambda: not servers_of_hosts(), "no server is left", GONE_S)


def test_a_host_that_dies_behind_its_block_leaves_what_was_disturbed_to_another(
    remote: ModuleType, tmp_path: Path
) -> None:
    from dbdyno.fleet.hosts import Hosts
    from support.simulated_host import DyingHost

    plan, hosts = making.plan(blocks=2), Hosts("", 2, DyingHost)
    try:
        with Store.open(tmp_path) as store:
            new = store.create_run(plan, "dbdyno run", {}, 4)
            runner.run(plan, store, new, tmp_path, Progress(), Makers(hosts=hosts))
            every = store.measurements(new.run_id)
    finally:
        hosts.close()
    assert len(every) == 4 + SYSTEMS
    assert sorted((one.trial.block, one.trial.repeat) for one in current(every)) == [
        *[(0, 1)] * SYSTEMS,
        *[(1, 0)] * SYSTEMS,
    ]


def test_a_head_that_is_killed_loses_nothing_and_leaves_nobody(
    nodes: Nodes, workspace: Path
) -> None:
    plan = plan_of(workspace, "{place: {primary: db, generators: load}, generators: 2}", 2)
    with begun_run(plan, workspace, nodes) as lab:
        until(lambda: stored(workspace), "a trial is stored")
        until(lambda: of_cluster(nodes, CHILD), "a load runs")
        (server,) = servers_of_hosts()
        assert {one.laddr.ip for one in listening(server)} == {ray_cluster.ADDRESS}
        lab.kill()
    kept = [row["trial_key"] for row in stored(workspace)]
    for what in ("ray::Host", "ray::Generator", CHILD):
        until(lambda what=what: not of_cluster(nodes, what), f"no {what} is left", GONE_S)
    until(lambda: not servers_of_hosts(), "no server is left", GONE_S)
    resumed = finished(workspace, "run", plan, "--resume", "--fleet", nodes.address)
    assert resumed.returncode == 0, resumed.stderr
    every = complete(workspace, 2)
    assert [one.trial.key for one in every][: len(kept)] == kept
    assert {one.engine.generators for one in every} == {2}
    assert all(len(one.engine.apart) == 2 and one.machine for one in every)


def test_a_node_that_is_lost_ends_the_run_which_goes_on_with_another(
    nodes: Nodes, workspace: Path
) -> None:
    plan = plan_of(workspace, "{generators: 2, place: {generators: load}}", 1, "4s")
    with begun_run(plan, workspace, nodes) as lab:
        until(under_load(workspace), "a load runs")
        nodes.kill(2)
        _, errors = lab.communicate(timeout=200)
    assert lab.returncode == 1
    assert "the cluster has too few nodes for the generators" in errors
    assert "to go on: dbdyno compare --resume" in errors
    lost = [row for row in stored(workspace) if row["failure"]]
    assert lost, errors
    assert "a machine of the fleet was lost" in lost[0]["failure"]
    nodes.add("load")
    resumed = finished(workspace, "run", plan, "--resume", "--fleet", nodes.address)
    assert resumed.returncode == 0, resumed.stderr
    complete(workspace, 1)


def test_the_check_shows_every_node_and_the_ways_between_them(nodes: Nodes) -> None:
    command = [DBDYNO, "fleet", "check", nodes.address, "--output", "json"]
    seen = json.loads(run(command, capture_output=True, text=True, check=True).stdout)
    assert [one["label"] for one in seen["nodes"]] == ["db", "load", "load"]
    assert all("generator" in one["runs"] and one["within_ms"] < 20 for one in seen["nodes"])
    assert len(seen["ways"]) == 6
    assert all(way["megabytes_per_s"] > 1 and way["round_trip_ms"] > 0 for way in seen["ways"])
