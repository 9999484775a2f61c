"""What pgbench and programs of new orders print becomes rows; what is cut off is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.audit.audit import audit
from dbdyno.audit.ledger import Severity
from dbdyno.audit.read import read
from dbdyno.errors import UsageError
from support.published_logs import HAMMERDB, OLDER, PGBENCH, V1, rows_in


def test_pgbench_of_several_versions() -> None:
    rows = rows_in(PGBENCH + OLDER, "log")
    assert [row[:5] for row in rows] == [
        (
            8,
            "TPC-B (sort of)",
            {"latency_ms_avg": "2.188", "latency_ms_stddev": "1.512", "tps": "3655.632817"},
            15,
            60.0,
        ),
        (16, "select only", {"latency_ms_avg": "0.512", "tps": "31250.250000"}, 22, 0.0),
    ]


def orders(log: str) -> list[tuple[int, dict[str, str], float, str]]:
    """Connections, numbers, seconds and program of each run."""
    return [(row.threads, row.values, row.seconds, row.tool) for row in rows_in(log, "log")]


OLDER_HAMMERDB = """HammerDB CLI v3.2
Vuser 1:Timing test period of 5 in minutes
Vuser 1:24 Virtual Users configured
Vuser 1:TEST RESULT : System achieved 913447 PostgreSQL TPM at 397112 NOPM
"""
HAMMERDB_BY_WEB = """[
  "8 Active Virtual Users configured",
  "1",
  "TEST RESULT : System achieved 27975 NOPM from 61000 SQL Server TPM",
"""
BENCHMARKSQL = """07:07:52,100 [main] INFO   jTPCC : Term-00,      BenchmarkSQL v5.0
07:07:52,101 [main] INFO   jTPCC : Term-00, conn=jdbc:mysql://db:3306/tpcc?password=secret
07:07:52,102 [main] INFO   jTPCC : Term-00, warehouses=10
07:07:52,102 [main] INFO   jTPCC : Term-00, terminals=16
07:07:52,102 [main] INFO   jTPCC : Term-00, runMins=2
Term-00, Running Average tpmTOTAL: 12.3    Current tpmTOTAL: 45\b\b07:09:53,455 [Thread-3] INFO   jTPCC : Term-00,
07:09:53,455 [Thread-3] INFO   jTPCC : Term-00, Measured tpmC (NewOrders) = 7737.25
07:09:53,455 [Thread-3] INFO   jTPCC : Term-00, Measured tpmTOTAL = 17195.88
"""  # noqa: E501
GO_TPC = """$ tiup bench tpcc -H tidb -P 4000 -D tpcc --warehouses 4 --threads 32 --time 5m run
[Current] NEW_ORDER - Takes(s): 9.9, Count: 900, TPM: 5454.5, Sum(ms): 9000.0, Avg(ms): 10.0
Finished
[Summary] NEW_ORDER - Takes(s): 300.0, Count: 33000, TPM: 6600.0, Sum(ms): 1036200.0, Avg(ms): 31.4, 50th(ms): 24.1, 90th(ms): 60.8, 95th(ms): 71.3, 99th(ms): 88.1, 99.9th(ms): 109.1, Max(ms): 1040.2
[Summary] NEW_ORDER_ERR - Takes(s): 299.9, Count: 2, TPM: 0.4, Sum(ms): 75.1, Avg(ms): 37.5
[Summary] PAYMENT - Takes(s): 299.9, Count: 31773, TPM: 6355.8, Sum(ms): 1617272.1, Avg(ms): 50.9
tpmC: 6600.0, tpmTotal: 14701.5, efficiency: 1283.0%
"""  # noqa: E501
FIRST_GO_TPC = """creating table warehouse
Finished
$ go-tpc tpcc -D tpcc --warehouses 8 \\
    run --time 20s --threads 16
DELIVERY - Takes(s): 9.5, Count: 60, TPM: 378.9, Sum(ms): 16200, Avg(ms): 270, 95th(ms): 512
NEW_ORDER - Takes(s): 9.6, Count: 640, TPM: 4000.0, Sum(ms): 70400, Avg(ms): 110, 95th(ms): 192
Finished
DELIVERY - Takes(s): 19.5, Count: 129, TPM: 396.9, Sum(ms): 35000, Avg(ms): 271, 95th(ms): 512
NEW_ORDER - Takes(s): 19.6, Count: 1380, TPM: 4224.5, Sum(ms): 153600, Avg(ms): 111, 95th(ms): 192
NEW_ORDER_ERR - Takes(s): 0.0, Count: 2, TPM: 5108.7, Sum(ms): 92, Avg(ms): 46, 95th(ms): 64
"""
FIRST_NUMBERS = {"nopm": "4224.5", "latency_ms_avg": "111", "latency_ms_p95": "192"}
TPCC_MYSQL = """  [warehouse]: 2
 [connection]: 16
    [measure]: 60 (sec.)
<TpmC>
                 3328.200 TpmC
"""
YCSB = """$ bin/ycsb.sh run jdbc -P workloads/workloadb -p threadcount=24
[OVERALL], RunTime(ms), 8300
[OVERALL], Throughput(ops/sec), 1204.8192771084337
[READ], Operations, 9500
[READ], AverageLatency(us), 8011.5
"""


@pytest.mark.parametrize(
    ("log", "runs"),
    [
        (
            HAMMERDB,
            [
                (8, {"nopm": "120345", "tpm": "279812"}, 0, "HammerDB"),
                (16, {"nopm": "180001", "tpm": "418777"}, 0, "HammerDB"),
            ],
        ),
        (OLDER_HAMMERDB, [(24, {"nopm": "397112", "tpm": "913447"}, 300, "HammerDB 3.2")]),
        (HAMMERDB_BY_WEB, [(8, {"nopm": "27975", "tpm": "61000"}, 0, "HammerDB")]),
        (BENCHMARKSQL, [(16, {"nopm": "7737.25", "tpm": "17195.88"}, 120, "BenchmarkSQL 5.0")]),
        (
            GO_TPC,
            [
                (
                    32,
                    {
                        **{"nopm": "6600.0", "tpm": "14701.5", "latency_ms_avg": "31.4"},
                        **{"latency_ms_p50": "24.1", "latency_ms_p90": "60.8"},
                        **{"latency_ms_p95": "71.3", "latency_ms_p99": "88.1"},
                        **{"latency_ms_p999": "109.1", "latency_ms_max": "1040.2"},
                    },
                    300,
                    "go-tpc",
                )
            ],
        ),
        (FIRST_GO_TPC, [(16, FIRST_NUMBERS, 19.6, "go-tpc")]),
        (FIRST_GO_TPC * 2, [(16, FIRST_NUMBERS, 19.6, "go-tpc")] * 2),
        (
            FIRST_GO_TPC.replace("TPM: 4224.5", "OPS: 70.4"),
            [(16, {**FIRST_NUMBERS, "nopm": "4224.0"}, 19.6, "go-tpc")],
        ),
        ("tpmC: 9.7\n", [(0, {"nopm": "9.7"}, 0, "go-tpc")]),
        (TPCC_MYSQL, [(16, {"nopm": "3328.200"}, 60, "tpcc-mysql")]),
        (re.sub(r">\n +", "> ", TPCC_MYSQL), [(16, {"nopm": "3328.200"}, 60, "tpcc-mysql")]),
        (YCSB, [(24, {"tps": "1204.8192771084337"}, 0, "YCSB")]),
    ],
    ids=[
        *("HammerDB", "HammerDB 3", "as JSON", "BenchmarkSQL", "go-tpc", "first go-tpc"),
        *("two runs of it", "a second", "tpmC", "tpcc-mysql"),
        *("tpcc-mysql, in a line", "YCSB"),
    ],
)
def test_programs_that_count_new_orders(
    log: str, runs: list[tuple[int, dict[str, str], float, str]]
) -> None:
    assert orders(log) == runs


def test_latencies_of_another_unit_are_none() -> None:
    """A version of go-tpc printed all percentiles as 0.5 ms beside a sum of minutes."""
    wrong = re.sub(r"(Avg|th)\(ms\): [\d.]+", r"\1(ms): 0.5", GO_TPC)
    ((_, values, _, _),) = orders(wrong)
    assert values == {"nopm": "6600.0", "tpm": "14701.5", "latency_ms_avg": "31.4"}


def test_a_number_of_connections_holds_for_one_result() -> None:
    assert [row.threads for row in rows_in(HAMMERDB + HAMMERDB.splitlines()[2], "log")] == [
        8,
        16,
        0,
    ]


@pytest.mark.parametrize(
    ("log", "threads"),
    [
        (f"$ pgbench -c 16 -j 4 -S bench\n{PGBENCH[PGBENCH.index('tps') :]}", 16),
        (f"$ pgbench --client=24 bench\n{OLDER[OLDER.rindex('tps') :]}", 24),
        (f"$ pgbench -c 16 bench\n{PGBENCH.replace('number of clients: 8', '')}", 16),
        (f"$ pgbench -c 16 bench\n{PGBENCH}", 8),
        (f"$ ./tpcc_start -h db -w2 -c32 -r10 -l60\n{TPCC_MYSQL.splitlines()[-1]}\n", 32),
    ],
    ids=["pgbench", "older pgbench", "half a head", "the head counts", "tpcc-mysql"],
)
def test_a_command_tells_the_connections_of_the_result_below_it(log: str, threads: int) -> None:
    assert [row.threads for row in rows_in(log, "log")] == [threads]


def test_a_command_of_pgbench_holds_for_one_report() -> None:
    again = PGBENCH[PGBENCH.index("duration") :].replace("219311", "239311")
    with pytest.raises(UsageError, match="line 18 of log: a report of pgbench that is not whole"):
        rows_in(f"pgbench -c 16 bench\n{PGBENCH}{again}", "log")


def test_a_report_that_is_not_whole_is_refused_with_its_line() -> None:
    cut = PGBENCH[: PGBENCH.index("latency average")]
    with pytest.raises(UsageError, match="line 25 of log: a report of pgbench that is not whole"):
        rows_in(PGBENCH + "\n" * 7 + cut, "log")


def test_a_report_without_its_head_is_no_part_of_the_report_above_it(tmp_path: Path) -> None:
    """Scripts print a whole report and of further runs the numbers alone."""
    path, again = tmp_path / "a.log", PGBENCH[PGBENCH.index("duration") :]
    path.write_text(f"{PGBENCH}=== RUN 2 ===\n{again.replace('219311', '239311')}")
    (publication,) = read([path])
    assert [cell.values["tps"].text for cell in publication.cells()] == ["3655.632817"]
    assert publication.unread == (f"line 18 of {path}: a report of pgbench that is not whole",)


def test_a_run_of_unknown_connections_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(HAMMERDB + HAMMERDB.splitlines()[2])
    (publication,) = read([path])
    assert [cell.threads for cell in publication.cells()] == [8, 16]
    assert [words.partition(": ")[2] for words in publication.unread] == [
        "how many connections had this run?"
    ]


def test_tables_of_a_page_come_before_a_log_that_it_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(f"{PGBENCH}\n| clients | tps |\n|---|---|\n| 4 | 1801.5 |\n| 8 | 3655.6 |\n")
    (publication,) = read([path])
    assert [cell.threads for cell in publication.cells()] == [4, 8]
    assert publication.unread == (f"{path}, line 15: a run of a log that the page quotes",)


@pytest.mark.parametrize(
    ("log", "wait", "limit"),
    [
        (
            V1,
            ("avg:                                   31.62", "avg: 90.62"),
            "Number of threads: 16",
        ),
        (PGBENCH, ("latency average = 2.188", "latency average = 20.188"), "duration: 60 s"),
    ],
)
def test_latencies_of_a_limited_rate_have_the_wait_for_a_connection(
    tmp_path: Path, log: str, wait: tuple[str, str], limit: str
) -> None:
    path, slow = tmp_path / "a.log", log.replace(*wait)
    said = {V1: "Target transaction rate: 505/sec", PGBENCH: "rate limit schedule lag: avg 18.0"}
    path.write_text(slow.replace(limit, f"{limit}\n{said[log]}"))
    assert audit(*read([path])).count(Severity.CONTRADICTION) == 0
    path.write_text(slow)
    assert audit(*read([path])).count(Severity.CONTRADICTION) == 1


def test_a_log_is_a_table_for_each_workload(tmp_path: Path) -> None:
    path = tmp_path / "postgres-16.log"
    path.write_text(PGBENCH + OLDER)
    (publication,) = read([path])
    assert [(t.system, t.workload, t.threads) for t in publication.tables] == [
        ("postgres-16", "TPC-B (sort of)", (8,)),
        ("postgres-16", "select only", (16,)),
    ]
    assert publication.cells()[0].values["latency_ms_avg"].text == "2.188"


def test_names_of_files_tell_logs_of_one_folder_apart(tmp_path: Path) -> None:
    """The logs say their workload themselves, so that the file's name is of the system."""
    for folder in ("alpha", "beta"):
        (tmp_path / folder).mkdir()
        for name in ("plain", "tuned"):
            (tmp_path / folder / f"{name}.log").write_text(PGBENCH)
    publications = read(sorted(tmp_path.rglob("*.log")))
    assert {(t.system, t.workload) for one in publications for t in one.tables} == {
        (f"{folder} {name}", "TPC-B (sort of)")
        for folder in ("alpha", "beta")
        for name in ("plain", "tuned")
    }


def test_a_log_without_a_workload_has_that_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "alpha_rw_8.log"
    path.write_text(PGBENCH.replace("builtin: TPC-B (sort of)", ""))
    (publication,) = read([path])
    assert [(t.system, t.workload) for t in publication.tables] == [("alpha", "oltp_read_write")]
