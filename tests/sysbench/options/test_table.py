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
    NOT_OF_1_0,
    OWN,
    PGSQL,
    RANDOM,
    WORKLOAD,
    of_test,
)
from dbdyno.sysbench.options.values import canonical

ADDED_TO_TESTS = {"create_table_options", "reconnect"}
PROGRAM = shutil.which("sysbench", path="/usr/bin:/usr/local/bin")
GLOBAL = (*GENERAL, *RANDOM, *LOG, *DATABASE, *MYSQL, *PGSQL)


def helped(*words):
    """Names and defaults as the program's help has them; None where it shows no default."""
    if PROGRAM is None:
        pytest.skip("sysbench is not installed: apt-get install sysbench")
    text = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^ +--([a-z_-]+)(.*)$", text, re.MULTILINE)
    default = re.compile(r" \[([^\]]*)\]$")
    found = {name: default.search(rest) for name, rest in lines}
    return {name: match[1] if match else None for name, match in found.items()}


def test_every_option_of_sysbench_is_there_with_its_default_and_in_its_order():
    ours = {it.name: it.default for it in GLOBAL if it.name not in NOT_OF_1_0}
    theirs = helped("--help")
    assert ours == theirs
    assert [*ours] == [*theirs]


@pytest.mark.parametrize(
    "test", ["oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_write", *OWN]
)
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


@pytest.mark.parametrize(
    ("typed", "endpoint", "tls"),
    [
        ("", {"host": "localhost", "port": 5432}, {"mode": "preferred"}),
        (
            "--pgsql-host=/run/pg --pgsql-port=7",
            {"socket": "/run/pg/.s.PGSQL.7"},
            {"mode": "preferred"},
        ),
        ("--pgsql-sslmode=disable", {"host": "localhost", "port": 5432}, None),
        ("--pgsql-sslmode=require", {"host": "localhost", "port": 5432}, {"mode": "required"}),
        (
            "--pgsql-host=db --pgsql-sslmode=verify-full",
            {"host": "db", "port": 5432},
            {"mode": "verify_identity", "ca": "/ca.crt"},
        ),
    ],
)
def test_a_postgresql_is_found_as_libpq_finds_it(
    sysbench, engine, monkeypatch, typed, endpoint, tls
):
    monkeypatch.setenv("PGPASSWORD", "secret-4711")
    monkeypatch.setenv("PGSSLROOTCERT", "/ca.crt")
    line = f"oltp_read_only --db-driver=pgsql --pgsql-user=u --pgsql-db=d {typed} --events=1 run"
    assert sysbench(line) == 0
    spec = engine.specs[-1]
    login = (spec["driver"], spec["user"], spec["password"], spec["database"])
    assert login == ("pgsql", "u", "secret-4711", "d")
    assert (spec["endpoint"], spec["ignore_errors"]) == (endpoint, ["40P01", "40001", "23505"])
    assert spec.get("tls") == tls


def test_libpqs_require_verifies_where_there_is_a_file_of_authorities(
    sysbench, engine, monkeypatch
):
    monkeypatch.setenv("PGSSLROOTCERT", __file__)
    assert sysbench("oltp_read_only --db-driver=pgsql --pgsql-sslmode=require --events=1 run") == 0
    assert engine.specs[-1]["tls"] == {"mode": "verify_ca", "ca": __file__}


def test_a_postgresql_fails_in_the_words_of_libpq(sysbench, engine):
    said = 'duplicate key value violates unique constraint "sbtest1_pkey"'
    engine.failure = {
        "stage": "run",
        "code": None,
        "sqlstate": "22012",
        "message": said,
        "server_message": "",
        "statement": "INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, $3, $4)",
    }
    assert sysbench("oltp_read_write --db-driver=pgsql --events=1 run") == 1
    assert f"FATAL: PQexecPrepared() failed: 7 {said}" in sysbench.stdout
    assert f"SQL error, errno = 0, state = '22012': {said}" in sysbench.stdout


# Options of the tests of before 1.0.


def test_all_legacy_tests_have_them_and_no_other_test():
    assert set(of_test("oltp")) == set(of_test("legacy_select")) == set(LEGACY_OPTIONS)
    assert not set(of_test("oltp_read_write")) & set(LEGACY_OPTIONS)
