"""A stranger's plan: what is listed before it runs, and what may pass."""

from __future__ import annotations

import pytest

from dbdyno.plan.plan import Plan
from dbdyno.plan.risks import risks
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.programs.catalog import CATALOG
from support import making


def with_setting(name: str, value: bool | int | float | str) -> Plan:
    system = SystemPlan(label="a", reference="mysql:8.0.15", settings={name: value})
    return making.plan().model_copy(update={"systems": (system,)})


def with_reference(reference: str, password_env: str = "") -> Plan:
    system = SystemPlan(label="a", reference=reference, password_env=password_env)
    return making.plan().model_copy(update={"systems": (system,)})


def test_every_server_of_the_catalog_passes() -> None:
    for entry in CATALOG:
        assert list(risks(with_reference(entry.reference))) == []


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
    assert list(risks(with_setting(name, value))) == []


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
def test_settings_that_reach_further_are_listed(name: str, value: str) -> None:
    (risk,) = risks(with_setting(name, value))
    assert risk.startswith(f"setting {name}")
    axis = SettingsPlan(own={"axis": {"v": {name: value}}})
    assert len(list(risks(making.plan().model_copy(update={"settings": axis})))) == 1


@pytest.mark.parametrize(
    "reference",
    [
        "path:/opt/mysql",
        "tarball:https://example.org/x.tar.gz#sha256=00",
        "mysql://root@db.example.org:3306/prod",
        "docker:mysql:8",
        "MYSQL://x@y/z",
    ],
)
def test_programs_and_machines_of_others_are_listed(reference: str) -> None:
    risk, *_ = risks(with_reference(reference))
    assert reference in risk


def test_a_password_that_would_be_sent_is_named() -> None:
    found = list(risks(with_reference("mysql://x@y:1/z", "AWS_SECRET")))
    assert "AWS_SECRET" in found[1]
    found = list(risks(with_reference("mysql://x@y:1/z")))
    assert "~/.my.cnf" in found[1]
