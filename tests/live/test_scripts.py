"""Lua scripts on a real server: what sysbench's API promises, and what our own workloads do.

The server's counters say whether a script's events are those of the workload that is built in.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dbdyno.servers.base import Server
from support.counters import settled
from support.real_server import SYSBENCH, sysbench_environment, sysbench_options
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
Ended = subprocess.CompletedProcess[str]
Shell = Callable[..., Ended]
MODULES = Path(__file__).parents[2] / "engine/core/src/script/lua/scripts"
NAMES = ("select", "update", "delete", "insert", "begin", "commit", "stmt_prepare", "stmt_execute")
SHOWN = re.compile(r"(read|write|other): +([0-9]+)")


@pytest.fixture(scope="module", params=["mysql:8.0.15"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield running


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Shell:
    """Writes a script as `script.lua`, and runs a line with the server's address."""
    environment = sysbench_environment(MYSQL_PWD=server.credentials.password)

    def run(line: str, script: str | None = None, *, status: int = 0) -> Ended:
        if script is not None:
            (tmp_path / "script.lua").write_text(script)
        ended = subprocess.run(
            [*SYSBENCH, *sysbench_options(server), *line.split()],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment,
            cwd=tmp_path,
        )
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended

    return run


EVENTS = 30
TABLES = "--tables=2 --table-size=500"


@pytest.mark.parametrize(
    "name",
    [
        *("oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only", "oltp_read_write"),
        *("oltp_update_index", "oltp_update_non_index", "oltp_write_only"),
        *("select_random_points", "select_random_ranges"),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "disable"])
def test_a_script_does_what_the_built_in_workload_does(
    server: Server, shell: Shell, tmp_path: Path, name: str, mode: str
) -> None:
    (tmp_path / "mine.lua").write_text((MODULES / f"{name}.lua").read_text())
    line = f"{TABLES} --db-ps-mode={mode} --rand-seed=3 --events={EVENTS} run"
    seen = {}
    for typed in (name, "mine.lua"):
        # An update to what the row holds already would count as no write.
        shell(f"oltp_read_write {TABLES} cleanup")
        shell(f"oltp_read_write {TABLES} prepare")
        before = settled(server)
        output = shell(f"{typed} {line}").stdout
        after = settled(server)
        counted = [after[f"Com_{one}"] - before[f"Com_{one}"] for one in NAMES]
        seen[typed] = (counted, SHOWN.findall(output))
    assert seen[name][1] == seen["mine.lua"][1]
    ours, theirs = seen[name][0], seen["mine.lua"][0]
    # BEGIN is asked to be prepared by the script, and refused.
    assert theirs[:6] == ours[:6]
    assert theirs[7] == ours[7]


def test_a_script_prepares_and_drops_its_tables(
    server: Server, shell: Shell, tmp_path: Path
) -> None:
    shell(f"oltp_read_write {TABLES} cleanup")
    (tmp_path / "mine.lua").write_text((MODULES / "oltp_read_write.lua").read_text())
    made = {}
    for typed in ("oltp_read_write", "mine.lua"):
        printed = sorted(shell(f"{typed} {TABLES} prepare").stdout.splitlines())
        rows = server.ask(f"SELECT COUNT(*), MIN(id), MAX(id) FROM {server.database}.sbtest1")
        table = server.ask(f"SHOW CREATE TABLE {server.database}.sbtest2")
        shell(f"{typed} {TABLES} cleanup")
        made[typed] = (printed, rows, table)
    assert made["mine.lua"] == made["oltp_read_write"]


def test_a_script_draws_the_rows_that_sysbench_draws(
    server: Server, shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "mine.lua").write_text((MODULES / "oltp_read_write.lua").read_text())
    shell("mine.lua --table-size=10000 cleanup")
    shell("mine.lua --table-size=10000 prepare")
    rows = server.ask(
        f"SELECT k, LEFT(c, 23), LEFT(pad, 11) FROM {server.database}.sbtest1 LIMIT 2"
    )
    # From a run of sysbench 1.0.20 as its authors build it.
    assert rows[0] == ("4993", "83868641912-28773972837", "67847967377")
    assert rows[1][0] == "5020"
    shell("mine.lua cleanup")


API = """
function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
end
function event()
  print(drv:name(), drv, con)
  print(select(2, pcall(sysbench.sql.driver, "other")))
  con:query("DROP TABLE IF EXISTS t")
  con:query("CREATE TABLE t (a INT, b VARCHAR(20), c DOUBLE)")
  con:bulk_insert_init("INSERT INTO t VALUES")
  for i = 1, 100 do con:bulk_insert_next(string.format("(%d, 'x%d', 0.5)", i, i)) end
  con:bulk_insert_done()
  print(con:query_row("SELECT COUNT(*), MAX(a) FROM t"))
  con:query("INSERT INTO t VALUES (NULL, '', NULL)")
  local rs = con:query("SELECT a, b FROM t WHERE a IS NULL OR a < 3 ORDER BY a")
  print(rs, rs.nrows, rs.nfields)
  for _ = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end
  print(rs:fetch_row())
  local changed = con:query("DELETE FROM t WHERE a > 3")
  print(changed, changed == nil, changed and true)
  print(select(2, pcall(con.prepare, con, "SELECT * FROM nowhere")))
  local stmt = con:prepare("UPDATE t SET a = a + ?, b = ?, c = ? WHERE a IS NOT NULL")
  local a = stmt:bind_create(sysbench.sql.type.INT)
  local b = stmt:bind_create(sysbench.sql.type.CHAR, 3)
  local c = stmt:bind_create(sysbench.sql.type.DOUBLE)
  local _, refused = pcall(stmt.bind_create, stmt, sysbench.sql.type.DATE)
  print(stmt, a, refused, stmt:bind_param())
  stmt:bind_param(a, b, c)
  a:set(10) b:set("abcdef") c:set(-2.25)
  print(stmt:execute())
  print(con:query_row("SELECT MIN(a), MAX(a), MAX(b), MAX(c), COUNT(*) FROM t"))
  b:set(nil)
  stmt:execute()
  print(con:query_row("SELECT MIN(a), MAX(b) FROM t WHERE b IS NULL"))
  local counted = con:prepare("SELECT a FROM t")
  local found = counted:execute()
  print(found.nrows)
  found:free()
  print(select(2, pcall(changed.free, found)))
  stmt:close() counted:close()
  con:disconnect()
  print(select(2, pcall(con.query, con, "SELECT 1")))
  con:disconnect()
  con = drv:connect()
  print(con:query_row("SELECT 7"))
  con:reconnect()
  print(con:query_row("SELECT 8"))
  con:query("DROP TABLE t")
end
"""

API_PRINTS = """\
mysql\t<sql_driver>\t<sql_connection>
FATAL: invalid database driver name: 'other'
failed to initialize the DB driver
100\t100
<sql_result>\t3\t2
nil\t
1\tx1
2\tx2
nil
<sql_result>\ttrue\ttrue
FATAL: mysql_stmt_prepare() failed
FATAL: MySQL error: 1146 "Table 'sbtest.nowhere' doesn't exist"
SQL API error
<sql_statement>\t<sql_param>\tUnsupported argument type: 8\tnil
<sql_result>
11\t13\tabc\t-2.25\t4
21\tnil
4
ALERT: attempt to free an invalid result set
db_free_results() failed
ALERT: attempt to use an already closed connection
script.lua:LINE: SQL API error
ALERT: attempt to close an already closed connection
7
8
"""


def test_the_api_on_a_server(shell: Shell) -> None:
    ended = shell("script.lua --verbosity=1 --events=1 run", API)
    line = API[: API.index("pcall(con.query")].count("\n") + 1
    assert ended.stdout == API_PRINTS.replace("LINE", str(line))


def test_an_event_may_open_its_own_connections(shell: Shell) -> None:
    script = """
      function event()
        local drv = sysbench.sql.driver()
        local all = {}
        for i = 1, 5 do all[i] = drv:connect() end
        for i = 1, 5 do assert(all[i]:query_row("SELECT " .. i) == tostring(i)) end
        for i = 1, 5 do all[i]:disconnect() end
      end
    """
    ended = shell("script.lua --threads=4 --events=40 run", script)
    assert "        read:                            200\n" in ended.stdout


PARTED = """
function thread_init() con = sysbench.sql.driver():connect() end
local function count()
  print(con:query_row("SELECT COUNT(*) FROM information_schema.processlist"))
end
function event(thread)
  if thread == 0 then
    ffi.C.usleep(1000000)
    con:disconnect()
    ffi.C.usleep(2000000)
  else
    count()
    ffi.C.usleep(2000000)
    count()
  end
end
"""


def test_a_connection_that_a_script_closes_is_closed_at_once(shell: Shell) -> None:
    ended = shell("script.lua --verbosity=1 --threads=2 --events=2 run", PARTED)
    before, after = map(int, ended.stdout.split())
    assert after == before - 1, ended


ERRORS = """
function sysbench.hooks.sql_error_ignorable(e)
  print("hook", e.sql_errno, e.sql_state, e.sql_errmsg, e.query, e.connection, e.errcode)
end
function event()
  local con = sysbench.sql.driver():connect()
  con:query("DROP TABLE IF EXISTS t")
  con:query("SET sql_mode = 'STRICT_TRANS_TABLES'")
  con:query("CREATE TABLE t (a CHAR(1) NOT NULL)")
  print(select(2, pcall(function () con:query("INSERT INTO t VALUES (NULL)") end)))
  con:query("DROP TABLE t")
end
"""


def test_a_refused_statement_is_told_and_asks_the_hook(shell: Shell) -> None:
    ended = shell("script.lua --verbosity=1 --events=1 run", ERRORS)
    assert ended.stdout.splitlines() == [
        "FATAL: mysql_drv_query() returned error 1048 (Column 'a' cannot be null) for query"
        " 'INSERT INTO t VALUES (NULL)'",
        "hook\t1048\t23000\tColumn 'a' cannot be null\tINSERT INTO t VALUES (NULL)"
        "\t<sql_connection>\tnil",
        "script.lua:10: SQL error, errno = 1048, state = '23000': Column 'a' cannot be null",
    ]


RESTARTED = """
function thread_init()
  con = sysbench.sql.driver():connect()
  n = 0
end
function event()
  n = n + 1
  if n % 3 == 1 then con:query("SELECT a FROM nowhere") end
  con:query("SELECT 1")
end
function sysbench.hooks.before_restart_event(e) restarted = (restarted or 0) + 1 end
function thread_done() print("restarted", restarted) end
"""


@pytest.mark.parametrize("connections", [1, 2])
def test_an_ignored_error_begins_the_event_again(shell: Shell, connections: int) -> None:
    more = "con2 = sysbench.sql.driver():connect()\n  n = 0" if connections == 2 else "n = 0"
    script = RESTARTED.replace("n = 0", more, 1)
    ended = shell("script.lua --mysql-ignore-errors=1146 --events=20 run", script)
    assert "restarted\t10\n" in ended.stdout
    assert "    transactions:                        20 " in ended.stdout
    assert "    ignored errors:                      10 " in ended.stdout
    fatal = shell("script.lua --events=20 run", status=1).stdout
    assert "mysql_drv_query() returned error 1146" in fatal
    assert "FATAL: `thread_run' function failed: script.lua:" in fatal
    assert ": SQL error, errno = 1146, state = '42S02'" in fatal
    assert "General statistics" not in fatal


@pytest.mark.parametrize("threads", [1, 8])
def test_a_lost_connection_is_opened_again_if_that_is_ignored(shell: Shell, threads: int) -> None:
    script = """
      function thread_init()
        con = sysbench.sql.driver():connect()
        stmt = con:prepare("SELECT 1")
        n = 0
      end
      function sysbench.hooks.before_restart_event(e)
        if e.sql_errno == 2013 then stmt = con:prepare("SELECT 1") end
      end
      function event()
        n = n + 1
        if n == 5 then con:query("KILL CONNECTION_ID()") end
        stmt:execute()
      end
    """
    # For a time: of a number of events a quick thread may leave others no fifth.
    line = f"script.lua --threads={threads} --time=1 --mysql-ignore-errors=2013,1317"
    ended = shell(f"{line} run", script)
    assert f"    reconnects:                          {threads} " in ended.stdout.replace(
        f"{threads}  ", f"{threads} "
    ), ended.stdout


def test_a_connection_that_is_closed_while_its_script_sleeps(shell: Shell) -> None:
    script = """
      ffi.cdef"int usleep(unsigned int);"
      function thread_init() con = sysbench.sql.driver():connect() end
      function event()
        con:query("SET SESSION wait_timeout = 1")
        ffi.C.usleep(2500000)
        con:query("SELECT 1")
      end
    """
    line = "script.lua --threads=2 --time=4 run"
    ended = shell(line.replace("run", "--mysql-ignore-errors=2013 run"), script)
    found = re.search(r"reconnects: +([0-9]+)", ended.stdout)
    assert found, ended.stdout
    assert int(found[1]) >= 2, ended.stdout
    fatal = shell(line, status=1)
    assert "2013" in fatal.stdout, fatal.stdout


def test_a_statement_longer_than_a_packet(shell: Shell) -> None:
    script = """
      function thread_init() con = sysbench.sql.driver():connect() end
      function event()
        local text = string.rep("x", 17 * 1024 * 1024)
        print(con:query_row("SELECT LENGTH('" .. text .. "')"))
        print(con:query_row("SELECT 2"))
      end
    """
    ended = shell("script.lua --verbosity=1 --events=1 --time=60 run", script)
    assert ended.stdout.splitlines() == [str(17 * 1024 * 1024), "2"]


@pytest.mark.parametrize("connections", [1, 2])
def test_an_answer_that_no_script_can_take_ends_the_run(shell: Shell, connections: int) -> None:
    """Whether the loop has the connection (one) or the script waits by itself (two)."""
    script = """
        function thread_init()
          others = {}
          for _ = 2, tonumber(os.getenv("CONNECTIONS")) do
            table.insert(others, sysbench.sql.driver():connect())
          end
          con = sysbench.sql.driver():connect()
        end
        function event()
          con:query("SELECT REPEAT('x', 1000000) FROM information_schema.collations LIMIT 90")
        end
    """
    script = script.replace('tonumber(os.getenv("CONNECTIONS"))', str(connections))
    ended = shell("script.lua --events=1 --time=20 run", script, status=1)
    assert "an answer of more than 16 MiB" in ended.stdout + ended.stderr


def test_a_text_of_several_statements_has_several_results(shell: Shell) -> None:
    script = """
      function event()
        local con = sysbench.sql.driver():connect()
        local rs = con:query("SELECT 1, 2; DO 0; SELECT 3 UNION SELECT 4")
        print(rs.nfields, rs.nrows, unpack(rs:fetch_row()))
        while con:more_results() do
          rs = con:next_result()
          if rs == nil then print("none") else print(rs.nfields, rs.nrows, rs:fetch_row()[1]) end
        end
        print(con:query_row("SELECT 5"))
      end
    """
    ended = shell("script.lua --verbosity=1 --events=1 --compat=1.1 run", script)
    assert ended.stdout.splitlines() == [
        "2\t1\t1\t2",
        "none",
        "1\t2\t3",
        "5",
    ]


def test_legacy_functions_and_globals(shell: Shell) -> None:
    script = """
      function prepare()
        db_query("DROP TABLE IF EXISTS t")
        db_query("CREATE TABLE t (a INT)")
        db_bulk_insert_init("INSERT INTO t VALUES")
        for i = 1, my_rows do db_bulk_insert_next("(" .. i .. ")") end
        db_bulk_insert_done()
      end
      function thread_init(id) assert(id == 0 and thread_id == 0 and num_threads == 1) end
      function event(id)
        local stmt = db_prepare("UPDATE t SET a = a + ?")
        db_bind_param(stmt, {100})
        local rs = db_execute(stmt)
        db_store_results(rs)
        db_free_results(rs)
        db_close(stmt)
        db_query("SELECT COUNT(*) FROM t")
        local ok, message = pcall(db_query, "SELECT * FROM nowhere")
        local unique, text = sb_rand_uniq(1, 10), sb_rand_str("#-@")
        print(db_driver, ok, message, oltp_text, unique <= 10, #text)
        print(DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED)
      end
      function cleanup() db_query("DROP TABLE t") end
    """
    shell("--test=script.lua --my-rows=50 prepare", script)
    ended = shell("--test=script.lua --oltp-text=hello --max-requests=1 --verbosity=0 run")
    assert ended.stdout.splitlines()[2:] == [
        "mysql\tfalse\tdb_query() failed\thello\ttrue\t3",
        "0\t1\t2",
    ]
    shell("--test=script.lua cleanup")


WORKLOADS = Path(__file__).parents[2] / "workloads"
SMALL = "--warehouses=2 --items=200 --customers=60"


def test_tpcc_is_consistent_after_a_run(server: Server, shell: Shell) -> None:
    tpcc = f"{WORKLOADS / 'tpcc.lua'} {SMALL}"
    loaded = shell(f"{tpcc} --threads=2 prepare").stdout
    assert loaded.count("Loading warehouse") == 2
    counted = server.ask("SELECT COUNT(*), SUM(o_ol_cnt) FROM sbtest.orders")[0]
    assert int(counted[0]) == 2 * 10 * 60
    assert shell(f"{tpcc} check").stdout.count(": holds") == 4
    # So many that the shares of the mix are seen, however long they take.
    ran = shell(f"{tpcc} --threads=8 --events=600 --time=100 run").stdout
    found = re.search(r"transactions: +([0-9]+)", ran)
    assert found
    assert int(found[1]) > 50, ran
    assert shell(f"{tpcc} check").stdout.count(": holds") == 4
    grown = server.ask("SELECT COUNT(*), SUM(o_ol_cnt) FROM sbtest.orders")[0]
    assert int(grown[0]) > int(counted[0])
    told = re.search(r"New orders: ([0-9]+) in ([0-9.]+) s, warm-up included: ([0-9.]+) NOPM", ran)
    assert told
    assert int(told[1]) == int(grown[0]) - int(counted[0])
    took_s = float(told[2])  # to a tenth
    rel = 0.02 + 0.05 / took_s
    assert float(told[3]) == pytest.approx(int(told[1]) * 60 / took_s, rel=rel)
    # The shares of the mix, of the rows that only they write.
    orders = int(grown[0]) - int(counted[0])
    payments = int(server.ask("SELECT COUNT(*) FROM sbtest.history")[0][0]) - 2 * 10 * 60
    assert 0.6 < orders / payments < 1.6, (orders, payments)
    server.ask("UPDATE sbtest.warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2")
    broken = shell(f"{tpcc} check", status=1).stdout
    assert "condition 1: W_YTD is the sum of the districts' D_YTD: is broken in 1 places" in broken
    shell(f"{tpcc} cleanup")
    assert server.ask("SHOW TABLES FROM sbtest LIKE 'order_line'") == []


def test_every_table_has_a_primary_key(server: Server, shell: Shell) -> None:
    lines = (f"{WORKLOADS / 'tpcc.lua'} {SMALL}", f"{WORKLOADS / 'ycsb.lua'} --records=50")
    server.ask("SET GLOBAL sql_require_primary_key = ON")
    try:
        for line in (*lines, "oltp_read_write --table-size=50", "bulk_insert"):
            shell(f"{line} prepare")
            shell(f"{line} --events=20 run")
            shell(f"{line} cleanup")
    finally:
        server.ask("SET GLOBAL sql_require_primary_key = OFF")


def test_a_terminal_of_tpcc_waits_outside_its_transactions(shell: Shell) -> None:
    tpcc = f"{WORKLOADS / 'tpcc.lua'} --warehouses=1 --items=100 --customers=30"
    shell(f"{tpcc} prepare")
    # The shortest keying time is 2 s, so nothing of it can be in a latency.
    ran = shell(f"{tpcc} --waits --threads=30 --time=5 run").stdout
    events = re.search(r"total number of events: +([0-9]+)", ran)
    longest = re.search(r"max: +([0-9.]+)", ran)
    assert events
    assert longest
    # A terminal types for 2 s at least and then thinks, so in 5 s it has two transactions.
    assert 0 < int(events[1]) <= 60, ran
    assert float(longest[1]) < 2000, ran
    shell(f"{tpcc} cleanup")


def test_ycsb_has_its_mixes_and_may_run_again(shell: Shell) -> None:
    ycsb = f"{WORKLOADS / 'ycsb.lua'} --records=500 --field_length=20"
    shell(f"{ycsb} --threads=2 prepare")
    for mix, written in {"A": 200, "B": 20, "C": 0, "D": 20, "E": 20, "F": 200}.items():
        run = f"{ycsb} --workload={mix} --events=400 run"
        counted = {kind: int(n) for kind, n in SHOWN.findall(shell(run).stdout)}
        assert abs(counted["write"] - written) <= 5 * max(written, 1) ** 0.5, mix
        # F writes back what it has read; who inserts looks for the greatest key first.
        more = counted["write"] if mix == "F" else int(mix in "DE")
        assert counted["read"] + counted["write"] == 400 + more, mix
        assert "ignored errors:                      0 " in shell(run).stdout, mix
    shell(f"{ycsb} cleanup")
