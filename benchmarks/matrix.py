"""A whole plan beside a shell script's way of doing it: what each takes besides its windows.

Published comparisons run one cell after the other: restart the server, drop the caches, drop the
tables, load them, purge the binary logs, run. This script of our own does exactly that with
Debian's sysbench, on the same servers with the same settings as the plan. dbdyno runs the same plan
by its own procedure, blocks and warm-up included. What is compared is the time that each takes
besides the measured windows, for each window: a user pays for that and gets nothing.

The script's cells cost alike, so `--script-cells` of each system and setting stand for all of them.

    .venv/bin/python -m benchmarks.matrix                       # plans/mysql57-vs-80.yaml, small
    .venv/bin/python -m benchmarks.matrix --plan P --scale tiny --script-cells 1
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

from benchmarks.built import ROOT
from benchmarks.programs import dbdyno, run_program

from dbdyno.experiment.order import trials_of
from dbdyno.measurement.measurement import Cell
from dbdyno.plan import file
from dbdyno.plan.plan import Plan, cells
from dbdyno.plan.settings import combinations
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers import axes, open
from dbdyno.servers.base import Instance, Server, ServerSpec

TARGET = 1 / 3
THREADS_OF_A_SCRIPT = 4
"""Connections that load the tables, as many as dbdyno uses."""
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


@dataclass(frozen=True)
class Step:
    """One step of the script: what it was, and how long it took."""

    system: str
    cell: str
    what: str
    seconds: float


def main() -> int:
    """Runs both and prints the table; exit status 1 when the target is missed."""
    options = _options()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is wanted to compare with, and not installed: apt-get install sysbench")
    plan = file.read(Path(options.plan), open.check, scale=options.scale)
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder:
        Path(folder).chmod(0o755)
        for system in plan.systems:
            open.get(system.reference, print)
        steps = list(_script(plan, Path(folder), options.script_cells))
        wall_s = _whole_plan(options, Path(folder))
    windows = len(trials_of(plan, "")) * plan.trial.window_s
    script_s = sum(step.seconds for step in steps if step.what != "run") / _cells_of(steps)
    plan_s = (wall_s - windows) / len(trials_of(plan, ""))
    print(_table(plan, steps, script_s, plan_s, wall_s))
    if options.json:
        told = {"steps": [asdict(step) for step in steps], "plan_wall_s": wall_s}
        Path(options.json).write_text(json.dumps(told, indent=1))
    return 0 if plan_s <= options.target * script_s else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--plan", default=str(ROOT / "plans" / "mysql57-vs-80.yaml"))
    parser.add_argument("--scale", default="small")
    parser.add_argument("--script-cells", type=int, default=3, help="of each system and setting")
    parser.add_argument("--target", type=float, default=TARGET)
    parser.add_argument("--json", help="write the steps' times to this file")
    return parser.parse_args()


def _cells_of(steps: list[Step]) -> int:
    return sum(step.what == "run" for step in steps)


def _script(plan: Plan, folder: Path, count: int) -> Iterator[Step]:
    """The script: each system, each of its cells, one after the other."""
    for system in plan.systems:
        spec = ServerSpec(system.label, system.reference, system.settings)
        instance = open.instance(spec, folder / system.label, lambda text: None)
        try:
            for setting in combinations(plan.settings):
                ladder = [cell for cell in cells(plan) if cell.setting == setting]
                for cell in ladder[:count]:
                    yield from _cell(plan, system, instance, cell)
        finally:
            instance.close()


def _cell(plan: Plan, system: SystemPlan, instance: Instance, cell: Cell) -> Iterator[Step]:
    def timed(what: str, began: float) -> Step:
        step = Step(system.label, cell.key, what, time.monotonic() - began)
        print(f"{step.system} {step.cell} {what}: {step.seconds:.1f} s", file=sys.stderr)
        return step

    family, _, version = system.reference.partition(":")
    values = combinations(plan.settings)[cell.setting]
    began = time.monotonic()
    server = instance.start(axes.keys_of(family, version, values, plan.settings.own, 0))
    if plan.procedure.drop_caches:
        with suppress(OSError):  # an ordinary user may not; then the script is the quicker
            DROP_CACHES.write_text("3")
    yield timed("start", began)
    for command in ("cleanup", "prepare", "purge", "run"):
        began = time.monotonic()
        _command(command, plan, server, cell)
        yield timed(command, began)
    began = time.monotonic()
    server.stop()
    yield timed("stop", began)


def _command(command: str, plan: Plan, server: Server, cell: Cell) -> None:
    if command == "purge":
        server.ask("RESET MASTER")
        return
    threads = cell.threads if command == "run" else THREADS_OF_A_SCRIPT
    options = argparse.Namespace(
        tables=plan.dataset.tables,
        table_size=plan.dataset.rows,
        seconds=f"{plan.trial.window_s:.0f}",
    )
    prepared = f"--db-ps-mode={'auto' if plan.procedure.prepared_statements else 'disable'}"
    place = (plan.workload(cell.workload).name, "socket", threads)
    run_program(["sysbench"], server, options, place, command, prepared)


def _whole_plan(options: argparse.Namespace, folder: Path) -> float:
    """How long dbdyno takes for the whole plan, report included, in seconds."""
    command = [dbdyno(), "run", options.plan, "--scale", options.scale]
    began = time.monotonic()
    subprocess.run([*command, "--workspace", str(folder / "runs")], check=True, stdout=sys.stderr)
    return time.monotonic() - began


def _table(plan: Plan, steps: list[Step], script_s: float, plan_s: float, wall_s: float) -> str:
    kinds = dict.fromkeys(step.what for step in steps if step.what != "run")
    parts = ", ".join(
        f"{kind} {mean(step.seconds for step in steps if step.what == kind):.1f} s"
        for kind in kinds
    )
    verdict = "met" if plan_s <= TARGET * script_s else "missed"
    return (
        f"Besides a window of {plan.trial.window_s:g} s:\n"
        f"  script: {script_s:.1f} s a cell ({parts})\n"
        f"  dbdyno: {plan_s:.1f} s a trial, warm-up of {plan.trial.warmup_s:g} s included"
        f" ({len(trials_of(plan, ''))} trials in {wall_s:.0f} s)\n"
        f"ratio {plan_s / script_s:.2f} (target {TARGET:.2f}): {verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
