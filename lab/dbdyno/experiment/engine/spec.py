"""Specification of the engine's work, from the plan; pure. The shapes are those of `_engine`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final

from dbdyno.errors import UsageError
from dbdyno.measurement.measurement import Cell, Trial
from dbdyno.plan.plan import DatasetPlan, Plan
from dbdyno.plan.settings import (
    OF_THE_LOAD,
    OptionValue,
    SettingsPlan,
    SettingValue,
    combinations,
)
from dbdyno.plan.spelling import share_of
from dbdyno.plan.workload import WorkloadPlan, has_own_tables
from dbdyno.servers import axes, open
from dbdyno.servers.base import MYSQL, PGSQL, Endpoint, Server
from dbdyno.servers.client import transport
from dbdyno.servers.reference import is_endpoint

DRAIN_S: Final = 30.0
"""Longest wait for events in flight after the window."""
INTERVAL_S: Final = 1.0
PREPARE_THREADS: Final = 4
IGNORED_ERRORS: Final[dict[str, tuple[int | str, ...]]] = {
    MYSQL: (1213, 1020, 1205, 3101, 8002, 8022, 8028, 9007),
    PGSQL: ("40P01", "40001", "23505"),
}
"""Errors after which an event is retried. As in sysbench: deadlock, changed row, lock wait timeout;
deadlock, failed serialization, an existing key. Beyond it, a commit refused by a write conflict: of
MySQL's group replication (3101), and TiDB's four."""
STATE_LENGTH: Final = 5
CODE_MAX: Final = 65_535
"""Error numbers of MySQL's protocol have 16 bits."""
ARRIVAL: Final = "poisson"
"""Independent users: they come in bursts, as queues have to bear it."""
STANDARD: Final = "standard"
"""Name in plans of the engine's own layout, its default."""
ONE_TABLE: Final = "legacy_one"
"""The layout of sysbench 0.4: one table, named sbtest."""
DATASET_OPTIONS: Final = ("auto_inc", "secondary", "create_secondary")
"""Options of a workload about the creation of its tables."""


def run_spec(plan: Plan, trial: Trial, server: Server) -> dict[str, Any]:
    """The load of one trial on a running server; holds the password."""
    workload = plan.workload(trial.cell.workload)
    return {
        **_what(plan, workload, trial, server),
        **_login(server),
        **({"generators": generators} if (generators := plan.load.generators) > 1 else {}),
        "connections": trial.cell.threads,
        "threads": 0,
        "warmup_s": plan.trial.warmup_s,
        "window_s": plan.trial.window_s,
        "events": 0,
        "interval_s": INTERVAL_S,
        "drain_s": DRAIN_S,
        "seed": trial.seed,
        "seeding": "streams",
        **_schedule(trial),
        "round_trip_ms": plan.network.client_ms,
        "reactor": "auto",
        "prepared": prepared(plan, trial.cell),
        "distribution": plan.distribution.model_dump(mode="json"),
        "ignore_errors": _retried(plan, server),
        "percentiles": [50, 95, 99],
    }


def _retried(plan: Plan, server: Server) -> list[int | str]:
    """Errors after which an event is retried: MySQL's numbers, or PostgreSQL's SQLSTATEs."""
    codes, own = plan.procedure.retry_errors, list(IGNORED_ERRORS[server.driver])
    if server.driver == PGSQL:
        own += [code for code in codes if len(code) == STATE_LENGTH]
    else:
        own += [int(code) for code in codes if code.isdecimal() and int(code) <= CODE_MAX]
    return list(dict.fromkeys(own))


def _what(plan: Plan, workload: WorkloadPlan, trial: Trial, server: Server) -> dict[str, Any]:
    """The engine's workload with its options, or the script to run instead."""
    if workload.script is not None:
        is_prepared = prepared(plan, trial.cell)
        script = script_spec(plan, workload, server, "run", trial.cell.threads, is_prepared)
        return {"workload": {"name": "script"}, "script": script}
    tables = {"tables": plan.dataset.tables, "table_size": plan.dataset.rows}
    layout = {"one_table": True} if plan.dataset.layout == ONE_TABLE else {}
    options = {**tables, **layout, **workload.options}
    return {"workload": {"name": workload.name, "options": options}}


SYSBENCH_VERSION: Final = "1.0.20"
"""Version of sysbench shown to scripts; additions of 1.1 are there too."""


def script_spec(
    plan: Plan,
    workload: WorkloadPlan,
    server: Server,
    command: str,
    threads: int,
    is_prepared: bool = True,
) -> dict[str, Any]:
    """A script as the engine wants it, with `sysbench.opt`; holds the password."""
    distribution = plan.distribution.model_dump(mode="json")
    folder = PurePath(workload.name).parent
    return {
        "source": workload.script,
        "chunk": f"@{workload.name}",
        "name": workload.name,
        "version": SYSBENCH_VERSION,
        "argv": ["sysbench", workload.name, command],
        "command": command,
        "script_path": workload.name,
        "package_path": f"./?.lua;./?/init.lua;{folder}/?.lua",
        "package_cpath": f"./?.so;{folder}/?.so",
        "driver": server.driver,
        "verbosity": 1,
        "distribution": distribution,
        **{name: {"name": name} for name in ("gaussian", "special", "pareto", "zipfian")},
        "database": {
            **_login(server),
            "prepared": is_prepared,
            "ignore_errors": _retried(plan, server),
        },
        "options": {
            "threads": threads,
            "events": 0,
            "time": plan.trial.window_s,
            "percentile": 95,
            "db_driver": server.driver,
            "tables": plan.dataset.tables,
            "table_size": plan.dataset.rows,
            **workload.options,
        },
        "globals": ["threads", "events", "time", "percentile", "db_driver", *workload.options],
    }


def script_commands(
    plan: Plan, server: Server, command: str
) -> list[tuple[WorkloadPlan, dict[str, Any]]]:
    """The specification of each distinct script of the plan for `command`."""
    seen: set[str] = set()
    commands = []
    for workload in plan.workloads:
        key = json.dumps([workload.script, workload.options], sort_keys=True)
        if workload.script is None or key in seen:
            continue
        seen.add(key)
        script = script_spec(plan, workload, server, command, PREPARE_THREADS)
        commands.append((workload, {"script": script, "command": command}))
    return commands


def _schedule(trial: Trial) -> dict[str, Any]:
    """Due times of events: random moments at the trial's rate, drawn from its seed.

    The same seed and rate give every system of a block the same moments.
    """
    rate_per_s = trial.cell.rate_per_s
    return {} if rate_per_s is None else {"rate_per_s": rate_per_s, "arrival": ARRIVAL}


def prepare_spec(plan: Plan, server: Server) -> dict[str, Any]:
    """The dataset, to be loaded into a running server; holds the password."""
    options = plan.dataset.table_options
    return {
        **cleanup_spec(plan.dataset, server),
        **({"table_options": options} if options else {}),
        "table_size": plan.dataset.rows,
        "distribution": plan.distribution.model_dump(mode="json"),
        "seed": plan.seed,
        "threads": PREPARE_THREADS,
        **dataset_options(plan.workloads),
    }


def cleanup_spec(dataset: DatasetPlan, server: Server) -> dict[str, Any]:
    """The dataset's tables, to be dropped; holds the password."""
    older = {} if dataset.layout == STANDARD else {"layout": dataset.layout}
    return {**_login(server), "tables": dataset.tables, **older}


def table_names(plan: Plan) -> list[str]:
    """The dataset's tables by their layout's names; tables of scripts are unknown."""
    if not has_own_tables(plan.workloads):
        return []
    if plan.dataset.layout == ONE_TABLE:
        return ["sbtest"]
    return [f"sbtest{number}" for number in range(1, plan.dataset.tables + 1)]


def dataset_options(workloads: Sequence[WorkloadPlan]) -> dict[str, OptionValue]:
    """Table options of a plan's workloads.

    Raises:
        UsageError: two workloads need different tables; all run on the same dataset.
    """
    chosen: dict[str, OptionValue] = {}
    for name in DATASET_OPTIONS:
        own = [workload for workload in workloads if workload.script is None]
        values = {w.label: w.options[name] for w in own if name in w.options}
        if len(set(values.values())) > 1:
            raise UsageError(
                f"the workloads want different datasets: {name} differs",
                wanted="one dataset for all workloads of a plan",
                found=", ".join(f"{label}: {value}" for label, value in values.items()),
                hint="compare them in two plans",
            )
        if values:
            chosen[name] = next(iter(values.values()))
    return chosen


def dataset_hash(plan: Plan) -> str:
    """Hash of the dataset: plans with the same hash can share a system's snapshot."""
    about = [
        plan.dataset.model_dump(mode="json", exclude={"loads"}),
        plan.distribution.model_dump(mode="json"),
        plan.seed,
        dataset_options(plan.workloads),
    ]
    if scripts := [[one.script, one.options] for one in plan.workloads if one.script is not None]:
        about.append([scripts, has_own_tables(plan.workloads)])
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _login(server: Server) -> dict[str, Any]:
    places = [_place(place) for place in (server.endpoint, *server.endpoint.others)]
    return {
        **transport(server.endpoint),
        **({"driver": PGSQL} if server.driver == PGSQL else {}),
        "endpoint": places if len(places) > 1 else places[0],
        "user": server.credentials.user,
        "password": server.credentials.password,
        "database": server.database,
    }


def _place(endpoint: Endpoint) -> dict[str, Any]:
    if not endpoint.port and endpoint.socket is not None:
        return {"socket": str(endpoint.socket)}
    return {"host": endpoint.host, "port": endpoint.port}


# Meaning of a cell's setting here: keys for the start of a server, and options of the load.
#
# The axes are the plan's, the names of a product's variables those of `servers/axes.py`. A share of
# the dataset is a share of the baseline's: a quarter means as many bytes of memory on every system,
# though one may store the same rows in fewer.


def values_of(settings: SettingsPlan, setting: str) -> dict[str, str]:
    """The value on each axis of a setting; empty for an unknown setting."""
    return combinations(settings).get(setting, {})


def prepared(plan: Plan, cell: Cell) -> bool:
    """True if the cell's load uses prepared statements: by its setting, else by the procedure."""
    chosen = values_of(plan.settings, cell.setting).get(OF_THE_LOAD)
    return plan.procedure.prepared_statements if chosen is None else chosen == "on"


def wants_dataset_bytes(settings: SettingsPlan) -> bool:
    """True if a setting is a share of the loaded dataset."""
    return any(share_of(size) is not None for size in settings.buffer_pool or ())


def start_keys(
    plan: Plan, label: str, setting: str, dataset_bytes: int | None
) -> dict[str, SettingValue]:
    """The keys of a system's start at this setting; empty without varied settings.

    Args:
        dataset_bytes: of the baseline's loaded tables; None if no setting is a share of them.

    Raises:
        UsageError: this product or version cannot have the setting.
    """
    values = dict(values_of(plan.settings, setting))
    values.pop(OF_THE_LOAD, None)
    if not values:
        return {}
    reference = plan.system(label).reference
    if is_endpoint(reference):
        raise UsageError(
            f"{label}: the settings of an endpoint are its owner's, so they cannot be varied",
            wanted=setting,
            hint="set them at the server and name it once for each, or vary prepared_statements",
        )
    product, version = open.product_of(reference)
    known_bytes = dataset_bytes if wants_dataset_bytes(plan.settings) else None
    return axes.keys_of(product, version, values, plan.settings.own, known_bytes)
