"""`dbdyno plan`: the content of a plan file, before any download or start.

`show` foretells `run`: each fact of the plan, time and disk, impossible cells with reasons, and
the differences detectable with the plan's blocks. `list` names dbdyno's own plans, `schema` prints
the JSON schema for editors.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from textwrap import wrap
from typing import Final

import typer
from pydantic import ValidationError

from dbdyno import shipped
from dbdyno.cli import options
from dbdyno.cli.progress import note, noted
from dbdyno.errors import StoreError, UsageError
from dbdyno.experiment.data import disk
from dbdyno.experiment.engine import spec
from dbdyno.experiment.schedule import forecast
from dbdyno.experiment.schedule.forecast import Outlook, outlook_of, with_blocks
from dbdyno.experiment.schedule.order import arms
from dbdyno.experiment.schedule.pilot import piloting
from dbdyno.experiment.schedule.timed import question_of, questions_of
from dbdyno.judge.interval import HORIZON_MAX
from dbdyno.judge.uses import power
from dbdyno.judge.uses.noise import BlockNoise, assumed, is_like, learned
from dbdyno.language.words import count
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan import file
from dbdyno.plan.file import schema as schema_of_plans
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.mistakes import shape_message
from dbdyno.plan.plan import (
    BLOCKS_LOOKED_AHEAD,
    BLOCKS_MIN,
    BLOCKS_TIMED,
    DesignPlan,
    Plan,
    cells,
    comparisons,
)
from dbdyno.plan.settings import SettingValue, setting_names
from dbdyno.plan.systems import SystemPlan
from dbdyno.report.formats.stdout import printable
from dbdyno.report.tell.plan import facts_of
from dbdyno.report.tell.verdicts import duration
from dbdyno.servers import open
from dbdyno.servers.open import check
from dbdyno.stats.design import Question
from dbdyno.store.evidence import of_stored
from dbdyno.store.store import Store, opened

NAME_WIDTH: Final = 13
LINE_WIDTH: Final = 100
TRIALS_READ: Final = 200
"""Most trials from which the noise is learned; to read a hundred of a minute takes seconds."""
WANTED: Final = 0.05
"""Difference for which `show` prints the time that detects it."""
LEVELS_MANY: Final = 4
"""Fewest load levels of which every second may be left out: the others still show the curve."""
WORTH: Final = 0.85
"""Leaving out cells is worth it if the detectable difference shrinks to less than this share."""

plan_app = typer.Typer(no_args_is_help=True)


@plan_app.command("show")
def show(
    plan: options.PlanFile,
    scale: options.Scale = "",
    budget: options.Budget = None,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Show how long a plan file takes and what it detects. The smallest difference that the plan
    detects follows from the noise of earlier runs, or else of usual machines.
    """
    lines = described(read_file(plan, scale, budget), workspace).split("\n")
    sys.stdout.write("\n".join(map(printable, lines)))  # the plan may be a stranger's


@plan_app.command("list")
def list_shipped() -> None:
    """List dbdyno's own plans."""
    sys.stdout.write("".join(f"{name}\n" for name in shipped.names(shipped.PLANS)))
    note(f"the files are in {shipped.folder_of(shipped.PLANS)}")


@plan_app.command("schema")
def schema() -> None:
    """Print the JSON schema of plan files, for editors."""
    whole = schema_of_plans()
    rows = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(part)}" for key, part in whole["$defs"].items()
    )
    rest = json.dumps({key: part for key, part in whole.items() if key != "$defs"})
    sys.stdout.write(f'{rest[:-1]}, "$defs": {{\n{rows}\n}}}}\n')


def read_file(path: Path, scale: str, time: str | None) -> Plan:
    """Read a plan file, or dbdyno's plan of this name, with the command line's scale and budget.

    Raises:
        PlanError: all mistakes of the file; UsageError: the budget is no time.
    """
    path = Path(shipped.path_of(str(path), shipped.PLANS))
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


def pinned(plan: Plan) -> Plan:
    """The plan with a digest for each archive; archives without a digest are downloaded for it."""
    with noted() as lines:
        references = {
            reference: open.pinned(reference, lines.stage)
            for reference in dict.fromkeys(system.reference for system in plan.systems)
        }
    systems = tuple(
        system.model_copy(update={"reference": references[system.reference]})
        for system in plan.systems
    )
    return plan.model_copy(update={"systems": systems})


def described(plan: Plan, workspace: Path | None = None) -> str:
    """The text of `plan show`; the plan's budget is applied first.

    Args:
        workspace: where earlier runs may show the machine's noise.

    Raises:
        UsageError: the budget is too short for a block.
    """
    outlook = outlook_of(forecast.fitted(plan))
    lines = [facts_text(outlook.plan), "", *_procedure_rows(plan, outlook), ""]
    lines += _impossible(plan)
    lines += _overruled(plan)
    lines += _detectable(outlook, workspace)
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
    """Line with the blocks of the budget; None without a budget.

    Args:
        outlook: of the plan fitted into its budget.
        machines: number of machines running blocks in parallel.
    """
    budget_s = plan.design.budget_s
    if budget_s is None:
        return None
    blocks = outlook.plan.design.blocks
    where = f" on {machines} machines" if machines > 1 else ""
    few = f", too few for a verdict ({BLOCKS_MIN} are the least)" if blocks < BLOCKS_MIN else ""
    return f"budget {duration(budget_s)}{where}: {blocks} of {plan.design.blocks} blocks fit{few}"


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
    chosen = f"{count(trials, 'trial')} to choose the rates, {times}"
    return _row("pilot", f"{chosen}; no verdict uses them")


def _procedure_rows(plan: Plan, outlook: Outlook) -> list[str]:
    trials, all_cells = len(outlook.trials), len(outlook.cells)
    time = duration(outlook.seconds)
    settings = len(setting_names(plan.settings))
    shape = [
        count(len(plan.workloads), "workload"),
        count(all_cells // (len(plan.workloads) * settings), "level"),
        *([count(settings, "setting")] if settings > 1 else []),
    ]
    most = " at most, until every verdict has enough data" if plan.design.stop == "decided" else ""
    blocks = count(outlook.plan.design.blocks, "block")
    fit, need = in_budget(plan, outlook), disk.need(plan)
    others = ["for one machine; m machines run about m times the blocks"] * bool(plan.fleet.spread)
    return [
        *_row("cells", f"{all_cells} = {' × '.join(shape)}"),
        *_row(
            "trials", f"{trials} = {blocks} × {count(len(plan.systems), 'system')} × cells{most}"
        ),
        *_pilot(plan, outlook.pilot_trials),
        *_starts(plan, outlook.trials),
        *_row("time", f"about {time}{' at most' if most else ''}, downloads not counted"),
        *_node_hours(plan, outlook.seconds),
        *(_row("disk", need) if need else []),
        *(_row("budget", fit.removeprefix("budget "), *others) if fit else []),
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
    lines = ["cannot run, so these cells will be void"]
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
    return ["set by the plan's settings, not by the system's own", *lines, ""] if lines else []


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


def _detectable(outlook: Outlook, workspace: Path | None) -> Iterator[str]:
    """Table of the differences that the plan detects, by the noise of the machine."""
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
    yield f"differences that {count(design.blocks, 'block')} detect in four of five runs"
    aimed = f"blocks to detect {margin} in {_named(question)}"
    yield "  ".join(["  blocks differ by", *heads, "same if equal", aimed])
    known_noise = _learned(plan, workspace) if workspace else None
    rows = [known_noise] if known_noise else [assumed(start, window_s) for start in power.NOISES]
    for noise, name in zip(rows, [known_noise.sd()] if known_noise else power.NOISES, strict=True):
        known = (noise.sd(question.cells), math.inf, design.stop)
        ties = power.tie_power(design.margin, design.blocks, *known, question)
        needed = power.blocks_to_see(design.margin, *known, question)
        seen = [
            f"{_percent(_seen(design, noise, level)):>{len(head)}}"
            for level, head in zip(levels, heads, strict=True)
        ]
        yield "  ".join(
            [f"  {_percent(name):>16}", *seen, f"{ties * 100:>11.0f} %", _at_most(needed, design)]
        )
    yield from _in_time(outlook, known_noise, levels)


def _learned(plan: Plan, workspace: Path) -> BlockNoise | None:
    """Noise in the newest runs of the workspace that are like the plan; None without such runs."""
    with suppress(StoreError), opened(workspace) as store:
        return learned(_runs_like(store, plan, workspace), plan)
    return None


def _runs_like(
    store: Store, plan: Plan, workspace: Path
) -> Iterator[tuple[Plan, Sequence[Measurement]]]:
    read = 0
    for run in store.runs():
        if read >= TRIALS_READ:
            return
        if run.finished_at is None or not is_like(run.plan, plan):
            continue
        with suppress(StoreError):
            evidence = of_stored(store, run, workspace)
            read += len(evidence.measurements)
            yield evidence.plan, evidence.measurements


def _seen(design: DesignPlan, noise: BlockNoise, level: Question) -> float:
    sd = noise.sd(level.cells)
    return power.difference_seen(design.blocks, sd, math.inf, design.stop, level) or 0.0


def _in_time(
    outlook: Outlook, known: BlockNoise | None, levels: Sequence[Question]
) -> Iterator[str]:
    """Lines with the differences detected in the plan's time, the time for `WANTED`, the noise."""
    design, level, finest = outlook.plan.design, levels[0], levels[-1]
    noise = known or assumed(power.USUAL_NOISE, outlook.plan.trial.window_s)
    seen = [f"{_percent(_seen(design, noise, one))} in {_named(one)}" for one in levels]
    needed = power.blocks_to_see(WANTED, noise.sd(finest.cells), math.inf, design.stop, finest)
    most = _most_blocks(design)
    blocks = min(most, needed or most)
    over = "over " * (needed is None or needed > most)
    time = duration(outlook.seconds + (blocks - design.blocks) * outlook.block_s)
    percent = _percent(known.sd() if known else power.USUAL_NOISE)
    yield f"  in {duration(outlook.seconds)} at {percent}: {', '.join(seen)}"
    yield f"  time to detect {_percent(WANTED)} in {_named(finest)}: {over}{time}"
    # assumed noise is all of starts, which cells with a start each do not share
    in_step = known is not None or outlook.plan.procedure.restart == "block"
    fewer = _with_fewer_levels(outlook) if in_step else None
    if level.cells > 1 and fewer is not None:
        half = replace(level, cells=questions_of(fewer, cells(fewer))[0].cells)
        narrower = _seen(fewer.design, noise, half)
        if narrower < WORTH * _seen(design, noise, level):
            yield (
                f"  without every second load level: {_percent(narrower)} in {_named(half)},"
                " in the same time"
            )
    if known is None:
        yield f"  {percent} is usual on small virtual machines; the workspace has no similar run"
    else:
        cells_and_runs = f"{count(known.cells, 'cell')} in {count(known.runs, 'run')}"
        yield f"  {percent} is the noise of {cells_and_runs} of this workspace"


def _with_fewer_levels(outlook: Outlook) -> Plan | None:
    """The plan with every second load level, and the blocks that fit into its time then."""
    plan, levels = outlook.plan, outlook.plan.load.threads
    if len(levels) < LEVELS_MANY:
        return None
    load = plan.load.model_copy(update={"threads": sorted(levels)[::2]})
    fewer = outlook_of(plan.model_copy(update={"load": load}))
    if plan.design.time_s is not None:
        return fewer.plan
    return with_blocks(fewer.plan, int(plan.design.blocks * outlook.block_s / fewer.block_s))


def _named(level: Question) -> str:
    if level.cells > 1 and level.intervals > 1:
        return f"each of {level.intervals} workloads"
    if level.cells > 1:
        return f"all {level.cells} cells"
    return "the cell" if level.intervals == 1 else f"each of {level.intervals} cells"


def _most_blocks(design: DesignPlan) -> int:
    if design.time_s is not None:
        return BLOCKS_TIMED
    return HORIZON_MAX if design.stop == "decided" else BLOCKS_LOOKED_AHEAD


def _at_most(blocks: int | None, design: DesignPlan) -> str:
    most = _most_blocks(design)
    return f"over {most}" if blocks is None or blocks > most else str(blocks)


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.1f} %"
