"""Lua scripts as workloads of a comparison: loaded and checked by commands of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno import api
from dbdyno.measurement.measurement import kinds_of
from dbdyno.measurement.metric import KIND, NOPM
from support.lab_process import finished, workspace
from support.real_server import CROWDED, SMALL_REDO, SMALL_REDO_TYPED
from support.source import ROOT

pytestmark = pytest.mark.live
TPCC = ROOT / "workloads" / "tpcc.lua"
SHORT = ("--warmup", "0", "--window", "2", "--blocks", "3", "--seed", "7")


def test_tpcc_is_compared_and_its_rows_are_checked() -> None:
    with workspace() as folder:
        ended = finished(
            folder,
            *("compare", "mysql:5.7.22", "mysql:8.0.15", "--threads", "4", *SHORT),
            *("--workload", f"{TPCC} --warehouses=1 --items=100 --customers=30"),
            *(*SMALL_REDO_TYPED, *CROWDED),
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        loaded = api.load("latest", folder)
        measured = loaded.trials
        estimates = loaded.estimates()
    assert len(measured) >= 6
    assert {one.trial.cell.workload for one in measured} == {"tpcc"}
    assert {one.evidence.script_check for one in measured} == {"holds"}
    assert len({one.dataset for one in measured}) == 1
    assert all(one.events > 10 for one in measured)
    assert "tpcc" in ended.stdout
    for one in measured:
        kinds = {kind: one.histogram(KIND + kind).count() for kind in kinds_of([one])}
        assert sum(kinds.values()) == one.events
        assert {"new_order", "payment"} <= set(kinds)
        # Ten of 23 cards are new orders, and the ends of four decks may be far from that. Who meets
        # a deadlock draws another card.
        dealt = kinds["new_order"] + kinds.get("new_order_rolled_back", 0)
        redrawn = sum(interval.restarts for interval in one.intervals)
        assert abs(dealt - one.events * 10 / 23) <= 4 * 10 * 13 / 23 + redrawn
        assert one.value(NOPM) == pytest.approx(kinds["new_order"] * 60 / one.window_s, rel=0.01)
    assert NOPM.name in estimates["metric"].to_list()


BROKEN = """
sysbench.cmdline.options = { rows = { "rows", 10 } }
function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE mine (id INT PRIMARY KEY)")
  for id = 1, sysbench.opt.rows do con:query("INSERT INTO mine VALUES (" .. id .. ")") end
end
function cleanup() sysbench.sql.driver():connect():query("DROP TABLE IF EXISTS mine") end
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT id FROM mine WHERE id = 3") end
sysbench.cmdline.commands = { check = { function() print("no") return false end } }
"""


def test_a_broken_check_voids_and_a_wrong_option_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.lua").write_text(BROKEN)
    plan = {
        "systems": [
            {"label": label, "reference": "mysql:5.7.22", "settings": SMALL_REDO}
            for label in ("one", "again")
        ],
        "workloads": [{"name": "mine.lua", "options": {"rows": 5}}],
        "load": {"threads": [2]},
        "trial": {"warmup": "0s", "window": "1s"},
        "design": {"blocks": 3, "disturbance_max": "100%"},
    }
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    with workspace() as folder:
        ended = finished(folder, "run", str(tmp_path / "plan.yaml"))
        assert "script-check" in ended.stdout, ended.stdout + ended.stderr
    plan["workloads"][0]["options"] = {"rosw": 5}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    with workspace() as folder:
        ended = finished(folder, "run", str(tmp_path / "plan.yaml"))
        assert ended.returncode != 0
        assert "mine.lua has no option rosw" in ended.stderr, ended.stderr
