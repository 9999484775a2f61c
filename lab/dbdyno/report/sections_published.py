"""The section on the published experiment that a plan follows: what it did, what this run did.

A repeat on a smaller machine says nothing about the published numbers, and is soon read as if it
did. So all that differs stands in one table, beside what was published. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.plan_settings import axes
from dbdyno.report.facts import RunFacts
from dbdyno.report.numbers import NONE, count, seconds
from dbdyno.report.parts import Column, Items, Paragraph, Section, Table
from dbdyno.report.trials import systems_of

COLUMNS = (Column("What"), Column("Published"), Column("This run"))


def published(plan: Plan, measurements: Sequence[Measurement], run: RunFacts) -> Section:
    """What was published, what was done here, and why it differs; empty for a plan of one's own."""
    if plan.published is None:
        return Section("The published experiment", ())
    here = _here(plan, measurements, run)
    topics = dict.fromkeys([*plan.published.setup, *here])
    rows = tuple(
        (topic, plan.published.setup.get(topic, NONE), here.get(topic, NONE)) for topic in topics
    )
    parts = (
        Paragraph(
            f"The plan follows: {plan.published.source}. Its numbers and this run's cannot be put "
            "beside each other: machine, data and load differ as the table says."
        ),
        Table("Published and here", COLUMNS, rows),
        *((Items(plan.published.differences),) if plan.published.differences else ()),
    )
    return Section("The published experiment", parts)


def _here(plan: Plan, measurements: Sequence[Measurement], run: RunFacts) -> dict[str, str]:
    """The same topics of this run, as far as the plan and the measurements tell."""
    return {
        "systems": ", ".join(
            _system(label, measurements) for label in systems_of(plan, measurements)
        ),
        "data": f"{count(plan.dataset.tables, 'table')} of {count(plan.dataset.rows, 'row')}",
        "load": _load(plan),
        "settings": _settings(plan),
        "procedure": _procedure(plan),
        "machine": _machine(run),
        "repeats": f"{count(plan.design.blocks, 'block')}, in each of them every cell once",
    }


def _system(label: str, measurements: Sequence[Measurement]) -> str:
    seen = dict.fromkeys(m.server.version for m in measurements if m.trial.system == label)
    versions = " and ".join(version for version in seen if version)
    return f"{label} ({versions})" if versions and versions not in label else label


def _load(plan: Plan) -> str:
    levels = f"{', '.join(map(str, sorted(plan.load.threads)))} connections"
    if plan.load.is_open:
        rates = ", ".join(plan.load.rates)
        opened = f"{rates} events/s" if rates else "rates around a latency limit"
        levels = f"{levels}; {opened}" if plan.load.threads else opened
    names = ", ".join(workload.label for workload in plan.workloads)
    statements = "prepared" if plan.procedure.prepared_statements else "no prepared"
    return f"{levels}; {names}; {statements} statements"


def _settings(plan: Plan) -> str:
    varied = [f"{axis}: {', '.join(values)}" for axis, values in axes(plan.settings).items()]
    network = plan.network
    added = [
        f"{ms:g} ms added to a round trip {between}"
        for ms, between in (
            (network.client_ms, "between load and server"),
            (network.replica_ms, "between primary and replicas"),
        )
        if ms > 0
    ]
    return "; ".join([*varied, *added]) or "as the systems have them"


def _procedure(plan: Plan) -> str:
    procedure, trial = plan.procedure, plan.trial
    unit = "block" if procedure.restart == "block" else "cell"
    steps = [
        f"server restarted for each setting of a {unit}"
        if unit == "block"
        else "server restarted for each cell"
    ]
    steps += ["on a restored dataset"] if procedure.fresh_data == "start" else []
    steps += ["caches dropped"] if procedure.drop_caches else []
    steps += ["binary logs purged"] if procedure.purge_binlogs else []
    warmup = "until steady, then " if trial.until_steady else ""
    times = f"warm-up {warmup}{seconds(trial.warmup_s)}, window {seconds(trial.window_s)}"
    return f"{', '.join(steps)}; {times}"


def _machine(run: RunFacts) -> str:
    known = [
        run.environment[name]
        for name in ("cpu", "cores", "memory", "filesystem")
        if name in run.environment
    ]
    return ", ".join(known) or NONE
