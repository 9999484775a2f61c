"""The administrator's connection to a MySQL, and the counters that are read on it."""

from __future__ import annotations

import pytest

from dbdyno.servers import client as client_module
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.mysql import client as module
from dbdyno.servers.mysql.client import numbers
from support.scripted_server import FakeClient


def test_an_observer_asks_for_the_counters_of_the_table_alone() -> None:
    client = FakeClient({module.COUNTERS_SQL: [("Questions", "12"), ("Threads_running", "3")]})
    observer = module.observer_of(client)  # type: ignore[arg-type]
    assert observer.read() == {"Questions": 12.0, "Threads_running": 3.0}


def test_a_session_has_the_database_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Session:
        def __init__(self, spec: object) -> None: ...

        def log_in(self) -> None: ...

        def ask(self, sql: str, limit_s: float) -> list[list[str]]:
            asked.append(sql)
            return []

    monkeypatch.setattr(client_module, "Session", Session)
    place, who = Endpoint("a", 1, None), Credentials("u", "p")
    for database in ("", "shop"):
        module.MysqlClient("a", place, who, database).ask("SELECT 1")
    assert asked == [*module.ORDERS, "SELECT 1", *module.ORDERS, "USE `shop`", "SELECT 1"]


def test_words_among_the_numbers_are_left_out() -> None:
    rows = [("Uptime", "9"), ("Rpl_status", "ON"), ("Ssl_cipher", ""), ("Ratio", "0.5")]
    rows += [("Odd", "nan"), ("Endless", "1e999")]
    assert numbers(rows) == {"Uptime": 9.0, "Ratio": 0.5}
