"""An observer asks for the counters that are kept, by name, on a client of its own."""

from __future__ import annotations

from collections import Counter

from dbdyno.servers.mysql.client import COUNTERS, MysqlObserver, PostgresObserver, numbers


class Answers:
    """A client that answers everything with the same rows."""

    def __init__(self, rows: list[tuple[str, ...]]) -> None:
        self.answer, self.asked, self.closed = rows, list[str](), False

    def rows(self, sql: str) -> list[tuple[str, ...]]:
        self.asked.append(sql)
        return self.answer

    def close(self) -> None:
        self.closed = True


def test_only_the_counters_of_the_table_are_asked_for() -> None:
    client = Answers([("Questions", "12"), ("Threads_running", "3")])
    observer = MysqlObserver(client)  # type: ignore[arg-type]
    assert observer.read() == {"Questions": 12.0, "Threads_running": 3.0}
    assert client.asked[0].startswith("SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', ")
    observer.close()
    assert client.closed


def test_zeros_of_the_longest_view_are_left_out() -> None:
    told = {"database.deadlocks": 0.0, "io.walwriter.wal.normal.reads": 0.0, "io.a.b.c.fsyncs": 2.0}
    closed: list[bool] = []
    observer = PostgresObserver(lambda: told, lambda: closed.append(True))
    assert observer.read() == {"database.deadlocks": 0.0, "io.a.b.c.fsyncs": 2.0}
    observer.close()
    assert closed == [True]


def test_words_among_the_numbers_are_left_out() -> None:
    rows = [("Uptime", "9"), ("Rpl_status", "ON"), ("Ssl_cipher", ""), ("Ratio", "0.5")]
    assert numbers(rows) == {"Uptime": 9.0, "Ratio": 0.5}


def test_no_counter_is_listed_twice_and_none_needs_quoting() -> None:
    assert [name for name, times in Counter(COUNTERS).items() if times > 1] == []
    assert all(name.replace("_", "").isalnum() for name in COUNTERS)
