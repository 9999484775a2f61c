"""The engine on a real PostgreSQL: beside sysbench, through conflicts, in a comparison."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dbdyno import _engine, api
from dbdyno.servers.base import Server
from dbdyno.servers.process import server_user
from support.lab_process import finished, workspace
from support.real_server import CROWDED, REDO_BYTES, SYSBENCH, login, started, sysbench_environment
from support.shared_servers import SharedServers
from support.source import ROOT

pytestmark = pytest.mark.live
NEWEST = "postgres:18.6"
SIZE = ("--table-size=2000", "--tables=2")
WORKLOADS = (
    "oltp_read_write",
    "oltp_point_select",
    "oltp_insert",
    "select_random_points",
    "select_random_ranges",
)


@pytest.fixture(scope="module", params=[NEWEST])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield running


def options(server: Server) -> list[str]:
    return [
        "--db-driver=pgsql",
        f"--pgsql-host={server.endpoint.host}",
        f"--pgsql-port={server.endpoint.port}",
        f"--pgsql-user={server.credentials.user}",
        f"--pgsql-db={server.database}",
    ]


def ran(program: str, server: Server, *words: str) -> str:
    environment = sysbench_environment(PGPASSWORD=server.credentials.password)
    command = [*(SYSBENCH if program == "dbdyno" else [program]), *options(server), *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def counts(report: str) -> dict[str, float]:
    wanted = {"read", "write", "other", "total", "transactions", "ignored errors", "reconnects"}
    found = re.findall(r"^ +([a-z ]+): +([0-9]+)", report, re.MULTILINE)
    return {name: float(number) for name, number in found if name in wanted}


@pytest.mark.parametrize("maker", ["dbdyno", "sysbench"])
def test_dbdyno_and_sysbench_use_each_others_tables(server: Server, maker: str) -> None:
    sysbench = shutil.which("sysbench")
    if sysbench is None:
        pytest.skip("sysbench is not installed; `make test` as root installs it")
    programs = {"dbdyno": "dbdyno", "sysbench": sysbench}
    (other,) = set(programs) - {maker}
    ran(programs[maker], server, "oltp_read_write", *SIZE, "prepare")
    try:
        for workload in WORKLOADS:
            load = (workload, *SIZE, "--threads=1", "--events=50", "--time=30", "run")
            own, theirs = (counts(ran(programs[name], server, *load)) for name in programs)
            assert own == theirs, workload
            assert own["total"] > 0
        ran(programs[other], server, "oltp_insert", *SIZE, "--threads=4", "--time=1", "run")
    finally:
        ran(programs[other], server, "oltp_read_write", *SIZE, "cleanup")
    assert server.ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [("0",)]


def spec(server: Server, **more: Any) -> dict[str, Any]:
    return {
        **login(server),
        "driver": "pgsql",
        "connections": 4,
        "window_s": 1.0,
        "seed": 1,
        "workload": {
            "name": "oltp_read_write",
            "options": {"tables": 1, "table_size": 1000},
        },
        **more,
    }


def driven(asked: dict[str, Any]) -> dict[str, Any]:
    return _engine.run(asked, None, _engine.Stop())


@pytest.fixture
def small(server: Server) -> Iterator[dict[str, Any]]:
    """A table of 1000 rows."""
    tables = {**login(server), "driver": "pgsql", "tables": 1}
    made = {**tables, "table_size": 1000, "seed": 1}
    report = _engine.prepare(made, None, _engine.Stop())
    assert report["rows"] == 1000
    yield made
    _engine.cleanup(tables, _engine.Stop())


def test_conflicts_are_rolled_back_and_retried(server: Server, small: dict[str, Any]) -> None:
    server.ask(
        f"ALTER ROLE {server.credentials.user} SET default_transaction_isolation = serializable"
    )
    try:
        # Rows enough that few wait for a deadlock to be found, which takes a second each.
        options = {"tables": 1, "table_size": 1000}
        workload = {"name": "oltp_read_write", "options": options}
        many = {"connections": 8, "events": 100, "window_s": 60.0}
        record = driven(spec(server, workload=workload, **many))
    finally:
        server.ask(f"ALTER ROLE {server.credentials.user} RESET default_transaction_isolation")
    assert record["failure"] is None
    measured = record["intervals"]
    errors = {code for one in measured for code in one["errors"]}
    assert "40001" in errors <= {"40001", "40P01", "23505"}
    assert sum(one["restarts"] for one in measured) > 0
    assert sum(one["events"] for one in measured) > 0


def test_a_refused_statement_ends_the_run_in_the_servers_words(
    server: Server, small: dict[str, Any]
) -> None:
    with pytest.raises(RuntimeError, match="53300"):
        driven(spec(server, connections=5000))
    server.ask("ALTER TABLE sbtest1 DROP COLUMN pad")
    with pytest.raises(RuntimeError, match="42703"):
        driven(spec(server))
    wrong = spec(server, password="wrong")
    with pytest.raises(RuntimeError, match="28P01"):
        driven(wrong)
    with pytest.raises(ValueError, match="compression is MySQL's"):
        driven(spec(server, compression=True))


def test_lost_sessions_are_opened_again(server: Server, small: dict[str, Any]) -> None:
    asked = spec(server, ignore_errors="all", window_s=4.0)
    told: list[dict[str, Any]] = []

    def kill(interval: dict[str, Any]) -> None:
        told.append(interval)
        if len(told) == 1:
            server.ask(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                f" WHERE usename = '{server.credentials.user}'"
            )

    record = _engine.run({**asked, "interval_s": 0.5}, kill, _engine.Stop())
    assert record["failure"] is None
    assert sum(one["reconnects"] for one in record["intervals"]) == 4
    assert record["intervals"][-1]["events"] + record["intervals"][-2]["events"] > 0


LUA = ROOT / "engine/core/src/script/lua/scripts/oltp_read_write.lua"
SCRIPTS = {
    "tpcc": ("--warehouses=1", "--items=100", "--customers=30"),
    "ycsb": ("--records=500",),
}


def test_a_lua_script_does_what_sysbench_does_with_its_own(server: Server) -> None:
    sysbench = shutil.which("sysbench")
    if sysbench is None:
        pytest.skip("sysbench is not installed; `make test` as root installs it")
    ran("dbdyno", server, str(LUA), *SIZE, "prepare")
    try:
        load = (*SIZE, "--threads=1", "--events=50", "--time=30", "run")
        own = counts(ran("dbdyno", server, str(LUA), *load))
        assert own == counts(ran(sysbench, server, "oltp_read_write", *load))
        ran("dbdyno", server, str(LUA), *SIZE, "--threads=8", "--time=1", "run")
        ran("dbdyno", server, str(LUA), *SIZE, "--db-ps-mode=disable", "--events=50", "run")
    finally:
        ran("dbdyno", server, str(LUA), *SIZE, "cleanup")


@pytest.mark.parametrize("script", SCRIPTS)
def test_tpcc_and_ycsb_run_and_keep_their_rows_through_conflicts(
    server: Server, script: str
) -> None:
    typed = (str(ROOT / f"workloads/{script}.lua"), *SCRIPTS[script], "--threads=4")
    user, isolation = server.credentials.user, "default_transaction_isolation"
    ran("dbdyno", server, *typed, "prepare")
    server.ask(f"ALTER ROLE {user} SET {isolation} = serializable")
    try:
        told = ran("dbdyno", server, *typed, "--events=200", "--time=60", "run")
        assert counts(told)["transactions"] > 20
        if script == "tpcc":
            assert counts(told)["ignored errors"] > 0
            ran("dbdyno", server, *typed, "check")
    finally:
        server.ask(f"ALTER ROLE {user} RESET {isolation}")
        ran("dbdyno", server, *typed, "cleanup")


REFUSED = """
function event()
  local con = sysbench.sql.driver():connect()
  print(select(2, pcall(con.prepare, con, "SELECT * FROM nowhere")))
end
"""


def test_a_statement_that_cannot_be_prepared_is_told_as_libpq_does(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "refused.lua").write_text(REFUSED)
    line = (str(tmp_path / "refused.lua"), "--verbosity=1", "--events=1", "run")
    assert ran("dbdyno", server, *line).splitlines() == [
        'FATAL: PQprepare() failed: ERROR:  relation "nowhere" does not exist',
        "LINE 1: SELECT * FROM nowhere",
        "                      ^",
        "",
        "SQL API error",
    ]


READS = """
function event()
  local con = sysbench.sql.driver():connect()
  local text = "SELECT 7, 'seven', NULL::text UNION ALL SELECT 8, 'eight', 'x' ORDER BY 1"
  local found = con:prepare(text):execute()
  print(found.nrows, found.nfields)
  for _ = 1, found.nrows do
    local row = found:fetch_row()
    print(row[2], row[3], row[1]:byte(1, -1))
  end
end
"""


def test_rows_of_prepared_statements_are_those_that_sysbench_reads(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "reads.lua").write_text(READS)
    line = (str(tmp_path / "reads.lua"), "--verbosity=1", "--events=1", "run")
    rows = ["2\t3", "seven\tnil\t0\t0\t0\t7", "eight\tx\t0\t0\t0\t8"]
    assert ran("dbdyno", server, *line).splitlines() == rows
    if sysbench := shutil.which("sysbench"):
        assert ran(sysbench, server, *line).splitlines() == rows


TYPED = """
function event()
  local con, types = sysbench.sql.driver():connect(), sysbench.sql.type
  local stmt = con:prepare("SELECT ?, ?, ?::date")
  local number, real = stmt:bind_create(types.INT), stmt:bind_create(types.DOUBLE)
  local day = stmt:bind_create(types.CHAR, 10)
  stmt:bind_param(number, real, day)
  number:set(7) real:set(0.5) day:set("2024-02-29")
  print(stmt:execute().nrows)
  print(con:query_row("SELECT parameter_types FROM pg_prepared_statements"))
end
"""


def test_parameters_of_a_script_have_sysbenchs_types(server: Server, tmp_path: Path) -> None:
    (tmp_path / "typed.lua").write_text(TYPED)
    line = (str(tmp_path / "typed.lua"), "--verbosity=1", "--events=1", "run")
    types = '{bigint,"double precision","character varying"}'
    assert ran("dbdyno", server, *line).splitlines() == ["1", types]


CERTIFICATES = {
    "rsa": ("-newkey", "rsa:2048", "-sha256"),
    "ec": ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1", "-sha384"),
}


@pytest.mark.parametrize("kind", CERTIFICATES)
def test_a_password_is_bound_to_the_certificate_where_there_is_tls(kind: str) -> None:
    """A wrong binding would be refused by the server: the proof is made over it."""
    with TemporaryDirectory(prefix="dbdyno-tls-") as name:
        folder, certificate, key = Path(name), Path(name) / "own.crt", Path(name) / "own.key"
        folder.chmod(0o755)
        made = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=here"]
        made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
        subprocess.run(
            [*made, "-out", str(certificate), *CERTIFICATES[kind]], check=True, capture_output=True
        )
        if (user := server_user()) is not None:
            os.chown(key, 0, user.gid)
            key.chmod(0o640)
        files = {"ssl_cert_file": str(certificate), "ssl_key_file": str(key)}
        with started("pgtls", NEWEST, {"ssl": "on", **files}) as server:
            tables = {**login(server), "driver": "pgsql", "tables": 1}
            tls = {"tls": {"mode": "verify_identity", "ca": str(certificate)}}
            loaded = {**tables, **tls, "table_size": 1000, "seed": 1}
            _engine.prepare(loaded, None, _engine.Stop())
            record = driven(spec(server, **tls))
            assert record["failure"] is None
            assert record["transport"].startswith("TLS 1.3")
            wrong = {**spec(server, **tls), "password": "wrong"}
            with pytest.raises(RuntimeError, match="28P01"):
                driven(wrong)


def test_mysql_and_postgresql_are_compared_on_the_same_rows() -> None:
    with workspace() as folder:
        ended = finished(
            folder,
            *("compare", "mysql:8.0.33", NEWEST, "--threads", "2", "--blocks", "1"),
            *("--warmup", "0", "--window", "1", "--tables", "1", "--table-size", "1000"),
            *("--set", f"mysql:8.0.33:innodb_redo_log_capacity={REDO_BYTES}", *CROWDED),
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        measured = api.load("latest", folder).trials
    assert {one.trial.system for one in measured} == {"mysql:8.0.33", NEWEST}
    assert {one.failure for one in measured} == {None}
    (digest,) = {one.dataset for one in measured}
    assert digest
    plans = [one.evidence.query_plans for one in measured if one.trial.system == NEWEST]
    assert "Index Scan using sbtest1_pkey on sbtest1" in plans[0]["point_selects"]
