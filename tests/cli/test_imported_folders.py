"""`dbdyno import` of a folder: names are understood and shown, other files are left out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.test_importing import imported, log, trials, two_ports

from dbdyno.report.charts import converter
from dbdyno.store.store import Store
from support.published_logs import HAMMERDB


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return two_ports(tmp_path / "logs")


def test_names_are_understood_and_shown_and_no_chart_is_drawn(
    logs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a pattern, and before anything is stored; each value has its change beside it."""
    monkeypatch.setattr(converter, "_answer", lambda request: pytest.fail("a chart is drawn"))
    with monkeypatch.context() as patch:
        patch.setattr(Store, "open", lambda workspace: pytest.fail("stored"))
        with pytest.raises(pytest.fail.Exception, match="stored"):
            imported(logs, tmp_path / "runs")
    table, _ = capsys.readouterr().out.split("\n\n")
    assert [line.split() for line in table.splitlines()[1:4]] == [
        ["File", "System", "Workload", "Threads"],
        ["oltp_read_write_8_3306.log", "3306", "oltp_read_write", "8"],
        ["oltp_read_write_8_3307.log", "3307", "oltp_read_write", "8"],
    ]
    assert "read as {workload}_{threads}_{system};" in table
    assert imported(logs, tmp_path / "runs") == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "16 threads" in line and "3307" in line)
    assert row.split()[-6:] == ["160.0", "−20.0", "%", "9.50", "0.0", "%"]
    assert "report: dbdyno report 2" in out
    assert imported(logs, tmp_path / "runs", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["title"] == "old logs"


def test_files_without_results_in_a_folder_are_left_out_and_named(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {
        "my.cnf": "[mysqld]\nmax_connections = 500\n",
        "run.sh": "sysbench oltp_read_write --threads=8 run > $name\n"
        "go-tpc tpcc run --threads 8\ntpcc_start -c8\npgbench -c 8\n",
        "compose.yml": "services: {db: {image: mysql}}\n",
        "README.md": "| threads | tps |\n| --- | --- |\n| 8 | 800 |\n",
    }
    for name, text in others.items():
        (logs / name).write_text(text)
    (logs / ".git").mkdir()
    (logs / ".git" / "config").write_text("[core]\n")
    (logs / "plot.png").write_bytes(b"\x89PNG\0")
    assert imported(logs, tmp_path / "runs") == 0
    assert len(trials(tmp_path / "runs")) == 4
    said = capsys.readouterr().err.partition("left out, as they hold no results: ")[2]
    assert {name for name in (*others, "plot.png", "config") if name in said} == {
        *others,
        "plot.png",
    }
    assert imported(logs / "my.cnf", tmp_path / "runs") == 2
    (logs / "cut.log").write_text(HAMMERDB.splitlines()[1])
    assert imported(logs, tmp_path / "runs") == 2


def test_names_outside_utf_8_are_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (b"a/x\xff_8.log", b"a/y\xff_8.log", b"a/my\xff.cnf", b"b/x\xff\n\x1b[31m_8.log"):
        path = tmp_path / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(log(8, 100) if path.suffix == ".log" else "[mysqld]\n")
    assert imported(tmp_path, tmp_path / "runs") == 0
    assert "\x1b" not in capsys.readouterr().out
    assert {one.trial.system for one in trials(tmp_path / "runs")} >= {"a"}


def test_names_that_may_mean_two_things_are_not_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "names"
    logs.mkdir()
    for name in ("a_orders", "a_pay", "b_orders", "b_pay"):
        (logs / f"{name}_8.log").write_text(log(8, 100))
    assert imported(logs, tmp_path / "runs") == 0
    assert "Does a_orders name a system and a workload? If so" in capsys.readouterr().out
    assert imported(logs, tmp_path / "runs", "--pattern", "{system}_{workload}_{threads}") == 0
    assert "Does" not in capsys.readouterr().out
    (logs / "c_pay_9.log").write_text(log(8, 100))
    (logs / "c_pay_16.log").write_text(log(16, 100))
    assert imported(logs, tmp_path / "runs") == 2
    assert "c_pay_9.log: its name and its text have different" in capsys.readouterr().err
