"""Whole commands against a fake engine: what is printed, exactly, and where."""

from __future__ import annotations

import re
import signal
import sys
from types import SimpleNamespace

import pytest

from dbdyno import __version__, _engine
from dbdyno._engine import Histogram
from dbdyno.sysbench.commands import cleanup, prepare, prewarm
from dbdyno.sysbench.console import ConsoleOutput
from support.sysbench import encoded, golden, interrupt, interval

FAILURE = {"stage": "run", "code": 1062, "sqlstate": "23000", "statement": "inserts"}
FAILURE["message"] = "Dup"


PRINTED = {
    "--report-interval=1": golden("sysbench_run.txt"),
    "--percentile=0 --validate": golden("sysbench_run_bare.txt"),
    "--verbosity=0 --report-interval=1": "",
}


@pytest.mark.parametrize("words", PRINTED)
def test_a_whole_run_prints_what_sysbench_prints(sysbench, words):
    assert sysbench(f"oltp_read_write --threads=2 --time=2 --rand-seed=7 {words} run") == 0
    said = "note: --validate: no effect in dbdyno\n" if "--validate" in words else ""
    assert (sysbench.stdout, sysbench.stderr) == (PRINTED[words], said)


def test_an_interval_cut_short_has_no_line(sysbench, engine):
    engine.intervals[1]["end_s"] = 1.5
    assert sysbench("oltp_read_only --time=2 --report-interval=1 run") == 0
    assert sysbench.stdout.count(" thds: ") == 1


def test_a_statement_that_is_never_prepared_fails_as_a_query(sysbench, engine):
    engine.failure = FAILURE
    for test, call in (
        ("bulk_insert", "mysql_drv_query()"),
        ("oltp_insert", "mysql_drv_query()"),
        ("oltp_read_write", "mysql_stmt_execute()"),
    ):
        assert sysbench(f"{test} run") == 1
        assert f"FATAL: {call} returned error 1062 (Dup)" in sysbench.stdout


def test_an_endless_run_is_warned_of(sysbench):
    warning = "WARNING: Both event and time limits are disabled, running an endless test\n"
    for command in ("run", "prepare", "help"):
        sysbench(f"oltp_read_write --time=0 {command}")
        assert sysbench.stdout.startswith(f"{warning}sysbench 1.0.20 ")
    sysbench("oltp_read_write --time=0 --output=json run")
    assert sysbench.stderr.startswith(warning)


def test_a_signal_ends_the_run_with_its_report(sysbench, engine):
    engine.before_end = interrupt
    before = signal.getsignal(signal.SIGTERM)
    assert sysbench("oltp_read_write --time=0 --events=0 run") == 128 + signal.SIGTERM
    assert "    transactions:                        9      (4.47 per sec.)" in sysbench.stdout
    assert signal.getsignal(signal.SIGTERM) == before


def test_sysbench_1_1_has_other_words_for_the_throughput(sysbench, engine):
    assert sysbench("oltp_read_write --compat=1.1 --threads=2 --time=2 --rand-seed=7 run") == 0
    assert sysbench.stdout.startswith(f"sysbench 1.1.0 (using dbdyno {__version__})\n\n")
    assert (
        "\n\nThroughput:\n"
        "    events/s (eps):                      4.4720\n"
        "    time elapsed:                        2.0125s\n"
        "    total number of events:              9\n"
        "\nLatency (ms):\n"
    ) in sysbench.stdout
    assert "General statistics" not in sysbench.stdout
    engine.raises = RuntimeError({**FAILURE, "stage": "connect"})
    assert sysbench("oltp_read_write --compat=1.1 run") == 1
    assert "FATAL: Threads initialization failed!\n" in sysbench.stdout


def test_a_warm_up_is_said_and_in_no_number(sysbench, engine):
    engine.intervals = [
        interval(0.0, 1.0, [], "warmup") | {"end_s": 0.0},
        interval(0.0, 1.0, [900] * 50, "warmup"),
        *(shifted(one, 1.0) for one in engine.intervals),
    ]
    line = "oltp_read_write --threads=2 --time=2 --warmup-time=1 --report-interval=1 --rand-seed=7"
    assert sysbench(f"{line} run") == 0
    expected = golden("sysbench_run.txt").replace("threads: 2\n", "threads: 2\nWarmup time: 1s\n")
    started = "Threads started!\n\n"
    expected = expected.replace(started, f"{started}Warming up for 1 seconds...\n\n")
    assert sysbench.stdout == expected
    assert engine.specs[0]["warmup_s"] == 1


def shifted(one, by_s):
    return {**one, "start_s": one["start_s"] + by_s, "end_s": one["end_s"] + by_s}


def test_reports_at_checkpoints_begin_anew(sysbench, engine):
    engine.intervals.insert(2, interval(2.0, 3.0, [5], "measured"))
    engine.intervals[3] = shifted(engine.intervals[3], 1.0)
    line = "oltp_read_write --time=3 --report-checkpoints=1,2,3 --report-interval=1 run"
    assert sysbench(line) == 0
    first, second, final = sysbench.stdout.split("SQL statistics:")[1:]
    counted = [re.search(r"transactions: +(\S+) +\((\S+) per", part)[1] for part in (first, second)]
    assert counted == ["4", "4"]
    assert "transactions:                        2      (1.98 per sec.)" in final
    assert re.findall(r"total time: +(\S+)s", sysbench.stdout) == ["1.0000", "2.0000", "3.0125"]
    assert re.findall(r"^\[ .*?(?= tps|$)", sysbench.stdout, re.MULTILINE) == [
        "[ 1s ] thds: 1",
        "[ 1s ] Checkpoint report:",
        "[ 2s ] thds: 1",
        "[ 2s ] Checkpoint report:",
        "[ 3s ] thds: 1",
    ]
    assert sysbench.stdout.count("Threads fairness:") == 1


def test_a_histogram_stands_before_the_last_report_alone(sysbench):
    assert sysbench("oltp_read_write --time=2 --report-checkpoints=1 --histogram run") == 0
    head, middle, last = sysbench.stdout.split("SQL statistics:")
    title = "Latency histogram (values are in milliseconds)\n"
    assert (head.count(title), middle.count(title)) == (0, 1)
    assert middle.endswith("\n \n")
    assert "|" not in last


def test_lines_may_be_about_several_recorded_steps(sysbench, engine):
    assert sysbench("oltp_read_write --report-interval=2 --report-checkpoints=1 run") == 0
    assert engine.specs[0]["interval_s"] == 1
    assert "[ 2s ] thds: 1 tps: 4.00 qps: 80.00 " in sysbench.stdout
    assert sysbench.stdout.count(" thds: ") == 1


def test_a_forced_shutdown_is_reported_as_sysbench_does(sysbench, engine):
    engine.more = {"unfinished": 2}
    assert sysbench("oltp_read_write --time=2 --forced-shutdown=3 run") == 2
    assert engine.specs[0]["drain_s"] == 3
    assert "\n\nForcing shutdown in 5 seconds\n\nInitializing" in sysbench.stdout
    assert "\n\nNumber of unfinished transactions on forced shutdown: 2\n\n" in sysbench.stdout
    engine.more = {"unfinished": 0}
    assert sysbench("oltp_read_write --time=2 --forced-shutdown=3 run") == 0
    assert "unfinished" not in sysbench.stdout


def test_a_rate_has_its_line_of_the_queue(sysbench, engine):
    engine.intervals[0] |= {"backlog": 3, "in_flight": 2}
    assert sysbench("oltp_read_write --rate=50 --report-interval=1 run") == 0
    assert engine.specs[0]["rate_per_s"] == 50
    assert "\nTarget transaction rate: 50/sec\nReport intermediate" in sysbench.stdout
    lines = [line for line in sysbench.stdout.splitlines() if line.startswith("[ ")]
    assert lines[1::2] == [
        "[ 1s ] queue length: 3, concurrency: 2",
        "[ 2s ] queue length: 0, concurrency: 0",
    ]


def test_a_server_that_does_not_keep_up_is_named_after_sysbench_s_report(sysbench, engine):
    for one in engine.intervals[:2]:
        one["arrivals"] = 50
    engine.more = {"unserved": 91}
    assert sysbench("oltp_read_write --rate=50 --time=2 run") == 0
    assert sysbench.stdout.endswith(golden("sysbench_behind.txt"))
    engine.more = {"unserved": 1}
    assert sysbench("oltp_read_write --rate=50 --time=2 run") == 0
    assert sysbench.stdout.endswith("execution time (avg/stddev):   0.0145/0.00\n\n")


@pytest.mark.parametrize("place", ["in the middle", "at the end"])
def test_a_rate_whose_queue_is_full_ends_the_run_as_in_sysbench(sysbench, engine, place):
    is_stopped = []
    engine.before_end = lambda stop: is_stopped.append(stop.is_set())
    engine.more = {"unserved": 131_071}
    if place == "in the middle":
        engine.intervals[0] |= {"backlog": 131_071}
    assert sysbench("oltp_read_write --rate=50000 --time=2 run") == 1
    assert is_stopped == [place == "in the middle"]
    assert sysbench.stdout.endswith(
        "Threads started!\n\n"
        "FATAL: The event queue is full. This means the worker threads are unable to keep up with"
        " the specified event generation rate\n"
    )
    assert "until then 9 events" in sysbench.stderr
    engine.more = {"unserved": 131_070}
    assert sysbench("oltp_read_write --rate=50000 --time=2 run") == 0
    assert "The server did not keep up with the rate." in sysbench.stdout


def test_the_generator_s_own_lag_is_printed_where_it_matters(sysbench, engine):
    lag = Histogram()
    lag.record(50_000)
    engine.intervals[0]["histograms"]["timer_lag"] = encoded(lag)
    said = "Timer lag of the generator: 99 % of events sent within 0.050 ms of their moment"
    for option in ("--rate=50", "--think-time=5"):
        assert sysbench(f"oltp_read_write {option} run") == 0
        assert said in sysbench.stdout
    assert sysbench("oltp_read_write run") == 0
    assert "Timer lag" not in sysbench.stdout


def test_details_follow_sysbench_s_report(sysbench, engine):
    engine.intervals[0]["histograms"]["begin"] = engine.intervals[0]["histograms"]["event"]
    line = "oltp_read_write --threads=2 --time=2 --percentile=50,99.9 --rand-seed=7 --detail run"
    assert sysbench(line) == 0
    report, more = sysbench.stdout.split("Statements by kind")
    assert report.endswith("execution time (avg/stddev):   0.0145/0.00\n\n")
    assert "Statements by kind" + more == golden("sysbench_detail.txt")


def test_a_stall_is_noted_on_stderr(sysbench, engine):
    engine.intervals[1]["silence_ns_max"] = 1_040_000_000
    assert sysbench("oltp_read_write --time=2 run") == 0
    assert sysbench.stderr == (
        "note: stall: for 1.04 s, until second 2 or just before, no statement was answered"
        " although events were in flight\n"
    )


def test_a_run_that_fails_has_no_report_but_says_how_far_it_came(sysbench, engine):
    engine.failure = FAILURE
    assert sysbench("oltp_read_write run") == 1
    assert "SQL statistics" not in sysbench.stdout
    assert sysbench.stdout.endswith("state = '23000': Dup\n")
    assert sysbench.stderr == (
        "note: the run failed after 2.0 s; until then 9 events (4.47 per second) were completed\n"
    )


def test_verbosity_4_says_what_ended_the_run(sysbench):
    assert sysbench("oltp_read_write --verbosity=4 run") == 0
    assert "Threads started!\n\nTime limit exceeded, exiting...\nDone.\n\nSQL" in sysbench.stdout


def test_debug_says_what_drove_the_load(sysbench):
    assert sysbench("oltp_read_write --debug --verbosity=0 run") == 0
    assert "\nDebug mode enabled.\n\nInitializing" in sysbench.stdout
    assert sysbench.stdout.endswith(
        "DEBUG: Engine 0.1.0, io_uring, 1 thread(s) for 1 connection(s)\n"
        "DEBUG: Server 8.0.31\n"
        "DEBUG: CPU of the measured time: 0.50 s\n"
    )


@pytest.mark.parametrize("form", ["json", "csv", "hlog"])
def test_a_form_for_machines_has_stdout_or_a_file_for_itself(sysbench, engine, tmp_path, form):
    line = f"oltp_read_write --threads=2 --time=2 --report-interval=1 --rand-seed=7 --output={form}"
    assert sysbench(f"{line} run") == 0
    alone = sysbench.stdout
    assert "SQL statistics" not in alone
    assert sysbench.stderr == ""
    file = tmp_path / "results"
    assert sysbench(f"{line} --output-file={file} run") == 0
    assert sysbench.stdout == golden("sysbench_run.txt")
    assert len(file.read_text().splitlines()) == len(alone.splitlines())


def test_a_file_that_cannot_be_written_is_refused_before_the_run(sysbench, engine, tmp_path):
    assert sysbench(f"oltp_read_write --output=json --output-file={tmp_path}/no/x run") == 1
    assert sysbench.stdout.endswith(
        f"FATAL: Cannot write --output-file={tmp_path}/no/x: No such file or directory\n"
    )
    assert engine.specs == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--output=json --threads=0", "FATAL: Invalid value for --threads: 0."),
        ("--output=json --time=0", "WARNING: Both event and time limits are disabled"),
        ("--output=csv --forced-shutdown", "FATAL: The --max-time limit has expired"),
    ],
)
def test_beside_a_form_for_machines_words_go_to_stderr(sysbench, engine, line, said):
    engine.more = {"unfinished": 2}
    sysbench(f"oltp_read_write {line} run")
    assert said in sysbench.stderr
    assert "FATAL" not in sysbench.stdout


# prepare, prewarm and cleanup.


def test_prepare_prints_each_step_once(sysbench, engine):
    assert sysbench("oltp_read_write --tables=2 --table_size=500 --threads=2 prepare") == 0
    assert sysbench.stdout == golden("sysbench_prepare.txt")
    assert engine.specs[0]["seed"] == 1


def test_a_terminal_sees_a_bar_beside_the_lines_of_prepare(engine, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert prepare(made(tables=1), ConsoleOutput(3)) == 0
    printed, bar = capsys.readouterr()
    assert printed.count("\n") == 3
    assert "0 of 5 rows" in bar
    assert bar.endswith("\r\x1b[K")


def test_empty_tables_have_no_line_about_rows(sysbench, engine):
    assert sysbench("oltp_insert --auto_inc=off --tables=1 prepare") == 0
    assert engine.specs[0]["table_size"] == 0
    assert "Inserting" not in sysbench.stdout


def test_bulk_insert_names_its_tables_as_sysbench_does(sysbench, engine, monkeypatch):
    def create(spec, on_progress, stop):
        for table in range(1, spec["tables"] + 1):
            on_progress({"table": table, "stage": "create"})
        return {}

    monkeypatch.setattr(_engine, "prepare", create)
    assert sysbench("bulk_insert --threads=2 prepare") == 0
    printed = sysbench.stdout.split("\n\n")[1]
    assert printed == "Creating table 'sbtest1'...\nCreating table 'sbtest2'...\n"
    assert sysbench("bulk_insert --threads=2 cleanup") == 0
    assert sysbench.stdout.endswith("Dropping table 'sbtest1'...\nDropping table 'sbtest2'...\n")


def test_cleanup_names_each_table(sysbench, engine):
    assert sysbench("oltp_read_write --tables=2 cleanup") == 0
    banner, printed = sysbench.stdout.split("\n\n")
    assert banner.startswith("sysbench 1.0.20 (using dbdyno ")
    assert printed == "Dropping table 'sbtest1'...\nDropping table 'sbtest2'...\n"
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


def test_the_lines_of_older_scripts_have_their_words(engine, capsys):
    assert prepare(made(layout="legacy", tables=1), ConsoleOutput(3)) == 0
    assert capsys.readouterr().out == (
        "Creating table 'sbtest1'...\nInserting 5 records into 'sbtest1'\n"
        "Creating secondary indexes on 'sbtest1'...\n"
    )
    assert prepare(made(layout="legacy_one", tables=1), ConsoleOutput(3)) == 0
    printed = "Creating table 'sbtest'...\nCreating 5 records in table 'sbtest'...\n"
    assert capsys.readouterr().out == printed
    assert cleanup(made(layout="legacy_one", tables=1), ConsoleOutput(3)) == 0
    assert cleanup(made(layout="bulk_insert", first_table=0), ConsoleOutput(3)) == 0
    dropped = [f"Dropping table '{name}'...\n" for name in ("sbtest", "sbtest0", "sbtest1")]
    assert capsys.readouterr().out == "".join(dropped)


def test_an_interrupted_prepare_says_so_and_how_far_it_came(sysbench, engine):
    stopped = {"stage": "insert", "code": None, "sqlstate": "", "statement": ""}
    stopped["message"] = "stopped; 5 of 9 rows were loaded"
    engine.raises = RuntimeError(stopped)
    engine.before_end = interrupt
    assert sysbench("oltp_read_write prepare") == 128 + signal.SIGTERM
    assert sysbench.stdout.endswith("\n\nFATAL: interrupted: stopped; 5 of 9 rows were loaded\n")
