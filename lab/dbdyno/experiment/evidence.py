"""Collect the evidence around trials, each piece when it disturbs no trial.

    before an arm, no server up    the machine's speed; once a run the generator's ceiling
    after a system's first trial   its query plans
    after a system's last trial    its remaining rows

Asking reads tables, and a reading before a trial would warm caches meant to be cold. Missing
evidence is left out; it never ends a run.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from dbdyno.errors import LoadError, ServerError
from dbdyno.experiment.context import LoadRecord, RunContext
from dbdyno.experiment.data import dataset
from dbdyno.experiment.engine import ceiling
from dbdyno.experiment.engine.process import EngineProcess
from dbdyno.experiment.engine.spec import prepared, script_spec, table_names
from dbdyno.experiment.watch.probe import probe_speed
from dbdyno.measurement.measurement import Trial
from dbdyno.measurement.parts import Probe, TrialEvidence
from dbdyno.plan.plan import BLOCKS_MIN, Plan
from dbdyno.plan.template import examples
from dbdyno.plan.workload import MIXES
from dbdyno.servers import reference
from dbdyno.servers.base import MYSQL, PGSQL, Instance, Server


def before_arm(context: RunContext, instance: Instance) -> Probe:
    """The machine's speed now; and once a run, for each kind of load, the generator's ceilings."""
    for trial in context.schedule.left:
        key = _load_of(context, trial, instance.driver)
        if key not in context.ceilings:
            context.progress.stage(f"{trial.cell.workload}: measuring the load generator alone")
            reached = context.makers.ceiling(context.plan, trial, instance.driver)
            context.ceilings[key] = reached
    is_ours = not reference.is_endpoint(instance.spec.reference)
    return probe_speed(instance.folder if is_ours else None)


def _load_of(context: RunContext, trial: Trial, driver: str) -> tuple[str, str, bool]:
    """Key of the generator's ceiling: workload, protocol, prepared statements or plain."""
    return trial.cell.workload, driver, prepared(context.plan, trial.cell)


def after_trial(
    context: RunContext, server: Server, trial: Trial, at_rest: Probe | None
) -> TrialEvidence:
    """Collect evidence around a completed trial.

    An interrupt ends the collection and is kept in `context.interrupted`, so the trial is stored
    before the run ends.
    """
    reached = context.ceilings.get(_load_of(context, trial, server.driver))
    known = TrialEvidence(
        probe=at_rest,
        ceiling_per_s=reached,
        ceiling_threads=None if reached is None else ceiling.THREADS,
        irq_apart=irq_counted_apart(),
    )
    try:
        for fields in _asked_after(context, server, trial):
            known = known.model_copy(update=fields)
    except KeyboardInterrupt:
        context.interrupted = True
    return known


def _asked_after(
    context: RunContext, server: Server, trial: Trial
) -> Iterator[Mapping[str, object]]:
    """The server's state after a trial, as fields of its evidence; each may take minutes."""
    if trial.system not in context.query_plans:
        context.query_plans[trial.system] = explain_plans(context.plan, server)
    yield {"query_plans": context.query_plans[trial.system]}
    yield {"script_check": _checked_by_script(context, server, trial)}
    if _is_last(context, trial):
        yield _left(context, server)


HOLDS: Final = "holds"
BROKEN: Final = "broken"


def _checked_by_script(context: RunContext, server: Server, trial: Trial) -> str:
    """Result of the script's own check of the rows.

    Empty without a check, or if a later trial uses the rows: the check would warm its caches.
    """
    workload = context.plan.workload(trial.cell.workload)
    if workload.script is None or _is_used_on(context, trial):
        return ""
    context.progress.stage(f"{server.label}: the script checks its rows")
    command = "check"
    script = script_spec(context.plan, workload, server, command, 1)
    spec = {"script": script, "command": command}
    try:
        with EngineProcess(
            "script",
            spec,
            system=trial.system,
            command=context.makers.command,
        ) as engine:
            answer = engine.answer()
    except LoadError as error:
        return error.found or error.message
    if not answer["known"]:
        return ""
    return HOLDS if answer["well"] else BROKEN


def _is_used_on(context: RunContext, trial: Trial) -> bool:
    """True if a later trial begins on the rows left by this trial."""
    is_endpoint = context.plan.system(trial.system).is_endpoint
    if context.plan.procedure.fresh_data == "start" and not is_endpoint:
        return False
    return any(one.system == trial.system and one != trial for one in context.schedule.left)


@cache
def irq_counted_apart() -> bool | None:
    """True if the kernel counts interrupts apart from processes; None if its options are hidden."""
    for path in (Path("/proc/config.gz"), Path(f"/boot/config-{os.uname().release}")):
        with suppress(OSError):
            packed = path.read_bytes()
            options = gzip.decompress(packed) if path.suffix == ".gz" else packed
            return b"CONFIG_IRQ_TIME_ACCOUNTING=y" in options
    return None


def _is_last(context: RunContext, trial: Trial) -> bool:
    """True if this may be the system's last trial: of the run, or of a block that may end it."""
    if trial.is_pilot:
        return False
    may_end = context.plan.design.stop == "decided" and trial.block >= BLOCKS_MIN - 1
    left = [
        one
        for one in context.schedule.left
        if one.system == trial.system and one != trial and context.refusal(one) is None
    ]
    return not any(other.block == trial.block or not may_end for other in left)


def _left(context: RunContext, server: Server) -> dict[str, object]:
    """The rows at the end; empty if those at the beginning are not known."""
    load = context.loads.get(server.label, LoadRecord())
    if not (load.rows and load.is_as_loaded):
        return {}
    context.progress.stage(f"{server.label}: counting the rows that are left")
    try:
        tables = dataset.tables(context.plan, server)
    except ServerError:
        return {}
    rows = {name: rows for name, rows, _ in tables}
    return {"rows_after": rows, "dataset_after": dataset.digest(tables)}


# Query plans: how a system executes each kind of statement of a workload, by its EXPLAIN.
#
# Versions that use other indexes or sorts do other work, and a report should say so. The statements
# have the shape of the engine's with fixed numbers, or are a template's with values from the middle
# of their ranges; EXPLAIN reads a handful of pages.


RANGE: Final = "WHERE id BETWEEN 101 AND 200"
STATEMENTS: Final = {
    "point_selects": "SELECT c FROM {table} WHERE id = 101",
    "simple_ranges": f"SELECT c FROM {{table}} {RANGE}",
    "sum_ranges": f"SELECT SUM(k) FROM {{table}} {RANGE}",
    "order_ranges": f"SELECT c FROM {{table}} {RANGE} ORDER BY c",
    "distinct_ranges": f"SELECT DISTINCT c FROM {{table}} {RANGE} ORDER BY c",
    "index_updates": "UPDATE {table} SET k = k + 1 WHERE id = 101",
    "non_index_updates": "UPDATE {table} SET c = 'x' WHERE id = 101",
    "deletes": "DELETE FROM {table} WHERE id = 101",
    "random_points": "SELECT id, k, c, pad FROM {table} WHERE k IN (101, 202, 303, 404)",
    "random_ranges": "SELECT COUNT(k) FROM {table} WHERE k BETWEEN 101 AND 106 OR k BETWEEN 201"
    " AND 206",
}
"""A statement of each kind with several possible plans, so no INSERT."""
EXPLAINS: Final[Mapping[str, tuple[str, ...]]] = {
    MYSQL: ("EXPLAIN FORMAT=TRADITIONAL ", "EXPLAIN "),
    PGSQL: ("EXPLAIN (COSTS OFF) ",),
}
"""Forms to try, the best first: a server's default may be a tree of text (MySQL 9), and an old
TiDB does not know the first."""
COLUMNS: Final = {10: (3, 5), 12: (4, 6)}
"""Places of access and index in EXPLAIN's row, by its number of columns: twelve with partitions and
filtered (from MySQL 5.7 on). The last one always holds the remarks."""
UNKNOWN: Final = "NULL"
"""As text, from a server (go-mysql-server) that has EXPLAIN's columns and no plans in them."""
OPERATOR: Final = re.compile(r"[\s│├└─]*(\w+?)_[0-9]+((?:\(\w+\))?)")
"""TiDB's name of a step in its tree, such as ``└─TableRangeScan_5`` or ``IndexLookUp_7(Build)``."""


def explain_plans(plan: Plan, server: Server) -> dict[str, str]:
    """The query plan of each kind of statement in the plan's workloads.

    Legacy workloads and scripts have no known statements. A statement that cannot be explained is
    left out.
    """
    statements = _statements(plan, server)
    if not statements:
        return {}
    is_postgres = server.driver == PGSQL
    summary = _steps if is_postgres else _summary
    ready = "SELECT 1" if is_postgres else f"USE `{server.database}`"
    ways: dict[str, str] = {}
    forms = EXPLAINS[server.driver]
    with suppress(ServerError):  # a server that is not ready either is asked no further
        server.ask(ready)
        for kind, sql in statements.items():
            for form in forms:
                try:
                    ways[kind] = summary(server.ask(form + sql))
                except ServerError:
                    server.ask(ready)  # in the new session that follows a refusal
                else:
                    forms = (form,)
                    break
    return {kind: way for kind, way in ways.items() if way}


def _statements(plan: Plan, server: Server) -> dict[str, str]:
    """The statements to explain: one for each kind of the engine's, and each template's."""
    kinds = dict.fromkeys(
        kind for w in plan.workloads for kind in MIXES.get(w.name, {}) if kind in STATEMENTS
    )
    tables = [dataset.quoted_table(server, name) for name in table_names(plan)[:1]]
    statements = {kind: STATEMENTS[kind].format(table=table) for table in tables for kind in kinds}
    for workload in plan.workloads:
        for place, sql in examples(workload.script or "").items():
            statements[f"{workload.label}.{place}"] = sql
    return statements


def _steps(rows: Iterable[tuple[str, ...]]) -> str:
    """PostgreSQL's steps without their conditions: `Sort; Seq Scan on sbtest1`."""
    lines = (row[0].strip().removeprefix("->").strip() for row in rows)
    return "; ".join(line for line in lines if ": " not in line)


def _summary(rows: Iterable[tuple[str, ...]]) -> str:
    """`range PRIMARY, Using filesort, Using where`; empty for an answer of another shape."""
    steps = [_step(row) for row in rows]
    return "; ".join(steps) if all(steps) else ""


def _step(row: tuple[str, ...]) -> str:
    """A step of MySQL's, or of TiDB's without its number; empty for a row of another shape."""
    if len(row) not in COLUMNS:
        operator = OPERATOR.fullmatch(row[0]) if len(row) > 1 else None
        return f"{operator[1]}{operator[2]}" if operator else ""
    access, index = (row[place] for place in COLUMNS[len(row)])
    if access == UNKNOWN:
        return ""
    remarks = sorted(filter(None, (part.strip() for part in row[-1].split(";"))))
    return ", ".join([f"{access or 'none'} {index or 'no index'}", *remarks])
