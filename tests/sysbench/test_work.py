"""prepare and cleanup against a fake engine: what is printed, to the blank."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from dbdyno import __version__, _engine
from dbdyno.sysbench.commands import cleanup, prepare, prewarm
from dbdyno.sysbench.console import ConsoleOutput

GOLDEN = Path(__file__).parents[1] / "golden"


def interrupt(stop):
    os.kill(os.getpid(), signal.SIGTERM)
    deadline = time.monotonic() + 20
    while not stop.is_set() and time.monotonic() < deadline:
        time.sleep(0.01)


def golden(name):
    return (GOLDEN / name).read_text().replace("VERSION", __version__)


def test_prepare_tells_each_step_once(sysbench, engine):
    assert sysbench("oltp_read_write --tables=2 --table_size=500 --threads=2 prepare") == 0
    assert sysbench.stdout == golden("sysbench_prepare.txt")
    assert engine.specs[0]["seed"] == 1


def test_a_terminal_sees_a_bar_beside_the_lines_of_prepare(engine, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert prepare(made(tables=1), ConsoleOutput(3)) == 0
    told, bar = capsys.readouterr()
    assert told.count("\n") == 3
    assert "0 of 5 rows" in bar
    assert bar.endswith("\r\x1b[K")


def test_a_script_of_empty_tables_tells_of_no_rows(sysbench, engine):
    assert sysbench("oltp_insert --auto_inc=off --tables=1 prepare") == 0
    assert engine.specs[0]["table_size"] == 0
    assert "Inserting" not in sysbench.stdout


def test_bulk_insert_tells_of_its_tables_as_sysbench_does(sysbench, engine, monkeypatch):
    def create(spec, tell, stop):
        for table in range(1, json.loads(spec)["tables"] + 1):
            tell(json.dumps({"table": table, "stage": "create"}))
        return "{}"

    monkeypatch.setattr(_engine, "prepare", create)
    assert sysbench("bulk_insert --threads=2 prepare") == 0
    told = sysbench.stdout.split("\n\n")[1]
    assert told == "Creating table 'sbtest1'...\nCreating table 'sbtest2'...\n"
    assert sysbench("bulk_insert --threads=2 cleanup") == 0
    assert sysbench.stdout.endswith("Dropping table 'sbtest1'...\nDropping table 'sbtest2'...\n")


def test_cleanup_names_each_table(sysbench, engine):
    assert sysbench("oltp_read_write --tables=2 cleanup") == 0
    banner, told = sysbench.stdout.split("\n\n")
    assert banner.startswith("sysbench 1.0.20 (using dbdyno ")
    assert told == "Dropping table 'sbtest1'...\nDropping table 'sbtest2'...\n"
    assert engine.specs[0]["tables"] == 2


def made(**changes):
    """A request whose specs are those of the given changes."""
    whole = {"tables": 2, "table_size": 5, "rows": 10, "endpoint": {}, **changes}
    general = SimpleNamespace(threads=1, compat="1.0")
    return SimpleNamespace(
        general=general,
        prepare_spec=lambda: whole,
        cleanup_spec=lambda: whole,
        is_bulk_insert=lambda: False,
    )


def test_prewarm_names_each_table_as_each_version_does(engine, capsys):
    request = made()
    assert prewarm(request, ConsoleOutput(3)) == 0
    assert capsys.readouterr().out == "Prewarming table sbtest1\nPrewarming table sbtest2\n"
    request.general.compat = "1.1"
    assert prewarm(request, ConsoleOutput(3)) == 0
    assert capsys.readouterr().out == "Preloading table sbtest1\nPreloading table sbtest2\n"


def test_the_tables_of_older_scripts_are_told_of_in_their_words(engine, capsys):
    assert prepare(made(layout="legacy", tables=1), ConsoleOutput(3)) == 0
    assert capsys.readouterr().out == (
        "Creating table 'sbtest1'...\nInserting 5 records into 'sbtest1'\n"
        "Creating secondary indexes on 'sbtest1'...\n"
    )
    assert prepare(made(layout="legacy_one", tables=1), ConsoleOutput(3)) == 0
    told = "Creating table 'sbtest'...\nCreating 5 records in table 'sbtest'...\n"
    assert capsys.readouterr().out == told
    assert cleanup(made(layout="legacy_one", tables=1), ConsoleOutput(3)) == 0
    assert cleanup(made(layout="bulk_insert", first_table=0), ConsoleOutput(3)) == 0
    dropped = [f"Dropping table '{name}'...\n" for name in ("sbtest", "sbtest0", "sbtest1")]
    assert capsys.readouterr().out == "".join(dropped)


def test_an_interrupted_prepare_says_so_and_how_far_it_came(sysbench, engine):
    stopped = {"stage": "insert", "code": None, "sqlstate": "", "statement": ""}
    stopped["message"] = "stopped; 5 of 9 rows were loaded"
    engine.raises = RuntimeError(json.dumps(stopped))
    engine.before_end = interrupt
    assert sysbench("oltp_read_write prepare") == 128 + signal.SIGTERM
    assert sysbench.stdout.endswith("\n\nFATAL: interrupted: stopped; 5 of 9 rows were loaded\n")
