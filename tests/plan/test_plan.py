"""A plan is one value: checked as a whole, hashed by what it asks for, laid out in cells."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.measurement.measurement import Cell
from dbdyno.plan.load import LoadPlan, SloPlan
from dbdyno.plan.plan import DesignPlan, Plan, cells, latency_of, metric_of
from dbdyno.plan.systems import SystemPlan, label_of
from support import making


def test_cells_go_by_workload_then_by_rising_load() -> None:
    plan = making.plan(workloads=("oltp_read_only", "oltp_read_write"), threads=(8, 1))
    assert [cell.key for cell in cells(plan)] == [
        "oltp_read_only/threads=1/default",
        "oltp_read_only/threads=8/default",
        "oltp_read_write/threads=1/default",
        "oltp_read_write/threads=8/default",
    ]


def test_the_hash_names_what_is_asked_for_and_survives_the_store() -> None:
    plan = making.plan(blocks=3)
    assert Plan.model_validate_json(plan.model_dump_json()).hash() == plan.hash()
    assert making.plan(blocks=3).hash() == plan.hash()
    assert making.plan(blocks=4).hash() != plan.hash()
    assert len(plan.hash()) == 64


def test_a_workload_is_labelled_by_its_name_unless_told_otherwise() -> None:
    asked = making.plan().model_dump()
    asked["workloads"] = ["oltp_read_only", {"name": "oltp_read_only", "label": "again"}]
    plan = Plan.model_validate(asked)
    assert [workload.label for workload in plan.workloads] == ["oltp_read_only", "again"]
    assert plan.workload("again").name == "oltp_read_only"
    assert plan.system(making.B).reference == making.B


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"systems": []}, "at least 1 item"),
        ({"workloads": ["a", "a"]}, "label used twice: a"),
        ({"load": {"threads": [8, 8]}}, "each level once"),
        ({"procedure": {"retry_errors": ["deadlock"]}}, "should match pattern"),
    ],
)
def test_nonsense_is_no_plan(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Plan.model_validate({**making.plan().model_dump(), **changed})


ENDPOINT = {"label": "cloud", "reference": "mysql://u@h/d"}


@pytest.mark.parametrize(
    ("own", "changed", "place"),
    [
        ({"settings": {"sync_binlog": 1}}, {}, "systems[1].settings"),
        (
            {"workload_settings": {"oltp_read_write": {"sync_binlog": 1}}},
            {"procedure": {"restart": "cell"}},
            "systems[1].workload_settings",
        ),
        ({}, {"settings": {"durability": ["double-1", "0/2"]}}, "settings: durability"),
        ({}, {"settings": {"own": {"x": {"a": {"k": 1}, "b": {}}}}}, "settings: x"),
    ],
)
def test_settings_of_an_endpoint_are_refused_with_the_way_that_there_is(
    own: dict[str, object], changed: dict[str, object], place: str
) -> None:
    systems = [making.A, {**ENDPOINT, **own}]
    document = {"systems": systems, "workloads": ["oltp_read_write"], **changed}
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate(document)
    assert f"{place}: the settings of an endpoint are its owner's" in str(caught.value)
    assert "list cloud twice, with `after_start: [SET GLOBAL …]`" in str(caught.value)


def test_what_a_plan_can_set_of_an_endpoint_is_accepted() -> None:
    twice = [
        {**ENDPOINT, "label": mode, "after_start": [f"SET GLOBAL tidb_txn_mode = '{mode}'"]}
        for mode in ("optimistic", "pessimistic")
    ]
    load = {"prepared_statements": ["on", "off"]}
    plan = Plan.model_validate(
        {"systems": twice, "workloads": ["oltp_read_write"], "settings": load}
    )
    assert [one.label for one in plan.systems] == ["optimistic", "pessimistic"]


NUMBERS: dict[str, tuple[str, ...]] = {
    "trial": ("warmup_s", "window_s"),
    "design": ("margin", "budget_s"),
    "procedure": ("settle_cap_s",),
    "network": ("client_ms", "replica_ms"),
}


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e300"])
@pytest.mark.parametrize(("part", "key"), [(p, key) for p, keys in NUMBERS.items() for key in keys])
def test_no_number_of_a_plan_is_without_bounds(part: str, key: str, number: str) -> None:
    with pytest.raises(ValidationError, match=f"{part}.{key}"):
        Plan.model_validate({**making.plan().model_dump(), part: {key: number}})


@pytest.mark.parametrize(
    "system",
    [{"topology": {"timeout_s": float("inf")}}, {"settings": {"long_query_time": float("inf")}}],
)
def test_no_number_of_a_system_is_infinite(system: dict[str, object]) -> None:
    systems = [{"label": "a", "reference": "mysql:8.0.15", **system}]
    with pytest.raises(ValidationError, match="finite number"):
        Plan.model_validate({"systems": systems, "workloads": ["oltp_read_only"]})


def test_a_plan_that_explodes_is_counted_and_refused_at_once() -> None:
    axes = {f"axis{n}": {f"v{value}": {} for value in range(10)} for n in range(30)}
    asked = {**making.plan(blocks=3).model_dump(), "settings": {"own": axes}}
    with pytest.raises(
        ValidationError, match=r"100,000 are the most: 1,000,000,0.* \(settings\) × 1"
    ):
        Plan.model_validate(asked)
    ladder = {"threads": list(range(1, 52))}
    with pytest.raises(
        ValidationError, match=r"102,000 trials.* × 2 \(systems\) × 1000 \(blocks\)"
    ):
        Plan.model_validate(
            {**making.plan().model_dump(), "load": ladder, "design": {"blocks": 1000}}
        )


SYSTEMS = {"systems": [{"label": "a", "reference": "mysql:8.0.15"}]}


def test_a_workload_runs_on_tables_of_its_layout() -> None:
    legacy = {"workloads": ["legacy_oltp"], "dataset": {"layout": "legacy"}}
    assert Plan.model_validate({**SYSTEMS, **legacy}).dataset.layout == "legacy"
    with pytest.raises(ValidationError, match="layout standard does not suit old"):
        Plan.model_validate({**SYSTEMS, "workloads": [{"name": "legacy_oltp", "label": "old"}]})
    with pytest.raises(ValidationError, match="layout legacy_one does not suit oltp_insert"):
        Plan.model_validate(
            {**SYSTEMS, "workloads": ["oltp_insert"], "dataset": {"layout": "legacy_one"}}
        )


def test_options_of_tables_that_scripts_make_are_refused() -> None:
    options = {"dataset": {"table_options": "SHARD_ROW_ID_BITS=4"}}
    own = Plan.model_validate({**SYSTEMS, **options, "workloads": ["oltp_insert"]})
    assert own.dataset.table_options == "SHARD_ROW_ID_BITS=4"
    script = {"name": "mine.lua", "script": "function event() end"}
    with pytest.raises(ValidationError, match="scripts make their own tables"):
        Plan.model_validate({**SYSTEMS, **options, "workloads": [script]})


# What a system is called that was given no label, and which ones others run.


@pytest.mark.parametrize(
    ("reference", "label"),
    [
        ("mysql:8.0.15", "mysql:8.0.15"),
        ("mysql://bench:secret@db1:4000,db2:4000/sbtest", "db1:4000-db2:4000-sbtest"),
        ("mysql://u@db1/sbtest?ssl-mode=VERIFY_CA&ssl-ca=/etc/ca.pem", "db1-sbtest"),
        ("container:percona/percona-server@sha256:0f2a", "container:percona-percona-server"),
        ("path:/opt/mysql", "path:-opt-mysql"),
        ("tarball:https://x.org/a/mysql-8.0.33-linux.tar.xz#sha256=0f2a", "mysql-8.0.33"),
        ("https://x.org/a/mysql-8.4.6-linux-glibc2.28-x86_64.tar.xz#sha256=0f2a", "mysql-8.4.6"),
        (
            "HTTPS://x.org/Percona-Server-8.0.36-28-Linux.x86_64.glibc2.28-minimal.tar.gz",
            "Percona-Server-8.0.36-28",
        ),
        ("https://x.org/mariadb-11.4.5-linux-systemd-x86_64.tar.gz?mirror=1", "mariadb-11.4.5"),
        ("file:///opt/mysql-8.4.6-ours.tgz", "mysql-8.4.6-ours"),
        ("https://bench:se#cret@x.org/", "x.org"),
        ("https://x.org/\u670d\u52a1\u5668.tar.xz", "archive"),
    ],
)
def test_a_system_without_a_label_is_called_by_its_reference(reference: str, label: str) -> None:
    assert label_of(reference) == label
    assert SystemPlan(label=label_of(reference), reference=reference).label == label


# What a cell's verdict is about.


CLOSED = Cell(workload="oltp_read_write", threads=8)
OPEN = Cell(workload="oltp_read_write", threads=8, rate_per_s=100)


def test_a_closed_loop_is_about_throughput_and_a_rate_about_latency_of_the_limit() -> None:
    plan = making.plan()
    assert metric_of(plan, CLOSED).name == "transactions_per_s"
    assert metric_of(plan, OPEN).name == "latency_ms_p99"
    load = LoadPlan(slo=SloPlan(metric="p95", limit_ms=20), rates=("100",))
    plan = plan.model_copy(update={"load": load})
    assert metric_of(plan, OPEN) is latency_of(plan)
    assert latency_of(plan).name == "latency_ms_p95"


# The rule on disturbance.


@pytest.mark.parametrize(("asked", "limit"), [({}, 0.1), ("5%", 0.05), ("100%", 1.0)])
def test_disturbance_has_a_limit_unless_switched_off(asked: object, limit: float) -> None:
    given = asked if asked == {} else {"disturbance_max": asked}
    assert DesignPlan.model_validate(given).disturbance_max == limit


def test_a_run_until_decided_has_more_blocks_unless_they_are_given() -> None:
    assert DesignPlan(stop="decided").blocks == 12
    assert DesignPlan(stop="decided", blocks=7).blocks == 7
    assert DesignPlan().blocks == 5


def test_the_level_that_ends_a_run_needs_a_run_that_ends_early():
    assert DesignPlan.model_validate({"time_s": 300, "decide": "cell"}).decide == "cell"
    with pytest.raises(ValidationError, match="stop: decided"):
        DesignPlan(decide="cell")
