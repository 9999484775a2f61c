"""The shipped plans at full scale are the published experiments: their facts stand here once more.

What a plan leaves out or does otherwise it says under `published: differences`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dbdyno.plan import file
from dbdyno.plan.plan import Plan, known_workloads
from support.source import ROOT


@dataclass(frozen=True)
class Facts:
    """What was published: load levels, data, workloads with their options, distribution."""

    threads: tuple[int, ...]
    tables: int
    rows: int
    workloads: tuple[str, ...]
    distribution: str
    systems: tuple[str, ...]
    """Words that name them under `published`."""
    window_s: int | None = None
    options: tuple[tuple[str, int], ...] = ()
    settings: tuple[tuple[str, object], ...] = ()


STRONG = {
    "threads": (50, 100, 200, 500, 1000),
    "tables": 10,
    "rows": 2_180_000,
    "workloads": ("legacy_select", "legacy_update_non_index", "legacy_oltp"),
    "distribution": "special",
    "options": (
        ("point_selects", 1),
        ("simple_ranges", 0),
        ("sum_ranges", 0),
        ("order_ranges", 0),
        ("distinct_ranges", 0),
        ("index_updates", 1),
        ("non_index_updates", 0),
    ),
}
PUBLISHED = {
    "greatsql-vs-mysql": Facts(
        threads=(8, 16, 32, 64, 128),
        tables=64,
        rows=12_500_000,
        workloads=("oltp_read_write",),
        distribution="uniform",
        systems=("GreatSQL 8.0.25-16", "MySQL 8.0.30"),
    ),
    "tidb-v3-vs-v2": Facts(
        threads=(150, 300, 600, 900, 1200, 1500),
        tables=16,
        rows=10_000_000,
        workloads=(
            *("oltp_point_select", "oltp_update_non_index", "oltp_update_index"),
            "oltp_read_write",
        ),
        distribution="uniform",
        systems=("TiDB 2.1.13", "TiDB 3.0.0"),
        window_s=300,
    ),
    "mariadb-strong-sync": Facts(**STRONG, systems=("MySQL 5.6", "MariaDB 10.1.10")),
    "tdsql-vs-mysql": Facts(**STRONG, systems=("MySQL 5.7.17", "TDSQL")),
    "mysql57-vs-80": Facts(
        threads=(5, 10, 20, 30, 40, 80, 120, 200),
        tables=20,
        rows=100_000,
        workloads=("oltp_read_write", "oltp_read_only", "oltp_write_only"),
        distribution="uniform",
        systems=("MySQL 5.7.22", "MySQL 8.0.15"),
        window_s=60,
        settings=(
            ("innodb_buffer_pool_size", "128M"),
            ("innodb_log_buffer_size", "64M"),
            ("innodb_log_file_size", "48M"),
            ("binlog_format", "ROW"),
            ("transaction_isolation", "REPEATABLE-READ"),
        ),
    ),
}


def plan_of(name: str, scale: str = "") -> Plan:
    path = ROOT / "plans" / f"{name}.yaml"
    return file.read(path, known_workloads(), lambda reference: None, scale)


@pytest.mark.parametrize(("name", "facts"), PUBLISHED.items(), ids=PUBLISHED)
def test_a_plan_is_what_was_published(name: str, facts: Facts) -> None:
    plan = plan_of(name)
    assert plan.load.threads == facts.threads
    assert (plan.dataset.tables, plan.dataset.rows) == (facts.tables, facts.rows)
    assert sorted(one.name for one in plan.workloads) == sorted(facts.workloads)
    assert plan.distribution.name == facts.distribution
    assert facts.window_s in (None, plan.trial.window_s)
    mixed = [one.options for one in plan.workloads if one.name == "legacy_oltp"]
    assert mixed == ([dict(facts.options)] if facts.options else [])
    for system in plan.systems:
        assert dict(facts.settings).items() <= system.settings.items()


@pytest.mark.parametrize(("name", "facts"), PUBLISHED.items(), ids=PUBLISHED)
def test_what_a_report_calls_published_was(name: str, facts: Facts) -> None:
    published = plan_of(name).published
    assert published is not None
    setup = published.setup
    assert all(words in setup["systems"] for words in facts.systems)
    assert setup["data"].startswith(f"{facts.tables} tables of {facts.rows:,} rows")
    ladder = [f"{threads}" for threads in facts.threads]
    assert f"{', '.join(ladder[:-1])} and {ladder[-1]} " in setup["load"]
    assert all(f"{value}".lower() in setup["settings"].lower() for _, value in facts.settings)


def test_small_scales_keep_the_systems_side_by_side() -> None:
    for name in PUBLISHED:
        assert len(plan_of(name, "small").systems) == len(plan_of(name).systems)
