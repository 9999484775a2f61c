"""The administrator's connection to a PostgreSQL, and its statistics as numbers."""

from __future__ import annotations

import json
import re

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.postgres import client as status
from dbdyno.servers.postgres import settings
from dbdyno.servers.postgres.client import PostgresClient, sealed
from support.scripted_server import FakeClient


def test_its_limit_is_the_sessions_and_no_default_that_settings_are_read_from():
    place, who = Endpoint("127.0.0.1", 5999, None), Credentials("dbdyno", "")
    made = PostgresClient("pg", place, who, "sbtest", answer_s_max=7)
    assert made._orders == ("SET statement_timeout = 7000",)
    assert made.answer_s_max > 7
    for sql in (settings.QUESTION, settings.SETTINGS):
        assert sql.startswith("SET LOCAL statement_timeout TO DEFAULT; S")


def test_a_password_is_sealed_with_a_salt_of_its_own():
    first, second = sealed("secret-4711"), sealed("secret-4711")
    for kept in (first, second):
        assert re.fullmatch(r"SCRAM-SHA-256\$4096:[\w+/]{22}==\$[\w+/]{43}=:[\w+/]{43}=", kept)
    assert first != second


def test_only_views_that_the_server_has_are_asked_for():
    sql = status.question(["pg_stat_wal", "pg_stat_database", "pg_stat_other"], "sbtest")
    assert "pg_catalog.pg_stat_wal v" in sql
    assert "pg_catalog.pg_stat_database v WHERE v.datname = 'sbtest'" in sql
    assert "pg_stat_io" not in sql
    assert "pg_stat_other" not in sql
    assert sql.count("UNION ALL") == 2


def numbers_of(rows):
    return status.answered(FakeClient({"SELECT": rows}), "SELECT")


def test_every_number_is_kept_under_its_view_and_column():
    place = {"backend_type": "client backend", "object": "relation", "context": "normal"}
    rows = [
        ("Uptime", '{"s": 12.5}'),
        ("database", json.dumps({"datid": 16384, "datname": "sbtest", "xact_commit": 7})),
        ("wal", json.dumps({"wal_bytes": 123456789012, "stats_reset": "2026-11-21T00:00:00"})),
        ("io", json.dumps({**place, "reads": 3, "fsyncs": None, "odd": True})),
    ]
    assert numbers_of(rows) == {
        "Uptime": 12.5,
        "database.xact_commit": 7.0,
        "wal.wal_bytes": 123456789012.0,
        "io.client backend.relation.normal.reads": 3.0,
    }


@pytest.mark.parametrize(
    "rows",
    [
        [("Uptime",)],
        [("Uptime", "{}")],
        [("Uptime", "12", "s")],
        [("wal", "[" * 100_000)],
        [("wal", "7")],
        [("wal", '{"wal_bytes": ' + "9" * 400 + "}")],
        [("wal", "no JSON")],
    ],
)
def test_an_odd_answer_is_an_error_in_words(rows):
    with pytest.raises(ServerError, match="answered 'SELECT' with something else"):
        numbers_of(rows)


def test_numbers_beyond_all_others_are_left_out():
    rows = [("wal", '{"wal_bytes": 1e999, "wal_records": NaN, "wal_fpi": 3}')]
    assert numbers_of(rows) == {"wal.wal_fpi": 3.0}


def test_zeros_of_the_longest_view_are_left_out():
    numbers = {"database.deadlocks": 0.0, "io.walwriter.wal.normal.reads": 0.0, "io.a.b": 2.0}
    assert status.without_idle_io(numbers) == {"database.deadlocks": 0.0, "io.a.b": 2.0}
