"""PostgreSQL that somebody else runs: loaded once, over TLS, never restarted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import runner
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import Server
from dbdyno.servers.process import server_user
from dbdyno.store.store import Store
from support.certificates import Authority
from support.fakes import Progress
from support.real_server import started

pytestmark = pytest.mark.live


class Somebodys(NamedTuple):
    server: Server
    authority: Path


@pytest.fixture(scope="module")
def somebodys() -> Iterator[Somebodys]:
    with TemporaryDirectory(prefix="dbdyno-pg-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        authority = Authority(folder, "pg")
        certificate, key = authority.issue("server", "127.0.0.1")
        if (user := server_user()) is not None:
            os.chown(key, 0, user.gid)
            key.chmod(0o640)
        tls = {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)}
        with started("somebodyspg", "postgres:18.6", {"shared_buffers": "64MB", **tls}) as server:
            yield Somebodys(server, authority.ca)


def plan(server: Server, query: str = "", database: str = "", blocks: int = 1) -> Plan:
    place = f"127.0.0.1:{server.endpoint.port}/{database or server.database}"
    reference = f"postgresql://{server.credentials.user}@{place}{query}"
    return Plan(
        systems=(SystemPlan(label="cloud", reference=reference, password_env="CLOUD"),),
        workloads=(WorkloadPlan(name="oltp_read_write", label="oltp_read_write"),),
        dataset=DatasetPlan(tables=2, rows=1000),
        load=LoadPlan(threads=(4,)),
        trial=TrialPlan(warmup_s=0, window_s=2),
        design=DesignPlan(blocks=blocks, disturbance_max=1.0),
    )


def measured(asked: Plan, folder: Path) -> tuple[Store, Progress]:
    store, progress = Store.open(folder), Progress()
    run = store.create_run(asked, "a test", {}, 2)
    runner.run(store, run, folder, progress)
    return store, progress


def test_it_is_loaded_once_over_tls_and_measured_in_every_block(
    somebodys: Somebodys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, authority = somebodys
    monkeypatch.setenv("CLOUD", server.credentials.password)
    asked = plan(server, f"?sslmode=verify-full&sslrootcert={authority}", blocks=2)
    store, progress = measured(asked, tmp_path / "first")
    with store:
        trials = store.measurements(store.runs()[0].run_id)
    assert [(t.failure, t.server.version[:4], t.server.pid) for t in trials] == [
        (None, "18.6", server.pid)
    ] * 2
    assert all(trial.events > 0 for trial in trials)
    assert all(trial.server.settings["ssl"] == "on" for trial in trials)
    # A session reports its transactions once a second, so the last second may be missing.
    assert all(trial.server.status["database.xact_commit"] > 0 for trial in trials)
    assert sum("loading rows" in stage for stage in progress.stages) >= 1
    assert server.credentials.password not in "".join(
        path.read_bytes().decode("latin1") for path in tmp_path.rglob("*") if path.is_file()
    )
    other, again = measured(plan(server), tmp_path / "second")
    other.close()
    assert not any("loading" in stage for stage in again.stages)  # the database remembers


def test_tables_of_somebody_else_stay_as_they_are(
    somebodys: Somebodys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = somebodys.server
    monkeypatch.setenv("CLOUD", server.credentials.password)
    server.ask('CREATE DATABASE "shop" OWNER ' + server.credentials.user)
    with closing(server.session("shop")) as shop:  # type: ignore[attr-defined]
        shop.ask("CREATE TABLE sbtest1 AS SELECT 7 AS id")
        with pytest.raises(ServerError, match="has tables that dbdyno did not load"):
            measured(plan(server, database="shop"), tmp_path)
        assert shop.ask("SELECT id FROM sbtest1") == [("7",)]


@pytest.mark.parametrize(
    ("query", "database", "password", "said"),
    [
        ("", "", "wrong-0815", "password in CLOUD"),
        ("", "nowhere", "", 'database "nowhere" does not exist'),
        ("?sslmode=verify-ca&sslrootcert={strange}", "", "", "UnknownIssuer"),
    ],
)
def test_a_login_that_cannot_be_says_why(
    somebodys: Somebodys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    database: str,
    password: str,
    said: str,
) -> None:
    server = somebodys.server
    monkeypatch.setenv("CLOUD", password or server.credentials.password)
    strange = Authority(tmp_path, "strange").ca
    with pytest.raises(ServerError) as caught:
        measured(plan(server, query.format(strange=strange), database), tmp_path)
    assert said in str(caught.value)
    assert "wrong-0815" not in str(caught.value)
