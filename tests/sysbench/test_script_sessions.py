"""Lua scripts and their connections, on a server of known truth: who waits, what is let go."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from dbdyno import _engine
from support.rogue_server import (
    LOGGED_IN,
    MODES,
    OK,
    Caller,
    Talk,
    rogue,
    rows_that_stop,
    rows_without_end,
    says,
)
from support.sysbench import Ended, Shell


@contextmanager
def reference(
    service_s: float = 0.001, stall_s: tuple[float, float] | None = None
) -> Iterator[str]:
    """A server that answers every statement after so long, as options."""
    server = _engine.Reference("fixed", service_s, stall_s=stall_s)
    user, password, database = server.login
    yield (
        f"--mysql-host=127.0.0.1 --mysql-port={server.port} --mysql-user={user}"
        f" --mysql-password={password} --mysql-db={database}"
    )
    del server


def beside(shell: Shell, line: str, script: str, **limits: float) -> Ended:
    """A script's run on such a server."""
    with reference() as server:
        return shell(f"script.lua {server} {line}", script, **limits)


def events_of(ended: Ended) -> int:
    found = re.search(r"total number of events: +([0-9]+)", ended.stdout)
    assert found, ended
    return int(found[1])


LOOPED = """
local c = coroutine
function thread_init() con = sysbench.sql.driver():connect() end
local function twice() for _ = 1, 2 do con:query("SELECT 1"); c.yield(1) end end
function event()
  local sum = 0
  for one in c.wrap(twice) do sum = sum + one end
  assert(sum == 2)
end
"""


def test_a_query_yields_also_inside_a_coroutine_of_the_script(shell: Shell) -> None:
    ended = beside(shell, "--threads=16 --events=160 run", LOOPED)
    assert ended.returncode == 0, ended
    assert "    queries:                             320 " in ended.stdout, ended


COUNTED = """
ffi.cdef "void sb_counter_inc(int, sb_counter_type);"
function thread_init()
  con = sysbench.sql.driver():connect()
  if OWN then other = sysbench.sql.driver():connect() end
end
function event()
  con:query("BEGIN")
  ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
  con:query("ROLLBACK")
  for _, counter in ipairs({ "OTHER", "READ", "WRITE", "RECONNECT", "ERROR" }) do
    ffi.C.sb_counter_inc(sysbench.tid, ffi.C["SB_CNT_" .. counter])
  end
end
"""
"""As sysbench-tpcc counts orders that are rolled back, and others what SQL knows nothing of."""


@pytest.mark.parametrize("own", ["false", "true"])
def test_what_a_script_counts_is_reported(shell: Shell, own: str) -> None:
    """Whether the loop has the connection or the script waits by itself."""
    script = COUNTED.replace("OWN", own)
    ended = beside(shell, "--threads=2 --events=10 --detail run", script)
    assert ended.returncode == 0, ended
    assert "    queries:                             50 " in ended.stdout, ended
    assert "    ignored errors:                      20 " in ended.stdout, ended
    assert "    reconnects:                          10 " in ended.stdout, ended
    assert re.search(r"^    script +20 ", ended.stdout, re.MULTILINE), ended


@pytest.mark.parametrize(("before", "after"), [("", ""), ("con:disconnect()", "con:reconnect()")])
def test_scripts_that_sleep_hold_no_others_up(shell: Shell, before: str, after: str) -> None:
    script = f"""
      ffi.cdef'int usleep(unsigned int);'
      function thread_init() con = sysbench.sql.driver():connect() end
      function event() con:query("SELECT 1"); {before} ffi.C.usleep(100000) {after} end
    """
    ended = beside(shell, "--threads=32 --time=1 run", script)
    # One engine thread that slept itself would come to 10.
    assert events_of(ended) > 100, ended


SLEEPS = """
ffi.cdef "int usleep(unsigned int);"
function thread_init()
  con = sysbench.sql.driver():connect()
  if OWN then other = sysbench.sql.driver():connect() end
end
function event()
  con:query("SELECT 1")
  ffi.C.usleep(1200000)
  if other then con:reconnect() end
  con:query("SELECT 1")
end
"""


@pytest.mark.parametrize("own", ["false", "true"])
def test_a_script_that_sleeps_is_no_stall_of_the_server(shell: Shell, own: str) -> None:
    """Whether the loop has the connection or the script waits by itself."""
    with reference() as server:
        line = f"script.lua {server} --threads=2 --time=2 run"
        ended = shell(line, SLEEPS.replace("OWN", own))
    assert ended.returncode == 0, ended
    assert "stall" not in ended.stderr, ended
    # The second query of each event comes in the middle of this.
    with reference(stall_s=(0.6, 2.9)) as server:
        ended = shell(f"script.lua {server} --threads=2 --time=2 run")
    assert "note: stall: for " in ended.stderr, ended


RENEWED = """
function thread_init() con = sysbench.sql.driver():connect() end
function event()
  con:disconnect()
  assert(not pcall(con.query, con, "SELECT 1"))
  con = sysbench.sql.driver():connect()
  con:query("SELECT 1")
  con:disconnect()
  con:reconnect()
end
"""


def test_scripts_that_connect_in_their_events_hold_no_others_up(shell: Shell) -> None:
    with reference(0.05) as server:
        ended = shell(f"script.lua {server} --verbosity=3 --threads=16 --time=1 run", RENEWED)
    # One after the other they would make 20.
    assert events_of(ended) > 60, ended


WATCH = """
local function watch() jit.attach(function(what) recording = what == "start" end, "trace") end
return {start = watch}
"""
RECORDED = """
function thread_init() con = sysbench.sql.driver():connect() end
function event(thread)
  con:query("SELECT 1")
  while thread == 0 do ffi.C.usleep(recording and 1e9 or 0) end
end
"""
"""Its first thread rests, for longer than the run, in a call that LuaJIT is recording."""


def test_a_thread_that_rests_while_it_is_recorded_can_be_closed(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "jit").mkdir()
    (tmp_path / "jit/watch.lua").write_text(WATCH)
    ended = beside(shell, "--threads=2 --time=1 --luajit-cmd=watch run", RECORDED)
    assert ended.returncode == 0, ended
    assert "total number of events:" in ended.stdout, ended


def test_a_second_connection_in_an_event_is_refused_where_it_would_hold_all_up(
    shell: Shell,
) -> None:
    script = """
      function thread_init() con = sysbench.sql.driver():connect() end
      function event() con2 = sysbench.sql.driver():connect() end
    """
    ended = beside(shell, "--threads=2 --time=1 run", script)
    assert ended.returncode == 1, ended
    assert "disconnect the first before, or open both in thread_init" in ended.stdout, ended


def test_a_script_that_waits_for_its_server_itself_is_given_up_with_the_run(shell: Shell) -> None:
    script = """
      function thread_init()
        con, other = sysbench.sql.driver():connect(), sysbench.sql.driver():connect()
      end
      function event() con:query("SELECT 1") end
    """
    line = "--threads=2 --time=1 --forced-shutdown=1 run"
    with reference(stall_s=(0.3, 3600)) as server:
        ended = shell(f"script.lua {server} {line}", script, timeout=20)
    assert ended.returncode == 2, ended
    assert "Number of unfinished transactions on forced shutdown: 2" in ended.stdout, ended


def test_a_thread_of_a_command_that_fails_ends_those_that_wait_for_it(shell: Shell) -> None:
    script = """
      local function make()
        local con = sysbench.sql.driver():connect()
        if sysbench.tid == 1 then error("no table", 0) end
        while true do con:query("SELECT 1") end
      end
      sysbench.cmdline.commands = { make = { make, sysbench.cmdline.PARALLEL_COMMAND } }
    """
    ended = beside(shell, "--threads=3 make", script, timeout=20)
    assert ended.returncode == 1, ended
    (told,) = (line for line in ended.stdout.splitlines() if line.startswith("FATAL"))
    assert "no table" in told, ended


STALE = """
function thread_init() con = sysbench.sql.driver():connect() end
function event()
  local stmt = con:prepare("SELECT ?")
  local param = stmt:bind_create(sysbench.sql.type.INT)
  print(select(2, pcall(stmt.bind_param, stmt, param, nil)))
  stmt:bind_param(param)
  stmt:execute()
  con:reconnect()
  print(select(2, pcall(stmt.execute, stmt)))
  stmt:close()
  print(select(2, pcall(stmt.execute, stmt)))
  print(select(2, pcall(stmt.execute)))
  print(select(2, pcall(stmt.bind_param, stmt, param)))
  for _ = 1, 50 do con:disconnect(); con = sysbench.sql.driver():connect() end
  print(con.number)
end
"""


@pytest.mark.parametrize("connections", [1, 2])
def test_handles_that_lead_nowhere_are_refused(shell: Shell, connections: int) -> None:
    """Whether the loop has the connection (one) or the script waits by itself (two)."""
    script = STALE
    if connections == 2:
        first = "con = sysbench.sql.driver():connect()"
        script = STALE.replace(first, f"other = {first[6:]}; {first}", 1)
    script = script.replace("for _ = 1, 50 do", "for _ = 1, 50 do collectgarbage()")
    ended = beside(shell, "--verbosity=1 --events=1 run", script)
    told = [line for line in ended.stdout.splitlines() if not line.startswith("ALERT")]
    assert told[:1] == ["parameter 2 is nil: bind_create() makes one"], ended
    assert told[1:3] == ["SQL API error", "SQL API error"], ended
    assert told[3:4] == ["calling 'execute' on bad self (sql_statement expected, got nil)"], ended
    assert told[4:5] == ["attempt to use an already closed statement"], ended
    assert 1 <= int(told[5]) <= 6, ended


ON_POSTGRES = "script.lua --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-sslmode=disable"


def message(kind: bytes, payload: bytes = b"") -> bytes:
    """As PostgreSQL sends it."""
    return kind + struct.pack(">I", len(payload) + 4) + payload


def postgres(
    caller: Caller,
    executed: bytes = message(b"C", b"UPDATE 1\0"),
    prepared: bytes = message(b"1"),
) -> None:
    """A PostgreSQL that lets everybody in and does whatever it is told."""
    ready = message(b"Z", b"I")
    answers = {b"P": prepared, b"B": message(b"2"), b"E": executed, b"S": ready}
    with caller.line.makefile("rb") as stream:
        stream.read(int.from_bytes(stream.read(4), "big") - 4)
        caller.raw(message(b"R", bytes(4)) + ready)
        while kind := stream.read(1):
            caller.heard += kind + stream.read(int.from_bytes(stream.read(4), "big") - 4)
            if kind in answers:
                caller.raw(answers[kind])


TYPED = """
function prepare()
  local con, types = sysbench.sql.driver():connect(), sysbench.sql.type
  local stmt = con:prepare("UPDATE t SET a = ?, b = ? WHERE c = ?")
  local a, b = stmt:bind_create(types.FLOAT), stmt:bind_create(types.CHAR, 9)
  local c = stmt:bind_create(types.INT)
  print(select(2, pcall(stmt.execute, stmt)))
  print(select(2, pcall(stmt.bind_param, stmt, a)))
  stmt:bind_param(a, b, c)
  c:set(7)
  stmt:execute()
  con:prepare("SELECT ?", true)
  con:prepare("COMMIT"):execute()
  db_prepare("SELECT 1 + ?")
end
"""


def test_a_postgresql_is_told_the_types_that_sysbench_binds(shell: Shell) -> None:
    with rogue(postgres) as (port, heard):
        ended = shell(f"{ON_POSTGRES} --pgsql-port={port} --verbosity=1 prepare", TYPED)
    assert ended.returncode == 0, ended
    assert ended.stdout.splitlines() == [
        "ALERT: attempt to use a statement with parameters before bind_param()",
        "SQL API error",
        "ALERT: wrong number of parameters in prepared statement",
        "SQL API error",
    ], ended
    float8, varchar, int8 = 701, 1043, 20
    told = b"Ps0\0UPDATE t SET a = $1, b = $2 WHERE c = $3\0"
    told += struct.pack(">HIII", 3, float8, varchar, int8) + b"S"
    null = b"\xff" * 4
    bound = b"\0s0\0" + struct.pack(">HH", 0, 3) + null + null + struct.pack(">I", 1) + b"7"
    first, second = bytes(heard).split(b"s1\0SELECT $1\0\0\0")
    assert first.startswith(told), first
    assert b"B" + bound in first
    assert second.startswith(b"SPs2\0COMMIT\0\0\0S"), second
    assert b"SELECT 1 + $1\0\0\0S" in second


PREPARED_ROWS = """
function READ()
  local con = sysbench.sql.driver():connect()
  local found = con:prepare("SELECT c FROM t"):execute()
  print(found.nrows, found.nfields, unpack(found:fetch_row(), 1, 2))
  print(found:fetch_row()[1], found:fetch_row())
  print(con:prepare("SELECT c FROM t"):execute():free())
end
"""


@pytest.mark.parametrize("where", ["prepare", "event"])
def test_rows_of_a_prepared_statement_reach_the_script_on_postgresql(
    shell: Shell, where: str
) -> None:
    """Without the loop, and in it."""
    script = PREPARED_ROWS.replace("READ", where)
    if where == "event":
        script = script.replace("local con =", "con = con or", 1)
        script += "function thread_init() con = sysbench.sql.driver():connect() end"
    rows = (
        message(b"D", b"\0\x02\0\0\0\x01a\xff\xff\xff\xff"),
        message(b"D", b"\0\x02\0\0\0\x01b\0\0\0\0"),
        message(b"C", b"SELECT 2\0"),
    )
    command = "prepare" if where == "prepare" else "--events=1 run"
    with rogue(partial(postgres, executed=b"".join(rows))) as (port, _):
        ended = shell(f"{ON_POSTGRES} --pgsql-port={port} --verbosity=1 {command}", script)
    assert ended.returncode == 0, ended
    assert ended.stdout == "2\t2\ta\tnil\nb\tnil\ntrue\n", ended


def test_a_postgresql_s_error_points_to_its_place_as_in_libpq(shell: Shell) -> None:
    script = """
      function thread_init()
        sysbench.sql.driver():connect():prepare("SELECT c FROM nowhere")
      end
      function event() end
    """
    fields = [b"SERROR", b"VERROR", b"C42P01", b'Mrelation "nowhere" does not exist', b"P15", b""]
    refused = message(b"E", b"\0".join([*fields, b""]))
    with rogue(partial(postgres, prepared=refused)) as (port, _):
        ended = shell(f"{ON_POSTGRES} --pgsql-port={port} --verbosity=0 run", script)
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        'FATAL: PQprepare() failed: ERROR:  relation "nowhere" does not exist',
        "LINE 1: SELECT c FROM nowhere",
        "                      ^",
        "",
        "FATAL: `thread_init' function failed: script.lua:3: SQL API error",
        "FATAL: Thread initialization failed!",
    ], ended


def test_rows_of_a_prepared_statement_have_a_limit_on_postgresql_too(shell: Shell) -> None:
    script = """
      function prepare()
        print(sysbench.sql.driver():connect():prepare("SELECT c FROM t"):execute().nrows)
      end
    """
    row = message(b"D", struct.pack(">HI", 1, 1 << 20) + bytes(1 << 20))
    rows = 17 * row + message(b"C", b"SELECT 17\0")
    with rogue(partial(postgres, executed=rows)) as (port, _):
        ended = shell(f"{ON_POSTGRES} --pgsql-port={port} --verbosity=1 prepare", script)
    assert ended.returncode == 1
    assert "an answer of more than 16 MiB, which a script cannot take" in ended.stdout, ended


@pytest.mark.parametrize("mode", ["auto", "disable"])
def test_a_closed_statement_leaves_nothing_behind(shell: Shell, mode: str) -> None:
    script = """
      function thread_init() con = sysbench.sql.driver():connect() end
      function event()
        local kept = con:prepare("SELECT 1")
        for _ = 1, 100 do con:prepare("SELECT 2"):close() end
        print(kept.id, con:prepare("SELECT 3").id)
        kept:execute()
      end
    """
    with reference() as server:
        line = f"script.lua {server} --db-ps-mode={mode} --verbosity=0 --events=1 run"
        ended = shell(line, script)
    assert ended.stdout == "0\t1\n", ended


@pytest.mark.parametrize(
    ("threads", "talk", "words"),
    [
        (1, rows_without_end, "an answer of more than 16 MiB, which a script cannot take"),
        (64, rows_that_stop, "unread answers of all connections take more than 256 MiB"),
    ],
)
def test_answers_without_end_do_not_fill_the_memory(
    shell: Shell, threads: int, talk: Talk, words: str
) -> None:
    script = """
      function thread_init() con = sysbench.sql.driver():connect() end
      function event() con:query("SELECT 1") end
    """
    with rogue(talk) as (port, _):
        place = f"--mysql-host=127.0.0.1 --mysql-port={port}"
        ended = shell(f"script.lua {place} --threads={threads} --time=30 run", script)
    assert ended.returncode == 1, ended
    assert words in ended.stdout + ended.stderr, ended


def test_a_connection_that_could_not_be_opened_again_prepares_nothing(shell: Shell) -> None:
    script = """
      function prepare()
        local con = sysbench.sql.driver():connect()
        print(select(2, pcall(con.reconnect, con)))
        print(select(2, pcall(con.prepare, con, "SELECT 1")))
      end
    """
    talks = iter([says(*LOGGED_IN)])

    def logs_in_once(caller: Caller) -> None:
        next(talks, MODES["leaves after the greeting"])(caller)

    with rogue(logs_in_once) as (port, _):
        line = f"script.lua --mysql-host=127.0.0.1 --mysql-port={port} --verbosity=0 prepare"
        ended = shell(line, script)
    told = [line for line in ended.stdout.splitlines() if not line.startswith("FATAL")]
    assert told == ["connection creation failed", "SQL API error"], ended
    assert ended.returncode == 0, ended


def test_a_statement_of_a_lost_connection_is_not_closed_on_another(shell: Shell) -> None:
    """The server has given both statements the number 1."""
    script = """
      function prepare()
        local one, two = sysbench.sql.driver():connect(), sysbench.sql.driver():connect()
        local lost, kept = one:prepare("DO 1"), two:prepare("DO 1")
        print(pcall(lost.execute, lost))
        lost:close()
        kept:execute()
        kept:close()
      end
    """
    prepared = b"\0" + struct.pack("<IHHBH", 1, 0, 0, 0, 0)
    closed = b"\x05\0\0\0\x19" + struct.pack("<I", 1)

    def leaves(caller: Caller) -> None:
        says(OK, prepared)(caller)
        caller.take()
        caller.line.shutdown(socket.SHUT_RDWR)

    talks = iter([leaves, says(OK, prepared, OK)])

    def talk(caller: Caller) -> None:
        next(talks)(caller)

    with rogue(talk) as (port, heard):
        line = f"script.lua --mysql-host=127.0.0.1 --mysql-port={port} --verbosity=0 prepare"
        ended = shell(line, script)
    assert ended.returncode == 0, ended
    assert "SQL error, errno = 2013" in ended.stdout, ended
    assert heard.count(closed) == 1, ended


RETURNS = """
function thread_init() con = sysbench.sql.driver():connect() end
function event()
  local stmt = con:prepare("SELECT ?")
  print(stmt:bind_param(stmt:bind_create(sysbench.sql.type.INT)), stmt:close())
  local rs = con:query("SELECT 1")
  print(rs:free(), rs.nrows, rs.nfields, rs:fetch_row())
  print(con:bulk_insert_init("INSERT INTO t VALUES"), (con:bulk_insert_next("(1)")))
  print((con:bulk_insert_done()))
  print(con:reconnect())
  print(con:disconnect(), con:disconnect())
end
"""


def test_what_is_done_is_said_as_in_sysbench(shell: Shell) -> None:
    """Scripts `assert` it."""
    ended = beside(shell, "--events=1 --verbosity=1 run", RETURNS)
    assert ended.stdout.splitlines() == [
        "0\t0",
        "ALERT: attempt to fetch row from an invalid result set",
        "true\t0\t0\tnil",
        "true\ttrue",
        "true",
        "true",
        "ALERT: attempt to close an already closed connection",
        "true\ttrue",
    ]
