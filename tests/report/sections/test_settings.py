"""What a report says of the published experiment that its plan follows."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.judge.judgement import judge
from dbdyno.plan.plan import NetworkPlan, ProcedurePlan
from dbdyno.plan.publication import Claim, PublishedFacts, PublishedPlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Items, Table
from dbdyno.report.sections import settings
from dbdyno.report.sections.published import published
from dbdyno.report.tell.durability import promises_of_commits
from support import making
from support.made_run import Run, facts
from support.making import A, B


def test_settings_that_differ_are_shown_and_a_long_table_is_folded(made: Run) -> None:
    many = {f"variable_{i}": "b" for i in range(50)}
    seen = [
        making.measurement(making.A, settings=dict.fromkeys(many, "a")),
        making.measurement(making.B, settings=many),
    ]
    section = settings.settings(making.plan(), seen)
    assert [part.folded for part in section.parts if isinstance(part, Table)] == [True]
    section = settings.settings(made.plan, made.measurements)
    tables = [part for part in section.parts if isinstance(part, Table)]
    assert [table.folded for table in tables] == [False, False]
    assert tables[0].rows == (("sql_mode", "mode of mysql:5.7.22", "mode of mysql:8.0.15"),)


def test_a_binary_log_is_spoken_of_where_the_server_can_have_one() -> None:
    on_disk = "a commit is on disk before it is acknowledged"
    assert promises_of_commits({"synchronous_commit": "on"}) == [on_disk]
    mysql = {"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF"}
    assert promises_of_commits(mysql) == [on_disk, "the binary log is not written"]


def test_the_environment_is_a_table_or_nothing() -> None:
    plan = making.plan()
    (table,) = settings.environment(plan, [], facts(plan, environment={"disk": "nvme"})).parts
    assert table.rows == (("disk", "nvme"),)
    bare = facts(plan).model_copy(update={"environment": {}})
    assert settings.environment(plan, [], bare).parts == ()


def test_the_environment_names_the_allocator_of_each_system_where_somebody_looked() -> None:
    plan = making.plan()
    old = making.measurement(making.A)
    server = making.measurement(making.B).server
    new = [
        making.changed(old, trial=old.trial.model_copy(update={"system": making.B}), server=seen)
        for seen in (
            server.model_copy(update={"allocator": "jemalloc"}),
            server.model_copy(update={"allocator": "unknown"}),
        )
    ]
    run = facts(plan, environment={"storage_kind": "virtual (virtio)"})
    (table,) = settings.environment(plan, [old, *new], run).parts
    assert table.rows == (
        ("kind of storage", "virtual disk (virtio)"),
        ("memory allocator of mysql:8.0.15", "jemalloc, unknown"),
    )


SYSTEMS = "mysql:5.7.22, mysql:8.0.15"
FOLLOWED = PublishedPlan(
    source="somebody, 2022",
    setup={"systems": "GreatSQL and MySQL", "disk": "NVMe SSD"},
    differences=("fewer rows",),
)


def followed(made: Run) -> Run:
    changed = {
        "published": FOLLOWED,
        "network": NetworkPlan(replica_ms=0.8),
        "settings": SettingsPlan(durability=("double-1", "0/2")),
        "procedure": ProcedurePlan(drop_caches=True, prepared_statements=False),
    }
    return replace(made, plan=made.plan.model_copy(update=changed))


def test_a_plan_of_ones_own_says_nothing(made: Run) -> None:
    assert published(made.plan, made.measurements, made.facts).parts == ()


def test_all_that_differs_stands_in_one_table(made: Run) -> None:
    run = followed(made)
    section = published(run.plan, run.measurements, run.facts)
    (table,) = [part for part in section.parts if isinstance(part, Table)]
    rows = {what: (theirs, ours) for what, theirs, ours in table.rows}
    assert rows["systems"] == ("GreatSQL and MySQL", SYSTEMS)
    assert rows["disk"] == ("NVMe SSD", NONE)
    assert rows["settings"][1] == "durability: double-1, 0/2"
    assert rows["network"][1] == "0.8 ms added to a round trip between primary and replicas"
    assert "no prepared statements" in rows["load"][1]
    assert "caches dropped" in rows["procedure"][1]
    assert Items(("fewer rows",)) in section.parts


def test_without_measurements_it_still_says_what_was_asked(empty: Run) -> None:
    run = followed(empty)
    section = published(run.plan, (), run.facts)
    (table,) = [part for part in section.parts if isinstance(part, Table)]
    assert {what: ours for what, _, ours in table.rows}["repeats"].startswith(
        f"{run.plan.design.blocks} blocks, 1 data load; "
    )


def test_an_interrupted_run_has_the_blocks_that_it_measured() -> None:
    plan = making.plan(blocks=10)
    told = settings.tested(plan, making.pairs((1.0, 1.0)), facts(plan, complete=False))
    assert told["repeats"].startswith("2 blocks, 1 data load; ")


def test_each_claim_is_told_at_its_level_then_by_cell(made: Run) -> None:
    better = Claim(
        text="a third better", of=A, than=B, threads=(8,), ratio_min=1.25, ratio_max=1.42
    )
    drops = Claim(text="drops", of=B, threads=(8,), than_threads=1, ratio_max=0.98)
    absent = Claim(text="jitters", of=B, than_threads=99, ratio_min=1.1)
    faster = Claim(text="never slower", of=B, than=A, ratio_min=1.0)
    followed = FOLLOWED.model_copy(update={"claims": (better, drops, absent, faster)})
    plan = made.plan.model_copy(update={"published": followed})
    claims = judge(made.measurements, plan).claims
    section = published(plan, made.measurements, made.facts, claims)
    told = [part.items for part in section.parts if isinstance(part, Items)][-1]
    assert told[0].startswith("“a third better”: supported: +29.")
    assert told[0].endswith("], claimed +25.0 % to +42.0 %")
    assert told[1].startswith("“drops”: contradicted: +157.")
    assert told[2] == "“jitters”: this run has no such cells"
    assert told[3].startswith("“never slower”: contradicted by its 2 cells together: −12.")
    assert told[3].endswith("], claimed 0.0 % or more; by cell: contradicted in 1, open in 1")
    table = [part for part in section.parts if isinstance(part, Table)][-1]
    assert [(row[1:4], row[6]) for row in table.rows] == [
        (
            (
                "oltp_read_write, 8 threads",
                "TPS of mysql:5.7.22 against mysql:8.0.15",
                "+25.0 % to +42.0 %",
            ),
            "supported",
        ),
        (
            (
                "oltp_read_write, 8 threads",
                "TPS of mysql:8.0.15 against mysql:8.0.15 with 1 thread",
                "−2.0 % or less",
            ),
            "contradicted",
        ),
        (("oltp_read_write, 1 thread", NOT_SLOWER, "0.0 % or more"), "open"),
        (("oltp_read_write, 8 threads", NOT_SLOWER, "0.0 % or more"), "contradicted"),
    ]


NOT_SLOWER = "TPS of mysql:8.0.15 against mysql:5.7.22"


def test_each_difference_from_the_published_facts_is_named(made: Run) -> None:
    facts = PublishedFacts(
        systems=("MySQL 5.7.22", "GreatSQL 8.0.25-16"),
        workloads=("oltp_read_write",),
        threads=(1, 8, 32),
        tables=made.plan.dataset.tables,
        rows=made.plan.dataset.rows,
        window_s=60,
        settings={"sync-binlog": 1, "innodb_monitor_enable": ("a", "b"), "back_log": 1024},
    )
    keys = {"sync_binlog": "1", "innodb_monitor_enable": ("a", "b")}
    systems = tuple(one.model_copy(update={"settings": keys}) for one in made.plan.systems)
    followed = PublishedPlan(source="a publication", facts=facts, differences=("another disk",))
    plan = made.plan.model_copy(update={"published": followed, "systems": systems})
    section = published(plan, made.measurements, made.facts)
    (items,) = [part.items for part in section.parts if isinstance(part, Items)]
    assert [item for item in items if not item.startswith("systems")] == [
        "threads: 1, 8 instead of 1, 8, 32",
        "window: 10 s instead of 60 s",
        "configuration: 2 as published, all but back_log instead of 3 configuration keys",
        "another disk",
    ]
    assert items[0].endswith("instead of MySQL 5.7.22, GreatSQL 8.0.25-16")
    (table,) = [part for part in section.parts if isinstance(part, Table)]
    rows = {what: (theirs, ours) for what, theirs, ours in table.rows}
    assert rows["workloads"] == ("oltp_read_write", "oltp_read_write")
    assert len(rows) == len(table.rows)
