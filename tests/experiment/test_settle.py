"""A server writes everything out, is watched until it has, and is left as it was."""

import itertools

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import settle as module
from dbdyno.experiment.settle import DEBTS, WORKERS, purge_binary_logs, settle
from dbdyno.servers.postgres.server import PostgresServer


class Server:
    """Answers with what is left, step by step; its variables can be set."""

    driver, label = "mysql", "a"

    def __init__(self, left=((0, 0),), log_bin="1", gone=""):
        self.left = itertools.chain(left, itertools.repeat(left[-1]))
        self.variables = {
            "innodb_max_dirty_pages_pct": "75.000000",
            "innodb_max_dirty_pages_pct_lwm": "10.5",
        }
        self.now, self.log_bin, self.gone, self.asked = (0, 0), log_bin, gone, []

    def ask(self, sql):
        self.asked.append(sql)
        if self.gone and self.gone in sql:
            raise ServerError("a: no answer", found="gone away")
        if sql.startswith("SET GLOBAL"):
            name, _, value = sql.removeprefix("SET GLOBAL ").partition(" = ")
            self.variables[name] = value
            return []
        if sql.startswith("SHOW GLOBAL STATUS"):
            self.now = next(self.left)
        answers = {
            "SHOW GLOBAL STATUS": [(module.DIRTY_PAGES, str(self.now[0]))],
            "SHOW ENGINE": [("InnoDB", "", f"TRANSACTIONS\nHistory list length {self.now[1]}\n")],
            "SELECT @@log_bin": [(self.log_bin,)],
            "SHOW BINARY LOGS": [("binlog.000001", "3000000", "No"), ("it's.2", "500000", "No")],
            **{f"SELECT @@GLOBAL.{name}": [(v,)] for name, v in self.variables.items()},
        }
        known = [words for words in answers if sql.startswith(words)]
        return answers[max(known, key=len)] if known else []


@pytest.fixture(autouse=True)
def no_sleep(monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


def clock():
    return itertools.count().__next__


def test_it_waits_until_pages_are_written_and_versions_purged():
    server = Server(left=((5000, 900), (300, 400), (10, 90)))
    step = settle(server, 60, clock())
    assert (step.name, step.done) == ("settle", True)
    assert step.detail == "dirty pages 5000 to 10, history 900 to 90"
    assert step.seconds > 0


def test_the_server_flushes_all_meanwhile_and_is_as_it_was_afterwards():
    server = Server()
    settle(server, 60, clock())
    assert [sql for sql in server.asked if "= 0" in sql] == [
        "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0",
        "SET GLOBAL innodb_max_dirty_pages_pct = 0",
    ]
    assert server.variables == {
        "innodb_max_dirty_pages_pct": "75",
        "innodb_max_dirty_pages_pct_lwm": "10.5",
    }


def test_a_server_that_refuses_the_second_change_has_the_first_undone():
    server = Server(gone="_pct = 0")
    assert not settle(server, 60, clock()).done
    assert server.variables["innodb_max_dirty_pages_pct_lwm"] == "10.5"


def test_the_cap_ends_the_wait_and_the_step_is_not_done():
    step = settle(Server(left=((5000, 0),)), 3, clock())
    assert not step.done
    assert step.detail == "not at rest at the cap: dirty pages 5000 to 5000, history 0 to 0"


def test_a_history_that_gets_no_shorter_is_rest():
    server = Server(left=((0, 3000), (0, 2000), (0, 1500)))
    step = settle(server, 1000, clock())
    assert step.done
    assert step.detail.endswith("history 3000 to 1500")
    looks = [sql for sql in server.asked if sql.startswith("SHOW ENGINE")]
    assert len(looks) == 3 + module.UNCHANGED_LOOKS


@pytest.mark.parametrize("gone", ["STATUS", "SET GLOBAL", "ENGINE"])
def test_a_server_that_does_not_answer_is_a_step_not_done(gone):
    step = settle(Server(gone=gone), 60, clock())
    assert (step.done, step.detail) == (False, "gone away")


def test_binary_logs_are_purged_to_a_new_one_whatever_its_name():
    server = Server()
    step = purge_binary_logs(server)
    assert (step.name, step.done) == ("purge binary logs", True)
    assert step.detail == "binary logs: 2, 3.5 MB in all"
    assert server.asked[-1] == "PURGE BINARY LOGS TO 'it''s.2'"
    assert "FLUSH BINARY LOGS" in server.asked


def test_without_a_binary_log_there_is_nothing_to_purge():
    server = Server(log_bin="0")
    step = purge_binary_logs(server)
    assert (step.done, step.detail) == (True, "the binary log is off")
    assert server.asked == ["SELECT @@log_bin"]


def test_a_purge_that_is_refused_is_a_step_not_done():
    step = purge_binary_logs(Server(gone="PURGE"))
    assert (step.done, step.detail) == (False, "gone away")


class Postgres(PostgresServer):
    """Answers from what is left to do, and remembers every order."""

    def __init__(self, debts=(), workers=(), slow=""):
        self.label, self.pid = "pg", 4711
        self.debts, self.workers, self.slow = list(debts), list(workers), slow
        self.orders = []

    def ask(self, sql):
        if sql == WORKERS:
            return [(str(self.workers.pop(0) if self.workers else 0),)]
        if sql == DEBTS:
            return self.debts.pop(0) if self.debts else []
        self.orders.append(sql)
        if self.slow and sql.startswith(self.slow):
            raise ServerError("pg: no", found="canceling statement due to statement timeout")
        return []


def test_tables_are_vacuumed_within_what_is_left_then_all_is_written_out():
    server = Postgres(debts=[[("public.sbtest1", "700", "9"), ('public."T 2"', "0", "3")]])
    step = settle(server, 30, clock=lambda: 5.0)
    assert (step.name, step.done, step.seconds) == ("settle", True, 0.0)
    assert step.detail == "2 tables vacuumed with 700 dead rows, checkpoint done"
    assert server.orders == [
        "SET statement_timeout = 30000",
        "VACUUM (ANALYZE) public.sbtest1",
        "SET statement_timeout = 60000",
        "SET statement_timeout = 30000",
        'VACUUM (ANALYZE) public."T 2"',
        "SET statement_timeout = 60000",
        "SET statement_timeout = 30000",
        "CHECKPOINT",
        "SET statement_timeout = 60000",
    ]


def test_rows_that_stay_dead_are_not_vacuumed_for_ever():
    server = Postgres(debts=[[("public.t", "5", "0")]] * 99)
    step = settle(server, 30)
    assert step.done
    assert step.detail == "1 tables vacuumed with 5 dead rows, checkpoint done"
    assert server.orders.count("VACUUM (ANALYZE) public.t") == module.PASSES_MAX


def test_autovacuum_is_waited_for():
    server = Postgres(workers=[2, 1, 0])
    assert settle(server, 30).done
    assert server.workers == []


def test_autovacuum_that_does_not_end_is_no_rest():
    ticks = iter(range(100))
    server = Postgres(workers=[1] * 99)
    step = settle(server, 3, clock=lambda: float(next(ticks)))
    assert not step.done
    assert step.detail == "not at rest at the cap: autovacuum still works"
    assert step.seconds >= 3
    assert server.orders == []


def test_what_the_server_broke_off_is_no_rest():
    server = Postgres(slow="CHECKPOINT")
    step = settle(server, 1)
    assert not step.done
    assert step.detail == "not at rest at the cap: vacuum or checkpoint still at work"
    assert server.orders[-1] == "SET statement_timeout = 60000"


def test_a_server_that_is_gone_is_no_rest():
    class Gone(Postgres):
        def ask(self, sql):
            raise ServerError("pg: the server did not answer", found="connection refused")

    step = settle(Gone(), 1)
    assert (step.done, step.detail) == (False, "connection refused")


def test_a_postgresql_has_no_binary_logs():
    server = Postgres()
    assert purge_binary_logs(server).detail == "PostgreSQL has none"
    assert server.orders == []
