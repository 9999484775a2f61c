"""`dbdyno plan`: what a plan file asks for, before anything is fetched or started.

`show` says in words what `run` would do (`cli_plan_words`); `schema` prints what editors check a
plan by.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from dbdyno.cli import options
from dbdyno.cli.plan import told
from dbdyno.errors import UsageError
from dbdyno.experiment.engine import loadable
from dbdyno.plan import file
from dbdyno.plan.plan import Plan, known_workloads
from dbdyno.plan.schema import schema as schema_of_plans
from dbdyno.plan.spelling import duration_s

plan_app = typer.Typer(help="What a plan file asks for.", no_args_is_help=True)


@plan_app.command("show")
def show(plan: options.PlanFile, scale: options.Scale = "", budget: options.Budget = None) -> None:
    """Say what a plan would run: cells, time, disk, and what differences it can see."""
    sys.stdout.write(told(read(plan, scale, budget)))


@plan_app.command("schema")
def schema() -> None:
    """Print the JSON schema of plan files, for editors."""
    sys.stdout.write(json.dumps(schema_of_plans(), indent=1) + "\n")


def read(path: Path, scale: str, time: str | None) -> Plan:
    """The plan of a file in that scale, with the command line's budget in place of its own.

    Raises:
        PlanError: all mistakes of the file; UsageError: the budget is no time.
    """
    plan = file.read(path, known_workloads(), loadable.check, scale)
    if time is None:
        return plan
    budget_s = duration_s(time)
    if not isinstance(budget_s, float) or budget_s <= 0:
        raise UsageError(
            f"--budget {time} is no time", wanted="such as 2h, 90m or 45s", found=repr(time)
        )
    design = plan.design.model_copy(update={"budget_s": budget_s})
    return plan.model_copy(update={"design": design})
