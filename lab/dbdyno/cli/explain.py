"""`dbdyno explain`: a new run that samples stacks in one cell of a stored run.

Sampling slows servers, so the new trials stand in a run of their own, beside the run that they
explain, and never count for its verdicts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final

from dbdyno import api
from dbdyno.cli import flow, options
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.machines import machines_of
from dbdyno.cli.trust import refuse_risks
from dbdyno.errors import UsageError
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.catalogues import Language
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.plan import Plan, comparisons
from dbdyno.plan.settings import axes, combinations
from dbdyno.plan.systems import AGAINST, MeasuredArm
from dbdyno.report.formats.stdout import Output
from dbdyno.report.tell.measured import cell_title

BLOCKS: Final = 5
WINDOW_S_MIN: Final = 8.0
"""A shorter window has too few samples of rare functions."""


def explain(
    run: options.RunOrBundle,
    cell: options.CellName = None,
    trust: options.Trust = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Sample stacks in a new run to see why a server is slower. The new run repeats one cell (a
    workload at a load level and setting) of a stored run in 5 blocks. Sampling slows the servers,
    so take their throughput from the stored run.
    """
    first = api.load(run, workspace)
    refuse_risks(first.plan, f"run {first.id}", trusted=trust)
    plan = explaining(first.plan, chosen(first.judgement.verdicts, cell))
    command = options.stored_command(*sys.argv[1:])
    with machines_of(plan, "") as machines:
        flow.begin(plan, workspace, command, ReportOptions(output, lang), machines)


def chosen(verdicts: Sequence[Verdict], name: str | None) -> Verdict:
    """The verdict to explain: of its candidates the one whose ratio is furthest from 1.

    Args:
        name: a cell as reports or JSON print it, or a part of it; None for all that say faster or
            slower.

    Raises:
        UsageError: no cell has the name, or several have it; no verdict says faster or slower.
    """
    cells = {one.cell: (one.cell.key, str(cell_title(one.cell))) for one in verdicts}
    known = "; ".join(title for _, title in cells.values()) or "none"
    if name is None:
        candidates = [one for one in verdicts if one.word in (Word.BETTER, Word.WORSE)]
        if not candidates:
            raise UsageError(
                "no verdict of this run says faster or slower",
                wanted="such a verdict, or the name of a cell behind the run",
                found=f"cells: {known}",
            )
    else:
        named = [cell for cell, names in cells.items() if name in names]
        named = named or [cell for cell, (key, title) in cells.items() if name in f"{key}\n{title}"]
        if len(named) != 1:
            raise UsageError(
                f"{len(named) or 'no'} cells of this run are called {name}",
                wanted="one of its cells, or a part of the name that no other cell has",
                found=f"cells: {known}",
            )
        candidates = [one for one in verdicts if one.cell == named[0]]
    return max(candidates, key=_distance)


def _distance(verdict: Verdict) -> float:
    ratio = verdict.estimate.ratio
    return abs(math.log(ratio)) if ratio else 0.0


def explaining(plan: Plan, verdict: Verdict) -> Plan:
    """A plan of the same systems and data for the verdict's cell alone, with sampled stacks.

    Samplers count as other programs, so no trial is repeated for what others used.
    """
    labels = verdict.baseline, verdict.system
    pair = next(one for one in comparisons(plan) if one.labels == labels)
    arms = pair.places(verdict.cell)
    cell = arms[0].cell
    document = plan.model_dump(mode="json")
    systems = [
        {**system, "workload_settings": _of_workload(system["workload_settings"], cell)}
        for system in document["systems"]
    ]
    is_named = pair.settings is not None or bool(plan.compare)
    return Plan.model_validate(
        {
            **document,
            "title": f"Why: {plan.title or ' and '.join(labels)} ({cell.key})",
            "systems": systems,
            "workloads": [one for one in document["workloads"] if one["label"] == cell.workload],
            "load": {**document["load"], **_load(cell)},
            "trial": {**document["trial"], "window_s": max(plan.trial.window_s, WINDOW_S_MIN)},
            "design": {"blocks": BLOCKS, "margin": plan.design.margin, "disturbance_max": 1.0},
            "procedure": {**document["procedure"], "sample_stacks": True},
            "settings": _settings(plan, arms),
            "compare": [f"{pair.arm.label}{AGAINST}{pair.baseline.label}"] if is_named else [],
            "published": None,
            "scale": "",
        }
    )


def _of_workload(settings: dict[str, Any], cell: Cell) -> dict[str, Any]:
    return {label: keys for label, keys in settings.items() if label == cell.workload}


def _load(cell: Cell) -> dict[str, Any]:
    """The load level of the cell, without a latency limit or a pilot."""
    alone: dict[str, Any] = {"slo": None, "pilot": []}
    if cell.rate_per_s is None:
        return {**alone, "threads": [cell.threads], "rates": []}
    return {
        **alone,
        "threads": [],
        "rates": [f"{cell.rate_per_s:.12g}"],
        "connections": cell.threads,
    }


def _settings(plan: Plan, arms: Sequence[MeasuredArm]) -> dict[str, Any]:
    """The values of both arms on each axis."""
    known = combinations(plan.settings)
    values = {
        axis: list(dict.fromkeys(known[arm.cell.setting][axis] for arm in arms))
        for axis in axes(plan.settings)
    }
    own = {
        axis: {value: keys[value] for value in values.pop(axis)}
        for axis, keys in plan.settings.own.items()
    }
    return {**values, "own": own}
