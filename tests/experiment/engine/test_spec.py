"""What the engine is asked for follows from the plan alone, but for the login."""

from __future__ import annotations

import pytest

from dbdyno.errors import UsageError
from dbdyno.experiment.engine.spec import (
    IGNORED_ERRORS,
    cleanup_spec,
    dataset_hash,
    prepare_spec,
    run_spec,
    script_spec,
    table_names,
)
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.plan.plan import DatasetPlan, DistributionPlan, Plan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.sysbench import ending
from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.request import IGNORED_BY_POSTGRES
from support import making


class Server:
    driver = "mysql"
    endpoint = Endpoint("127.0.0.1", 3307, None)
    credentials = Credentials("load", "p")
    database = "sbtest"


def plan(**changes):
    return making.plan(options={"range_size": 50}).model_copy(
        update={"dataset": DatasetPlan(tables=3, rows=1000), **changes}
    )


def test_a_script_finds_modules_in_its_folder():
    spec = script_spec(plan(), WorkloadPlan(name="mine/a.lua", script=""), Server(), "run", 1)
    assert spec["package_path"].split(";")[-1] == "mine/?.lua"
    assert spec["package_cpath"].split(";")[-1] == "mine/?.so"


def test_a_run_is_the_cell_on_the_dataset_with_the_trials_seed():
    trial = trials_of(plan(), "r")[0]
    assert run_spec(plan(), trial, Server()) == {
        "endpoint": {"host": "127.0.0.1", "port": 3307},
        "user": "load",
        "password": "p",
        "database": "sbtest",
        "tls": {"mode": "disabled", "ca": None},
        "server_key": None,
        "takes_any_key": True,
        "connections": 8,
        "threads": 0,
        "warmup_s": 2.0,
        "window_s": 10.0,
        "events": 0,
        "interval_s": 1.0,
        "drain_s": 30.0,
        "seed": trial.seed,
        "seeding": "streams",
        "round_trip_ms": 0,
        "reactor": "auto",
        "prepared": True,
        "workload": {
            "name": "oltp_read_write",
            "options": {"tables": 3, "table_size": 1000, "range_size": 50},
        },
        "distribution": {"name": "uniform"},
        "ignore_errors": [1213, 1020, 1205, 3101, 8002, 8022, 8028, 9007],
        "percentiles": [50, 95, 99],
    }


def test_a_server_without_a_port_is_met_at_its_socket(tmp_path):
    server = Server()
    server.endpoint = Endpoint("127.0.0.1", 0, tmp_path / "s")
    assert cleanup_spec(plan().dataset, server)["endpoint"] == {"socket": str(tmp_path / "s")}


def test_the_dataset_is_loaded_in_four_streams_from_the_plans_seed():
    spec = prepare_spec(plan(), Server())
    assert (spec["tables"], spec["table_size"], spec["threads"]) == (3, 1000, 4)
    assert "layout" not in spec
    assert spec["seed"] == plan().seed
    assert "auto_inc" not in spec


def test_the_end_of_each_create_table_is_the_datasets():
    options = "SHARD_ROW_ID_BITS=4"
    own = plan(dataset=DatasetPlan(tables=3, rows=1000, table_options=options))
    assert prepare_spec(own, Server())["table_options"] == options
    assert "table_options" not in prepare_spec(plan(), Server())


def workloads(**values):
    return tuple(
        WorkloadPlan(name="oltp_read_write", label=label, options={"secondary": value})
        for label, value in values.items()
    )


def test_table_options_of_the_workloads_make_the_dataset():
    assert prepare_spec(plan(workloads=workloads(a=True, b=True)), Server())["secondary"] is True
    with pytest.raises(UsageError, match="different datasets") as caught:
        prepare_spec(plan(workloads=workloads(a=True, b=False)), Server())
    assert caught.value.found == "a: True, b: False"


def test_a_datasets_name_changes_with_all_that_makes_its_rows_and_nothing_else():
    base = dataset_hash(plan())
    others = [
        plan(dataset=DatasetPlan(tables=3, rows=1001)),
        plan(dataset=DatasetPlan(tables=3, rows=1000, table_options="COMMENT 'x'")),
        plan(distribution=DistributionPlan(name="pareto")),
        plan(seed=2),
        plan(workloads=workloads(a=True)),
    ]
    assert len({base, *map(dataset_hash, others)}) == 6
    assert dataset_hash(plan(title="other words")) == base


def test_the_layout_names_the_tables_and_says_which_the_load_runs_on():
    one = plan(dataset=DatasetPlan(tables=1, rows=10, layout="legacy_one"))
    assert table_names(one) == ["sbtest"]
    assert cleanup_spec(one.dataset, Server())["layout"] == "legacy_one"
    assert run_spec(one, trials_of(one, "r")[0], Server())["workload"]["options"]["one_table"]
    assert table_names(plan()) == ["sbtest1", "sbtest2", "sbtest3"]


def test_a_setting_of_the_load_is_in_its_spec():
    chosen = plan(settings=SettingsPlan(prepared_statements=("on", "off")))
    found = {
        trial.cell.setting: run_spec(chosen, trial, Server())["prepared"]
        for trial in trials_of(chosen, "r")
    }
    assert found == {"prepared_statements on": True, "prepared_statements off": False}


def test_a_plan_retries_what_the_sysbench_persona_does_or_hints_at():
    own = IGNORED_ERRORS["mysql"]
    assert ",".join(map(str, own[:3])) == GLOBAL_TABLE["mysql-ignore-errors"].default
    assert own[3:] == ending._CONFLICTS
    assert IGNORED_ERRORS["pgsql"] == IGNORED_BY_POSTGRES


@pytest.mark.parametrize(
    ("driver", "own"), [("mysql", [9001, 40003]), ("pgsql", ["40003", "0A000"])]
)
def test_errors_of_a_plan_are_retried_beside_the_usual_ones(driver, own):
    class Other(Server):
        pass

    Other.driver = driver
    usual = run_spec(plan(), trials_of(plan(), "r")[0], Other())["ignore_errors"]
    codes = {"retry_errors": [9001, 40003, "0A000"]}
    asked = Plan.model_validate({**plan().model_dump(mode="json"), "procedure": codes})
    trial = trials_of(asked, "r")[0]
    assert run_spec(asked, trial, Other())["ignore_errors"] == [*usual, *own]
    script = WorkloadPlan(name="x.lua", script="")
    database = script_spec(asked, script, Other(), "run", 1)["database"]
    assert database["ignore_errors"] == [*usual, *own]


def test_several_servers_are_a_list_of_addresses():
    class Three(Server):
        endpoint = Endpoint("a", 1, None, (Endpoint("b", 2, None), Endpoint("c", 3, None)))

    places = cleanup_spec(plan().dataset, Three())["endpoint"]
    assert [place["host"] for place in places] == ["a", "b", "c"]
