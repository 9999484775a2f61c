"""The table of options, against the help of the sysbench 1.0.20 binary where that is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from dbdyno.sysbench.options.table import (
    DATABASE,
    GENERAL,
    GLOBAL_TABLE,
    LEGACY_OPTIONS,
    LOG,
    MYSQL,
    OWN,
    PGSQL,
    RANDOM,
    WORKLOAD,
    of_test,
)
from dbdyno.sysbench.options.values import canonical

# Of sysbench 1.1, and dbdyno's own.
ADDED = {"rand-zipfian-exp", "warmup-time", "thread-init-timeout", "luajit-cmd", "compat"}
ADDED |= {"pgsql-sslmode"}
ADDED |= {"mysql-ssl-ca", "mysql-ssl-cert", "mysql-ssl-key", "mysql-compression-algorithms"}
ADDED |= {
    "client-placement",
    "arrival",
    "think-time",
    "detail",
    "output",
    "output-file",
    "percentile-format",
}
ADDED_TO_TESTS = {"create_table_options", "reconnect"}
PROGRAM = shutil.which("sysbench", path="/usr/bin:/usr/local/bin")
GLOBAL = (*GENERAL, *RANDOM, *LOG, *DATABASE, *MYSQL, *PGSQL)
OURS = {option.name: option.default for option in GLOBAL}


def helped(*words):
    """Names and defaults as the program's help has them; None where it shows no default."""
    if PROGRAM is None:
        pytest.skip("sysbench is not installed: apt-get install sysbench")
    text = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^ +--([a-z_-]+)(.*)$", text, re.MULTILINE)
    default = re.compile(r" \[([^\]]*)\]$")
    found = {name: default.search(rest) for name, rest in lines}
    return {name: match[1] if match else None for name, match in found.items()}


def test_every_option_of_sysbench_is_there():
    assert set(helped("--help")) == set(OURS) - ADDED


def test_the_defaults_are_those_of_sysbench():
    theirs = helped("--help")
    assert {name: OURS[name] for name in theirs if name in OURS} == {
        name: default for name, default in theirs.items() if name in OURS
    }


@pytest.mark.parametrize("test", ["oltp_read_write", *OWN])
def test_the_options_of_a_test_are_those_of_sysbench(test):
    ours = {it.name: it.default for it in of_test(test) if it.name not in ADDED_TO_TESTS}
    theirs = helped(test, "help")
    assert ours == theirs
    assert [*ours] == [*theirs]


def test_no_name_stands_twice():
    own = (*WORKLOAD, *(option for options in OWN.values() for option in options))
    for several in (own, LEGACY_OPTIONS):
        names = [canonical(option.name) for option in several]
        names += GLOBAL_TABLE
        assert len(names) == len(set(names))


# What sysbench has and dbdyno has not: refused by name, unless it would do nothing anyway.


REFUSED = {
    "oltp_read_write --db-driver=pgsql run": "--db-driver=pgsql: ",
    "oltp_read_write --mysql-compression --mysql-compression-algorithms=zstd run": (
        "--mysql-compression-algorithms=zstd: "
    ),
    "--test=oltp --oltp-test-mode=sp run": "--oltp-test-mode=sp: ",
    "--test=oltp --oltp-table-name=t run": "--oltp-table-name=t: ",
    "fileio run": "fileio: ",
}


@pytest.mark.parametrize("line", REFUSED)
def test_an_unsupported_option_or_test_is_refused_by_name(sysbench, engine, line):
    assert sysbench(line) == 1
    expected = REFUSED[line] + "this version of dbdyno does not do this yet: "
    said = [it for it in sysbench.stderr.splitlines() if not it.startswith("WARNING: the --test")]
    assert said[0].startswith(expected)
    assert len(said) == 1
    assert engine.specs == []


def test_options_of_the_other_driver_are_taken_and_change_nothing(sysbench, engine):
    assert sysbench("oltp_read_only --pgsql-host=h --pgsql-port=1 --events=1 run") == 0
    assert sysbench.stderr == ""
    assert engine.specs[-1]["user"] == "sbtest"


# Options of the tests of before 1.0.


def test_all_legacy_tests_have_them_and_no_other_test():
    assert set(of_test("oltp")) == set(of_test("legacy_select")) == set(LEGACY_OPTIONS)
    assert not set(of_test("oltp_read_write")) & set(LEGACY_OPTIONS)
