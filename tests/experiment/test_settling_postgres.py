import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import procedure as module
from dbdyno.experiment.procedure import DEBTS, WORKERS, settle_postgres


class FakeServer:
    """Answers from what is left to do, and remembers every order."""

    def __init__(self, debts=(), workers=(), slow=""):
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


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


def test_tables_are_vacuumed_within_what_is_left_then_all_is_written_out():
    server = FakeServer(debts=[[("public.sbtest1", "700", "9"), ('public."T 2"', "0", "3")]])
    step = settle_postgres(server, 30, clock=lambda: 5.0)
    assert (step.name, step.done, step.seconds) == ("settle", True, 0.0)
    assert step.detail == "2 tables vacuumed with 700 dead rows, checkpoint done"
    assert server.orders == [
        "SET statement_timeout = 30000",
        "VACUUM (ANALYZE) public.sbtest1",
        "RESET statement_timeout",
        "SET statement_timeout = 30000",
        'VACUUM (ANALYZE) public."T 2"',
        "RESET statement_timeout",
        "SET statement_timeout = 30000",
        "CHECKPOINT",
        "RESET statement_timeout",
    ]


def test_rows_that_stay_dead_are_not_vacuumed_for_ever():
    server = FakeServer(debts=[[("public.t", "5", "0")]] * 99)
    step = settle_postgres(server, 30)
    assert step.done
    assert step.detail == "1 tables vacuumed with 5 dead rows, checkpoint done"
    assert server.orders.count("VACUUM (ANALYZE) public.t") == module.PASSES_MAX


def test_autovacuum_is_waited_for():
    server = FakeServer(workers=[2, 1, 0])
    assert settle_postgres(server, 30).done
    assert server.workers == []


def test_autovacuum_that_does_not_end_is_no_rest():
    ticks = iter(range(100))
    server = FakeServer(workers=[1] * 99)
    step = settle_postgres(server, 3, clock=lambda: float(next(ticks)))
    assert not step.done
    assert step.detail == "not at rest at the cap: autovacuum still works"
    assert step.seconds >= 3
    assert server.orders == []


def test_what_the_server_broke_off_is_no_rest():
    server = FakeServer(slow="CHECKPOINT")
    step = settle_postgres(server, 1)
    assert not step.done
    assert step.detail == "not at rest at the cap: vacuum or checkpoint still at work"
    assert server.orders[-1] == "RESET statement_timeout"


def test_a_server_that_is_gone_is_no_rest():
    class Gone(FakeServer):
        def ask(self, sql):
            raise ServerError("pg: the server did not answer", found="connection refused")

    step = settle_postgres(Gone(), 1)
    assert (step.done, step.detail) == (False, "connection refused")
