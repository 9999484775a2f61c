"""What a connection does, in the words of each server."""

from __future__ import annotations

import pytest

from dbdyno.experiment.watch.states import state_of_mysql, state_of_postgres


@pytest.mark.parametrize(
    ("row", "state"),
    [
        (("Sleep", "", ""), "client"),
        (("Query", "statistics", "SELECT"), "executing"),
        (("Query", "starting", "COMMIT"), "commit"),  # 5.7
        (("Execute", "waiting for handler commit", "UPDATE"), "commit"),  # 8.0
        (("Query", "Commit", "UPDATE"), "commit"),  # MariaDB
        (("Query", "Waiting for table metadata lock", "SELECT"), "waiting for table metadata lock"),
    ],
)
def test_states_of_mysql_and_mariadb(row: tuple[str, str, str], state: str) -> None:
    assert state_of_mysql(*row) == state


@pytest.mark.parametrize(
    ("row", "state"),
    [
        (("idle in transaction", "Client", "ClientRead"), "client"),
        (("active", "Client", "ClientRead"), "client"),
        (("active", "", ""), "executing"),
        (("active", "Lock", "transactionid"), "row lock"),
        (("active", "Lock", "relation"), "Lock: relation"),
        (("active", "LWLock", "WALWrite"), "LWLock: WALWrite"),
    ],
)
def test_states_of_postgres(row: tuple[str, str, str], state: str) -> None:
    assert state_of_postgres(*row) == state
