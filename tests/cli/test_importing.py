"""`dbdyno import`: a folder of logs as scripts leave it becomes a run that every command takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dbdyno import __main__, api
from dbdyno.errors import StoreError
from dbdyno.files import remove_tree
from dbdyno.judge.finding import Level
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import PRIMARY
from dbdyno.store.store import Store
from support.deep_folders import make_deep
from support.published_logs import HAMMERDB, OWN_CSV, OWN_HLOG, OWN_JSON, PGBENCH, V04, V1
from support.source import ROOT

REPORT = """sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)
Number of threads: {threads}
[ 1s ] thds: {threads} tps: {tps:.2f} qps: 200.00 (r/w/o: 140/40/20) lat (ms,95%): 9.5 err/s: 0 reconn/s: 0.00
[ 2s ] thds: {threads} tps: {tps:.2f} qps: 200.00 (r/w/o: 140/40/20) lat (ms,95%): 9.5 err/s: 0 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            {reads}
        write:                           {writes}
        other:                           {others}
        total:                           {queries}
    transactions:                        {events}   ({tps:.2f} per sec.)
    queries:                             {queries} ({qps:.2f} per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          {total_s:.4f}s
    total number of events:              {events}

Latency (ms):
         min:                                    1.00
         avg:                                    {mean:.2f}
         max:                                   30.00
         95th percentile:                        9.50
"""  # noqa: E501


def log(
    threads: int,
    tps: float,
    *,
    mean_ms: float | None = None,
    others: int = 2,
    total_s: float = 2,
    counted_s: float = 2,
) -> str:
    """What sysbench prints of read_write.

    Args:
        others: BEGIN and COMMIT of each event.
        counted_s: how much of the run's time the report has.
    """
    events = round(counted_s * tps)
    return REPORT.format(
        threads=threads,
        tps=tps,
        qps=(18 + others) * tps,
        events=events,
        mean=mean_ms or threads / tps * 1e3,
        reads=14 * events,
        writes=4 * events,
        others=others * events,
        queries=(18 + others) * events,
        total_s=total_s,
    )


def with_checkpoint() -> str:
    """2 s with a checkpoint after 1.5 s: the report has the 50 events of the last half second."""
    lines, report = log(8, 100, counted_s=0.5).split("SQL statistics")
    before, last = lines.split("[ 2s ]")
    return f"{before}[ 2s ] Checkpoint report:\n" + f"SQL statistics{report}".join(
        ["", f"[ 2s ]{last}", ""]
    )


TABLE = """## Read Write

| Threads | v2.1 QPS | v2.1 95% latency (ms) | v3.0 QPS | v3.0 95% latency (ms) |
| ------- | -------- | --------------------- | -------- | --------------------- |
| 150     | 85140.60 | 44.98                 | 83245.1  | 46.5                  |
| 300     | 96773.01 | 82.96                 | 127692.9 | 61.0                  |
"""


def two_ports(logs: Path) -> Path:
    """Logs of two systems at two load levels in a new folder."""
    logs.mkdir()
    for port, speed in ((3306, 100.0), (3307, 80.0)):
        for threads in (8, 16):
            name = f"oltp_read_write_{threads}_{port}.log"
            (logs / name).write_text(log(threads, speed * threads / 8))
    return logs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return two_ports(tmp_path / "logs")


FIRST_LINE = "NEW_ORDER - Takes(s): 9.6, Count: 640, TPM: 4000.0, Sum(ms): 70400, Avg(ms): 110\n"
"""A run of the first go-tpc that was cut off."""
PATTERN = ("--pattern", "{workload}_{threads}_{port}")
"""Of the names in `folder`."""


def imported(path: Path, workspace: Path, *more: str) -> int:
    typed = ["import", str(path), "--as", "old logs", "--workspace", str(workspace)]
    return __main__.main([*typed, *more])


def page(workspace: Path, form: str = "html") -> str:
    """The report of the last run, which is drawn when it is asked for."""
    assert __main__.main(["report", "latest", "--workspace", str(workspace)]) == 0
    return (api.load("latest", workspace).evidence.folder / f"report.{form}").read_text()


def trials(workspace: Path) -> tuple[Measurement, ...]:
    return api.load("latest", workspace).trials


def test_a_folder_of_logs_is_a_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "runs"
    mapping = tmp_path / "names.yaml"
    mapping.write_text('systems: {"3306": MySQL 5.7, "3307": MySQL 8.0}\n')
    assert imported(folder, workspace, *PATTERN, "--mapping", str(mapping)) == 0
    said = capsys.readouterr().out
    assert "no verdict" in said
    rows = [row for row in said.splitlines() if "MySQL-8.0" in row and "%" in row]
    assert [re.findall(r"\S+ %", row) for row in rows] == [["−20.0 %", "0.0 %"]] * 2
    run = api.load("latest", workspace)
    assert [system.label for system in run.plan.systems] == ["MySQL-5.7", "MySQL-8.0"]
    values = {
        (one.system, one.cell.threads): one.value
        for one in run.judgement.values
        if one.metric == "transactions_per_s"
    }
    assert values == {
        ("MySQL-5.7", 8): 100,
        ("MySQL-5.7", 16): 200,
        ("MySQL-8.0", 8): 80,
        ("MySQL-8.0", 16): 160,
    }
    p95 = run.judgement.value(run.trials[0].trial.cell, "MySQL-5.7", "latency_ms_p95")
    assert p95 is not None
    assert p95.value == 9.5
    ratios = [e.ratio for e in run.judgement.estimates if e.metric == "transactions_per_s"]
    assert ratios == pytest.approx([0.8, 0.8])
    assert run.judgement.verdicts == ()
    assert [one.events for one in run.trials[-1].intervals] == [160, 160]
    report = page(workspace)
    assert "Measured by sysbench 1.0.20 and imported" in report
    assert "restart" not in report.lower().split("<main", 1)[1].split("<script", 1)[0]


def fail_at_third(patch: pytest.MonkeyPatch, ended: BaseException) -> None:
    """Stores two measurements and raises at the third."""
    append, taken = Store.append, []

    def until_third(store: Store, measurement: Measurement) -> None:
        if len(taken) == 2:
            raise ended
        taken.append(measurement)
        append(store, measurement)

    patch.setattr(Store, "append", until_third)


@pytest.mark.parametrize("ended", [KeyboardInterrupt(), StoreError("the disk is full")])
def test_an_import_that_does_not_come_to_its_end_leaves_no_run(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ended: BaseException,
) -> None:
    workspace = tmp_path / "runs"
    with monkeypatch.context() as patch:
        fail_at_third(patch, ended)
        assert imported(folder, workspace, *PATTERN) == 1
    with Store.open(workspace) as store:
        assert store.run_ids() == []
    assert imported(folder, workspace, *PATTERN) == 0
    assert len(trials(workspace)) == 4


def test_an_import_that_was_killed_is_not_complete(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody tidies up behind SIGKILL: the store holds what was appended, and no end."""
    workspace = tmp_path / "runs"
    with monkeypatch.context() as patch:
        fail_at_third(patch, KeyboardInterrupt())
        patch.setattr(Store, "remove", lambda store, run_id: None)
        assert imported(folder, workspace, *PATTERN) == 1
    at = ["--workspace", str(workspace)]
    capsys.readouterr()
    assert __main__.main(["report", "latest", *at]) == 0
    assert "imported in part" in capsys.readouterr().out
    assert __main__.main(["runs", "list", *at]) == 0
    assert "2 trials, imported, not complete" in capsys.readouterr().out
    assert not api.load("latest", workspace).evidence.complete


def test_all_commands_take_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "runs"
    assert imported(folder, workspace, *PATTERN) == 0
    at = ["--workspace", str(workspace)]
    capsys.readouterr()
    assert __main__.main(["report", "latest", *at, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["complete"] is True
    assert __main__.main(["history", *at]) == 0
    assert "(old logs) was imported: no verdict" in capsys.readouterr().err
    assert __main__.main(["export", "latest", "--csv", str(tmp_path / "csv"), *at]) == 0
    assert __main__.main(["audit", "--self", "latest", *at]) == 0
    assert "4 cells looked at" in capsys.readouterr().out
    assert __main__.main(["resume", "latest", *at]) == 2
    assert "was measured by another tool" in capsys.readouterr().err
    assert __main__.main(["gate", "latest", *at]) == 3


def test_repeats_are_blocks_and_no_verdict(folder: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "runs"
    (folder / "oltp_read_write_8_3306.log").unlink()
    for number in range(5):
        (folder / f"oltp_read_write_8_3306.{number}").write_text(log(8, 100.0 + number))
    assert (
        __main__.main(
            [
                "import",
                *map(str, sorted(folder.glob("*_8_3306*"))),
                "--as",
                "x",
                "--workspace",
                str(workspace),
                "--pattern",
                "{workload}_{threads}_{port}.{repeat}",
            ]
        )
        == 0
    )
    assert [one.trial.block for one in trials(workspace)] == [0, 1, 2, 3, 4]


def test_other_generations_and_pgbench(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text(V1 + V04)
    (tmp_path / "postgres.log").write_text(PGBENCH)
    workspace = tmp_path / "runs"
    files = [str(tmp_path / "old.log"), str(tmp_path / "postgres.log")]
    assert __main__.main(["import", *files, "--as", "x", "--workspace", str(workspace)]) == 0
    assert {one.engine.version for one in trials(workspace)} >= {"sysbench 1.0.20", "pgbench"}


@pytest.mark.parametrize(
    ("name", "text", "pattern", "said"),
    [
        ("a.log", "nothing\n", "", "holds no results that are known"),
        ("a.log", HAMMERDB.splitlines()[1], "", 'HammerDB without its "TEST RESULT"'),
        ("a.log", "progress: 5.0 s, 700.1 tps", "", "line 1 is of a run of pgbench without"),
        ("a.log", HAMMERDB.splitlines()[2], "", "line 1 of"),
        ("a.log", "tpmC: 97.7\n", "", "a file name that does"),
        ("a.log", FIRST_LINE, "", 'line 1 is of a run of go-tpc without its "Finished"'),
        ("a.json", '{"totals": {}}', "", "holds no results that are known"),
        ("a.json", OWN_JSON, "", "a.json was written by dbdyno itself"),
        ("a.csv", OWN_CSV, "", "of dbdyno sysbench keep the plain log"),
        ("a.hlog", OWN_HLOG, "", "a.hlog was written by dbdyno itself"),
        ("a.csv", "run_id,sequence,attempt\na,0,0\n", "", "a run travels as a bundle"),
        ("a.dbdyno.zip", "PK", "", "a run travels as a bundle (dbdyno bundle)"),
        ("a.csv", "threads,tps\n8,fast\n", "", "'fast' is no number"),
        ("a.csv", "system,tps\nA,100\n", "", "which column has the load levels?"),
        ("a.log", log(8, 1), "{workload}_{threads}", "a.log does not fit the pattern"),
        ("rw_16.log", log(8, 1), "{workload}_{threads}", "its name and its text have different"),
        ("a.log", log(8, 1), "none", "names no fields"),
    ],
)
def test_what_cannot_be_imported_is_refused_and_nothing_is_stored(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    pattern: str,
    said: str,
) -> None:
    (tmp_path / name).write_text(text)
    more = ["--pattern", pattern] if pattern else []
    assert imported(tmp_path / name, tmp_path / "runs", *more) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_table_is_a_run_of_the_systems_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TiDB's shape: throughput of statements and p95, no transactions, which stay unknown."""
    (tmp_path / "read_write.md").write_text(TABLE)
    workspace = tmp_path / "runs"
    assert imported(tmp_path / "read_write.md", workspace) == 0
    out = capsys.readouterr().out
    assert "QPS 1/s" in out
    assert "TPS 1/s" not in out
    run = api.load("latest", workspace)
    assert [system.label for system in run.plan.systems] == ["v2.1", "v3.0"]
    values = {(v.system, v.cell.threads, v.metric): v.value for v in run.judgement.values}
    assert values["v2.1", 150, "queries_per_s"] == 85140.6
    assert values["v3.0", 300, "latency_ms_p95"] == 61.0
    assert values["v2.1", 150, "transactions_per_s"] is None
    assert {one.trial.cell.workload for one in run.trials} == {"oltp_read_write"}
    assert "and imported" in page(workspace)
    at = ["--workspace", str(workspace)]
    assert __main__.main(["history", *at]) == 0
    assert __main__.main(["export", "latest", "--csv", str(tmp_path / "csv"), *at]) == 0
    assert __main__.main(["audit", "--self", "latest", *at]) == 0


def test_a_publication_is_imported_with_all_its_tables(tmp_path: Path) -> None:
    published = ROOT / "examples" / "published" / "tidb-v3-vs-v2-2019.yaml"
    workspace = tmp_path / "runs"
    assert imported(published, workspace) == 0
    run = api.load("latest", workspace)
    assert len(run.plan.systems) == 2
    assert len(run.plan.workloads) == 4
    assert len(run.trials) == 2 * 4 * 6
    assert run.plan.load.threads == (150, 300, 600, 900, 1200, 1500)


def test_new_orders_of_hammerdb_are_its_transactions(tmp_path: Path) -> None:
    (tmp_path / "hammer.log").write_text(HAMMERDB)
    workspace = tmp_path / "runs"
    assert imported(tmp_path / "hammer.log", workspace) == 0
    rates = {one.trial.cell.threads: one.value(PRIMARY) for one in trials(workspace)}
    assert rates == {8: 120345 / 60, 16: 180001 / 60}
    assert {one.trial.cell.workload for one in trials(workspace)} == {
        "hammerdb_tprocc (new orders)"
    }


def test_what_follows_the_last_line_of_a_log_goes_on_at_its_rate(tmp_path: Path) -> None:
    (tmp_path / "long.log").write_text(log(8, 100, total_s=2.5))
    workspace = tmp_path / "runs"
    assert imported(tmp_path / "long.log", workspace) == 0
    (trial,) = trials(workspace)
    assert [(one.end_s, one.events) for one in trial.intervals] == [(1, 80), (2, 80), (2.5, 40)]


@pytest.mark.parametrize(
    ("text", "tps", "events", "queries"),
    [
        (log(4, 200, mean_ms=8), 200, 400, 8000),
        (log(8, 100, others=0), 100, 200, 3600),
        (with_checkpoint(), 100, 200, 4000),
        (re.sub(r"\[ .s \] thds.*\n", "", with_checkpoint()), 100, 200, 4000),
        (PGBENCH.replace("latency average = 2.188 ms\n", ""), 3655.632817, 219338, 0),
    ],
    ids=[
        "rate",
        "skip_trx",
        "checkpoint",
        "checkpoint without lines",
        "pgbench without a mean",
    ],
)
def test_logs_that_do_not_tell_all_are_not_void(
    tmp_path: Path, text: str, tps: float, events: int, queries: int
) -> None:
    (tmp_path / "a.log").write_text(text)
    (tmp_path / "names.yaml").write_text("workload: oltp_read_write\n")
    workspace, mapping = tmp_path / "runs", str(tmp_path / "names.yaml")
    assert imported(tmp_path / "a.log", workspace, "--mapping", mapping) == 0
    run = api.load("latest", workspace)
    (trial,) = run.trials
    assert [one.check for one in run.judgement.findings if one.level is Level.VOID] == []
    value = run.judgement.value(trial.trial.cell, trial.trial.system, "transactions_per_s")
    assert value is not None
    assert value.value == tps
    assert (trial.events, trial.queries) == (events, queries)


def test_where_nothing_imported_is_usable_the_report_says_so(tmp_path: Path) -> None:
    whole = log(8, 100)
    (tmp_path / "cut.log").write_text(whole[: whole.index("SQL statistics")])
    assert imported(tmp_path / "cut.log", tmp_path / "runs") == 0
    report = page(tmp_path / "runs")
    assert "No trial is valid, so there is no result." in report
    assert "this report has their numbers" not in report


@pytest.mark.parametrize("whole", [log(8, 100), with_checkpoint()], ids=["", "at a checkpoint"])
def test_a_log_that_was_cut_off_is_a_failed_trial(tmp_path: Path, whole: str) -> None:
    (tmp_path / "cut.log").write_text(whole[: whole.rindex("SQL statistics")] + whole)
    workspace = tmp_path / "runs"
    assert imported(tmp_path / "cut.log", workspace) == 0
    first, second = trials(workspace)
    last = len(whole[: whole.rindex("SQL statistics")].splitlines())
    missing = "transactions, total time, total number of events"
    assert first.failure is not None
    assert first.failure.startswith(f"the log of the run ends at line {last}, before its report")
    assert second.failure is None
    assert (missing in first.failure) == ("Checkpoint" not in whole)


HEADLESS = V1[V1.index("SQL statistics") :]
UNFAIR = HEADLESS.split("Threads fairness")[0]


@pytest.mark.parametrize(
    ("name", "text", "pattern", "cell", "tps"),
    [
        ("ro_threads16.log", HEADLESS, "{workload}_threads{threads}.log", ("ro", 16), 505.07),
        ("a.log", HEADLESS, "", ("unnamed workload", 16), 505.07),
        ("ro_9.log", UNFAIR, "{workload}_{threads}", ("ro", 9), 505.07),
        ("a.log", V1[V1.index("[ 1s ]") :], "", ("unnamed workload", 16), 505.07),
        ("tpcc_64.log", "tpmC: 60.0\n", "{workload}_{threads}", ("tpcc", 64), 1.0),
        ("c_64.log", HAMMERDB.splitlines()[2], "{workload}_{threads}", ("c", 64), 120345 / 60),
    ],
    ids=["by its name", "by its fairness", "by its name alone", "by rates", "go-tpc", "HammerDB"],
)
def test_the_name_supplies_what_a_log_without_its_head_lacks(
    tmp_path: Path, name: str, text: str, pattern: str, cell: tuple[str, int], tps: float
) -> None:
    (tmp_path / name).write_text(text)
    workspace = tmp_path / "runs"
    more = ["--pattern", pattern] if pattern else []
    assert imported(tmp_path / name, workspace, *more) == 0
    (trial,) = trials(workspace)
    assert (trial.trial.cell.workload, trial.trial.cell.threads) == cell
    assert trial.value(PRIMARY) == pytest.approx(tps)


def test_reports_without_heads_are_runs_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(HEADLESS + HEADLESS.replace("505.07", "404.04"))
    workspace = tmp_path / "runs"
    assert imported(tmp_path / "a.log", workspace) == 0
    assert [one.value(PRIMARY) for one in trials(workspace)] == [505.07, 404.04]


@pytest.mark.parametrize("pattern", ["{system}/{workload}_{threads}.log", "./{system}/*_{threads}"])
def test_folders_are_fields_of_a_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    for system, tps in (("kernel-a", 100), ("kernel-b", 200)):
        (tmp_path / system).mkdir()
        (tmp_path / system / "rw_8.log").write_text(log(8, tps))
    monkeypatch.chdir(tmp_path)
    typed = ["import", "kernel-a", "kernel-b", "--as", "x", "--workspace", "runs"]
    assert __main__.main([*typed, "--pattern", pattern]) == 0
    assert [(one.trial.system, one.value(PRIMARY)) for one in trials(tmp_path / "runs")] == [
        ("kernel-a", 100),
        ("kernel-b", 200),
    ]


UNUSED = re.sub("(number of events): .*", r"\1: 700", log(4, 0.0, mean_ms=8))


@pytest.mark.parametrize(
    ("text", "metric", "value"),
    [
        (UNUSED, "transactions_per_s", 350.0),
        (UNUSED, "queries_per_s", None),
        (log(4, 200).replace("95th percentile: ", "99th percentile: "), "latency_ms_p95", None),
        (re.sub(r"avg: .*", "avg: 0.00", log(4, 200)), "latency_ms_avg", None),
        (re.sub("(number of events): .*", r"\1: 0", log(4, 200)), "transactions_per_s", 200.0),
    ],
    ids=["transactions", "queries", "percentile", "latency", "events"],
)
def test_counters_that_were_not_filled_are_no_measurements(
    tmp_path: Path, text: str, metric: str, value: float | None
) -> None:
    (tmp_path / "a.log").write_text(text)
    workspace = tmp_path / "runs"
    assert imported(tmp_path / "a.log", workspace) == 0
    assert trials(workspace)[0].reported.get(metric) == value
    assert [f.check for f in api.load("latest", workspace).judgement.findings] == ["imported-run"]


def test_what_was_left_out_or_told_apart_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = log(8, 100) + log(8, 100, others=0)
    (tmp_path / "a.log").write_text(text)
    workspace = tmp_path / "runs"
    assert imported(tmp_path / "a.log", workspace) == 0
    assert "told apart, as runs of one name did different work: " in capsys.readouterr().err
    assert "told apart" in page(workspace, "md")


def test_a_percentile_that_was_not_printed_is_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text(log(4, 200).replace("95th percentile: ", "99th percentile: "))
    assert imported(tmp_path / "a.log", tmp_path / "runs") == 0
    said = capsys.readouterr().out
    assert "not printed" in said
    assert "not enough requests" not in said


def test_a_folder_too_deep_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    make_deep(tmp_path / "logs", 1200)
    try:
        assert imported(tmp_path / "logs", tmp_path / "runs") == 2
    finally:
        remove_tree(tmp_path / "logs")
    assert "folders in folders without end" in capsys.readouterr().err
