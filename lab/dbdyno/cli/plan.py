"""`dbdyno plan`: the content of a plan file, before any download or start.

`show` foretells `run`: each fact of the plan, time and disk, impossible cells with reasons, and
the differences detectable with the plan's blocks. `schema` prints the JSON schema for editors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from textwrap import wrap
from typing import Final

import typer
from pydantic import ValidationError

from dbdyno.cli import options
from dbdyno.errors import UsageError
from dbdyno.experiment.data.disk import bytes_expected
from dbdyno.experiment.engine import spec
from dbdyno.experiment.schedule import forecast
from dbdyno.experiment.schedule.forecast import Outlook, outlook_of
from dbdyno.experiment.schedule.order import arms
from dbdyno.experiment.schedule.pilot import piloting
from dbdyno.experiment.schedule.timed import question_of, questions_of
from dbdyno.judge.interval import HORIZON_MAX
from dbdyno.judge.uses import power
from dbdyno.language.words import count
from dbdyno.measurement.measurement import Trial
from dbdyno.plan import file
from dbdyno.plan.file import schema as schema_of_plans
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.mistakes import shape_message
from dbdyno.plan.plan import BLOCKS_LOOKED_AHEAD, BLOCKS_MIN, Plan, comparisons
from dbdyno.plan.settings import SettingValue, setting_names
from dbdyno.plan.systems import SystemPlan
from dbdyno.report.formats.stdout import printable
from dbdyno.report.tell.plan import facts_of
from dbdyno.report.tell.verdicts import duration
from dbdyno.servers import open
from dbdyno.servers.open import check
from dbdyno.stats.design import Question

NAME_WIDTH: Final = 13
LINE_WIDTH: Final = 100

plan_app = typer.Typer(help="What a plan file asks for.", no_args_is_help=True)


@plan_app.command("show")
def show(plan: options.PlanFile, scale: options.Scale = "", budget: options.Budget = None) -> None:
    """Show what a plan would run. Cells, time, disk, and what differences it can detect."""
    lines = described(read_file(plan, scale, budget)).split("\n")
    sys.stdout.write("\n".join(map(printable, lines)))  # the plan may be a stranger's


@plan_app.command("schema")
def schema() -> None:
    """Print the JSON schema of plan files, for editors.

    Each part of a plan is a line of its own.
    """
    whole = schema_of_plans()
    rows = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(part)}" for key, part in whole["$defs"].items()
    )
    rest = json.dumps({key: part for key, part in whole.items() if key != "$defs"})
    sys.stdout.write(f'{rest[:-1]}, "$defs": {{\n{rows}\n}}}}\n')


def read_file(path: Path, scale: str, time: str | None) -> Plan:
    """Read a plan file in a scale, with the command line's budget in place of its own.

    Raises:
        PlanError: all mistakes of the file; UsageError: the budget is no time.
    """
    plan = file.read(path, check, scale)
    if time is None:
        return plan
    if plan.design.time_s is not None:
        raise UsageError(
            "--budget fits blocks into a time, and this plan chooses its own by `design: time`",
            hint=f"leave --budget out, or change `time` in {path}",
        )
    budget_s = options.time_of("--budget", time)
    design = plan.design.model_copy(update={"budget_s": budget_s})
    return plan.model_copy(update={"design": design})


def with_generators(plan: Plan, fleet: str) -> Plan:
    """Give each load generator a machine of the cluster, unless the plan has a `fleet` of its own.

    Args:
        fleet: address of the cluster; empty without one.

    Raises:
        UsageError: the plan needs its load generator on this machine.
    """
    if not fleet or plan.fleet.is_wanted:
        return plan
    document = {**plan.model_dump(mode="json"), "fleet": {"generators": plan.load.generators}}
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        reasons = "; ".join(map(shape_message, error.errors()))
        raise UsageError(f"--fleet {fleet} does not suit the plan", found=reasons) from None


def described(plan: Plan) -> str:
    """The text of `plan show`; the plan's budget is applied first.

    Raises:
        UsageError: the budget is too short for a block.
    """
    outlook = outlook_of(forecast.fitted(plan))
    lines = [facts_text(outlook.plan), "", *_procedure_rows(plan, outlook), ""]
    lines += _impossible(plan)
    lines += _overruled(plan)
    lines += _detectable(outlook)
    return "\n".join([*lines, ""])


def facts_text(plan: Plan) -> str:
    """Title and facts of a plan, in lines."""
    rows: dict[str, list[str]] = {}
    for fact in facts_of(plan):
        lines = wrap(fact.text, LINE_WIDTH - NAME_WIDTH, break_on_hyphens=False)
        rows.setdefault(fact.topic, []).extend(lines)
    lines = [line for topic, texts in rows.items() for line in _row(topic, *texts)]
    return "\n".join([plan.title or "untitled plan", "", *lines])


def in_budget(plan: Plan, outlook: Outlook, machines: int = 1) -> str | None:
    """Line with the blocks of the budget and their detectable differences; None without a budget.

    Args:
        outlook: of the plan fitted into its budget.
        machines: number of machines running blocks in parallel.
    """
    budget_s = plan.design.budget_s
    if budget_s is None:
        return None
    blocks = outlook.plan.design.blocks
    where = f" on {machines} machines" if machines > 1 else ""
    fit = f"budget {duration(budget_s)}{where}: {blocks} of {plan.design.blocks} blocks fit"
    window_s, stop, level = (
        plan.trial.window_s,
        plan.design.stop,
        questions_of(plan, outlook.cells)[0],
    )
    seen = power.difference_seen(blocks, power.USUAL_NOISE, window_s, stop, level)
    if seen is None:
        return f"{fit}, too few for a verdict ({BLOCKS_MIN} are the least)"
    return (
        f"{fit}; differences of {_percent(seen)} are seen in {_named(level)} where blocks of one"
        f" system differ by {_percent(power.USUAL_NOISE)}"
    )


def _row(name: str, *values: str) -> list[str]:
    """A name and its values below each other."""
    return [f"{name if n == 0 else '':{NAME_WIDTH}}{value}" for n, value in enumerate(values)]


def _node_hours(plan: Plan, seconds: float) -> list[str]:
    """Cost of a run on a cluster: more machines shorten a run of blocks, and add blocks to a run
    with a time.
    """
    fleet = plan.fleet
    if not fleet.is_wanted:
        return []
    machines = fleet.generators + 1
    words = f"about {machines * seconds / 3600:.1f} node hours"
    if fleet.spread and plan.design.time_s is not None:
        words += " for each machine; m machines run m times the blocks in the same time"
    elif fleet.spread:
        words += "; spread over m machines in an m-th of the time, with one more loading on each"
    return _row("cost", words)


def _pilot(plan: Plan, trials: int) -> list[str]:
    """Trials of the pilot, before the first block."""
    each = piloting(plan.trial)
    if trials == 0:
        return []
    times = f"{each.warmup_s:g} s of warm-up and {each.window_s:g} s each"
    return _row("pilot", f"{count(trials, 'trial')} to find the rates, {times}; in no number")


def _procedure_rows(plan: Plan, outlook: Outlook) -> list[str]:
    trials, cells = len(outlook.trials), len(outlook.cells)
    time = duration(outlook.seconds)
    settings = len(setting_names(plan.settings))
    shape = [
        count(len(plan.workloads), "workload"),
        count(cells // (len(plan.workloads) * settings), "level"),
        *([count(settings, "setting")] if settings > 1 else []),
    ]
    most = " at most, until the comparison is decided" if plan.design.stop == "decided" else ""
    blocks = count(outlook.plan.design.blocks, "block")
    fit = in_budget(plan, outlook)
    others = ["for one machine; m machines run about m times the blocks"] * bool(plan.fleet.spread)
    return [
        *_row("cells", f"{cells} = {' × '.join(shape)}"),
        *_row(
            "trials", f"{trials} = {blocks} × {count(len(plan.systems), 'system')} × cells{most}"
        ),
        *_pilot(plan, outlook.pilot_trials),
        *_starts(plan, outlook.trials),
        *_row("time", f"about {time}{' at most' if most else ''}, downloads not counted"),
        *_node_hours(plan, outlook.seconds),
        *_row("disk", f"about {bytes_expected(plan) / 1e9:.1f} GB on the workspace's disk"),
        *(_row("budget", *fit.removeprefix("budget ").split("; "), *others) if fit else []),
    ]


def _starts(plan: Plan, trials: Sequence[Trial]) -> list[str]:
    """Number of starts of servers, if dbdyno runs some."""
    ours = [trial for trial in trials if trial.system in known_of(plan)[Fact.OURS]]
    starts = len(ours) if plan.procedure.restart == "cell" else len(arms(ours))
    return _row("starts", f"{starts} of a server") if ours else []


def _impossible(plan: Plan) -> list[str]:
    """Settings unknown to a system: their cells will be void, the rest goes on."""
    reasons: dict[str, list[str]] = {}
    for system, name, keys in _keys(plan):
        if isinstance(keys, UsageError):
            reasons.setdefault(f"{system.label}: {keys.message}", []).append(name)
    if not reasons:
        return []
    lines = ["cannot run, and will be void with this reason"]
    several = len(setting_names(plan.settings)) > 1
    for reason, names in reasons.items():
        lines += [f"  {reason}", *(f"    {name}" for name in names if several)]
    return [*lines, ""]


def _overruled(plan: Plan) -> list[str]:
    """Keys of a system's own settings overruled by the plan's axes."""
    decided: dict[str, set[str]] = {}
    for system, _, keys in _keys(plan):
        if not isinstance(keys, UsageError):
            product, _ = open.product_of(system.reference)
            own = open.rules_of(product).normalise(system.settings)
            decided.setdefault(system.label, set()).update(own.keys() & keys.keys())
    lines = [f"  {label}: {', '.join(sorted(keys))}" for label, keys in decided.items() if keys]
    return ["decided by settings, whatever the system's own say", *lines, ""] if lines else []


def _keys(plan: Plan) -> Iterator[tuple[SystemPlan, str, Mapping[str, SettingValue] | UsageError]]:
    """Each system's keys for each setting, or the reason against it.

    Endpoints and systems of unknown version are left out: showing a plan fetches and calls no
    program.
    """
    size = plan.dataset.bytes_about
    for system, name in product(plan.systems, setting_names(plan.settings)):
        try:
            if open.product_before(system.reference) is None:
                continue
        except UsageError:
            continue
        try:
            yield system, name, spec.start_keys(plan, system.label, name, size)
        except UsageError as error:
            yield system, name, error


def _detectable(outlook: Outlook) -> Iterator[str]:
    """Differences that each level of the question will show, by the noise of the machine."""
    plan = outlook.plan
    design, window_s = plan.design, plan.trial.window_s
    if not comparisons(plan):
        return
    if design.blocks < BLOCKS_MIN:
        yield f"{count(design.blocks, 'block')}: no verdict, {BLOCKS_MIN} blocks are the least"
        return
    levels, margin = questions_of(plan, outlook.cells), _percent(design.margin)
    question = question_of(plan, levels)
    heads = [_named(level) for level in levels]
    yield f"what {count(design.blocks, 'block')} can see, in four of five comparisons"
    aimed = f"blocks to see {margin} in {_named(question)}"
    yield "  ".join(["  blocks differ by", *heads, "ties told", aimed])
    for noise in power.NOISES:
        known = (noise, window_s, design.stop)
        seen = [power.difference_seen(design.blocks, *known, level) for level in levels]
        ties = power.tie_power(design.margin, design.blocks, *known, question)
        needed = power.blocks_to_see(design.margin, *known, question)
        most = HORIZON_MAX if design.stop == "decided" else BLOCKS_LOOKED_AHEAD
        cells = [
            f"{_percent_or_dash(one):>{len(head)}}" for one, head in zip(seen, heads, strict=True)
        ]
        yield "  ".join(
            [f"  {_percent(noise):>16}", *cells, f"{ties * 100:>7.0f} %", _at_most(needed, most)]
        )


def _named(level: Question) -> str:
    if level.cells > 1 and level.intervals > 1:
        return f"each of {level.intervals} workloads"
    if level.cells > 1:
        return f"all {level.cells} cells"
    return "the cell" if level.intervals == 1 else f"each of {level.intervals} cells"


def _at_most(blocks: int | None, most: int) -> str:
    return f"over {most}" if blocks is None or blocks > most else str(blocks)


def _percent_or_dash(ratio: float | None) -> str:
    return "–" if ratio is None else _percent(ratio)


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.1f} %"
