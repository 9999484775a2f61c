"""How a command ends: failures in the lines that scripts around sysbench look for, and signals."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import dbdyno
from dbdyno.experiment.engine.ceiling import responding
from dbdyno.sysbench.ending import stoppable
from support.lab_process import lives, until

DEAD_LOCK = {
    "stage": "run",
    "code": 1062,
    "sqlstate": "23000",
    "message": "Duplicate entry '5' for key 'PRIMARY'",
    "statement": "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
}
REFUSED = {"stage": "connect", "code": 1045, "sqlstate": "28000", "statement": ""}
REFUSED["message"] = "Access denied for user 'sbtest'@'localhost'"


def refusing(engine, failure):
    engine.raises = RuntimeError(failure)


def test_a_login_that_is_refused(sysbench, engine):
    refusing(engine, REFUSED)
    assert sysbench("oltp_read_write --mysql-host=127.0.0.1 --mysql-port=3307 run") == 1
    assert sysbench.stdout.endswith(
        "Initializing worker threads...\n\n"
        "FATAL: unable to connect to MySQL server on host '127.0.0.1', port 3307, aborting...\n"
        "FATAL: error 1045: Access denied for user 'sbtest'@'localhost'\n"
        "FATAL: `thread_init' function failed: connection creation failed\n"
        "FATAL: Thread initialization failed!\n"
    )
    assert "Threads started!" not in sysbench.stdout


def test_the_server_s_own_words_are_repeated_and_what_to_try_follows(sysbench, engine):
    words = "Table 'sbtest1' already exists"
    there = {"stage": "create", "code": 1050, "sqlstate": "42S01", "server_message": words}
    message = f'h:1: wanted the answer to "CREATE", found error 1050: {words}; run cleanup first'
    refusing(engine, {**there, "message": message, "statement": "CREATE TABLE sbtest1("})
    assert sysbench("oltp_read_write prepare") == 1
    assert sysbench.stdout.splitlines()[-3:] == [
        f"FATAL: mysql_drv_query() returned error 1050 ({words}) for query 'CREATE TABLE sbtest1('",
        "FATAL: `sysbench.cmdline.call_command' function failed: SQL error, errno = 1050,"
        f" state = '42S01': {words}",
        "FATAL: hint: run cleanup first",
    ]


SEVERAL = "oltp_read_write --mysql-host=a,b --mysql-port=3306,3307"


def test_of_several_servers_the_failed_one_is_named(sysbench, engine):
    refusing(engine, {**REFUSED, "server": "b:3306"})
    assert sysbench(f"{SEVERAL} run") == 1
    assert "FATAL: unable to connect to MySQL server on host 'b', port 3306, " in sysbench.stdout
    refusing(engine, REFUSED)
    assert sysbench(f"{SEVERAL} run") == 1
    assert "server on host 'a', port 3306 (the first of 4), aborting" in sysbench.stdout
    engine.raises, engine.failure = None, {**DEAD_LOCK, "server": "b:3307"}
    assert sysbench(f"{SEVERAL} run") == 1
    assert sysbench.stdout.endswith("\nFATAL: the server was host 'b', port 3307\n")


def test_a_port_beside_localhost_which_is_a_socket_is_noted(sysbench, engine, monkeypatch):
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/s.sock")
    note = (
        "localhost is the Unix socket /s.sock: --mysql-port=3307 has no effect; write"
        " --mysql-host=127.0.0.1 for TCP\n"
    )
    assert sysbench("oltp_read_write --mysql-host=localhost --mysql-port=3307 run") == 0
    assert sysbench.stderr == f"note: {note}"
    refusing(engine, {**REFUSED, "code": None, "server": "/s.sock", "message": "no such file"})
    assert sysbench("oltp_read_write --mysql-port=3307 run") == 1
    assert "FATAL: error 2002: no such file\n" in sysbench.stdout
    assert sysbench.stdout.endswith(f"FATAL: hint: {note}")
    for line in ("--mysql-port=3306", "--mysql-host=db --mysql-port=3307", "--mysql-socket=/x"):
        engine.raises = None
        assert sysbench(f"oltp_read_write {line} run") == 0
        assert sysbench.stderr == ""


POSTGRES = {"code": None, "sqlstate": "42P01", "server_message": "no table", "stage": "prepare"}
POSTGRES |= {"statement": "SELECT c FROM sbtest1 WHERE id=$1"}
POSTGRES |= {"client_message": "ERROR:  no table\nLINE 1: SELECT c FROM sbtest1\n          ^\n"}


def test_a_statement_that_postgresql_does_not_prepare_is_shown_as_by_libpq(sysbench, engine):
    refusing(engine, {**POSTGRES, "message": "h:1: wanted it, found ERROR: no table (42P01)"})
    assert sysbench("oltp_read_only --db-driver=pgsql run") == 1
    assert sysbench.stdout.endswith(
        f"FATAL: PQprepare() failed: {POSTGRES['client_message']}\n"
        "FATAL: `thread_init' function failed: SQL API error\n"
        "FATAL: Thread initialization failed!\n"
    )


def test_a_hint_follows_the_state_of_a_postgresql_s_error(sysbench, engine):
    advice = "try statements as text"
    refusing(engine, {**POSTGRES, "message": f"found ERROR: no table (42P01); {advice}"})
    assert sysbench("oltp_read_only --db-driver=pgsql run") == 1
    assert sysbench.stdout.endswith(f"\nFATAL: hint: {advice}\n")
    engine.raises = None
    engine.failure = {**POSTGRES, "stage": "run", "message": f"no table; {advice}"}
    assert sysbench("oltp_read_only --db-driver=pgsql run") == 1
    assert sysbench.stdout.splitlines()[-4:] == [
        "FATAL: PQexecPrepared() failed: 7 no table",
        "FATAL: failed query was: SELECT c FROM sbtest1 WHERE id=$1",
        "FATAL: `thread_run' function failed: SQL error, errno = 0, state = '42P01': no table",
        f"FATAL: hint: {advice}",
    ]


def test_mysql_gets_begin_as_text(sysbench, engine):
    engine.failure = {**DEAD_LOCK, "statement": "BEGIN"}
    assert sysbench("oltp_read_write run") == 1
    assert "FATAL: mysql_drv_query() returned error 1062 " in sysbench.stdout
    assert " for query 'BEGIN'\n" in sysbench.stdout


def test_a_connection_that_breaks_has_the_client_library_s_number(sysbench, engine):
    broken = {"stage": "insert", "code": None, "sqlstate": "", "message": "closed"}
    refusing(engine, {**broken, "statement": "INSERT INTO sbtest1, rows 1 to 9"})
    assert sysbench("oltp_read_write prepare") == 1
    assert "returned error 2013 (closed) for query 'INSERT INTO sbtest1" in sysbench.stdout
    assert "SQL error, errno = 2013, state = 'HY000': closed\n" in sysbench.stdout


def test_a_limit_of_this_machine_is_printed_before_anything_began(sysbench, engine):
    message = "300 connections need 373 open files, and this process may have 64"
    refusing(engine, {"stage": "limits", "code": None, "sqlstate": "", "message": message})
    assert sysbench("oltp_read_write --threads=300 run") == 1
    assert sysbench.stdout.endswith(f"Initializing worker threads...\n\nFATAL: {message}\n")


def test_a_limit_of_the_server_is_a_refused_login_with_a_remedy(sysbench, engine):
    words = "Too many connections"
    message = f"h:1: found error 1040: {words}; 148 of 200 connections were open: use at most 148"
    refused = {**REFUSED, "code": 1040, "server_message": words, "message": message}
    refusing(engine, refused)
    assert sysbench("oltp_read_write --mysql-host=127.0.0.1 --threads=200 run") == 1
    assert f"FATAL: error 1040: {words}\n" in sysbench.stdout
    remedy = "FATAL: hint: 148 of 200 connections were open: use at most 148\n"
    assert sysbench.stdout.endswith(remedy)


@pytest.mark.parametrize("stage", ["run", "script"])
def test_a_write_conflict_names_the_option_that_retries_it(sysbench, engine, stage):
    error = "SQL error, errno = 9007, state = 'HY000': Write conflict"
    engine.failure = {**DEAD_LOCK, "code": 9007, "stage": stage, "message": error}
    assert sysbench("oltp_read_write run") == 1
    hint = "FATAL: hint: a write conflict; --mysql-ignore-errors=1213,1020,1205,9007 retries"
    assert hint in sysbench.stdout


TRIED = {
    ("--mysql-socket=/nix prepare", "connect", "no such file"): (
        "on socket '/nix', aborting...\nFATAL: error 2002: no such file\n"
        "FATAL: `sysbench.cmdline.call_command' function failed: connection creation failed\n"
    ),
    ("--mysql-socket=/nix cleanup", "connect", "no such file"): (
        "FATAL: `cleanup' function failed: connection creation failed\n"
    ),
    ("--mysql-host=127.0.0.1 run", "connect", "connection refused"): (
        "FATAL: error 2003: connection refused\n"
    ),
    ("run", "prepare", "Table 'sbtest.sbtest1' doesn't exist"): (
        "FATAL: mysql_stmt_prepare() failed\n"
        "FATAL: MySQL error: 1146 \"Table 'sbtest.sbtest1' doesn't exist\"\n"
    ),
}


@pytest.mark.parametrize(("line", "stage", "message"), TRIED)
def test_what_could_not_be_begun_is_named_as_by_sysbench(sysbench, engine, line, stage, message):
    code = 1146 if stage == "prepare" else None
    refusing(engine, {**REFUSED, "code": code, "stage": stage, "message": message})
    assert sysbench(f"oltp_read_write {line}") == 1
    assert TRIED[line, stage, message] in sysbench.stdout
    assert ("Thread initialization" in sysbench.stdout) == line.endswith("run")


def test_an_error_that_ends_a_run_leaves_no_report(sysbench, engine):
    engine.failure = DEAD_LOCK
    assert sysbench("oltp_read_write run") == 1
    assert sysbench.stdout.endswith(
        "Threads started!\n\n"
        "FATAL: mysql_stmt_execute() returned error 1062 (Duplicate entry '5' for key 'PRIMARY')"
        " for query 'INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)'\n"
        "FATAL: `thread_run' function failed: SQL error, errno = 1062, state = '23000':"
        " Duplicate entry '5' for key 'PRIMARY'\n"
    )


def test_text_statements_are_named_as_such_and_cut(sysbench, engine):
    engine.failure = {**DEAD_LOCK, "statement": "INSERT " + "x" * 5000}
    assert sysbench("oltp_read_write --db-ps-mode=disable run") == 1
    assert "FATAL: mysql_drv_query() returned error 1062 " in sysbench.stdout
    assert "x...'\n" in sysbench.stdout
    assert "x" * 400 not in sysbench.stdout


def test_the_engines_own_words_about_options(sysbench, engine):
    engine.raises = ValueError("option tables must be a whole number\noption x must not be")
    assert sysbench("oltp_read_write --tables=0 run") == 1
    assert sysbench.stdout.endswith(
        "FATAL: option tables must be a whole number\nFATAL: option x must not be\n"
    )


def test_a_mistake_of_the_program_is_not_hidden(sysbench, engine):
    engine.raises = KeyError("a bug")
    with pytest.raises(KeyError, match="a bug"):
        sysbench("oltp_read_write run")


# Signals while the engine works.


def test_what_the_work_returns_or_raises_comes_back():
    error = ValueError("why")

    def work(stop):
        raise error

    assert stoppable(lambda stop: "done", threading.Event()) == ("done", None, None)
    assert stoppable(work, threading.Event()) == (None, error, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_flag_and_the_work_ends_by_itself(number):
    before = signal.getsignal(number)
    handlers = []

    def work(stop):
        os.kill(os.getpid(), number)
        assert stop.wait(20)
        time.sleep(0.05)
        handlers.append(signal.getsignal(number))
        return "ended in good order"

    assert stoppable(work, threading.Event()) == ("ended in good order", None, number)
    assert handlers == [signal.SIG_DFL], "a second signal must kill"
    assert signal.getsignal(number) == before


def test_work_that_does_not_end_is_left_alone():
    over = threading.Event()

    def work(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        over.wait(20)
        return "late"

    began = time.monotonic()
    try:
        assert stoppable(work, threading.Event()) == (None, None, signal.SIGTERM)
        assert time.monotonic() - began < 10
    finally:
        over.set()


def program(port, words):
    return subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "dbdyno", "sysbench", "oltp_point_select"),
            *("--mysql-host=127.0.0.1", f"--mysql-port={port}", "--time=600", *words.split()),
        ],
        env={**os.environ, "PYTHONPATH": str(Path(dbdyno.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("command", ["prepare", "run", "cleanup", "prewarm"])
def test_a_silent_server_does_not_keep_sysbench_from_ending(command):
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        program(silent.getsockname()[1], command) as child,
    ):
        line, _ = silent.accept()
        with line:
            began = time.monotonic()
            child.send_signal(signal.SIGTERM)
            said = child.communicate(timeout=30)[0]
            took = time.monotonic() - began
    assert child.returncode == 128 + signal.SIGTERM, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert took < 10  # two seconds, and the rest for a busy machine


@pytest.mark.parametrize("word", ["ends", "waits"])
def test_what_a_script_started_ends_with_it(tmp_path, word):
    script = tmp_path / "starts.lua"
    script.write_text(
        "function ends() os.execute('sleep 600 & echo $!')"
        " print(io.popen('sleep 600 > /dev/null & echo $!'):read()) end\n"
        "function waits() io.popen('exec sleep 600') os.execute('echo $$; exec sleep 600') end\n"
        f"sysbench.cmdline.commands = {{ {word} = {{{word}}} }}\n"
    )
    line = [sys.executable, "-P", "-m", "dbdyno", "sysbench", str(script), word]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as child:
        if word == "waits":
            pids = [int(next(text for text in child.stdout if text.strip().isdecimal()))]
            child.send_signal(signal.SIGTERM)
            child.wait(30)
        else:
            pids = [int(text) for text in child.stdout if text.strip().isdecimal()]
    assert pids
    until(lambda: not [pid for pid in pids if lives(pid)], "they have ended", 20)


def test_outside_the_main_thread_no_handler_is_touched():
    outcomes = []
    flag = threading.Event()
    thread = threading.Thread(target=lambda: outcomes.append(stoppable(lambda s: "x", flag)))
    thread.start()
    thread.join()
    assert outcomes == [("x", None, None)]


@pytest.mark.parametrize("words", ["--warmup-time=600", "--rate=1", "--rate=1000 --threads=64"])
def test_a_run_ends_at_once_with_its_report(words):
    with responding() as port, program(port, f"{words} run") as child:
        assert any(line == "Threads started!\n" for line in child.stdout)
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        status, said = child.wait(30), child.stdout.read()
        took = time.monotonic() - began
    assert status == 128 + signal.SIGTERM, said
    assert "SQL statistics:" in said
    assert took < 10
