"""Primaries with replicas, run as one server; networks of their own; nothing of them is left.

What is proven on each version: the same rows at primary and replica, commits that waited, and a
fall-back to asynchronous replication that makes a trial void.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.experiment import runner
from dbdyno.experiment.context import Makers
from dbdyno.judge.judgement import judge
from dbdyno.measurement import replication
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, NetworkPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers import open, process
from dbdyno.servers.base import Instance, ServerSpec
from dbdyno.servers.local.topology import TopologyServer
from dbdyno.store.store import Store
from support.fakes import Progress
from support.lab_process import GONE_S, lives

pytestmark = pytest.mark.live
MARIADB = "mariadb:11.4.5"
POSTGRES = "postgres:18.6"
COMMITS = 20
SMALL = {
    "mysql": {"innodb_redo_log_capacity": "48M"},
    "mariadb": {"innodb_log_file_size": "48M"},
    "postgres": {"max_wal_size": "64MB"},
}
"""Settings with which its files are copied sooner."""


def opened(
    reference: str, folder: Path, kind: str, replicas: int = 1, replica_ms: float = 0
) -> Instance:
    """An instance whose snapshot is a fresh data directory: nothing needs to be loaded here."""
    plan = TopologyPlan.model_validate({"replicas": replicas, "replication": kind, "timeout_s": 20})
    product = reference.partition(":")[0]
    spec = ServerSpec("both", reference, SMALL[product], plan, replica_ms=replica_ms)
    made = open.instance(spec, folder / "system", lambda text: None)
    made.snapshot()
    return made


def started(made: Instance) -> TopologyServer:
    server = made.start()
    assert isinstance(server, TopologyServer)
    return server


def write(server: TopologyServer) -> list[list[tuple[str, ...]]]:
    """Commits some rows; the checksum at the primary and, once caught up, at each replica."""
    server.ask("CREATE TABLE sbtest.t (id INT AUTO_INCREMENT PRIMARY KEY, pad VARCHAR(99))")
    for _ in range(COMMITS - 1):
        server.ask("INSERT INTO sbtest.t (pad) VALUES (UUID())")
    assert server.catch_up(30) < 30
    return [member.ask("CHECKSUM TABLE sbtest.t") for member in (server, *server.replicas)]


@pytest.mark.parametrize(
    "reference", ["mysql:8.0.33", "mysql:9.7.4", "mariadb:10.11.5", MARIADB, "mariadb:11.8.9"]
)
def test_commits_wait_for_the_replica_which_then_has_the_same_rows(reference, folder):
    made = opened(reference, folder, "semisync")
    server = started(made)
    try:
        before = server.replication()
        of_primary, of_replica = write(server)
        seen = replication.over_window(before, server.replication())
        assert of_primary == of_replica
        assert seen[replication.COMMITS_ACKNOWLEDGED] == COMMITS
        assert seen[replication.COMMITS_NOT_ACKNOWLEDGED] == 0
        assert seen[replication.SEMISYNC_ON] == seen[replication.AFTER_SYNC] == 1
        assert seen[replication.REPLICAS_RUNNING] == seen[replication.SEMISYNC_REPLICAS] == 1
        assert seen[replication.TRANSACTIONS_BEHIND] == 0
        assert seen[replication.TIMEOUT_S] == 20
        (replica,) = server.replicas
        assert server.settings()["server_id"] != replica.settings()["server_id"]
        assert replica.settings()["read_only"] == "ON"
    finally:
        made.close()
    assert not [pid for pid in server.pids if psutil.pid_exists(pid)]
    assert [path.name for path in made.folder.iterdir() if path.is_dir()] == ["snapshot"]


@pytest.mark.parametrize(
    ("reference", "kind"), [("postgres:15.19", "semisync"), (POSTGRES, "async")]
)
def test_a_standby_of_postgresql_has_what_its_primary_committed(reference, kind, folder):
    made = opened(reference, folder, kind, replicas=2)
    server = started(made)
    try:
        server.ask("CREATE TABLE t (id SERIAL PRIMARY KEY, pad TEXT)")
        for _ in range(COMMITS):
            server.ask("INSERT INTO t (pad) VALUES (random())")
        assert server.catch_up(30) < 30
        asked = "SELECT count(*), md5(string_agg(pad, ',' ORDER BY id)) FROM t"
        first, *others = [member.ask(asked) for member in (server, *server.replicas)]
        assert first[0][0] == str(COMMITS)
        assert others == [first] * 2
        seen = server.replication()
        assert seen[replication.REPLICAS_RUNNING] == 2
        assert seen[replication.TRANSACTIONS_BEHIND] == 0
        waits = {replication.SEMISYNC_ON: 1, replication.SEMISYNC_REPLICAS: 2}
        waits[replication.AFTER_SYNC] = 1
        assert {n: seen.get(n) for n in waits} == (
            waits if kind == "semisync" else dict.fromkeys(waits)
        )
        with pytest.raises(ServerError, match="read-only"):
            server.replicas[0].ask("INSERT INTO t (pad) VALUES ('x')")
    finally:
        made.close()
    assert not [pid for pid in server.pids if psutil.pid_exists(pid)]
    assert [path.name for path in made.folder.iterdir() if path.is_dir()] == ["snapshot"]


def test_a_commit_of_postgresql_waits_until_a_standby_has_it(folder):
    made = opened(POSTGRES, folder, "semisync")
    server = started(made)
    stopped: list[psutil.Process] = []
    try:
        server.ask("CREATE TABLE t (id INT)")  # whose commit the receiver of the log has answered
        postmaster = psutil.Process(server.replicas[0].pid)
        stopped += [postmaster, *postmaster.children()]
        for one in stopped:
            one.suspend()
        with ThreadPoolExecutor() as beside:
            commit = beside.submit(server.ask, "INSERT INTO t VALUES (1)")
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            with closing(server._primary.session("postgres")) as other:  # type: ignore[attr-defined]
                ends = time.monotonic() + GONE_S
                while other.ask(waits) != [("1",)]:
                    assert time.monotonic() < ends
                    time.sleep(0.02)
            time.sleep(0.5)
            assert not commit.done()
            for one in stopped:
                one.resume()
            assert commit.result(GONE_S) == []
    finally:
        for one in stopped:
            one.resume()
        made.close()


def test_what_a_version_cannot_have_is_refused_before_anything_is_made(folder):
    with pytest.raises(UsageError, match=r"semisync_master\.so|plugins are not in it"):
        opened("mysql:8.0.15", folder, "semisync")
    with pytest.raises(UsageError, match="MariaDB has no group replication"):
        opened(MARIADB, folder, "group")
    assert not (folder / "system").exists()


TIMEOUT_S = 3
"""A replica beside other tests, on a disk that they write to, may be silent for a third of that."""


def plan(reference: str = MARIADB, delay: NetworkPlan | None = None) -> Plan:
    """A semi-synchronous replica; without a network, two blocks longer than the timeout."""
    asked = TopologyPlan.model_validate(
        {"replicas": 1, "replication": "semisync", "timeout_s": TIMEOUT_S}
    )
    settings = SMALL[reference.partition(":")[0]]
    system = SystemPlan(label="both", reference=reference, settings=settings, topology=asked)
    return Plan(
        systems=(system,),
        workloads=(WorkloadPlan(name="oltp_write_only"),),
        dataset=DatasetPlan(tables=1, rows=1000),
        load=LoadPlan(threads=(4,)),
        trial=TrialPlan(warmup_s=1, window_s=2 if delay else 2 + TIMEOUT_S),
        design=DesignPlan(blocks=1 if delay else 2, disturbance_max=1.0),
        network=delay or NetworkPlan(),
    )


def assert_replicas_cpu_is_seen(measured: Measurement) -> None:
    used = [sample.replicas_cpu for sample in measured.watch_measured]
    assert all(cores is not None for cores in used)
    assert 0 < sum(used) < os.cpu_count() * len(used)


def stop_replica(server: TopologyServer) -> None:
    server.replicas[0].ask("STOP SLAVE")


def stop_waiting(server: TopologyServer) -> None:
    server.ask("ALTER SYSTEM SET synchronous_standby_names = ''")
    server.ask("SELECT pg_reload_conf()")


class Run:
    """A run whose servers can be reached while it goes on; in its second block one is spoiled."""

    def __init__(
        self, plan: Plan, folder: Path, spoil: Callable[[TopologyServer], None] = stop_replica
    ) -> None:
        self.spoil = spoil
        self.instances: list[Instance] = []
        self.seconds: dict[int, int] = {}
        makers = Makers(open_instance=self._open)
        with Store.open(folder) as store:
            run = store.create_run(plan, "dbdyno run", {}, 2)
            runner.run(store, run, folder, Progress(self._interval), makers)
            self.measured: list[Measurement] = store.measurements(run.run_id)

    def _open(self, spec, folder, report):
        self.instances.append(open.instance(spec, folder, report))
        return self.instances[-1]

    def _interval(self, trial, interval):
        second = self.seconds[trial.block] = self.seconds.get(trial.block, 0) + 1
        servers = (made._server for made in self.instances)  # type: ignore[attr-defined]
        server = next(one for one in servers if one is not None and one.alive())
        if trial.block == 1 and second == 2:
            self.spoil(server)


def test_a_fall_back_to_asynchronous_makes_the_trial_void_and_the_others_stand(folder):
    asked = plan()
    run = Run(asked, folder)
    sound, alone = run.measured
    assert sound.failure is alone.failure is None
    assert sound.server.replication[replication.COMMITS_ACKNOWLEDGED] >= 0.5 * sound.events > 0
    assert_replicas_cpu_is_seen(sound)
    assert alone.server.replication[replication.COMMITS_NOT_ACKNOWLEDGED] > 0
    assert "replicas catch up" in [step.name for step in sound.procedure]
    void = {(f.check, f.trial) for f in judge(run.measured, asked).findings if f.level == "void"}
    assert ("commits-not-waited", alone.trial.key) in void
    assert ("replicas-missing", alone.trial.key) in void
    assert [check for check, trial in void if trial == sound.trial.key] == []


def test_a_postgresql_that_stops_waiting_makes_the_trial_void_and_the_others_stand(folder):
    asked = plan(POSTGRES)
    run = Run(asked, folder, stop_waiting)
    sound, alone = run.measured
    assert sound.failure is alone.failure is None
    assert sound.events > 0
    assert_replicas_cpu_is_seen(sound)
    done = {step.name: step.done for step in sound.procedure}
    assert done["replicas catch up"]
    void = {(f.check, f.trial) for f in judge(run.measured, asked).findings if f.level == "void"}
    assert ("commits-not-waited", alone.trial.key) in void
    assert [check for check, trial in void if trial == sound.trial.key] == []


@pytest.mark.parametrize("reference", [MARIADB, POSTGRES])
def test_load_primary_and_replica_have_a_network_between_them(reference, folder):
    asked = plan(reference, NetworkPlan(client_ms=10, replica_ms=40))
    run = Run(asked, folder, lambda server: None)
    for measured in run.measured:
        assert measured.failure is None
        assert measured.events > 0
        # BEGIN, four statements and COMMIT, which waits for the replica as well.
        assert measured.histogram().quantile(0.0) >= (6 * 10 + 40) * 0.99e6
        assert measured.server.replication[replication.REPLICAS_RUNNING] == 1
        # A few slow commits may take the replica less than the 10 ms that the kernel counts by.
        assert all(sample.replicas_cpu is not None for sample in measured.watch_measured)
    assert [f for f in judge(run.measured, asked).findings if f.level == "void"] == []


@pytest.mark.parametrize("reference", ["mysql:8.0.33", "mysql:9.7.4"])
def test_a_group_agrees_through_a_network(reference, folder):
    made = opened(reference, folder, "group", replicas=2, replica_ms=20)
    server = started(made)
    try:
        began = time.monotonic()
        of_primary, *of_replicas = write(server)
        assert time.monotonic() - began >= COMMITS * 0.02
        assert of_replicas == [of_primary] * 2
        seen = server.replication()
        assert seen[replication.REPLICAS_RUNNING] == 2
        assert seen[replication.TRANSACTIONS_BEHIND] == 0
    finally:
        made.close()


def test_no_network_outlives_a_lab_that_is_killed(folder):
    lab = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from dbdyno.servers.base import Endpoint
        from dbdyno.servers.local.network import BEHIND, Network
        made = Network([Endpoint(BEHIND, {process.free_port()}, None)], 1.0, Path({str(folder)!r}))
        print(made.pid, flush=True)
        time.sleep(600)
        """
    )
    root = str(Path(open.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(
        [sys.executable, "-c", lab], stdout=subprocess.PIPE, env=environment, text=True
    ) as running:
        assert running.stdout is not None
        network = int(running.stdout.readline())
        assert lives(network)
        running.kill()
    ends = time.monotonic() + GONE_S
    while lives(network):
        assert time.monotonic() < ends, "a network outlived its lab"
        time.sleep(0.02)
