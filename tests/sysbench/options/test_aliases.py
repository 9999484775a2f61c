"""Deprecated names, with the warnings of the sysbench 1.0.20 binary, on its streams."""

import pytest

from dbdyno.sysbench.options import command_line
from dbdyno.sysbench.options.values import Refusal

OF_TEST = (
    "WARNING: the --test option is deprecated. You can pass a script name or path on the command"
    " line without any options.\n"
)


def test_older_names_win_and_are_warned_of_before_the_banner(sysbench, engine):
    line = "oltp_read_only --threads=9 --max-time=4 --num-threads=3 --max-requests=70 run"
    assert sysbench(line) == 0
    spec = engine.specs[-1]
    assert (spec["connections"], spec["window_s"], spec["events"]) == (3, 4, 70)
    assert sysbench.stdout.splitlines()[:3] == [
        "WARNING: --num-threads is deprecated, use --threads instead",
        "WARNING: --max-requests is deprecated, use --events instead",
        "WARNING: --max-time is deprecated, use --time instead",
    ]
    assert sysbench.stdout.splitlines()[3].startswith("sysbench 1.0.20")
    assert sysbench.stderr == ""


def test_a_value_that_says_nothing_is_passed_over(sysbench, engine):
    line = "oltp_read_only --threads=9 --num-threads=1 --max-time=0 --max-requests=-1 run"
    assert sysbench(line) == 0
    spec = engine.specs[-1]
    assert (spec["connections"], spec["window_s"], spec["events"]) == (9, 10, 0)
    assert "deprecated" not in sysbench.stdout


def test_the_rate_goes_by_its_name_of_today():
    renamed, warnings = command_line.applied({"tx-rate": "100", "rate": "7"})
    assert renamed == {"rate": "100"}
    assert warnings == ["--tx-rate is deprecated, use --rate instead"]


def test_a_number_that_is_none_is_refused_under_its_own_name():
    with pytest.raises(Refusal, match="Invalid value for the 'num_threads' option: '1K'"):
        command_line.applied({"num-threads": "1K"})


def test_the_distribution_of_0_4_is_that_of_today_unless_that_is_typed():
    typed = {"oltp-dist-type": "uniform", "oltp-dist-pct": "2", "rand-spec-pct": "3"}
    renamed, warnings = command_line.applied(typed)
    assert renamed == {**typed, "rand-type": "uniform"}
    assert warnings == []


def test_a_test_named_by_option_wins_over_a_word(sysbench, engine):
    for line in (
        "--test=oltp_read_only run",
        "oltp_read_write --test=oltp_read_only run",
        "--test=oltp_write_only --test=oltp_read_only run",
    ):
        assert sysbench(line) == 0, line
        assert engine.specs[-1]["workload"]["name"] == "oltp_read_only"
        assert sysbench.stderr == OF_TEST


def test_a_command_before_the_option_is_still_the_command(sysbench, engine):
    assert sysbench("run --test=oltp_read_only") == 0
    assert engine.specs[-1]["workload"]["name"] == "oltp_read_only"
    note = "note: 'run' is the command; sysbench wants it after --test\n"
    assert sysbench.stderr == OF_TEST + note


def test_a_test_without_a_name_is_none(sysbench):
    assert sysbench("--test oltp_read_only run") == 1
    assert sysbench.stderr.startswith("invalid option: --test\n")
    assert sysbench("--test= oltp_read_only run") == 0
    assert sysbench.stderr == OF_TEST
    assert sysbench("--test=oltp_read_only oltp_read_write run") == 1
    assert sysbench.stderr == "Unrecognized command line argument: run\n"
