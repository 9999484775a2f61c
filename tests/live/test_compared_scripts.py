"""A Lua script as a workload of a run, whose own check of its rows fails, and its options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.lab_process import finished
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live
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


def test_a_broken_check_voids_and_a_wrong_option_is_told(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.lua").write_text(BROKEN)
    plan = {
        "systems": [{"label": "a", "reference": "mysql:5.7.22", "settings": SMALL_REDO}],
        "workloads": [{"name": "mine.lua", "options": {"rows": 5}}],
        "load": {"threads": [2]},
        "trial": {"warmup": "0s", "window": "1s"},
        "design": {"blocks": 1, "disturbance_max": "100%"},
    }
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    ended = finished(workspace, "run", str(tmp_path / "plan.yaml"))
    assert "script-check" in ended.stdout, ended.stdout + ended.stderr
    plan["workloads"][0]["options"] = {"rosw": 5}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    ended = finished(workspace, "run", str(tmp_path / "plan.yaml"))
    assert ended.returncode != 0
    assert "mine.lua has no option rosw" in ended.stderr, ended.stderr
