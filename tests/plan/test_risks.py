"""Settings that a stranger's plan may have, and those that reach further."""

from __future__ import annotations

import pytest

from dbdyno.plan.risks import reaches_beyond


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("innodb_buffer_pool_size", "1G"),
        ("innodb_flush_log_at_trx_commit", 2),
        ("innodb_max_dirty_pages_pct", 75.5),
        ("innodb_log_file_size", "512M"),
        ("innodb_file_per_table", "ON"),
        ("transaction_isolation", "READ-COMMITTED"),
        ("log_bin", False),
        ("shared_buffers", "128MB"),
        ("innodb_flush_method", "O_DIRECT"),
    ],
)
def test_plain_settings_pass(name: str, value: bool | int | float | str) -> None:
    assert not reaches_beyond(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("archive_command", "reboot"),
        ("archive_command", "rm -rf ~"),
        ("wsrep-notify-cmd", "evil"),
        ("plugin_load_add", "evil.so"),
        ("shared_preload_libraries", "evil"),
        ("init_file", "/etc/passwd"),
        ("tmpdir", "/home"),
        ("bind_address", "0.0.0.0"),
        ("innodb_flush_method", "O_DIRECT; touch x"),
        ("general_log_file", "x"),
        ("ssl_passphrase_command", "id"),
        ("a b", 1),
        ("x\n[mysqld]\ny", "1"),
    ],
)
def test_settings_that_reach_further_are_a_risk(name: str, value: str | int) -> None:
    assert reaches_beyond(name, value)
