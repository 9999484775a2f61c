"""prepare and cleanup against a fake engine: what is printed, to the blank."""

import json
import os
import signal
import time
from pathlib import Path

from dbdyno import __version__, _engine

GOLDEN = Path(__file__).parent.parent / "golden"


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


def test_an_interrupted_prepare_says_so_and_how_far_it_came(sysbench, engine):
    stopped = {"stage": "insert", "code": None, "sqlstate": "", "statement": ""}
    stopped["message"] = "stopped; 5 of 9 rows were loaded"
    engine.raises = RuntimeError(json.dumps(stopped))
    engine.before_end = interrupt
    assert sysbench("oltp_read_write prepare") == 128 + signal.SIGTERM
    assert sysbench.stdout.endswith("\n\nFATAL: interrupted: stopped; 5 of 9 rows were loaded\n")
