"""What comes with dbdyno, without a server: loading twice, TPC-C's check, YCSB's operations."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from dbdyno.plan.template import lua, read
from support.source import LAB, ROOT
from support.sysbench import Shell

CHECKED = f"""
sysbench.sql.driver = function()
  local function row(_, sql)
    if sql == "SELECT COUNT(*) FROM warehouse" then return "WAREHOUSES" end
    print("SQL", (sql:gsub("%s+", " ")))
    return "0"
  end
  return {{ connect = function() return {{ query_row = row }} end }}
end
dofile("{ROOT}/workloads/tpcc.lua")
"""
"""Prints what the check asks."""
SOUND = """
CREATE TABLE warehouse (w_id, w_ytd);
CREATE TABLE district (d_w_id, d_id, d_ytd, d_next_o_id);
CREATE TABLE orders (o_w_id, o_d_id, o_id, o_ol_cnt);
CREATE TABLE new_orders (no_w_id, no_d_id, no_o_id);
CREATE TABLE order_line (ol_w_id, ol_d_id, ol_o_id);
INSERT INTO warehouse VALUES (1, 20), (2, 20);
INSERT INTO district VALUES (1, 1, 10, 3), (1, 2, 10, 3), (2, 1, 10, 3), (2, 2, 10, 3);
INSERT INTO orders SELECT d_w_id, d_id, 1, 2 FROM district;
INSERT INTO orders SELECT d_w_id, d_id, 2, 1 FROM district;
INSERT INTO new_orders SELECT d_w_id, d_id, 2 FROM district;
INSERT INTO order_line SELECT o_w_id, o_d_id, o_id FROM orders;
INSERT INTO order_line SELECT o_w_id, o_d_id, o_id FROM orders WHERE o_ol_cnt = 2;
"""


def test_the_check_of_tpcc_finds_what_is_wrong_and_what_is_missing(shell: Shell) -> None:
    printed = shell("script.lua check", CHECKED.replace("WAREHOUSES", "2")).stdout.splitlines()
    conditions = [line.partition("\t")[2] for line in printed if line.startswith("SQL\t")]
    for change, places in (
        ("", [0, 0, 0, 0]),
        ("UPDATE warehouse SET w_ytd = 21 WHERE w_id = 1", [1, 0, 0, 0]),
        ("UPDATE new_orders SET no_o_id = 1 WHERE no_w_id = 1", [0, 2, 0, 0]),
        ("INSERT INTO new_orders VALUES (1, 1, 0)", [0, 0, 1, 0]),
        ("DELETE FROM new_orders", [0, 0, 0, 0]),
        ("DELETE FROM order_line WHERE ol_o_id = 1", [0, 0, 0, 4]),
        ("DELETE FROM order_line WHERE ol_w_id = 2", [0, 0, 0, 2]),
        ("DELETE FROM orders WHERE o_w_id = 2", [0, 2, 0, 2]),
        ("DELETE FROM district WHERE d_w_id = 2", [1, 0, 0, 0]),
    ):
        with closing(sqlite3.connect(":memory:")) as data:
            data.executescript(SOUND + change)
            found = [data.execute(sql).fetchone()[0] for sql in conditions]
        assert found == places, change


def test_the_check_of_tpcc_says_that_there_is_nothing_to_check(shell: Shell) -> None:
    ended = shell("script.lua check", CHECKED.replace("WAREHOUSES", "0"))
    assert ended.returncode == 1, ended
    assert ended.stdout.endswith("There are no warehouses to check: load them with prepare\n")


THERE = """
sysbench.sql.driver = function()
  local connection = { query_row = function() return "1" end }
  function connection.query(_, sql)
    if sql:find("CREATE TABLE") then error("it is there", 0) end
  end
  for _, step in ipairs({ "init", "next", "done" }) do
    connection["bulk_insert_" .. step] = function() print("FILLED") end
  end
  return { connect = function() return connection end, name = function() return "mysql" end }
end
"""
"""A server that has all tables already, and shows whether rows are added to them."""


@pytest.mark.parametrize(("name", "more"), [("tpcc.lua", "--warehouses=3"), ("queue.yaml", "")])
def test_no_row_is_added_to_tables_that_are_there(shell: Shell, name: str, more: str) -> None:
    path = ROOT / "workloads" / name
    script = f'dofile("{path}")'
    if path.suffix == ".yaml":
        script = lua(read(path.read_text(), name), name)
    ended = shell(f"script.lua {more} --threads=3 prepare", THERE + script)
    assert ended.returncode == 1, ended
    assert "it is there" in ended.stdout
    assert "FILLED" not in ended.stdout


def test_rows_of_another_of_ycsbs_workloads_are_taken_as_they_are(shell: Shell) -> None:
    there = THERE.replace('if sql:find("CREATE TABLE") then error("it is there", 0) end', "")
    script = f'{there}dofile("{ROOT}/workloads/ycsb.lua")'
    line = "script.lua --workload=B --records=100 --threads=3 prepare"
    ended = shell(line, script)
    assert (ended.returncode, "FILLED" in ended.stdout) == (0, False), ended
    ended = shell(
        line,
        script.replace(
            'return "1"', 'filling = (filling or 1) - 1; return filling < 0 and "0" or "1"'
        ),
    )
    assert (ended.returncode, "FILLED" in ended.stdout) == (0, True), ended


YCSB = f"""
dofile("{ROOT}/workloads/ycsb.lua")
local begin, operate = thread_init, event
function thread_init()
  begin()
  con = {{ disconnect = function() end }}
  function con.query(_, sql) print(sysbench.tid, sql:sub(1, 64)) end
  for _ = 1, COUNT do operate() end
end
function event() return true end
"""
"""Prints the beginnings of statements, each thread as many."""


def test_ycsb_repeats_its_operations_with_a_seed(shell: Shell) -> None:
    line = "script.lua --mysql-dry-run --verbosity=0 --threads=8 --rand-seed=3 run"
    script = YCSB.replace("COUNT", "20")
    first, again = (sorted(shell(line, script).stdout.splitlines()) for _ in range(2))
    assert len(first) == 160
    assert first == again


def test_ycsb_d_reads_rows_that_exist_the_newest_most(shell: Shell) -> None:
    line = "script.lua --mysql-dry-run --verbosity=0 --workload=D --records=1000 --rand-seed=1 run"
    printed = shell(line, YCSB.replace("COUNT", "20000")).stdout
    newest, reads = 999, Counter[int]()
    for verb, row in re.findall(r"(INSERT|SELECT) .*'user([0-9]{12})'", printed):
        if verb == "INSERT":
            newest += 1
            assert int(row) == newest
        else:
            reads[newest - int(row)] += 1
    assert min(reads) == 0
    assert reads.total() + newest - 999 == 20_000
    zeta = sum(1 / rank**0.99 for rank in range(1, 1001))
    for rank in (1, 2):
        expected = reads.total() / rank**0.99 / zeta
        assert reads[rank - 1] == pytest.approx(expected, rel=0.1)


def test_a_script_of_dbdyno_is_found_in_a_folder_without_it(shell: Shell) -> None:
    typed = "workloads/tpcc.lua"
    ended = shell(f"{typed} help")
    assert ended.returncode == 0, ended
    assert "--warehouses" in ended.stdout
    assert f"{typed} is not there: {LAB}/workloads/tpcc.lua" in ended.stderr
    assert shell("tpcc.lua help").returncode == 1
