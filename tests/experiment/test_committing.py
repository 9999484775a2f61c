"""Sessions for single commits, and the syncs of a log by every product's name."""

from __future__ import annotations

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment.durability import log_syncs, sessions
from dbdyno.servers.base import Credentials, Endpoint


class Gone:
    """A server of whom only the place is left."""

    label, pid, database = "gone", 1, "sbtest"
    endpoint = Endpoint("127.0.0.1", 1, None)
    credentials = Credentials("load", "secret-4711")


def test_tables_are_named_with_their_database() -> None:
    first, second = sessions(Gone(), 2)  # type: ignore[arg-type]
    assert first is not second
    assert first.qualified("rows") == "`sbtest`.rows"


def test_a_server_that_is_gone_is_an_error_without_the_password() -> None:
    (session,) = sessions(Gone(), 1)  # type: ignore[arg-type]
    with pytest.raises(ServerError) as raised:
        session.rows("SELECT 1")
    session.close()
    assert "secret-4711" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "syncs"),
    [
        ({"Innodb_os_log_fsyncs": 7.0, "Innodb_data_fsyncs": 9.0}, 7.0),
        ({"wal.wal_sync": 5.0, "io.x.relation.normal.fsyncs": 3.0}, 5.0),
        ({"io.client backend.wal.normal.fsyncs": 4.0, "io.walwriter.wal.normal.fsyncs": 1.0}, 5.0),
        ({"io.client backend.relation.normal.fsyncs": 4.0}, None),
        ({"Innodb_data_fsyncs": 9.0}, None),
    ],
)
def test_syncs_of_the_log_by_product(status: dict[str, float], syncs: float | None) -> None:
    assert log_syncs(status) == syncs
