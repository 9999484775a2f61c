"""What was typed after `dbdyno compare` becomes a plan, or one message with every mistake."""

from __future__ import annotations

import pytest

from dbdyno.cli.compare import KEYS, read
from dbdyno.errors import PlanError, UnknownSystemError
from dbdyno.plan.plan import NOT_COMPARED, Plan
from dbdyno.plan.systems import SystemPlan

GOOD = {
    **dict.fromkeys(KEYS),
    "systems": ("mysql:5.7.22", "mysql:8.0.15"),
    "workload": None,
    "settings": None,
    "threads": "1, 8",
    "blocks": "3",
    "tables": "4",
    "table_size": "50000",
    "warmup": "3",
    "window": "8.5",
    "margin": "0.02",
    "seed": "7",
    "prepared": True,
}


def check_reference(reference: str) -> None:
    if not reference.startswith("mysql:"):
        raise UnknownSystemError(f"unknown system {reference}", wanted="one of mysql:5.7.22")


def plan_of(**changed: object) -> Plan:
    return read({**GOOD, **changed}, check_reference)


def mistakes_of(**changed: object) -> list[str]:
    with pytest.raises(PlanError) as caught:
        plan_of(**changed)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_every_option_reaches_the_plan() -> None:
    plan = plan_of()
    assert plan.title == "mysql:5.7.22 and mysql:8.0.15"
    assert [system.label for system in plan.systems] == ["mysql:5.7.22", "mysql:8.0.15"]
    assert (plan.dataset.tables, plan.dataset.rows) == (4, 50_000)
    assert plan.load.threads == (1, 8)
    assert (plan.trial.warmup_s, plan.trial.window_s) == (3, 8.5)
    assert (plan.design.blocks, plan.design.margin) == (3, 0.02)
    assert plan.design.stop == "blocks"
    assert (plan.seed, plan.distribution.name) == (7, "uniform")
    assert plan.procedure.prepared_statements is True
    assert plan_of(table_options="COMMENT 'x'").dataset.table_options == "COMMENT 'x'"
    short = plan_of(window="2m", margin="3%")
    assert (short.trial.window_s, short.design.margin) == (120, 0.03)


def test_a_comparison_of_which_nothing_is_asked_has_a_time() -> None:
    nothing = {"blocks": None, "warmup": None, "window": None}
    assert plan_of(**nothing).design.time_s == 600
    assert plan_of(**nothing, time="90s").design.time_s == 90
    assert plan_of(**nothing).design.stop == "decided"
    windows = plan_of(**{**nothing, "window": "30"})
    assert (windows.design.time_s, windows.design.blocks) == (None, 5)
    assert plan_of(**nothing, rates="400").design.time_s is None
    assert mistakes_of(**{**nothing, "window": "30"}, time="5m") == [
        "design: time chooses warm-up, window and blocks by itself; give a time, or those"
    ]


def test_rates_and_a_limit_reach_the_plan() -> None:
    load = plan_of(threads="", rates="50%, 400", slo="p95=0.02s", connections="16").load
    assert (load.rates, load.threads, load.connections) == (("50%", "400"), (), 16)
    assert load.slo is not None
    assert (load.slo.metric, load.slo.limit_ms) == ("p95", 20)
    assert plan_of(rates="400").load.threads == (1, 8)


def test_one_version_is_compared_with_itself_under_two_labels() -> None:
    plan = plan_of(
        systems=("durable=mysql:8.0.15", "fast=mysql:8.0.15"),
        settings=("innodb_buffer_pool_size=256M", "fast:sync_binlog=0"),
    )
    assert [(system.label, system.reference) for system in plan.systems] == [
        ("durable", "mysql:8.0.15"),
        ("fast", "mysql:8.0.15"),
    ]
    assert plan.system("durable").settings == {"innodb_buffer_pool_size": "256M"}
    assert plan.system("fast").settings == {"innodb_buffer_pool_size": "256M", "sync_binlog": "0"}


@pytest.mark.parametrize(
    ("typed", "label", "reference"),
    [
        ("old=path:/opt/a=b", "old", "path:/opt/a=b"),
        ("path:/opt/a=b", "path:-opt-a-b", "path:/opt/a=b"),
        (
            "tarball:https://x.org/y.tar.xz#sha256=ab",
            "y",
            "tarball:https://x.org/y.tar.xz#sha256=ab",
        ),
        ("ours=tarball:https://x.org/y#sha256=ab", "ours", "tarball:https://x.org/y#sha256=ab"),
    ],
)
def test_an_equals_sign_of_an_address_is_not_that_of_a_label(
    typed: str, label: str, reference: str
) -> None:
    systems = ("mysql:8.0.15", typed)
    plan = read({**GOOD, "systems": systems}, lambda reference: None)
    assert (plan.systems[1].label, plan.systems[1].reference) == (label, reference)


def test_kept_servers_follow_the_others_as_endpoints_with_a_password_of_their_own() -> None:
    kept = SystemPlan(label="one", reference="mysql://u@127.0.0.1:7/d", password_env="SECRET")
    plan = plan_of(systems=("mysql:8.0.15",), kept=(kept,))
    assert [system.label for system in plan.systems] == ["mysql:8.0.15", "one"]
    assert plan.system("one") == kept
    assert mistakes_of(systems=(), kept=(kept,)) == [
        "SYSTEM: two or more are compared, such as mysql:5.7.22 mysql:8.0.15; found 1"
    ]


def test_a_label_with_a_colon_takes_its_own_setting() -> None:
    plan = plan_of(settings=("mysql:8.0.15:optimizer_switch=mrr=on",))
    assert plan.system("mysql:8.0.15").settings == {"optimizer_switch": "mrr=on"}
    assert plan.system("mysql:5.7.22").settings == {}


def test_a_setting_of_an_endpoint_is_a_mistake_of_the_option() -> None:
    systems = ("a=mysql:8.0.15", "b=mysql://u@h/d")
    asked = {**GOOD, "systems": systems, "settings": ("sync_binlog=1",)}
    with pytest.raises(PlanError) as caught:
        read(asked, lambda reference: None)
    (mistake,) = caught.value.mistakes
    assert mistake.place == "--set"
    assert mistake.message.startswith("the settings of an endpoint are its owner's")


def test_a_workload_takes_its_options_behind_its_name() -> None:
    plan = plan_of(workload=("oltp_read_write --range-size=10 --skip-trx",))
    assert plan.workloads[0].options == {"range_size": 10, "skip_trx": True}


def test_all_mistakes_are_told_at_once_under_their_options() -> None:
    assert mistakes_of(
        systems=("mysql:5.7.22", "oracle:23"),
        workload=("oltp_reed_write",),
        threads="1,many",
        blocks="0",
        margin="2",
        settings=("mysql:9:x=1", "nonsense"),
        seed="-1",
    ) == [
        "--blocks: must be at least 1, found '0'",
        "--margin: must be less than 1.0, found '2'",
        "--seed: must be at least 0, found '-1'",
        "--set mysql:9:x=1: no system is labelled mysql:9; there are mysql:5.7.22, oracle:23",
        "--set nonsense: is not key=value or LABEL:key=value",
        "--threads: must be a whole number, found 'many'",
        "--workload: there is no workload 'oltp_reed_write'; did you mean oltp_read_write?",
        "SYSTEM oracle:23: unknown system oracle:23; one of mysql:5.7.22",
    ]


@pytest.mark.parametrize(
    ("changed", "messages"),
    [
        (
            {"systems": ("mysql:5.7.22",)},
            ["SYSTEM: two or more are compared, such as mysql:5.7.22 mysql:8.0.15; found 1"],
        ),
        (
            {"systems": ("mysql:8.0.15", "mysql:8.0.15")},
            ["SYSTEM: label used twice: mysql:8.0.15; NAME=REFERENCE gives a system another"],
        ),
        (
            {"workload": ("oltp_read_write", "oltp_read_write")},
            ["--workload: label used twice: oltp_read_write"],
        ),
        (
            {"workload": ("bulk_insert",)},
            [f"--workload: {NOT_COMPARED['bulk_insert']}"],
        ),
        (
            {"workload": ("oltp_read_write", 'oltp_point_select "')},
            ['--workload: oltp_point_select " cannot be read: No closing quotation'],
        ),
        (
            {"workload": ("oltp_read_write --skiptrx=on --tables=8",)},
            [
                "--workload oltp_read_write … skiptrx: is no option of a workload; did you mean "
                "skip_trx?",
                "--workload oltp_read_write … tables: the tables are the same for all workloads: "
                "say dataset.tables",
            ],
        ),
        ({"threads": "8,8"}, ["--threads: each level once, found [8, 8]"]),
        (
            {"slo": "20ms"},
            ["--slo: must be a percentile and a time such as p99=20ms, found '20ms'"],
        ),
        (
            {"slo": "p90=20ms"},
            ["--slo: must be one of 'p50', 'p95', 'p99' or 'p999', found 'p90'; did you mean p99?"],
        ),
        (
            {"connections": "0"},
            ["--connections: must be at least 1, found '0'"],
        ),
        (
            {"rates": "fast"},
            [
                "--rates: must be events a second such as 500, or a share such as 70% of what the"
                " slower system sustains (200% at most), found 'fast'"
            ],
        ),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_command_line(
    changed: dict[str, object], messages: list[str]
) -> None:
    assert mistakes_of(**changed) == messages


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            {"time": "5m", "blocks": None, "window": None, "warmup": "15"},
            "--time: chooses warm-up, window and blocks by itself; give it, or them",
        ),
        (
            {"connections": "16"},
            "--connections: are those of an open loop (--rates, --slo); --threads has those of a"
            " closed one",
        ),
        ({"settings": ("k=1", "k=2")}, "--set k=2: k stands twice; keep one"),
    ],
)
def test_what_would_change_nothing_is_refused(typed: dict[str, object], message: str) -> None:
    assert mistakes_of(**typed) == [message]


def test_a_setting_of_one_system_wins_wherever_it_stands() -> None:
    plan = plan_of(settings=("mysql:8.0.15:k=2", "k=1"))
    assert plan.system("mysql:5.7.22").settings == {"k": "1"}
    assert plan.system("mysql:8.0.15").settings == {"k": "2"}


def test_a_mistake_is_a_usage_error() -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(blocks="none", window="0")
    assert caught.value.exit_status == 2
    assert str(caught.value).splitlines()[0] == "the command line: 2 mistakes"


def test_numbers_without_bounds_are_told_under_their_options() -> None:
    assert mistakes_of(window="inf", warmup="nan", blocks="1000000000") == [
        "--blocks: must be at most 1000, found '1000000000'",
        "--warmup: must be a finite number, found 'nan'",
        "--window: must be a finite number, found 'inf'",
    ]


def test_a_mistake_of_several_options_is_told_under_the_part_of_the_plan() -> None:
    (mistake,) = mistakes_of(blocks="1000", threads=",".join(map(str, range(1, 61))))
    assert mistake.startswith("design: asks for 120,000 trials, 100,000 are the most")
