"""Servers that somebody else runs, as a whole run sees them: loaded once, never restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import runner
from dbdyno.experiment.engine.spec import dataset_hash
from dbdyno.judge.judgement import judge
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers import open
from dbdyno.servers.base import Server, ServerSpec
from dbdyno.store.store import Store
from support.certificates import Authority
from support.fakes import Progress
from support.real_server import started

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def somebodys() -> Iterator[Server]:
    """A server that asks for TLS."""
    with (
        started("somebodys", "mysql:8.0.33", {"ssl": "ON", "require_secure_transport": "ON"}) as it,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("CLOUD", it.credentials.password)
        yield it


def plan(
    server: Server,
    database: str = "shop",
    ca: Path | None = None,
    blocks: int = 1,
    workload: str = "oltp_read_write",
) -> Plan:
    """Two addresses of one server stand for two servers; each has a generator of its own."""
    address = f"127.0.0.1:{server.endpoint.port}"
    ca = ca or Path(server.settings()["datadir"]) / "ca.pem"
    query = f"ssl-mode=VERIFY_CA&ssl-ca={ca}"
    reference = f"mysql://{server.credentials.user}@{address},{address}/{database}?{query}"
    return Plan(
        systems=(SystemPlan(label="cloud", reference=reference, password_env="CLOUD"),),
        workloads=(WorkloadPlan(name=workload, label=workload),),
        dataset=DatasetPlan(tables=2, rows=1000),
        load=LoadPlan(threads=(4,), generators=2),
        trial=TrialPlan(warmup_s=0, window_s=1),
        design=DesignPlan(blocks=blocks, disturbance_max=1.0),
    )


def measured(asked: Plan, folder: Path) -> tuple[Store, Progress]:
    store, progress = Store.open(folder), Progress()
    run = store.create_run(asked, "a test", {}, 2)
    runner.run(store, run, folder, progress)
    return store, progress


def sized(asked: Plan) -> int:
    """Bytes of the loaded rows, as a lab that resumes finds them."""
    system = asked.systems[0]
    spec = ServerSpec(
        system.label,
        system.reference,
        password_env=system.password_env,
        dataset=dataset_hash(asked),
    )
    instance = open.instance(spec, Path("nowhere"), str)
    try:
        return instance.data_bytes()
    finally:
        instance.close()


def test_an_endpoint_is_loaded_once_over_tls_and_measured_in_every_block(
    somebodys: Server, tmp_path: Path
) -> None:
    asked = plan(somebodys, blocks=2)
    store, progress = measured(asked, tmp_path / "first")
    with store:
        run = store.runs()[0]
        trials = list(store.measurements(run.run_id))
        assert [(t.failure, t.server.version, t.server.pid) for t in trials] == [
            (None, "8.0.33", somebodys.pid)
        ] * 2
        assert all(trial.events > 0 for trial in trials)
        assert [trial.engine.generators for trial in trials] == [2, 2]
        found = judge(trials, asked).findings
        wrong = {"statements-of-event", "little-law", "commits-at-server", "commits-unflushed"}
        assert not {f.check for f in found} & wrong
        assert [f.level.value for f in found if f.check == "uncontrolled-server"] == ["doubtful"]
    assert sum("loading rows" in stage for stage in progress.stages) >= 1
    assert somebodys.alive()
    assert somebodys.credentials.password not in "".join(
        path.read_bytes().decode("latin1") for path in tmp_path.rglob("*") if path.is_file()
    )
    assert sized(asked) >= 2 * 16384  # two tables of a page at least
    other, again = measured(plan(somebodys), tmp_path / "second")
    other.close()
    assert not any("loading" in stage for stage in again.stages)  # the database remembers
    reads = plan(somebodys, workload="oltp_read_only")
    store, _ = measured(reads, tmp_path / "first")
    with store:
        last = max(store.runs(), key=lambda run: run.run_id)
        trials = list(store.measurements(last.run_id))
        assert [trial.failure for trial in trials] == [None]
        # Rows that differ from the loaded rows are the first run's work, no stranger's.
        assert "rows-not-kept" not in {f.check for f in judge(trials, reads).findings}


def test_tables_of_somebody_else_stay_as_they_are(somebodys: Server, tmp_path: Path) -> None:
    somebodys.ask("CREATE DATABASE theirs")
    somebodys.ask("CREATE TABLE theirs.sbtest1 (id INT PRIMARY KEY)")
    somebodys.ask("INSERT INTO theirs.sbtest1 VALUES (7)")
    with pytest.raises(ServerError, match="tables that dbdyno did not load"):
        measured(plan(somebodys, "theirs"), tmp_path)
    assert somebodys.ask("SELECT id FROM theirs.sbtest1") == [("7",)]


def test_a_wrong_password_is_a_refused_login_and_is_not_told(
    somebodys: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD", "wrong-0815")
    with pytest.raises(ServerError, match="refused the login") as caught:
        measured(plan(somebodys), tmp_path)
    assert "password in CLOUD" in str(caught.value)
    assert "wrong-0815" not in str(caught.value)
    assert "error 1045" in (caught.value.found or "")


def test_a_session_without_tls_and_a_server_of_another_authority_are_refused(
    somebodys: Server, tmp_path: Path
) -> None:
    asked = plan(somebodys)
    system = asked.systems[0]
    plain = system.model_copy(update={"reference": system.reference.partition("?")[0]})
    with pytest.raises(ServerError, match="refused the login"):
        measured(asked.model_copy(update={"systems": (plain,)}), tmp_path / "plain")
    strange = Authority(tmp_path, "strange").ca
    with pytest.raises(ServerError, match="UnknownIssuer"):
        measured(plan(somebodys, ca=strange), tmp_path / "strange")
