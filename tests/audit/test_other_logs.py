"""What pgbench and HammerDB print becomes rows; what is cut off is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.audit import audit
from dbdyno.audit.ledger import Severity
from dbdyno.audit.other_logs import LoggedRow, rows_in
from dbdyno.audit.read import read
from dbdyno.errors import UsageError
from support.published_logs import HAMMERDB, OLDER, PGBENCH, V1


def test_both_programs_of_several_versions() -> None:
    assert rows_in(PGBENCH + OLDER, "log") == [
        LoggedRow(
            8,
            "TPC-B (sort of)",
            {"latency_ms_avg": "2.188", "latency_ms_stddev": "1.512", "tps": "3655.632817"},
            15,
            60.0,
        ),
        LoggedRow(16, "select only", {"latency_ms_avg": "0.512", "tps": "31250.250000"}, 22),
    ]
    assert rows_in(HAMMERDB, "log") == [
        LoggedRow(8, "hammerdb_tprocc", {"nopm": "120345", "tpm": "279812"}, 3),
        LoggedRow(16, "hammerdb_tprocc", {"nopm": "180001", "tpm": "418777"}, 5),
    ]


def test_a_report_that_is_not_whole_is_refused_with_its_line() -> None:
    cut = PGBENCH[: PGBENCH.index("latency average")]
    with pytest.raises(UsageError, match="line 25 of log: a report of pgbench that is not whole"):
        rows_in(PGBENCH + "\n" * 7 + cut, "log")
    with pytest.raises(UsageError, match="line 1 of log: a result of HammerDB without its"):
        rows_in(HAMMERDB.splitlines()[2], "log")


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
