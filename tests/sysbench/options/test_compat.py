"""What `--compat=1.1` changes: defaults, names, what is refused."""

import pytest

from dbdyno.sysbench.options import command_line
from dbdyno.sysbench.options.table import GLOBAL_TABLE


def test_the_versions_differ_in_their_defaults(sysbench, engine):
    assert sysbench("oltp_read_only run") == 0
    assert engine.specs[-1]["distribution"]["name"] == "special"
    assert sysbench.stdout.startswith("sysbench 1.0.20 (using dbdyno ")
    assert sysbench("--compat=1.1 oltp_read_only run") == 0
    assert engine.specs[-1]["distribution"] == {"name": "uniform"}
    assert sysbench.stdout.startswith("sysbench 1.1.0 (using dbdyno ")
    assert sysbench.stderr == ""


def test_version_and_help_are_of_the_version(sysbench):
    assert sysbench("--compat=1.1 --version") == 0
    assert sysbench.stdout.split()[:2] == ["sysbench", "1.1.0"]


@pytest.mark.parametrize("value", ["--compat=2", "--compat=", "--compat"])
def test_an_unknown_version_is_refused(sysbench, value):
    assert sysbench(f"{value} oltp_read_only run") == 1
    shown = value.partition("=")[2]
    message = f"FATAL: Invalid value for --compat: '{shown}'. It must be 1.0 or 1.1.\n"
    assert sysbench.stdout == message


REFUSED = {
    "--num-threads=4": "  hint: sysbench 1.1 has --threads",
    "--max_time=4": "  hint: sysbench 1.1 has --time",
    "--max-requests=4": "  hint: sysbench 1.1 has --events",
    "--rand-spec-pct=4": "  hint: sysbench 1.1 has it no more",
    "--test=oltp_read_only": "  hint: sysbench 1.1 has it no more",
}


@pytest.mark.parametrize("option", REFUSED)
def test_what_1_1_removed_is_refused_after_the_banner(sysbench, engine, option):
    assert sysbench(f"oltp_read_only --compat=1.1 {option} run") == 1
    assert sysbench.stderr.splitlines() == [f"invalid option: {option}", REFUSED[option]]
    assert sysbench.stdout.splitlines()[-2].startswith("sysbench 1.1.0 ")
    assert engine.specs == []


def test_special_is_gone_and_gaussian_is_mended(sysbench, engine):
    assert sysbench("oltp_read_only --compat=1.1 --rand-type=special run") == 1
    assert sysbench.stdout.endswith("FATAL: Invalid random numbers distribution: special.\n")
    assert sysbench("oltp_read_only --compat=1.1 --rand-type=gaussian run") == 0
    assert engine.specs[-1]["distribution"] == {"name": "gaussian", "iterations": 12}
    assert sysbench.stderr.startswith("note: --rand-type=gaussian draws a bell curve here")
    assert sysbench("oltp_read_only --rand-type=gaussian run") == 0
    assert sysbench.stderr == ""


def test_what_1_1_added_works_in_both(sysbench, engine):
    line = (
        "oltp_read_only --reconnect=5 --create_table_options=COMMENT='x'"
        " --thread-init-timeout=3 --luajit-cmd=off --rand-type=zipfian "
    )
    for version in ("", "--compat=1.1 "):
        assert sysbench(line + version + "run") == 0
        spec = engine.specs[-1]
        assert (spec["reconnect_every"], spec["connect_timeout_s"]) == (5, 3)
        assert sysbench.stderr.startswith("note: --luajit-cmd has no effect")
        assert sysbench(line + version + "prepare") == 0
        assert engine.specs[-1]["table_options"] == "COMMENT='x'"


def test_a_login_must_be_given_time(sysbench, engine):
    assert sysbench("oltp_read_only --thread-init-timeout=0 run") == 1
    assert sysbench.stdout.endswith("FATAL: Invalid value for --thread-init-timeout: 0.\n")


def test_both_names_of_the_command_work_in_both(sysbench, engine):
    for word in ("prewarm", "warmup"):
        assert sysbench(f"oltp_read_only {word}") == 0
        assert sysbench.stdout.endswith("Prewarming table sbtest1\n")
        assert sysbench(f"--compat=1.1 oltp_read_only {word}") == 0
        assert sysbench.stdout.endswith("Preloading table sbtest1\n")
    for test in ("bulk_insert", "tests/db/oltp.lua"):
        assert sysbench(f"{test} prewarm") == 1
        assert sysbench.stderr == "Unknown command: prewarm\n"
    sysbench("--compat=1.1 oltp_read_only")
    assert "Supported commands: prepare, warmup, run, cleanup, help" in sysbench.stdout


def test_every_changed_or_removed_option_is_one(sysbench):
    assert set(command_line.REMOVED) - {"test", "tx-rate"} <= set(GLOBAL_TABLE)
    changed = command_line.with_defaults_of(GLOBAL_TABLE, "1.1")
    different = {name for name in changed if changed[name] != GLOBAL_TABLE[name]}
    assert different == {"rand-type", "mysql-ssl"}
