"""The report's shape at its edges; whole texts are in test_running and test_real_sysbench."""

import pytest

from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Values
from dbdyno.sysbench.report import Ending, header, report
from dbdyno.sysbench.request import General
from dbdyno.sysbench.totals import Totals

FAIR = dict.fromkeys(("events_mean", "events_stddev", "seconds_mean", "seconds_stddev"), 0.0)


def of(**typed):
    options = {name.replace("_", "-"): value for name, value in typed.items()}
    return General.of(Values(GLOBAL_TABLE, options))


def test_a_run_without_events_or_time_has_a_report():
    text = report(Totals.of([]), of(), Ending(0.0, FAIR))
    assert "    transactions:                        0      (0.00 per sec.)" in text
    assert "         95th percentile:                        0.00\n" in text


@pytest.mark.parametrize(
    ("percentile", "row"),
    [
        ("1", "          1th percentile:                        0.00"),
        ("99", "         99th percentile:                        0.00"),
        ("100", "        100th percentile:                        0.00"),
        ("99.9", "        99.9th percentile:                       0.00"),
        ("99.99", "        99.99th percentile:                      0.00"),
    ],
)
def test_every_percentile_ends_in_the_column_of_the_others(percentile, row):
    text = report(Totals.of([]), of(percentile=percentile), Ending(0.0, FAIR))
    assert f"\n{row}\n" in text
    assert len(row) == len("         max:                                    0.00")


def test_several_percentiles_have_a_row_each_in_order():
    text = report(Totals.of([]), of(percentile="99.9,50,95"), Ending(0.0, FAIR))
    rows = [line.split()[0] for line in text.splitlines() if "percentile" in line]
    assert rows == ["50th", "95th", "99.9th"]


def test_a_report_in_the_middle_has_no_fairness():
    text = report(Totals.of([]), of(), Ending(3.0, None))
    assert "Threads fairness" not in text
    assert text.endswith("         sum:                                    0.00\n")
    assert "total time:                          3.0000s" in text


def test_the_header_names_what_was_asked_for():
    general = of(
        threads="4",
        warmup_time="3",
        rate="50",
        think_time="5-10",
        report_interval="0.5",
        report_checkpoints="20,10",
        rand_seed="7",
        forced_shutdown=None,
    )
    assert header(general) == (
        "Running the test with following options:\n"
        "Number of threads: 4\n"
        "Warmup time: 3s\n"
        "Target transaction rate: 50/sec\n"
        "Think time: 5-10 ms\n"
        "Report intermediate results every 0.5 second(s)\n"
        "Report checkpoint(s) at 10, 20 seconds\n"
        "Initializing random number generator from seed (7).\n"
        "\n"
        "Forcing shutdown in 13.5 seconds\n"
    )


def test_one_think_time_is_one_number():
    assert "\nThink time: 2.5 ms\n" in header(of(think_time="2.5"))
