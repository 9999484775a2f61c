from __future__ import annotations

import pytest

from dbdyno.report.rows import ALWAYS_DIFFER, compare, effective
from support import making


def test_variables_are_sorted_into_differing_partial_ignored_and_equal() -> None:
    seen = [
        making.measurement(making.A, settings={"sync_binlog": "1", "old": "x", "port": "1"}),
        making.measurement(making.B, settings={"sync_binlog": "0", "new": "", "port": "2"}),
    ]
    found = compare(seen, [making.A, making.B, "never ran"])
    assert found.systems == (making.A, making.B)
    assert found.differing == (("sync_binlog", "1", "0"),)
    assert found.partial == (("new", "(not there)", "(empty)"), ("old", "x", "(not there)"))
    assert found.ignored == ("port",)
    assert found.equal == len(making.SETTINGS) - 1


def test_a_value_that_changed_between_trials_shows_both() -> None:
    seen = [making.measurement(block=b, settings={"sync_binlog": str(b)}) for b in range(2)]
    assert effective(seen, making.A)["sync_binlog"] == "0 then 1"


def test_no_password_is_ever_shown() -> None:
    seen = [
        making.measurement(system, settings={"report_password": f"secret of {system}"})
        for system in (making.A, making.B)
    ]
    found = compare(seen, [making.A, making.B])
    assert found.ignored == ("report_password",)
    assert "report_password" not in effective(seen, making.A)


@pytest.mark.parametrize(
    "name", ["datadir", "socket", "pid_file", "server_uuid", "version", "version_comment", "port"]
)
def test_what_tells_instances_apart_is_ignored(name: str) -> None:
    assert ALWAYS_DIFFER.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["innodb_file_per_table", "tls_version", "sql_mode", "innodb_io_capacity", "log_bin"]
)
def test_what_tells_configurations_apart_is_not(name: str) -> None:
    assert not ALWAYS_DIFFER.fullmatch(name)
