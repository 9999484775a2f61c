"""Facts around tables, each with its line: printed command lines of every age, settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.audit import audit
from dbdyno.audit.facts import facts_in
from dbdyno.audit.ledger import Severity
from dbdyno.audit.printed_commands import printed_commands
from dbdyno.audit.read import read
from dbdyno.audit.saved import text_to_save

READ_WRITE = "oltp_read_write"


@pytest.mark.parametrize(
    ("text", "workload", "statements", "options"),
    [
        (
            "sysbench --test=oltp --oltp-table-size=7000 --num-threads=4 --max-time=60 run",
            READ_WRITE,
            20,
            {"rows_per_table": "7000", "threads": "4", "time_s": "60"},
        ),
        (
            r"./sysbench\_orig --test=./tests/db/oltp\_new.lua --oltp-point-selects=1"
            " --oltp-simple-ranges=0 --oltp-sum-ranges=0 --oltp-order-ranges=0"
            " --oltp-distinct-ranges=0 --oltp-non-index-updates=0 --oltp-tables-count=3"
            " -- max-time=40 run",
            READ_WRITE,
            6,
            {"tables": "3", "time_s": "40"},
        ),
        ("sysbench --test=tests/db/select.lua --percentile=99 run", "oltp_point_select", 1, None),
        (
            "sysbench --test=/usr/share/oltp.lua --oltp-read-only=on --oltp-skip-trx=on run",
            "oltp_read_only",
            14,
            None,
        ),
        (
            "$ sysbench oltp_read_write --tables=4 \\\n  --table-size=90000 \\\n\n  –threads=64"
            " --skip_trx=on --rate=200 --config-file=/etc/hostname run > rw.log --time=9",
            READ_WRITE,
            18,
            {"tables": "4", "rows_per_table": "90000", "threads": "64", "rate_per_s": "200"},
        ),
        (
            "sysbench $test \\\n  --threads=$n \\\n  --time=300 --mysql-host=x run --tables=16",
            "",
            None,
            {"tables": "16", "time_s": "300"},
        ),
        ("sysbench oltp_write_only --index-updates=$n --time=9 run", "oltp_write_only", None, None),
        (
            "sysbench oltp_read_write --threads=8 prepare --tables=2",
            READ_WRITE,
            None,
            {"tables": "2"},
        ),
        ("with --tables=5, and --threads=8 of another tool", "", None, {"tables": "5"}),
    ],
)
def test_command_lines_are_read_as_the_persona_reads_them(
    text: str, workload: str, statements: int | None, options: dict[str, str] | None
) -> None:
    (command,) = printed_commands(text.splitlines())
    assert (command.line, command.workload, command.statements) == (1, workload, statements)
    assert options is None or command.options == options


@pytest.mark.parametrize(
    "text", ["sysbench 1.0.20 (using LuaJIT)", "we let sysbench run it", "-- x"]
)
def test_words_about_sysbench_are_no_command(text: str) -> None:
    assert list(printed_commands([text])) == []


SET_UP = """\
Both ran with durable commits.

    [mysqld]
    skip-networking
    sync_binlog = 1
    #innodb_io_capacity = 1000
    innodb_flush_method = O_DIRECT  # no double caching
    [client]
    port = 3306

```toml
log-level = "error"
[rocksdb.defaultcf]
block-cache-size = "14GB"
```
`set global tidb_disable_txn_auto_retry=0;`
innodb_buffer_pool_size = 8G on the first host, innodb_buffer_pool_size = 9G on the second
a = b
<!--
sync_binlog = 0
-->
"""


def test_blocks_of_settings_give_each_setting_with_its_line() -> None:
    facts = facts_in(SET_UP, "page")
    assert facts.settings == {
        "sync_binlog": "1",
        "innodb_flush_method": "O_DIRECT",
        "log-level": "error",
        "rocksdb.defaultcf.block-cache-size": "14GB",
        "tidb_disable_txn_auto_retry": "0",
    }
    assert facts.places["settings.sync_binlog"] == "page, line 5"
    assert facts.places["settings.rocksdb.defaultcf.block-cache-size"] == "page, line 14"


PAGE = """\
| threads | system | QPS | mean latency (ms) |
| --- | --- | --- | --- |
| 8 | Postern | 12000.5 | 4.0 |
| 32 | Postern | 36001.5 | 5.33 |
| 8 | Mistral | 11111.5 | 4.32 |
| 32 | Mistral | 30003.5 | {mean} |
"""
OPTIONS = (
    "sysbench --test=tests/db/oltp.lua --oltp-point-selects=1 --oltp-range-selects=off"
    " --oltp-non-index-updates=0 --oltp-tables-count=10 run\n\n"
)


def test_lines_of_options_that_repeat_one_are_several_commands() -> None:
    both = "--table_size=2000 --tables=25\n--table_size=9000 --tables=15\n"
    assert facts_in(both, "page").dataset == {}, "which of them is meant is not plain"
    assert facts_in(both.split("\n")[1], "page").dataset == {"tables": 15, "rows_per_table": 9000}


def test_a_number_before_a_settings_name_is_not_its_value() -> None:
    assert facts_in("DB_PORT: 5000\nTABLES: 6\n", "page").dataset == {}


def test_a_mix_of_its_own_is_audited_with_its_statements(tmp_path: Path) -> None:
    """30,003 queries a second of 32 threads: a mean of 6.4 ms, of 21.3 ms with 20 statements."""
    page = tmp_path / "page.md"
    for options, mean, contradictions in (
        (OPTIONS, "6.4", 0),
        (OPTIONS, "21.3", 1),
        ("", "21.3", 0),
    ):
        page.write_text(f"{options}## Read write\n\n{PAGE.format(mean=mean)}")
        (publication,) = read([page])
        ledger = audit(publication)
        assert publication.statements == ({READ_WRITE: 6} if options else {})
        assert ledger.count(Severity.CONTRADICTION) == contradictions, (options, mean)
        told = [
            one.place
            for one in ledger.entries
            if "6 statements by the printed options" in one.sentence
        ]
        assert told == ([f"{page}, line 1"] if options else [])


def test_a_rate_among_the_printed_options_is_no_closed_loop(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    command = "sysbench oltp_read_only --rate=700 --threads=32 run\n\n"
    page.write_text(f"{command}## Read only\n\n{PAGE.format(mean='640')}")
    assert audit(*read([page])).count(Severity.CONTRADICTION) == 0
    page.write_text(f"{command.replace('--rate=700', '')}## Read only\n\n{PAGE.format(mean='640')}")
    assert audit(*read([page])).count(Severity.CONTRADICTION) > 0


def test_a_mapping_renames_systems_of_tables(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE.format(mean="6.4"))
    (tmp_path / "names.yaml").write_text("systems: {Postern: Postern 2.1}\n")
    (publication,) = read([tmp_path / "page.md"], tmp_path / "names.yaml")
    assert {table.system for table in publication.tables} == {"Postern 2.1", "Mistral"}


RESULTS = """\
| threads | MySQL tps | MariaDB-pool tps | MariaDB tps |
| --- | --- | --- | --- |
| 8 | 120.5 | 130.5 | 125.5 |
"""


def test_versions_and_instance_types_are_facts_that_are_saved(tmp_path: Path) -> None:
    page, saved = tmp_path / "page.md", tmp_path / "saved.yaml"
    machines = (
        "| Part | Instance type |\n| --- | --- |\n| proxy | c5.large |\n| data | `r5d.2xlarge` |\n"
    )
    words = "We ran MySQL 8.0.\n\n* MySQL 8.0.30 MySQL Community\n* MariaDB 10.6.8-3, a fork\n\n"
    page.write_text(f"{words}{machines}\n{RESULTS}")
    (publication,) = read([page])
    assert publication.systems == {
        "MySQL": "8.0.30",
        "MariaDB-pool": "10.6.8-3",
        "MariaDB": "10.6.8-3",
    }
    assert publication.environment == {
        "instance_type.proxy": "c5.large",
        "instance_type.data": "r5d.2xlarge",
    }
    assert publication.unread == ()
    assert publication.places == {
        "systems.MySQL": f"{page}, line 3",
        "systems.MariaDB-pool": f"{page}, line 4",
        "systems.MariaDB": f"{page}, line 4",
        "environment.instance_type.proxy": f"{page}, line 8",
        "environment.instance_type.data": f"{page}, line 9",
    }
    saved.write_text(text_to_save([publication], [page], saved))
    (again,) = read([saved])
    assert (again.systems, again.environment, again.places) == (
        publication.systems,
        publication.environment,
        publication.places,
    )


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("MySQL 社区版 5.6(未经优化)", "5.6"),
        ("开源版本:MySQL v5.6社区版", "5.6"),
        ("**MySQL**: 8.0.30, 10 GB", "8.0.30"),
        ("Percona Server for MySQL 8.0.35, compatible with MySQL 8.0.34", None),
        ("MySQL 5.7 and 8.0", None),
        ("MySQL 5.7, later MySQL 8.0.30", None),
        ("<td>MySQL</td><td>12.5</td>", None),
        ("MySQL 12.5 13.5", None),
        ("p95: MySQL: 12.5, with MySQL 2.5 times as long, MySQL 30.5 %", None),
        ("mysql-8.0.30.tar.xz, MySQL Shell 8.0.32, MySQL 1234.5", None),
    ],
)
def test_a_version_stands_directly_behind_the_products_name(
    words: str, version: str | None
) -> None:
    systems = {"MySQL": "MySQL", "开源 MySQL": "first", "MySQL 9": "MySQL 9", "Aurora MySQL": "A"}
    known = facts_in(words, "page", (), systems).systems
    assert known == ({"MySQL": version, "first": version} if version else {})


def test_a_table_that_is_not_all_of_instance_types_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for rows in ("| data | c5.large |\n| data | c5.xlarge |\n", "| a | c5.large |\n| b | 8 GB |\n"):
        page.write_text(f"| Part | Machine |\n| --- | --- |\n{rows}\n{RESULTS}")
        (publication,) = read([page])
        assert publication.environment == {}
        assert publication.unread == (f"{page}, line 1: Part, Machine",)


def test_a_printed_file_of_options_is_none_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "own.cnf").write_text("tables=9\nthreads=7\n")
    text = f"sysbench oltp_read_only --config-file={tmp_path / 'own.cnf'} --time=60 run"
    (command,) = printed_commands([text])
    assert command.options == {"time_s": "60"}
